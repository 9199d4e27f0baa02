#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What is not a burst rents nothing; a requeued burst frees or hands over its machines; want of capacity is told in words.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/../fault/burst_lib.sh"
burst_cluster

allocates() { on cloud grep -c '"path":"/v1/gpu/allocate"' /var/lib/cloudsim/requests.jsonl || [ $? -eq 1 ]; }

# All own nodes are busy: a plain job for more than there are waits, and nothing is rented for it.
busy=$(submit ctl -N2 -t 5 <<<'sleep 300')
wait_for_job "$busy" RUNNING 20
plain=$(submit ctl -N4 -t 5 <<<'true')
sleep 3
equal "$(job_field "$plain" JobState)" PENDING "a plain job while all own nodes are busy"
equal "$(allocates)" 0 "allocate calls for plain jobs"
on ctl scancel "$busy" "$plain"

# A running burst is requeued: its next start has two machines again, and none is left over.
# shellcheck disable=SC2016 # for the job
job=$(submit ctl -N1 -t 5 --ntasks-per-node=1 --autocloud-burst=2 \
  <<<'srun hostname; [ "${SLURM_RESTART_COUNT:-0}" -gt 0 ] || sleep 300')
wait_for_job "$job" RUNNING 40
as_user ctl scontrol requeue "$job"
not_running() { ! job_is "$job" RUNNING; }
within 10 not_running
wait_for_job "$job" COMPLETED 60
equal "$(job_field "$job" Restarts)" 1 "restarts"
within 30 all_given_back
ledger_equals_bill 2
never_two_for_one
