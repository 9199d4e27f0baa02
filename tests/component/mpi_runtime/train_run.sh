#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# autocloud-train under autocloud-run over real mpirun on this host: whatever happens to a run, it ends with the weights
# of an undisturbed one, or says why not.
#   train_run.sh BIN_FOLDER CASE
set -euo pipefail
bin=$1 case=$2
folder=$(mktemp -d "${TMPDIR:-/tmp}/autocloud-train-run-XXXXXX")
run=$folder/run
mounted='' supervisor=0
cleanup() {
  if [ "$supervisor" -gt 0 ] && kill -9 "$supervisor" 2>/dev/null; then
    sleep 1 # its agent ends the ranks
  fi
  [ -z "$mounted" ] || umount -l "$mounted"
  rm -rf "$folder"
}
trap cleanup EXIT

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_btl_vader_single_copy_mechanism=none
export OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_hwloc_base_binding_policy=none
unset "${!SLURM_@}" "${!AUTOCLOUD_@}"

die() {
  echo "$case: $*" >&2
  tail -n 40 "$folder"/stderr* | sed 's/^/  | /' >&2
  exit 1
}
seq -f 'the %.0f sheep of the flock, ' 3000 >"$folder/text"
cat >"$folder/train.toml" <<END
data.path = "$folder/text"
[model]
layers = 1
heads = 2
width = 64
context = 64
[train]
steps = 60
micro_batch = 2
warmup_steps = 2
threads = 1
END

# launch NAME OPTION...: in the background, into $folder/NAME.
launch() {
  local name=$1
  shift
  "$bin/autocloud-run" --silence 1.5 --run-dir "$folder/$name" -- \
    mpirun -n 2 "$bin/autocloud-train" --config "$folder/train.toml" --run-folder "$folder/${final:-$name}" "$@" \
    >"$folder/stdout-$name" 2>"$folder/stderr-$name" &
  supervisor=$!
}
bare() { # the same without autocloud-run, into $run
  mpirun -n 2 "$bin/autocloud-train" --config "$folder/train.toml" --run-folder "$run" \
    >"$folder/stdout-bare" 2>"$folder/stderr-bare"
}
ends_with() { # expected exit code
  local code=0
  wait "$supervisor" || code=$?
  supervisor=0
  [ "$code" -eq "$1" ] || die "exit code $code, not $1"
}
events() { jq -c "select(.event == \"$1\")" "$run/events.jsonl"; }
reached() { [ "$(jq -s 'map(select(.event == "step").step) | max // 0' "$run/events.jsonl" 2>/dev/null || echo 0)" -ge "$1" ]; }
within() { # SECONDS COMMAND...
  local end=$((SECONDS + $1))
  shift
  until "$@"; do
    [ "$SECONDS" -lt "$end" ] || die "never: $*"
    sleep 0.05
  done
}
ranks() { # the processes of this run's ranks
  local pid
  for pid in $(pgrep -x autocloud-train); do
    if tr '\0' ' ' 2>/dev/null <"/proc/$pid/cmdline" | grep -q -F -- "$folder/"; then echo "$pid"; fi
  done
}
two_ranks() { [ "$(ranks | wc -l)" -eq 2 ]; }
hash_of() { # 64 digits, or the end: two hashes that both failed would be equal
  "$bin/autocloud-ckpt" hash "$folder/$1/final" | grep -xE '[0-9a-f]{64}' || die "$1/final has no hash"
}
same_weights() { # RUN RUN
  local one other
  one=$(hash_of "$1")
  other=$(hash_of "$2")
  [ "$one" = "$other" ] || die "weights of $1 and $2 differ"
}
whole() { # PATH...: every byte of the checkpoints there
  local path
  for path; do
    "$bin/autocloud-ckpt" verify "$path" >"$folder/verified" || die "not whole: $(cat "$folder/verified")"
  done
}
undisturbed() {
  mpirun -n 1 "$bin/autocloud-train" --config "$folder/train.toml" --run-folder "$folder/alone" \
    >"$folder/stdout-alone" 2>"$folder/stderr-alone" || die "the undisturbed run failed"
}
same_as_undisturbed() {
  undisturbed
  same_weights alone run
}
told() { grep -qF -- "$1" "$folder/stderr-${2:-run}" || die "not told: $1"; }

case $case in
  killed)
    launch run
    within 20 reached 10
    kill -9 "$(ranks | tail -n 1)"
    ends_with 0
    [ "$(events restart | wc -l)" -eq 1 ] || die "no restart"
    events training | jq -e '.redone <= 1 and .after_s <= 6' >/dev/null || die "$(events training)"
    same_as_undisturbed
    ;;
  stopped)
    launch run
    within 20 reached 10
    kill -STOP "$(ranks | head -n 1)"
    ends_with 0
    told silent
    events training | jq -e '.redone <= 1 and .after_s <= 8' >/dev/null || die "$(events training)"
    same_as_undisturbed
    ;;
  while-saving) # disk saves all the time, and no memory to fall back to: two losses, with saves under way
    launch run --checkpoint-interval-s 0.01 --checkpoint-memory-every 1000000
    for step in 8 30; do
      within 20 reached "$step"
      ranks | xargs kill -9
    done
    ends_with 0
    # Each went on from the newest save that had been told, or one whose word did not get through.
    went_on=$(jq -cs 'reduce .[] as $e ({saved: 0, on: []};
      if $e.event == "save" then .saved = $e.step
      elif $e.event == "training" then .on += [.saved > 0 and $e.step > .saved] else . end) | .on' "$run/events.jsonl")
    [ "$went_on" = '[true,true]' ] || die "losses did not go on from the newest save: $went_on: $(events training)"
    whole "$run/checkpoints" "$run/final"
    same_as_undisturbed
    ;;
  final-save) # what killed writers of the final checkpoint have left is taken away, and a new one stands whole in its place
    undisturbed
    mkdir "$run"
    cp -r "$folder/alone/final" "$run/final.writing-old-1-0.old"
    mkdir "$run/final.writing-old-1-1"
    launch run
    ends_with 0
    whole "$run/final"
    [ "$("$bin/autocloud-ckpt" verify --json "$run/final" | jq .step)" -eq 60 ] || die "not of the last step"
    same_weights alone run
    left=$(find "$run" -maxdepth 1 -name 'final?*')
    [ -z "$left" ] || die "left beside the final checkpoint: $left"
    ;;
  sigterm)
    launch run
    within 20 reached 10
    kill -TERM "$supervisor"
    ends_with 1
    told 'start it again'
    first=$(events fail | jq .step)
    launch run
    ends_with 0
    [ "$(jq -s "map(select(.event == \"step\" and .step <= $first).step) | length == (unique | length)" \
      "$run/events.jsonl")" = true ] || die "saved steps were computed again"
    same_as_undisturbed
    ;;
  not-finite)
    launch run --train-learning-rate 10 --train-clip 0 --train-weight-decay 10 --train-most-skipped 3 --train-steps 400
    ends_with 1
    told 'steps in a row without a finite gradient (train.most_skipped)'
    [ -z "$(events step | jq 'select(.loss == 0)')" ] || die "a loss that is no number is told as 0"
    events step | tail -n 1 | jq -e '.loss == null' >/dev/null || die "the last step: $(events step | tail -n 1)"
    ;;
  full-disk) # costs saves, with a warning that says where and how much; no room for the weights themselves ends the run
    [ "$(id -u)" -eq 0 ] || exit 77
    mkdir "$run"
    mount -t tmpfs -o size=512k acb-test "$run" || exit 77
    mounted=$run
    final=elsewhere launch run --checkpoint-interval-s 0.2 --checkpoint-shared "$run/checkpoints"
    ends_with 0
    told 'is not saved to level shared; the older checkpoint stays'
    grep -qE "No space left on device: [0-9]+ bytes are needed in $run/checkpoints, [0-9]+ are free: step" "$folder/stderr-run" ||
      die "not told how much is free where"
    [ "$(events loss | wc -l)" -eq 0 ] || die "training stopped: $(events loss)"
    whole "$folder/elsewhere/final"
    undisturbed
    same_weights alone elsewhere
    launch run --checkpoint-shared "$folder/checkpoints"
    ends_with 86
    grep -qE "No space left on device: [0-9]+ bytes are needed in $run, [0-9]+ are free" "$folder/stderr-run" ||
      die "not told how much is free for the final checkpoint"
    [ ! -e "$run/final" ] || die "half of a final checkpoint stays"
    ;;
  two-at-once) # refused: another supervised run, one of another name that trains into the folder, and a bare one
    launch run --train-steps 100000
    within 20 reached 2
    first=$supervisor
    launch run
    ends_with 1
    told "$run: another run uses this folder (process $first on $(hostname)): "
    final=run launch other
    ends_with 1
    told "$run: another run uses this folder (process $first on $(hostname)): " other
    bare && die "a bare run trains into a folder in use"
    told "$run: another run uses this folder (process $first on $(hostname)): " bare
    supervisor=$first
    within 20 reached $((2 + $(events step | wc -l)))
    kill -TERM "$supervisor"
    ends_with 1
    told 'start it again'
    ;;
  two-bare) # without autocloud-run
    bare &
    first=$!
    within 20 grep -qs '^step 2/' "$folder/stdout-bare"
    holder=$(jq .process "$run/lock")
    ranks | xargs kill -STOP
    stopped=$(ranks)
    mv "$folder/stderr-bare" "$folder/stderr-first"
    bare && die "a second bare run trains into the folder"
    told "$run: another run uses this folder (process $holder on $(hostname)): " bare
    launch run
    ends_with 1
    told "$run: another run uses this folder (process $holder on $(hostname)): "
    xargs kill -CONT <<<"$stopped"
    wait "$first" || die "the first run ends with $?"
    same_as_undisturbed
    ;;
  settings)
    launch run
    within 20 reached 10
    kill -TERM "$supervisor"
    ends_with 1
    launch run --train-micro-batch 3 --train-seed 4
    ends_with 1
    told 'train.micro_batch'
    told 'train.seed'
    echo more >>"$folder/text"
    launch run
    ends_with 1
    told dataset
    ;;
  corrupt)
    launch run --checkpoint-interval-s 0.2
    within 20 reached 40
    kill -TERM "$supervisor"
    ends_with 1
    newest=$(find "$run/checkpoints" -mindepth 1 -maxdepth 1 -name 'step-*' | sort | tail -n 1)
    printf 'x' | dd of="$newest/shard-00001" bs=1 seek=9000 conv=notrunc status=none
    launch run
    ends_with 0
    told "$(basename "$newest")"
    same_as_undisturbed
    ;;
  sweep) # what a killed agent left in memory goes with the next run
    launch run
    within 20 reached 2
    id=$(events run | jq -r .run)
    agent=$(pgrep -P "$supervisor" autocloud-agent)
    kill -9 "$supervisor" "$agent"
    wait "$supervisor" 2>/dev/null || supervisor=0
    ranks | xargs -r kill -9
    [ -n "$(find /dev/shm -maxdepth 1 -name "autocloud-*-$id-*")" ] || die "nothing was left to sweep"
    touch -d '2 minutes ago' "$(find /dev/shm -maxdepth 1 -name "autocloud-*-$id-*")"
    launch run
    ends_with 0
    [ -z "$(find /dev/shm -maxdepth 1 -name "autocloud-*-$id-*")" ] || die "stale memory is still there"
    ;;
  *)
    echo "train_run.sh: no case '$case'" >&2
    exit 2
    ;;
esac
