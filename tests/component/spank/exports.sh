#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every plugin exports what Slurm looks up, and nothing that could stand in for a name of the host's.
set -euo pipefail
lib=$ACB_BUILD_DIR/lib
failed=0

exports() { nm -D --defined-only "$lib/$1" | awk '{print $3}' | LC_ALL=C sort; }

expect() {  # PLUGIN, its names on stdin
  if ! diff <(LC_ALL=C sort) <(exports "$1"); then
    echo "exports: $1: exports other names than these" >&2
    failed=1
  fi
}

expect spank_autocloud.so <<'NAMES'
plugin_name
plugin_type
plugin_version
slurm_spank_init
slurm_spank_init_post_opt
slurm_spank_task_init
NAMES
expect job_submit_autocloud.so <<'NAMES'
fini
init
job_modify
job_submit
plugin_name
plugin_type
plugin_version
NAMES

for plugin in spank_autocloud.so job_submit_autocloud.so; do
  needed=$(objdump -p "$lib/$plugin" | awk '$1 == "NEEDED" {print $2}')
  if grep -vE '^lib(stdc\+\+|m|gcc_s|c|asan|ubsan|tsan)\.so' <<<"$needed"; then
    echo "exports: $plugin: needs a library that a node may not have" >&2
    failed=1
  fi
done
exit $failed
