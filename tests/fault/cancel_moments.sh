#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# scancel at 20 moments between submit and start: what was rented is given back or serves the next job, and that one runs.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/burst_lib.sh"
burst_cluster

for moment in 0.0 0.3 0.6 0.9 1.2 1.5 1.8 2.1 2.3 2.5 2.7 2.9 3.1 3.3 3.5 3.7 3.9 4.2 4.6 5.0; do
  job=$(burst)
  sleep "$moment"
  on ctl scancel "$job"
  # Most meet machines that the one before has left; every fourth begins from none.
  if [ $((job % 4)) -eq 0 ]; then
    within 30 all_given_back
  fi
done

job=$(burst)
wait_for_job "$job" COMPLETED 40
equal "$(output_of "$job" | sort -u | wc -l)" 3 "hosts of the job after the cancelled ones"
within 30 all_given_back
ledger_equals_bill 2
never_two_for_one
