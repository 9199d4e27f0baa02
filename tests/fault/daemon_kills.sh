#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# autocloudd killed at 20 random moments while bursts come and go: every job runs, nothing is rented twice or forgotten.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/burst_lib.sh"
burst_cluster

RANDOM=${SEED:-1}
kills=0
jobs=()
while [ "$kills" -lt 20 ]; do
  job=$(burst)
  jobs+=("$job")
  until job_is "$job" COMPLETED; do
    [ "$kills" -lt 20 ] || break
    sleep "$((RANDOM % 2)).$((RANDOM % 10))"
    kill_daemon
    start_daemon
    kills=$((kills + 1))
  done
done
for job in "${jobs[@]}"; do
  wait_for_job "$job" COMPLETED 60
done
within 40 all_given_back
ledger_equals_bill 2
never_two_for_one
echo "20 kills over ${#jobs[@]} jobs"
