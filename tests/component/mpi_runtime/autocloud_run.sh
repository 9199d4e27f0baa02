#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# autocloud-run over real mpirun on this host: what it makes of lost, stopped and crashing ranks.
#   autocloud_run.sh BIN_FOLDER PROGRAM CASE
set -euo pipefail
bin=$1 program=$2 case=$3
folder=$(mktemp -d "${TMPDIR:-/tmp}/autocloud-run-test-XXXXXX")
supervisor=0
cleanup() {
  if [ "$supervisor" -gt 0 ] && kill -9 "$supervisor" 2>/dev/null; then
    sleep 1 # its agent ends the ranks
  fi
  rm -rf "$folder"
}
trap cleanup EXIT

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_btl_vader_single_copy_mechanism=none
unset "${!SLURM_@}"

die() {
  echo "$case: $*" >&2
  sed 's/^/  | /' "$folder/stderr" >&2
  exit 1
}
events() { jq -c "select(.event == \"$1\")" "$folder/events.jsonl"; }
count() { events "$1" | wc -l; }
field() { events "$1" | tail -1 | jq -r ".$2"; }

# start OPTION... -- PROGRAM_ARGUMENT...
start() {
  local options=()
  while [ "$1" != -- ]; do options+=("$1"); shift; done
  shift
  "$bin/autocloud-run" --run-dir "$folder" "${options[@]}" -- \
    mpirun -np 2 "$program" "$folder" "$@" >"$folder/stdout" 2>"$folder/stderr" &
  supervisor=$!
}
ends_with() { # expected exit code
  local code=0
  wait "$supervisor" || code=$?
  supervisor=0
  [ "$code" -eq "$1" ] || die "exit code $code, not $1"
}
memory() { find /dev/shm -maxdepth 1 -name "autocloud-$(id -u)-$(field run run)-*"; }
finish() { # expected exit code
  ends_with "$1"
  [ -z "$(memory)" ] || die "memory left behind: $(memory)"
}
wait_for_step() {
  local i
  for ((i = 0; i < 200; i++)); do
    if [ "$(cat "$folder/step" 2>/dev/null || echo 0)" -ge "$1" ]; then return; fi
    sleep 0.05
  done
  die "step $1 was never reached"
}
at_most() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a + 0 <= b + 0) }' || die "$1 is more than $2"; }

# What Slurm's commands would do, written down; the time limit is in so many seconds.
fake_slurm() {
  mkdir "$folder/slurm"
  cat >"$folder/slurm/scontrol" <<SCONTROL
#!/bin/sh
case "\$*" in
  show*) cat "$folder/slurm/job" ;;
  *)
    echo "scontrol \$*" >>"$folder/slurm/calls"
    [ ! -e "$folder/slurm/requeue" ] || . "$folder/slurm/requeue"
    ;;
esac
SCONTROL
  cat >"$folder/slurm/squeue" <<SQUEUE
#!/bin/sh
case "\$*" in
  *%N*) hostname ;;
  *%L*)
    if [ -e "$folder/slurm/mute" ]; then rm "$folder/slurm/mute"; exit 1; fi
    echo "\$(($(date +%s) + $1 - \$(date +%s)))"
    ;;
esac
exit 0
SQUEUE
  cat >"$folder/slurm/srun" <<'SRUN'
#!/bin/sh
while [ "${1#--}" != "$1" ]; do shift; done
exec "$@"
SRUN
  echo 'JobId=42 JobState=RUNNING Restarts=0 RunTime=00:00:01 TimeLimit=01:00:00' >"$folder/slurm/job"
  chmod +x "$folder"/slurm/s*
  PATH="$folder/slurm:$PATH"
  SLURM_JOB_ID=42 SLURM_JOB_NODELIST=$(hostname) SLURM_TASKS_PER_NODE=2
  SLURM_JOB_CPUS_PER_NODE=2 SLURMD_NODENAME=$(hostname)
  export SLURM_JOB_ID SLURM_JOB_NODELIST SLURM_TASKS_PER_NODE SLURM_JOB_CPUS_PER_NODE SLURMD_NODENAME
  # mpirun itself is to see no Slurm, which is not there.
  export OMPI_MCA_plm=isolated OMPI_MCA_ras=^slurm OMPI_MCA_ess=^slurm
}

case $case in
  done)
    start -- --steps 5
    finish 0
    [ "$(count restart)" -eq 0 ] || die "restarted"
    [ "$(field "done" step)" -eq 5 ] || die "done at another step"
    [ "$(cat "$folder"/memory-*)" = therethere ] || die "no memory folder"
    ;;
  killed)
    start -- --steps 100
    wait_for_step 10
    kill -9 "$(cat "$folder/pid-1")"
    finish 0
    [ "$(count restart)" -eq 1 ] || die "$(count restart) restarts"
    at_most "$(field training after_s)" 5
    at_most "$(field training redone)" 1
    grep -q 'training again after' "$folder/stderr" || die "people are not told"
    ;;
  stopped)
    start --silence 1.5 -- --steps 100
    wait_for_step 10
    stopped=$(cat "$folder/pid-1")
    kill -STOP "$stopped"
    finish 0
    [ "$(field loss what)" != "" ] || die "no loss"
    events loss | grep -q silent || die "not for its silence"
    [ ! -e "/proc/$stopped" ] || die "the stopped rank is still there"
    at_most "$(field training after_s)" 6
    ;;
  stalled-log) # a file server that does not answer for a while is no loss
    mkfifo "$folder/events.jsonl"
    {
      for _ in {1..10}; do IFS= read -r line && echo "$line"; done
      sleep 10
      cat
    } <"$folder/events.jsonl" >"$folder/events" &
    reader=$!
    start --silence 1.5 -- --steps 1200 --step-ms 10
    ends_with 0
    wait "$reader"
    mv "$folder/events" "$folder/events.jsonl"
    jq -se 'map(.at | .[:19] + "Z" | fromdate) as $at | [range(1; $at | length) | $at[.] - $at[. - 1]] | max >= 2' \
      "$folder/events.jsonl" >/dev/null || die "the log was never in the way"
    [ "$(count loss)$(count lost)" = 00 ] || die "$(events loss)"
    ;;
  leaves)
    start -- --steps 30 --leave-at 10
    finish 0
    events loss | grep -q 'done' || die "exit code 0 was trusted"
    [ "$(count restart)" -eq 1 ] || die "$(count restart) restarts"
    ;;
  crashes)
    start -- --steps 30 --crash-at 8
    finish 86
    # The first start makes steps; three more make none.
    [ "$(count start)$(count restart)" = 13 ] || die "$(count restart) restarts"
    grep -q 'exit code 7' "$folder/stderr" || die "the program's exit code is not told"
    ;;
  silent-program)
    program=/bin/true
    start --
    finish 1
    grep -q 'before any rank reported.*not started again' "$folder/stderr" || die "not explained"
    [ "$(count restart)" -eq 0 ] || die "$(count restart) restarts of what cannot go better"
    ;;
  sigterm | sigusr1)
    fake_slurm 3600
    start -- --steps 1000
    wait_for_step 10
    kill -s "${case#sig}" "$supervisor"
    finish 85
    grep -qx 'scontrol requeue 42' "$folder/slurm/calls" || die "no requeue asked"
    [ "$(cat "$folder/step")" -eq "$(field requeue step)" ] || die "not saved at the last step"
    ;;
  requeue-unheard) # slurmctld is away at first; then it takes the job, and its signals take the answer
    fake_slurm 3600
    cat >"$folder/slurm/requeue" <<REQUEUE
if [ "\$(wc -l <"$folder/slurm/calls")" -lt 2 ]; then
  echo "Unable to contact slurm controller (connect failure)"
  exit 1
fi
kill -TERM \$\$
echo 'JobId=42 JobState=COMPLETING Restarts=1 RunTime=00:00:01 TimeLimit=01:00:00' >"$folder/slurm/job"
kill -KILL \$\$
REQUEUE
    start -- --steps 1000
    wait_for_step 10
    kill -TERM "$supervisor"
    finish 85
    [ "$(wc -l <"$folder/slurm/calls")" -eq 2 ] || die "asked $(wc -l <"$folder/slurm/calls") times"
    [ "$(count requeue)$(count fail)" = 10 ] || die "$(count requeue) requeues, $(count fail) failures"
    ;;
  agent-killed) # with it the only node is lost; another start may find it well
    fake_slurm 3600
    start -- --steps 1000
    wait_for_step 10
    kill -9 "$(pgrep -P "$supervisor" autocloud-agent)"
    ends_with 85
    memory | xargs rm -r # the agent's work, else the next agent's
    grep -q 'requeued (.*no node is left)' "$folder/stderr" || die "not explained"
    ;;
  time-limit)
    fake_slurm 6
    start -- --steps 1000
    finish 85
    [ "$(field requeue reason)" = "time limit" ] || die "another reason"
    ;;
  time-limit-unsaid) # at first
    fake_slurm 16
    touch "$folder/slurm/mute"
    start -- --steps 2000
    finish 85
    [ "$(field requeue reason)" = "time limit" ] || die "another reason"
    ;;
  cancelled)
    fake_slurm 3600
    sed -i s/RUNNING/COMPLETING/ "$folder/slurm/job"
    start -- --steps 1000
    wait_for_step 10
    kill -TERM "$supervisor"
    finish 1
    [ ! -e "$folder/slurm/calls" ] || die "a cancelled job was requeued"
    grep -q 'was cancelled' "$folder/stderr" || die "not explained"
    ;;
  no-requeue)
    fake_slurm 3600
    start --no-requeue -- --steps 1000
    wait_for_step 10
    kill -TERM "$supervisor"
    finish 1
    [ ! -e "$folder/slurm/calls" ] || die "requeued"
    ;;
  orphan)
    start -- --steps 1000
    wait_for_step 10
    rank=$(cat "$folder/pid-0") run=$(field run run)
    kill -9 "$supervisor"
    wait "$supervisor" 2>/dev/null || supervisor=0
    for ((i = 0; i < 100; i++)); do
      if [ ! -e "/proc/$rank" ] && ! ls -d /dev/shm/autocloud-*"$run"* 2>/dev/null; then exit 0; fi
      sleep 0.1
    done
    die "ranks or memory outlive a killed supervisor"
    ;;
  secret)
    start -- --steps 60
    wait_for_step 5
    rank=$(cat "$folder/pid-0")
    secret=$(tr '\0' '\n' <"/proc/$rank/environ" | sed -n 's/^AUTOCLOUD_SECRET=//p')
    [ "${#secret}" -eq 64 ] || die "the rank has no secret"
    for line in /proc/[0-9]*/cmdline; do
      if [[ $(tr '\0' ' ' 2>/dev/null <"$line") == *"$secret"* ]]; then die "the secret is on $line"; fi
    done 2>/dev/null
    finish 0
    if grep -q "$secret" "$folder"/*; then die "the secret is in a file"; fi
    ;;
  *)
    echo "autocloud_run.sh: no case '$case'" >&2
    exit 2
    ;;
esac
