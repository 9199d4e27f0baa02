#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Stall of a save beside training against one that training waits for. Writes
# build/bench/checkpoint.json. ACB_BUILD_DIR (default build/release) must have been built.
set -euo pipefail
cd "$(dirname "$0")/../.."
program=${ACB_BUILD_DIR:-build/release}/tests/checkpoint_stall
[ -x "$program" ] || { echo "checkpoint.sh: $program is not built" >&2; exit 77; }
work=$(mktemp -d "${TMPDIR:-/var/tmp}/acb-bench-XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir -p build/bench
"$program" "$work" build/bench/checkpoint.json
