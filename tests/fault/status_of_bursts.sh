#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What `autocloud` tells of a burst: to its user and to root all, to others nothing. And what a burst is made to cost:
# no more minutes are asked for than the offer sells at least.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/../cluster/lib.sh"

cluster_up --onprem 2
as_nobody() {
  on ctl setpriv --reuid=nobody --regid=nogroup --clear-groups "$@"
}
job=$(submit ctl -N1 -t 5 --ntasks-per-node=1 --autocloud-burst=1 <<<'while [ ! -e stop ]; do sleep 0.1; done')
wait_for_job "$job" RUNNING 30

times='.bursts[0] | .job, .state, ([.opened_at, .allocated_at, .registered_at, .started_at] | all(type == "string") and . == sort)'
is_told() {
  [ "$("$@" autocloud status "$job" --json | jq -r "$times" | paste -sd' ')" = "$job running true" ]
}
within 5 is_told as_user ctl
within 5 is_told on ctl
matches "$(fails as_nobody autocloud status "$job")" "job $job: no burst of yours" "status of somebody else's job"
matches "$(fails as_user ctl autocloud status 999999)" "job 999999: no burst of yours" "status of an unknown job"
as_user ctl autocloud status 999999 2>/dev/null && status=0 || status=$?
equal "$status" 1 "exit status for an unknown job"

equal "$(as_user ctl autocloud leases --json | jq '.leases | length')" 1 "leases that their user sees"
equal "$(as_nobody autocloud leases --json | jq '.leases | length')" 0 "leases that others see"
instance='[.nodes[] | .instance | select(. != null)] | length'
equal "$(as_user ctl autocloud nodes --json | jq "$instance")" 1 "instances that their user sees"
equal "$(as_nobody autocloud nodes --json | jq "$instance")" 0 "instances that others see"
as_user ctl autocloud cost --json | jq -e . >/dev/null
# The words of the hooks are theirs alone.
# shellcheck disable=SC2016 # for perl
poke='$daemon = IO::Socket::UNIX->new(Peer => "/run/autocloud-burst/autocloudd.sock"); print $daemon "{\"op\":\"poke\"}\n"; print scalar <$daemon>'
equal "$(as_user ctl perl -MIO::Socket::UNIX -e "$poke" | jq -r .error.code)" denied "a poke by a user"

as_user ctl touch stop
wait_for_job "$job" COMPLETED 10
nothing_rented() {
  [ "$(rented)" -eq 0 ]
}
within 80 nothing_rented
between "$(cloudsim bill --json | jq '.instances[0].billed_s')" 60 90 "billed seconds, of at least one minute"
