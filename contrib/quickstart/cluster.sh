# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154,SC2034
# The cluster and the jobs of the quickstart. Needs timeline.sh, $out and $preset.

vc() { contrib/vcluster/vcluster -n quickstart "$@" 9>&-; }
ctl() { vc exec ctl -- "$@"; }
user() { vc exec --user researcher ctl -- "$@"; }
cloud() { vc exec cloud -- /opt/autocloud-burst/bin/cloudsim "$@" --state "$sim_state"; }

shared=/shared/quickstart
sim_state=/var/lib/cloudsim

start_cluster() {
  if vc status >/dev/null 2>&1; then
    say "ending the cluster that an earlier quickstart has left"
    stop_cluster
  fi
  say "starting a virtual cluster: a controller, 2 own nodes, and a cloud that rents out more"
  vc up --onprem 2 --burst 4 --gpus 1 --build "build/$preset" >"$out/vcluster.log" 2>&1 ||
    { tail -5 "$out/vcluster.log" >&2; die "the cluster did not start: see $out/vcluster.log"; }
  ctl install -d -o researcher -m 755 "$shared"
  bible -l100 Gen1:1-Rev22:21 </dev/null 2>/dev/null | user tee "$shared/kjv.txt" >/dev/null
  user tee "$shared/job.sh" <contrib/quickstart/job.sh >/dev/null
}

# On a full disk too, where no log can be written.
stop_cluster() {
  vc down >>"$out/vcluster.log" 2>&1 || vc down >/dev/null 2>&1
}

# `vcluster down` removes the cluster's logs (docs/vcluster.md says where they are).
keep_logs() {
  cp -r "${XDG_RUNTIME_DIR:-/tmp}/autocloud-vcluster-$UID/quickstart/log" "$out/cluster-log" &&
    say "the cluster's logs are in $out/cluster-log" >&2
}

# submit RUN SBATCH-OPTIONS...: sets job and submitted.
submit() {
  local run=$shared/$1
  shift
  user mkdir -p "$run"
  user tee "$run/train.toml" <contrib/quickstart/train.toml >/dev/null
  submitted=$(now)
  job=$(user sbatch --parsable --chdir "$run" --output "$run/job.log" "$@" "$shared/job.sh" "$run") ||
    die "sbatch refused the job"
  say "Submitted batch job $job"
}

events() { ctl cat "$shared/$1/events.jsonl" 2>/dev/null || [ $? -eq 1 ]; }
happened() { events "$1" | grep -q "\"event\":\"$2\""; }
job_state() { ctl scontrol show job "$job" -o | grep -o 'JobState=[A-Z_]*' | cut -d= -f2; }
job_nodes() { ctl squeue -h -j "$job" -o %N; }

watch_start() {
  wait_for 60 "the allocation" test_allocated
  say "Slurm has made one allocation of own and cloud nodes: $(job_nodes)"
  wait_for 120 "the job's start" happened burst run
  say "all nodes have registered; the job runs"
  wait_for 60 "the first training step" happened burst step
  say "training on $(events burst | jq -s 'map(select(.event == "start")) | last | .nodes | length') nodes"
}
test_allocated() { [ -n "$(job_nodes)" ]; }

steps_done() { events burst | jq -s 'map(select(.event == "step").step) | max // 0'; }
halfway() { [ "$(steps_done)" -ge $((steps_total * 2 / 5)) ]; }

lose_a_rented_node() {
  steps_total=$(sed -n 's/^steps *= *//p' contrib/quickstart/train.toml)
  wait_for 300 "step $((steps_total * 2 / 5))" halfway
  local victim
  victim=$(ctl autocloud leases --json | jq -r '[.leases[] | select(.state == "up")][0].instance')
  [ "$victim" != null ] || die "no rented node is up"
  lost_at=$(now)
  lost_step=$(steps_done)
  cloud take "$victim" >/dev/null
  say "step $lost_step of $steps_total: the cloud takes $victim away, without a warning"
  wait_for 60 "training after the loss" happened burst training
  say "training goes on on the nodes left: $(events burst | jq -s -r 'map(select(.event == "training")) | last |
    "step \(.step), \(.redone) step(s) computed again"')"
}

# watch_end RUN
watch_end() {
  wait_for 400 "the end of job $job" job_over
  [ "$(job_state)" = COMPLETED ] || {
    ctl tail -5 "$shared/$1/job.log" >&2
    die "job $job ended as $(job_state)"
  }
  ctl cat "$shared/$1/events.jsonl" >"$out/$1-events.jsonl"
  ctl cat "$shared/$1/job.log" >"$out/$1.log"
  ctl tar -C "$shared/$1" -cf - final | tar -C "$out" --one-top-level="$1" --no-same-owner -xf -
  say "job $job is done: $(events "$1" | jq -s -r 'map(select(.event == "step")) | last | "step \(.step), loss \(.loss)"')"
}
job_over() {
  case $(job_state) in PENDING | CONFIGURING | RUNNING | COMPLETING) return 1 ;; esac
}

none_left() {
  cloud instances --json | jq -e 'all(.status == "released" or .status == "lost")' >/dev/null &&
    ctl autocloud leases --json | jq -e '.leases | all(.state == "gone")' >/dev/null
}
await_given_back() {
  wait_for 120 "the return of every rented node" none_left
  say "every rented node has been given back, and the ledger has closed its lease"
  ctl autocloud leases --json >"$out/leases.json"
  cloud bill --json >"$out/bill.json"
}
