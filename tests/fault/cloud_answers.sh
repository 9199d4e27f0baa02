#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A cloud that answers badly. For a while: the job runs without its user's doing anything. For ever: its user reads why,
# with the cloud's code and request id, within a minute of the submit. Always: what the cloud bills is in the ledger, to
# the second.
#
#   OUTAGE_S=60 tests/fault/cloud_answers.sh     # outages as long as a cloud may have, in more kinds
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/burst_lib.sh"
outage=${OUTAGE_S:-5}
node_settings='boot_timeout_s = 45'
# One CPU each: Slurm lets two such jobs share no node, so that each has a key of its own.
burst_cluster --onprem 12 --burst 24 --cpus 1

last=0
declare -A job_of started told

# start NAME OPTION...: a burst, and a fault of this name that strikes what is done under its keys alone. An offer without
# capacity rests for all: those jobs have a market of their own.
start() {
  local name=$1 market=spot
  shift
  [[ $* != *insufficient_capacity* ]] || market=on-demand
  fault add "$name" --key "*/$((last + 1))/*" "$@"
  # None ends before all have their machines: a machine left by one would serve the next, without a call.
  last=$(submit ctl -N1 -t 5 --ntasks-per-node=1 --autocloud-burst=1 --autocloud-market="$market" \
    <<<'until [ -e go ]; do sleep 0.2; done')
  job_of[$name]=$last
  started[$name]=$SECONDS
}
reason_of() { as_user ctl autocloud status "$1" --json | jq -r '.bursts[0].reason.text // ""'; }

# reads_why JOB REGEX: what its user reads in both places: what went wrong, and how the cloud finds the request again.
reads_why() {
  local text comment named='(request (req|al)-[0-9a-f]+|idempotency key [^ )]+/[0-9]+)'
  text=$(reason_of "$1") && comment=$(as_user ctl scontrol show job "$1" | sed -n 's/^ *AdminComment=//p') &&
    [[ $text =~ $2 && $text =~ $named && $comment =~ ^autocloud:v1 && $comment =~ $2 && $comment =~ $named ]]
}

# end_outages NAME...: each fault ends $outage seconds after it was first met. All must be.
end_outages() {
  local -A met=()
  local names=" $* " name deadline=$((SECONDS + outage + 90))
  while [ -n "${names// /}" ]; do
    [ "$SECONDS" -lt "$deadline" ] || fail "faults that were never met:$names"
    for name in $(on cloud cloudsim fault list --state /var/lib/cloudsim --json | jq -r '.[] | select(.hits > 0).name'); do
      : "${met[$name]:=$SECONDS}"
      if [[ $names == *" $name "* ]] && [ $((SECONDS - met[$name])) -ge "$outage" ]; then
        fault remove "$name"
        names=${names/ $name / }
      fi
    done
    sleep 0.5
  done
}
# all_run SECONDS NAME...
all_run() {
  local end=$((SECONDS + $1)) name names
  shift
  names=" $* "
  while [ -n "${names// /}" ]; do
    for name in $names; do
      if job_is "${job_of[$name]}" RUNNING || job_is "${job_of[$name]}" COMPLETED; then
        echo "$name for $outage s: runs after $((SECONDS - started[$name])) s," \
          "$(job_field "${job_of[$name]}" Restarts) restarts"
        names=${names/ $name / }
      fi
    done
    [ "$SECONDS" -lt "$end" ] || fail "do not run:$names"
    sleep 0.5
  done
}

# all_are_told NAME...: each job's user reads why (what ${told[NAME]} matches) within a minute of its submit.
all_are_told() {
  local name names=" $* "
  while [ -n "${names// /}" ]; do
    for name in $names; do
      if reads_why "${job_of[$name]}" "${told[$name]}"; then
        echo "$name for ever: told after $((SECONDS - started[$name])) s: $(reason_of "${job_of[$name]}")"
        names=${names/ $name / }
      fi
      [ $((SECONDS - started[$name])) -le 60 ] || fail "$name: not told why: '$(reason_of "${job_of[$name]}")'"
    done
    sleep 0.5
  done
}

# --- for a while, each job for itself
while read -r -u 3 name options; do
  # shellcheck disable=SC2086 # options are words
  start "$name" $options
done 3<<'CASES'
boot-never --kind boot_never
boot-fails --kind boot_fails
no-capacity --status 409 --code insufficient_capacity
throttled --status 429 --code rate_limited
told-to-wait --status 429 --code rate_limited --retry-after-s 3
internal --status 500 --code internal
unavailable --status 503
dropped --kind drop
slow --kind slow --delay-s 2
reply-lost --kind lose_reply
garbled --kind garble
done-then-500 --kind error_after --status 500 --code internal
CASES
at_once=(boot-fails no-capacity throttled told-to-wait internal unavailable dropped slow reply-lost garbled done-then-500)
end_outages boot-never "${at_once[@]}"
all_run $((outage + 100)) "${at_once[@]}"
as_user ctl touch go

# --- for a while, and for every call: also those that look for offers, ask and give back
while read -r -u 3 name options; do
  [ -n "$name" ] || continue
  # shellcheck disable=SC2086 # options are words
  fault add "$name" $options
  job_of[$name]=$(burst --autocloud-burst=1)
  last=${job_of[$name]}
  started[$name]=$SECONDS
  end_outages "$name"
  all_run $((outage + 60)) "$name"
done 3<<CASES
every-dropped --kind drop
$([ "$outage" -lt 60 ] || echo "every-internal --status 500 --code internal
every-throttled --status 429 --code rate_limited
every-unavailable --status 503
every-slow --kind slow --delay-s 5
every-garbled --kind garble")
CASES

# A machine that is still there would serve a job below without a call.
all_run $((outage + 120)) boot-never
within 40 all_given_back

# --- for ever, each job for itself. Slow and garbled are not here: where all else works the job runs all the same.
while read -r -u 3 name why options; do
  # shellcheck disable=SC2086 # options are words
  start "$name" $options
  told[$name]=$why
done 3<<'CASES'
boot-never-up still.booting.*i-[0-9a-f]+ --kind boot_never
boot-fails-always boot_failed --kind boot_fails
quota quota_exceeded --status 403 --code quota_exceeded
capacity insufficient_capacity --status 409 --code insufficient_capacity
rate rate_limited --status 429 --code rate_limited
rate-with-wait rate_limited --status 429 --code rate_limited --retry-after-s 600
always-internal internal --status 500 --code internal
always-unavailable unavailable --status 503
always-dropped unreachable:.*connection.dropped --kind drop
CASES
ever=(boot-fails-always quota capacity rate rate-with-wait always-internal always-unavailable always-dropped
  boot-never-up)
all_are_told "${ever[@]}"

# The tries go on, less and less often; each requeue keeps the reason, the next try and the count of failures.
standing() {
  as_user ctl autocloud status "${job_of[capacity]}" --json |
    jq -r '.bursts[0] | "\(.restart) \(.failures) \(.next_try // "none")"'
}
has_failed() {
  local restart failures
  read -r restart failures next <<<"$(standing)" && [ "$restart" -ge "$1" ] && [ "$failures" -ge "$1" ] &&
    [ "$next" != none ] && reads_why "${job_of[capacity]}" insufficient_capacity && job_is "${job_of[capacity]}" PENDING
}
within 70 has_failed 2
between $(($(date -d "$next" +%s) - $(date +%s))) 5 60 "seconds to the third try"
matches "$(as_user ctl scontrol show job "${job_of[capacity]}")" "next try at ${next%.*}" "admin comment of a waiting job"

for name in "${ever[@]}"; do
  as_user ctl scancel "${job_of[$name]}"
done
fault remove
within 40 nothing_rented

# --- for ever, and for every call; an answer that does not come names no request
while read -r -u 3 name why options; do
  # shellcheck disable=SC2086 # options are words
  fault add "$name" $options
  job=$(burst --autocloud-burst=1)
  began=$SECONDS
  is_told() {
    [[ $(reason_of "$job") =~ $why &&
      $(as_user ctl scontrol show job "$job") =~ AdminComment=autocloud:v1[^$'\n']*$why ]]
  }
  within 60 is_told
  echo "$name for ever: told after $((SECONDS - began)) s: $(reason_of "$job")"
  as_user ctl scancel "$job"
  fault remove "$name"
done 3<<'CASES'
every-internal internal.*.request.req-[0-9a-f]+ --status 500 --code internal
every-dropped unreachable:.*connection.dropped --kind drop
every-garbled garbled:.*.request.req-[0-9a-f]+ --kind garble
every-slow timeout:.*no.answer.within.[0-9]+.s --kind slow --delay-s 40
CASES

# --- and then
# One of its nodes may be that of a call still without an answer, and the job is tried twice.
job=$(burst)
wait_for_job "$job" COMPLETED 120
within 30 nothing_rented
ledger_equals_bill 10
never_two_for_one
