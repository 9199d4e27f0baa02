# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash source-path=SCRIPTDIR
# For tests of autocloud-run: three own nodes, the programs in the job user's home, and job.sh STEPS to run them.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

cluster_up --plain --onprem 3
for program in bin/autocloud-run bin/autocloud-agent tests/supervised-steps; do
  as_user ctl sh -c "cat >${program##*/} && chmod 755 ${program##*/}" <"$build/$program"
done
event() { # JOB EVENT FIELD: of the newest such event
  as_user ctl cat "$home/run-$1/events.jsonl" | jq -r "select(.event == \"$2\") | .$3" | tail -n 1
}
step_reached() {
  [ "$(as_user ctl cat "$home/run-$1/step" 2>/dev/null || echo 0)" -ge "$2" ]
}
as_user ctl sh -c 'cat >job.sh && chmod 755 job.sh' <<'SCRIPT'
#!/bin/bash
mkdir -p "run-$SLURM_JOB_ID"
~/autocloud-run --run-dir "run-$SLURM_JOB_ID" -- \
  mpirun ~/supervised-steps "run-$SLURM_JOB_ID" --step-ms 50 --steps "$1"
SCRIPT
