#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A batch host that half of the cluster does not reach is not lost: its run goes on, and the job is not started again.
# First slurmctld loses it while the job's nodes reach it, then the job's nodes lose it while slurmctld reaches it.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/batch_host_lib.sh"
batch_host_cluster
steps=100000

# lose_route HOST NETWORK, find_route HOST NETWORK: a firewall between the two that drops without a word.
lose_route() { on "$1" ip route add blackhole "$2"; }
find_route() { on "$1" ip route del blackhole "$2"; }
# The signal makes slurmctld try the host.
signal() { as_user ctl scancel --batch --signal=CONT "$job"; }
does_not_respond() { on ctl scontrol show node "$host" | grep -q NOT_RESPONDING; }
responds() { signal && ! does_not_respond; }
is_marked() { on ctl squeue -h -j "$job" -o %k | grep -q "autocloud: start 0 lost $host "; }
goes_on() {
  local before
  before=$(events_of run step)
  within 30 trained run $((before + 10))
  equal "$(job_field "$job" Restarts)" 0 "restarts"
  equal "$(starts_of run)" 1 "starts of autocloud-run"
}

job=$(train run -N1 --autocloud-burst=2)
wait_for_job "$job" RUNNING 40
within 60 trained run 30
host=$(job_field "$job" BatchHost)
lose_route "$host" 10.1.0.2/32
signal
within 30 does_not_respond
sleep 5
goes_on
! is_marked || fail "the job's nodes say that they have lost $host"
find_route "$host" 10.1.0.2/32
within 60 responds

lose_route "$host" 10.2.0.0/16
within 30 is_marked
# As long as slurmctld needs to find that a host does not answer.
sleep 15
! does_not_respond || fail "slurmctld has lost $host too"
goes_on

find_route "$host" 10.2.0.0/16
as_user ctl scancel "$job"
wait_for_job "$job" CANCELLED 60
within 60 all_given_back
