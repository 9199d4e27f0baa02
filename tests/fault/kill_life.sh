#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# On ctl, for daemon_kills_in_turn.sh: one burst of one node, with an autocloudd that is killed at its N-th point and started
# again; 0 kills never. No autocloudd runs before and after. Prints "PHASE: POINT" for each kill, and "PHASE: none" for each
# phase that has passed without one though N was not 0.
#
#   kill_life.sh first N    no burst: killed while it starts without a ledger, as on the first day
#   kill_life.sh run N M    killed while it rents at point N, and once more, with the job running or over, while it gives
#                           back at point M
#   kill_life.sh cancel N   killed while it rents, at the N-th point after the submit; the job is cancelled before the daemon
#                           is back
set -euo pipefail
user=researcher
job=0

die() {
  echo "kill_life.sh: $*; job $job: $(squeue -h -j "$job" -t all -o '%T %N'); $(autocloud leases --json 2>&1 |
    jq -c '.leases[] | select(.state != "gone")')" >&2
  exit 1
}

# await SECONDS CMD...
await() {
  local end=$((SECONDS + $1))
  shift
  until "$@"; do
    [ $SECONDS -lt $end ] || die "it does not come: $*"
    sleep 0.05
  done
}

as_user() {
  env HOME="/shared/home/$user" setpriv --reuid=$user --regid=$user --init-groups bash -c 'cd && exec "$@"' bash "$@"
}

# start N PHASE
start() {
  points=/tmp/kill_points.$2
  rm -f "$points"
  setsid -f setpriv --reuid=slurm --regid=slurm --clear-groups env LD_PRELOAD=/run/kill_points.so ACB_KILL_AT="$1" \
    ACB_KILL_POINTS="$points" ACB_KILL_FROM="${from:-}" sh -c 'exec autocloudd >>/tmp/autocloudd.log 2>&1'
}
end_daemon() {
  await 5 eval 'pkill -KILL -x autocloudd || is_killed' # it may not have been executed yet
  await 5 eval '! pgrep -x autocloudd >/dev/null'
}

submit() {
  job=$(as_user sbatch --parsable -N1 -t 5 --ntasks-per-node=1 --autocloud-burst=1 <<'JOB'
#!/bin/bash
until [ -e end.$SLURM_JOB_ID ]; do sleep 0.1; done
srun hostname
JOB
  )
}
is_job() { [ "$(squeue -h -j "$job" -t all -o %T)" = "$1" ]; }
is_started() { autocloud status --json 2>/dev/null | jq -ne "input.bursts | any(.job == $job and .state == \"running\")" >/dev/null 2>&1; }
leases() { autocloud leases --json 2>/dev/null | jq -ne "input.leases | $1" >/dev/null 2>&1; }
is_rented() { leases "any(.job == $job and .instance != null)"; }
are_closed() { leases 'all(.state == "gone")'; }
# Where a create call may not have left the dying daemon, the lease is closed two minutes later: it could arrive until then.
are_closed_or_unmade() { leases 'all(.state == "gone" or (.state == "releasing" and .instance == null))'; }

is_killed() { grep -qx killed "$points" 2>/dev/null; }
# killed_before PHASE N CMD...: waits until the daemon is killed (true) or the command succeeds (false).
killed_before() {
  local phase=$1 n=$2
  shift 2
  await 30 eval "is_killed || $*"
  if is_killed; then
    await 5 eval '! pgrep -x autocloudd >/dev/null'
    echo "$phase: $(tail -n 2 "$points" | head -n 1)"
    return 0
  fi
  [ "$n" -eq 0 ] || echo "$phase: none"
  return 1
}

first() {
  rm -f /var/lib/autocloud-burst/ledger.db*
  start "$1" first
  if killed_before "first start" "$1" are_closed; then
    start 0 again
    await 10 are_closed
  fi
  end_daemon
}

run() {
  start "$1" renting
  submit
  if killed_before renting "$1" is_started; then
    start 0 again
  fi
  await 60 is_job RUNNING
  end_daemon
  start "$2" giving
  as_user touch "end.$job"
  await 30 is_job COMPLETED
  # As when Slurm's own SuspendTime is over: without the wait for a next job.
  scontrol update nodename="$(scontrol -o show job "$job" | grep -o 'burst-[0-9]*' | tail -n 1)" state=power_down
  if killed_before "giving back" "$2" are_closed; then
    start 0 again
  fi
  await 30 are_closed
  end_daemon
}

cancel() {
  local node from=/run/kill_from
  rm -f $from
  start "$1" renting
  # Each earlier life may have left a lease in doubt, which is looked up first: these points would be ever more.
  await 10 leases true
  sleep 0.5
  touch $from
  submit
  killed_before cancelled "$1" is_rented || end_daemon
  as_user scancel "$job"
  start 0 again
  await 20 are_closed_or_unmade
  # The next job shall not wait for the two minutes.
  for node in $(autocloud leases --json | jq -r '.leases[] | select(.state == "releasing").node'); do
    scontrol update nodename="$node" state=drain reason='its lease is not closed yet'
  done
  end_daemon
}

"$@"
