#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Training over two nodes cut within a second, and a third later, ends with the weights of an undisturbed run. None of them
# holds the only other copy of another's share, so that each loss costs the step that was under way.
# shellcheck source-path=SCRIPTDIR
onprem=4
. "$(dirname "$0")/train_lib.sh"

job=$(submit ctl -N4 --ntasks-per-node=1 --no-kill -t 5 <<<'exec ./job.sh')
within 30 step_reached "$job" 10
cut_power own-1
cut_power own-3
within 40 step_reached "$job" 60
cut_power own-2
wait_for_job "$job" COMPLETED 60
equal "$(event "$job" restart '.nodes | join(",")')" own-0 "nodes of the last restart"
redone=$(as_user ctl cat "run-$job/events.jsonl" | jq -cs 'map(select(.event == "training").redone)')
jq -e 'length >= 2 and all(. <= 1)' <<<"$redone" >/dev/null || fail "steps redone after each loss: $redone, at most 1 each"

alone=$(submit ctl -N1 -w own-0 --ntasks-per-node=1 -t 5 <<<'exec ./job.sh')
wait_for_job "$alone" COMPLETED 60
equal "$(hash_of "$job")" "$(hash_of "$alone")" "weights"
