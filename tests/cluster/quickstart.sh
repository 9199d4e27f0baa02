#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The quickstart, after an earlier one was killed in mid-run: nothing stale is in the way, and what it shows holds.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"
require_namespaces
trap end_of_test EXIT

export PRESET=${build##*/}
summary=$project/build/quickstart/summary.json
log=$project/build/quickstart-killed.log

setsid "$project/contrib/quickstart.sh" >"$log" 2>&1 &
first=$!
at_end+=("kill -KILL -- -$first 2>/dev/null || true" "rm -f $log $log.second" "$vcluster -n quickstart down")
within 120 grep -q "training on 4 nodes" "$log"
# One at a time: the second leaves the first alone.
fails "$project/contrib/quickstart.sh" >"$log.second"
grep -q "one is running already (pid $first)" "$log.second" || fail "the second says: $(cat "$log.second")"
"$vcluster" -n quickstart status >/dev/null || fail "the second quickstart has ended the first one's cluster"
kill -KILL -- "-$first"
# Its cluster is still up, training.
"$vcluster" list | grep -q quickstart || fail "the killed quickstart's cluster should still be there"

"$project/contrib/quickstart.sh" || fail "the second quickstart"

holds() { jq -e "$1" "$summary" >/dev/null || fail "$1 does not hold in $(cat "$summary")"; }
holds '.nodes == {onprem: 2, cloud: 2}'
holds '.steps.total >= 200 and .steps.redone <= 0.01 * .steps.total'
holds '.final_loss <= 0.8 * .first_loss and .final_loss == .final_loss_undisturbed'
holds '(.weights_sha256 | length) == 64 and .weights_sha256 == .weights_sha256_undisturbed'
holds '.seconds.registered_to_start <= 1 and .seconds.lost_to_training <= 15'
holds '(.leases | length) == 2 and .billed_as_ledgered and .instances_left == 0'
# What is hashed is what is there.
for run in burst undisturbed; do
  equal "$("$build/bin/autocloud-ckpt" hash "$project/build/quickstart/$run/final" | cut -d' ' -f1)" \
    "$(jq -r .weights_sha256 "$summary")" "hash of the $run run's final checkpoint"
done
# The loss came in the middle of the run.
lost=$(jq -s 'map(.event == "loss") | index(true) as $i | $i' "$project/build/quickstart/burst-events.jsonl")
matches "$lost" '^[0-9]+$' "a loss in the events"
fails "$vcluster" -n quickstart status >/dev/null
