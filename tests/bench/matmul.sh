#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tiled products, whose bits do not depend on threads, against plain oneDNN: build/bench/matmul.json.
#   tests/bench/matmul.sh [BUILD_FOLDER]
set -euo pipefail
cd "$(dirname "$0")/../.."
build=${1:-build/release}
[ -e "$build/CMakeCache.txt" ] || cmake --preset release >/dev/null
cmake --build "$build" --target matmul-bench >/dev/null
mkdir -p build/bench
program=$(find "$build" -name matmul-bench -type f -executable)
"$program" >build/bench/matmul.json
jq -r '.[] | [.name, (.value | round), .unit, (.beside_value | round), (.ratio * 100 | round / 100)] | @tsv' \
  build/bench/matmul.json | column -t -s "$(printf '\t')" -N "product,ours,unit,plain oneDNN,ratio"
