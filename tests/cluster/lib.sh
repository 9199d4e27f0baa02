# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034 # variables are for the tests
# For tests on a real Slurm. A test is a bash script that starts with
#
#   . "$(dirname "$0")/lib.sh"
#   cluster_up --plain                       # options of `vcluster up`; ended again when the script ends
#   on ctl sinfo                             # as root on a host
#   job=$(submit ctl -N2 <<<'mpirun hostname') # as the job user; the script comes from standard input
#   wait_for_job "$job" COMPLETED 20
#   equal "$(output_of "$job" | sort -u | wc -l)" 2 "hosts that took part"
#
# Exit status: 0 passed, 1 failed, 77 the machine cannot run it. A failure prints the last lines of the hosts' logs.
set -euo pipefail

tests=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
project=$(cd "$tests/../.." && pwd)
vcluster=$project/contrib/vcluster/vcluster
build=${ACB_BUILD_DIR:-$project/build/release}
cluster=t$$
home=/shared/home/researcher
at_end=() # commands to run when the test ends: at_end+=("rm -f $file")

skip() {
  echo "skipped: $*" >&2
  exit 77
}

fail() {
  echo "FAILED: $*" >&2
  exit 1
}

# equal ACTUAL EXPECTED WHAT
equal() {
  [ "$1" = "$2" ] || fail "$3: expected '$2', got '$1'"
}

# between ACTUAL LEAST MOST WHAT: whole numbers.
between() {
  if [ "$1" -lt "$2" ] || [ "$1" -gt "$3" ]; then
    fail "$4: expected $2 to $3, got $1"
  fi
}

# matches TEXT REGEX WHAT
matches() {
  [[ $1 =~ $2 ]] || fail "$3: expected a match of '$2', got '$1'"
}

# fails CMD...: the command must not succeed. Its output goes to standard output.
fails() {
  if "$@" 2>&1; then
    fail "it should not succeed: $*"
  fi
}

# within SECONDS CMD...: repeats the command until it succeeds.
within() {
  local seconds=$1 end
  shift
  end=$((SECONDS + seconds))
  until "$@"; do
    [ "$SECONDS" -lt "$end" ] || fail "not within $seconds s: $*"
    sleep 0.1
  done
}

require_namespaces() {
  [ "$(id -u)" -eq 0 ] || skip "vcluster needs root"
  unshare --pid --fork --mount --net --uts --ipc true 2>/dev/null || skip "namespaces are not available"
  command -v slurmctld slurmd munged mpirun >/dev/null || skip "Slurm, munge or Open MPI is missing"
}

state_folder() {
  echo "${XDG_RUNTIME_DIR:-/tmp}/autocloud-vcluster-$UID/$cluster"
}

end_of_test() {
  local status=$? log command
  trap - EXIT
  if [ "$status" -ne 0 ] && [ "$status" -ne 77 ]; then
    for log in "$(state_folder)"/log/*/*.log; do
      [ -s "$log" ] && printf '\n== %s\n' "$log" && tail -n 15 "$log"
    done >&2
    printf '\n== squeue, autocloud status\n' >&2
    { on ctl squeue; on ctl autocloud status; } >&2 || true # the cluster goes down whatever they say
  fi
  for command in "${at_end[@]}"; do
    eval "$command"
  done
  "$vcluster" -n "$cluster" down 2>/dev/null
  exit "$status"
}

# cluster_up OPTION...: starts this test's cluster and sees to its end.
cluster_up() {
  require_namespaces
  trap end_of_test EXIT
  trap 'exit 1' INT TERM HUP
  "$vcluster" -n "$cluster" up --build "$build" "$@"
}

# on HOST CMD...: as root. as_user HOST CMD...: as the job user, in its home on the shared storage.
on() {
  local host=$1
  shift
  "$vcluster" -n "$cluster" exec "$host" -- "$@"
}

as_user() {
  local host=$1
  shift
  "$vcluster" -n "$cluster" exec --user researcher "$host" -- "$@"
}

# cut_power HOST, cut_link HOST, heal HOST
cut_power() {
  "$vcluster" -n "$cluster" cut "$1"
}

cut_link() {
  "$vcluster" -n "$cluster" cut --link "$1"
}

heal() {
  "$vcluster" -n "$cluster" heal "$1"
}

# submit HOST OPTION...: sbatch with the body of the script from standard input; prints the job id.
submit() {
  local host=$1
  shift
  { echo '#!/bin/bash' && cat; } | as_user "$host" sbatch --parsable -o "$home/%j.out" "$@"
}

# job_field JOB FIELD: as in `scontrol show job`, such as JobState or NodeList.
job_field() {
  on ctl scontrol show job "$1" | tr ' ' '\n' | sed -n "s/^ *$2=//p" | head -n 1
}

job_is() {
  [ "$(job_field "$1" JobState)" = "$2" ]
}

# wait_for_job JOB STATE SECONDS
wait_for_job() {
  within "$3" job_is "$1" "$2"
}

node_state() {
  on ctl sinfo -h -N -n "$1" -p "${2:-batch}" -o %T
}

output_of() {
  as_user ctl cat "$home/$1.out"
}

# cloudsim CMD...: the commands of the simulated cloud, such as `cloudsim bill --json`.
cloudsim() {
  local command=$1
  shift
  on cloud cloudsim "$command" --state /var/lib/cloudsim "$@"
}

# instance_of NODE: the instance that serves a cloud node.
instance_of() {
  on "$1" cat /etc/hostname
}

# rented: instances that the cloud still bills.
rented() {
  cloudsim instances --json | jq '[.[] | select(.billed_until == null and (.status | IN("released", "lost") | not))] | length'
}
