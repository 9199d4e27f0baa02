#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The exact sum over slots, whose bits do not depend on the number of ranks, against MPI_Allreduce:
# build/bench/reduce.json.
#   tests/bench/reduce.sh [BUILD_FOLDER]
set -euo pipefail
cd "$(dirname "$0")/../.."
build=${1:-build/release}
[ -e "$build/CMakeCache.txt" ] || cmake --preset release >/dev/null
cmake --build "$build" --target reduce-bench >/dev/null
mkdir -p build/bench
program=$(find "$build" -name reduce-bench -type f -executable)
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_btl_vader_single_copy_mechanism=none
for ranks in 2 4; do
  mpirun --oversubscribe --bind-to none --mca mpi_yield_when_idle 1 -n "$ranks" "$program"
done | jq -s add >build/bench/reduce.json
jq -r '.[] | [.name, (.value * 10 | round / 10), .unit, (.beside_value * 10 | round / 10), (.ratio * 100 | round / 100)] | @tsv' \
  build/bench/reduce.json | column -t -s "$(printf '\t')" -N "what,ours,unit,MPI_Allreduce,ratio"
