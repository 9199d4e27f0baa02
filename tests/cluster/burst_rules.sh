#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What is not a burst rents nothing; a requeued burst frees or hands over its machines; want of capacity is told in words.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/../fault/burst_lib.sh"
burst_cluster --cpus 4

allocates() { on cloud grep -c '"path":"/v1/gpu/allocate"' /var/lib/cloudsim/requests.jsonl || [ $? -eq 1 ]; }

# All own nodes are busy: a plain job for more than there are waits, and nothing is rented for it.
busy=$(submit ctl -N2 -t 5 <<<'sleep 300')
wait_for_job "$busy" RUNNING 20
plain=$(submit ctl -N4 -t 5 <<<'true')
sleep 3
equal "$(job_field "$plain" JobState)" PENDING "a plain job while all own nodes are busy"
equal "$(allocates)" 0 "allocate calls for plain jobs"
on ctl scancel "$busy" "$plain"

# A count of tasks in all is shared out evenly, where Slurm itself would fill one node first.
job=$(submit ctl -N1 -n2 -t 5 --autocloud-burst=2 <<<'mpirun hostname')
wait_for_job "$job" COMPLETED 40
equal "$(output_of "$job" | sed 's/own-.*/own/' | sort | uniq -c | tr -s ' \n' ' ')" " 2 burst-0 2 burst-1 2 own " "tasks of each node"
within 30 all_given_back

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
ledger_equals_bill 4
never_two_for_one

# A machine that the cloud says it does not know: its lease stays until root gives it up, and comes back should the cloud
# bill it after all.
job=$(burst)
wait_for_job "$job" COMPLETED 40
fault add unknown --path '/v1/gpu/allocations*' --status 404 --code not_found
key() { leases | jq -r "[.leases[] | select(.job == $job)][0].lease"; }
is_unknown() { leases | jq -e ".leases | any(.job == $job and .state == \"releasing\" and (.error // \"\" | test(\"not_found\")))" >/dev/null; }
within 20 is_unknown
lease=$(key)
matches "$(fails as_user ctl autocloud close "$lease")" "for root and SlurmUser alone" "a user closes a lease"
matches "$(fails on ctl autocloud close nonsense)" "lease 'nonsense': there is none" "an unknown lease"
on ctl autocloud close "$lease"
is_closed() { leases | jq -e ".leases | any(.lease == \"$lease\" and .state == \"gone\")" >/dev/null; }
within 5 is_closed
fault remove unknown
within 60 all_given_back
ledger_equals_bill 6

# The check before the daemon's start: what a twin allows beyond its partition is a fault.
check() { on ctl setpriv --reuid=slurm --regid=slurm --clear-groups autocloudd --check 2>/dev/null; }
matches "$(check)" "v100-spot: v100-32gb, spot, 0.91 USD an hour.*slurm: [0-9]+ of" "what may be rented"
on ctl scontrol update PartitionName=batch MaxTime=60 AllowGroups=root
text=$(check) && fail "a twin that allows more is no fault: $text"
matches "$text" "fault: twins.batch: partition batch-burst: AllowGroups is not set, the partition's is root" "the check"
matches "$text" "MaxTime is 1440 minutes, the partition's is 60" "the check"
