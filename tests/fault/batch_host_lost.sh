#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The batch host dies: Slurm would leave the job RUNNING without a script; the daemon requeues it, it starts again
# and ends with the weights of an undisturbed run.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/burst_lib.sh"
# How soon Slurm itself gives an own node up is the site's SlurmdTimeout; the rest is ours.
slurm_conf=$(mktemp /tmp/slurm-conf-XXXXXX)
at_end+=("rm -f $slurm_conf")
echo SlurmdTimeout=10 >"$slurm_conf"
burst_cluster --onprem 3 --slurm-conf "$slurm_conf"

# train RUN SBATCH-OPTION...: a short run of the quickstart's model.
train() {
  local run=$home/$1
  shift
  as_user ctl mkdir -p "$run"
  as_user ctl tee "$run/train.toml" <"$project/contrib/quickstart/train.toml" >/dev/null
  submit ctl -t 5 --ntasks-per-node=1 --gres=gpu:1 "$@" <<<"autocloud-run --run-dir $run -- mpirun autocloud-train \
    --config $run/train.toml --data-path $home/text --run-folder $run --train-steps 120 --checkpoint-interval-s 1"
}
hash_of() { on ctl autocloud-ckpt hash "$home/$1/final" | cut -d' ' -f1; }
steps_of() { on ctl cat "$home/$1/events.jsonl" 2>/dev/null | grep -c '"event":"step"'; }

on ctl sh -c "head -c 1000000 /dev/zero | tr '\\0' 'a' | sed 's/aaaaaaa/burst a /g' >$home/text; chmod 644 $home/text"
job=$(train lost -N1 --autocloud-burst=2)
wait_for_job "$job" RUNNING 40
trained() { [ "$(steps_of lost)" -ge 30 ]; }
within 60 trained
host=$(job_field "$job" BatchHost)
matches "$host" '^own-' "batch host"
cut_power "$host"
began=$SECONDS
again() { [ "$(job_field "$job" Restarts)" = 1 ] && job_is "$job" RUNNING; }
within 60 again
echo "running again after $((SECONDS - began)) s"
wait_for_job "$job" COMPLETED 90

undisturbed=$(train undisturbed -N2)
wait_for_job "$undisturbed" COMPLETED 90
matches "$(hash_of lost)" '^[0-9a-f]{64}$' "hash"
equal "$(hash_of lost)" "$(hash_of undisturbed)" "weights"
within 30 all_given_back
ledger_equals_bill 2
never_two_for_one
