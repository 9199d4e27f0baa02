# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
# For fault tests of a burst's batch host: short runs of the quickstart's model, and what they leave.
. "$(dirname "${BASH_SOURCE[0]}")/burst_lib.sh"

# Slurm's default SlurmdTimeout: nothing here may wait for it.
batch_host_cluster() {
  slurm_conf=$(mktemp /tmp/slurm-conf-XXXXXX)
  at_end+=("rm -f $slurm_conf")
  echo SlurmdTimeout=300 >"$slurm_conf"
  burst_cluster --onprem 3 --slurm-conf "$slurm_conf"
  on ctl sh -c "head -c 1000000 /dev/zero | tr '\\0' 'a' | sed 's/aaaaaaa/burst a /g' >$home/text; chmod 644 $home/text"
}

# train RUN SBATCH-OPTION...: prints the job.
train() {
  local run=$home/$1
  shift
  as_user ctl mkdir -p "$run"
  as_user ctl tee "$run/train.toml" <"$project/contrib/quickstart/train.toml" >/dev/null
  submit ctl -t 5 --ntasks-per-node=1 --gres=gpu:1 "$@" <<<"autocloud-run --run-dir $run -- mpirun autocloud-train \
    --config $run/train.toml --data-path $home/text --run-folder $run --train-steps ${steps:-120} --checkpoint-interval-s 1"
}

hash_of() { on ctl autocloud-ckpt hash "$home/$1/final" | cut -d' ' -f1; }
# events_of RUN EVENT: how many.
events_of() { on ctl cat "$home/$1/events.jsonl" 2>/dev/null | grep -c "\"event\":\"$2\""; }
starts_of() { events_of "$1" run; }
# trained RUN STEPS
trained() { [ "$(events_of "$1" step)" -ge "$2" ]; }

ends_like_an_undisturbed_run() {
  local undisturbed run
  undisturbed=$(train undisturbed -N2)
  wait_for_job "$undisturbed" COMPLETED 120
  for run in "$@"; do
    matches "$(hash_of "$run")" '^[0-9a-f]{64}$' "hash of $run"
    equal "$(hash_of "$run")" "$(hash_of undisturbed)" "weights of $run"
  done
}
