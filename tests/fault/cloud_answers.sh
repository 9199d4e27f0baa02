#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A cloud that answers badly. For a while: the job still runs. Without capacity for ever: its user reads why, with the
# cloud's code and request id. Always: what the cloud bills is in the ledger, to the second.
#
#   OUTAGE_S=60 tests/fault/cloud_answers.sh     # an outage as long as a cloud may have
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/../cluster/lib.sh"

outage=${OUTAGE_S:-5}
scenario=$(mktemp /tmp/scenario-XXXXXX)
changes=$(mktemp /tmp/changes-XXXXXX)
at_end+=("rm -f $scenario $changes")
cat >"$scenario" <<'TOML'
[boot]
delay_s = 0.2
[release]
delay_s = 0.1
[offers.v100-spot]
gpu_type = "v100-32gb"
market = "spot"
price = "0.91"
TOML
printf '[nodes]\nidle_release_s = 1\n' >"$changes"
cluster_up --scenario "$scenario" --autocloud-toml "$changes"

burst() {
  submit ctl -N1 -t 5 --ntasks-per-node=1 --autocloud-burst=1 <<<'true'
}
fault() {
  on cloud cloudsim fault "$@" --state /var/lib/cloudsim >/dev/null
}
nothing_rented() {
  [ "$(rented)" -eq 0 ]
}
bill_is_ledger() {
  [ "$(on ctl autocloud leases --json |
    jq -c '[.leases[] | select(.instance != null) | [.instance, .billed_s, .cost]] | sort')" = \
    "$(cloudsim bill --json | jq -c '[.instances[] | [.instance_id, .billed_s, .cost]] | sort')" ]
}

# What users read, in their own name, in both places.
reads_why() {
  local text
  text=$(as_user ctl autocloud status "$job" --json | jq -r '.bursts[0].reason.text // ""') &&
    [[ $text =~ $1 ]] && [[ $text =~ req-?[0-9a-z]+ ]] &&
    [[ $(as_user ctl scontrol show job "$job") =~ AdminComment=autocloud:v1[^$'\n']*$1 ]]
}

# Answers of the allocate call, or of every call of the API.
while read -r -u 3 name options; do
  # shellcheck disable=SC2086 # options are words
  fault add "$name" $options
  started=$SECONDS
  job=$(burst)
  within $((outage + 50)) job_is "$job" COMPLETED
  fault remove "$name"
  within 20 nothing_rented
  within 10 bill_is_ledger
  echo "$name: completed after $((SECONDS - started)) s"
done 3<<CASES
throttled --status 429 --code rate_limited --until-s $outage
told-to-wait --status 429 --code rate_limited --retry-after-s 3 --count 2 --path /v1/gpu/allocate
internal --status 500 --code internal --until-s $outage
unavailable --status 503 --until-s $outage
dropped --kind drop --until-s $outage
slow --kind slow --delay-s 2 --until-s $outage
reply-lost --kind lose_reply --path /v1/gpu/allocate --count 1
garbled --kind garble --path /v1/gpu/allocate --count 1
done-then-500 --kind error_after --status 500 --code internal --path /v1/gpu/allocate --count 1
CASES

while read -r -u 3 code options; do
  # shellcheck disable=SC2086 # options are words
  fault add forever $options --code "$code"
  job=$(burst)
  within 60 reads_why "$code"
  echo "$code: $(as_user ctl autocloud status "$job" --json | jq -r '.bursts[0].reason.text')"
  as_user ctl scancel "$job"
  fault remove forever
  within 20 nothing_rented
  within 10 bill_is_ledger
done 3<<CASES
insufficient_capacity --status 409 --path /v1/gpu/allocate
CASES
