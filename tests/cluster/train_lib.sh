# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash source-path=SCRIPTDIR
# For tests of training under autocloud-run: $onprem own nodes, and job.sh OPTION... to train a small model.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

cluster_up --plain --onprem "${onprem:-1}"
for program in autocloud-run autocloud-agent autocloud-train autocloud-ckpt; do
  as_user ctl sh -c "cat >$program && chmod 755 $program" <"$build/bin/$program"
done
seq -f 'the %.0f sheep of the flock, ' 3000 | as_user ctl tee text >/dev/null
as_user ctl sh -c 'cat >train.toml' <<'END'
data.path = "text"
[model]
layers = 1
heads = 2
width = 64
context = 64
[train]
steps = 150
micro_batch = 2
warmup_steps = 2
threads = 1
END
as_user ctl sh -c 'cat >job.sh && chmod 755 job.sh' <<'SCRIPT'
#!/bin/bash
exec ./autocloud-run --run-dir "run-$SLURM_JOB_ID" -- \
  mpirun ./autocloud-train --config train.toml --run-folder "run-$SLURM_JOB_ID" "$@"
SCRIPT
event() { # JOB EVENT FILTER: of the newest such event
  as_user ctl cat "$home/run-$1/events.jsonl" 2>/dev/null | jq -r "select(.event == \"$2\") | $3" | tail -n 1
}
step_reached() { [ "$(event "$1" step .step)" -ge "$2" ] 2>/dev/null; }
hash_of() { as_user ctl ./autocloud-ckpt hash "run-$1/final" | cut -d' ' -f1; }
