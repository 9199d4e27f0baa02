#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# autocloud-train over real mpirun: what its weights depend on, and what they do not.
#   train_ranks.sh BIN_FOLDER CASE
set -euo pipefail
bin=$1 case=$2
folder=$(mktemp -d "${TMPDIR:-/tmp}/autocloud-train-test-XXXXXX")
trap 'rm -rf "$folder"' EXIT

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_btl_vader_single_copy_mechanism=none
export OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_hwloc_base_binding_policy=none
unset "${!SLURM_@}" "${!AUTOCLOUD_@}"

die() {
  echo "$case: $*" >&2
  sed 's/^/  | /' "$folder/stderr" >&2
  exit 1
}
seq -f 'the %.0f sheep of the flock, ' 3000 >"$folder/text"
cat >"$folder/train.toml" <<END
data.path = "$folder/text"
[model]
layers = 2
heads = 2
width = 64
context = 32
[train]
steps = 6
micro_batch = 2
learning_rate = 0.005
least_learning_rate = 0.0005
warmup_steps = 2
dropout = 0.1
threads = 1
END

# train RANKS RUN OPTION...; leaves the exit code in $code
train() {
  local ranks=$1 run=$2
  shift 2
  code=0
  mpirun -n "$ranks" "$bin/autocloud-train" --config "$folder/train.toml" \
    --run-folder "$folder/$run" "$@" \
    >"$folder/stdout" 2>"$folder/stderr" || code=$?
}
# The hash of the final weights.
trained() {
  train "$@"
  [ "$code" -eq 0 ] || die "$1 ranks: exit code $code"
  "$bin/autocloud-ckpt" hash "$folder/$2/final"
}
same() { [ "$1" = "$2" ] || die "$3: weights differ: $1, $2"; }

case $case in
  ranks | ranks-bf16) # bf16 products need AVX-512
    precision=fp32
    if [ "$case" = ranks-bf16 ]; then
      grep -q avx512f /proc/cpuinfo || exit 77
      precision=bf16
    fi
    alone=$(trained 1 one --train-precision "$precision")
    for ranks in 2 3 4; do
      got=$(trained "$ranks" "of-$ranks" --train-precision "$precision" --train-threads "$ranks")
      same "$alone" "$got" "$ranks ranks"
      grep -q '^step 6/6 loss [0-9.]* tokens/s [0-9]* nodes 1$' "$folder/stdout" ||
        die "no line for the last step: $(tail -1 "$folder/stdout")"
      grep -qx 'exact: yes' "$folder/stdout" || die "exactness is not said"
    done
    ;;
  threads)
    alone=$(trained 1 one)
    for threads in 2 4; do
      got=$(trained 2 "of-$threads" --train-threads "$threads")
      same "$alone" "$got" "$threads threads"
    done
    ;;
  seed)
    one=$(trained 2 one)
    other=$(trained 2 other --train-seed 2)
    [ "$one" != "$other" ] || die "another seed, same weights"
    ;;
  resume) # a time limit that has passed: one step for each start
    alone=$(trained 1 one)
    for ranks in 4 1 3; do
      train "$ranks" broken --run-time-limit-s 0.001 --run-leave-before-s 0
      [ "$code" -eq 85 ] || die "exit code $code, not 85, before the time limit"
    done
    train 2 broken
    [ "$code" -eq 0 ] || die "2 ranks: exit code $code"
    got=$("$bin/autocloud-ckpt" hash "$folder/broken/final")
    same "$alone" "$got" "4, 1, 3 and 2 ranks in turn"
    grep -q '^step 4/6' "$folder/stdout" || die "did not go on from step 3"
    ! grep -q '^step 3/6' "$folder/stdout" || die "went through step 3 again"
    ;;
  refuses)
    train 2 run --run-time-limit-s 0.001 --run-leave-before-s 0
    train 2 run --train-seed 2
    [ "$code" -ne 0 ] || die "went on with another seed"
    grep -q settings "$folder/stderr" || die "does not name the settings"
    echo more >>"$folder/text"
    train 2 run
    [ "$code" -ne 0 ] || die "went on with other data"
    grep -q data "$folder/stderr" || die "does not name the data"
    ;;
  *) die "no such case" ;;
esac
