#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# autocloudd killed at the 1st, 2nd, 3rd ... point of a burst's life, until a life passes without a kill: before and after every
# commit of the ledger and every change in Slurm, and before every call to the cloud, once its request is sent, and when its
# answer has come (kill_points.cpp). Each time the job runs, or what it had is given back; nothing is rented twice or
# forgotten; the next job runs.
#
#   daemon_kills_in_turn.sh run|cancel   the two kinds of life: see kill_life.sh
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/burst_lib.sh"

# life first N | life run N M | life cancel N
life() {
  on ctl bash /run/kill_life.sh "$@" >"$points" || fail "a life: $*"
  [ "$(rented)" -eq 0 ] || fail "a life: $*: all leases are closed, but rented is $(cloudsim instances)"
  sed "s/^/$*: /" "$points" | tee -a "$all_points"
}
has_passed() { grep -q "^$1: none" "$points"; }

lives_of_run() {
  local n renting=1 giving=1
  for ((n = 1; ; ++n)); do
    life first $n
    ! has_passed "first start" || break
  done
  compare_calls
  for ((n = 1; renting + giving > 0; ++n)); do
    life run $((renting * n)) $((giving * n))
    ! has_passed renting || renting=0
    ! has_passed "giving back" || giving=0
  done
}

lives_of_cancel() {
  local n
  for ((n = 1; ; ++n)); do
    life cancel $n
    ! has_passed cancelled || return 0
  done
}

# The shim misses no call: in a life without a kill, the cloud has logged as many as were sent.
compare_calls() {
  local before sent
  before=$(requests)
  life run 0 0
  sent=$(on ctl sh -c 'cat /tmp/kill_points.renting /tmp/kill_points.giving' | grep -c '^call sent')
  equal $(($(requests) - before)) "$sent" "requests in the cloud's log"
}
requests() { on cloud sh -c 'wc -l </var/lib/cloudsim/requests.jsonl'; }

# As all_given_back, but where a cancelled job's create call may still arrive, its lease is open and its node drained.
is_given_back() {
  [ "$(rented)" -eq 0 ] && leases | jq -e '.leases | all(.state == "gone" or (.state == "releasing" and .instance == null))' >/dev/null &&
    [ -z "$(on ctl sinfo -h -N -p batch-burst -o '%N %T' | grep '^burst-' | grep -vE ' (idle|drained)~$')" ]
}

points=$(mktemp)
all_points=$(mktemp)
at_end+=("rm -f $points $all_points")
burst_cluster --burst 16 # a cancelled life may leave one that is not to be used for two minutes
on ctl tee /run/kill_points.so <"$build/tests/libkill_points.so" >/dev/null
on ctl tee /run/kill_life.sh <"$project/tests/fault/kill_life.sh" >/dev/null
kill_daemon
"lives_of_$1"

start_daemon
job=$(submit ctl -N1 -t 5 --ntasks-per-node=1 --autocloud-burst=2 <<<'srun hostname')
wait_for_job "$job" COMPLETED 60
within 60 is_given_back
ledger_equals_bill 4
never_two_for_one
sed -n 's/^[^:]*: \(.*: [a-z]* [a-z]*\).*/\1/p' "$all_points" | sort | uniq -c
echo "$1: in $SECONDS s"
