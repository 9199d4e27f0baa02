#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the project and runs all its tests.
#
#   tests/run.sh                 every label
#   tests/run.sh unit            one label: unit, component, mpi, slurm, cluster or fault
#   PRESET=asan tests/run.sh unit
set -euo pipefail
cd "$(dirname "$0")/.."

missing=$(contrib/install-deps.sh --check) || {
  echo "run.sh: missing packages: $(echo "$missing" | tr '\n' ' ')" >&2
  contrib/install-deps.sh
}
preset=${PRESET:-release}
cmake --preset "$preset"
cmake --build --preset "$preset"
label=()
[ $# -gt 0 ] && label=(-L "^$1\$")
ctest --test-dir "build/$preset" --output-on-failure --no-tests=error "${label[@]}"
