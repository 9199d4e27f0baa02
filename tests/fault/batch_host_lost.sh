#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The batch host dies: Slurm, at its own default SlurmdTimeout, would hold on to it for five minutes, and then leave the
# job RUNNING without a script. The job's other nodes and slurmctld agree that it is lost; the daemon sets it down and
# requeues the job, which starts again within 30 s and ends with the weights of an undisturbed run.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/batch_host_lib.sh"
batch_host_cluster

job=$(train lost -N1 --autocloud-burst=2 --comment="a user's words")
wait_for_job "$job" RUNNING 40
within 60 trained lost 30
host=$(job_field "$job" BatchHost)
matches "$host" '^own-' "batch host"
cut_power "$host"
began=$SECONDS
again() { [ "$(job_field "$job" Restarts)" = 1 ] && job_is "$job" RUNNING && [ "$(starts_of lost)" = 2 ]; }
within 30 again
echo "running again after $((SECONDS - began)) s"
matches "$(on ctl squeue -h -j "$job" -o %k)" "^a user's words; autocloud: start 0 lost $host " "comment"
matches "$(on ctl scontrol show node "$host")" 'State=DOWN.*Reason=Not responding' "the lost host"
wait_for_job "$job" COMPLETED 90
[ "$(job_field "$job" Restarts)" = 1 ] || fail "started again once more"

ends_like_an_undisturbed_run lost
within 30 all_given_back
ledger_equals_bill 2
never_two_for_one
