#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds what the tests need and runs them.
#
#   tests/run.sh                 every label
#   tests/run.sh unit mpi        these labels: unit, component, mpi, cluster or fault
#   PRESET=asan tests/run.sh unit    # under the address and undefined-behaviour sanitizers
set -euo pipefail
cd "$(dirname "$0")/.."
labels='^(unit|component|mpi|cluster|fault)$'

for label in "$@"; do
  [[ $label =~ $labels ]] || { echo "run.sh: '$label': is no label; one of unit component mpi cluster fault" >&2; exit 2; }
done
missing=$(contrib/install-deps.sh --check) || {
  echo "run.sh: missing packages: $(echo "$missing" | tr '\n' ' ')" >&2
  contrib/install-deps.sh
}
preset=${PRESET:-release}
cmake --preset "$preset"
target=all
[ "$*" = unit ] && target=unit_tests
cmake --build --preset "$preset" --target "$target"

# Six parts of the machine, of which each test takes its own number (cmake/AcbTest.cmake).
selected=$(IFS='|'; echo "$*")
[ $# -gt 0 ] && labels="^($selected)\$"
ctest --test-dir "build/$preset" --output-on-failure --no-tests=error -j6 -L "$labels"
