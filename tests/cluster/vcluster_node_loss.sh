#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A job with --no-kill goes on without a node that was cut; the node is idle again after heal.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"

cluster_up --plain --onprem 3
job=$(submit ctl -N3 --no-kill <<<'while [ ! -e stop ]; do sleep 0.1; done; echo ended')
wait_for_job "$job" RUNNING 10
equal "$(job_field "$job" BatchHost)" own-0 "batch host"

cut_power own-2
on ctl scontrol update nodename=own-2 state=down reason=cut
job_has_nodes() {
  [ "$(job_field "$job" NodeList)" = "$1" ]
}
within 5 job_has_nodes "own-[0-1]"
equal "$(job_field "$job" JobState)" RUNNING "job after the cut"
matches "$(node_state own-2)" "down" "node after the cut"

heal own-2
within 10 test "$(node_state own-2)" = idle
as_user ctl touch stop
wait_for_job "$job" COMPLETED 10
equal "$(output_of "$job")" ended "output"
