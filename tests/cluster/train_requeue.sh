#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A job that is told to leave saves and goes back into the queue; its next start goes on, to the weights of an undisturbed run.
# One that must not go back says so and fails.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/train_lib.sh"

job=$(submit ctl -N1 --ntasks-per-node=1 --no-kill --requeue --open-mode=append -t 5 <<<'exec ./job.sh')
within 30 step_reached "$job" 20
as_user ctl scancel --signal=USR2 --batch "$job"
within 20 job_is "$job" PENDING
saved=$(event "$job" requeue .step)
as_user ctl scontrol update "JobId=$job" StartTime=now
wait_for_job "$job" COMPLETED 60
equal "$(job_field "$job" Restarts)" 1 "restarts"
equal "$(as_user ctl cat "run-$job/events.jsonl" | jq -s "map(select(.event == \"step\" and .step <= $saved)) | length")" \
  "$saved" "steps up to the save, each computed once"

alone=$(submit ctl -N1 --ntasks-per-node=1 -t 5 <<<'exec ./job.sh')
wait_for_job "$alone" COMPLETED 60
equal "$(hash_of "$job")" "$(hash_of "$alone")" "weights"

kept=$(submit ctl -N1 --ntasks-per-node=1 --no-kill -t 5 <<<'
exec ./autocloud-run --run-dir kept --no-requeue -- mpirun ./autocloud-train --config train.toml --run-folder kept')
running() { as_user ctl grep -q event...step kept/events.jsonl 2>/dev/null; }
within 30 running
as_user ctl scancel --signal=USR2 --batch "$kept"
wait_for_job "$kept" FAILED 30
matches "$(output_of "$kept")" 'not requeued, as asked' "what is said"
