#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs job_submit_driver, once as it is and once under valgrind, in a mount namespace with an /etc of its own,
# since the plugin's settings have a fixed place.
#
#   job_submit.sh DRIVER
set -euo pipefail
driver=$1
plugin=$ACB_BUILD_DIR/lib/job_submit_autocloud.so

if [ "${2:-}" != inside ]; then
  unshare --mount --map-root-user true 2>/dev/null || { echo "job_submit: no mount namespaces here"; exit 77; }
  exec unshare --mount --map-root-user "$0" "$driver" inside
fi

mount -t tmpfs tmpfs /mnt
cp -r /etc/ld.so.* /etc/passwd /etc/group /mnt
mkdir /mnt/autocloud-burst /mnt/state
mount --bind /mnt /etc
config=/etc/autocloud-burst/autocloud.toml

"$driver" "$plugin" "$config" /mnt/state
if nm -D "$plugin" | grep -qE '__(asan|tsan)_'; then
  exit 0  # valgrind and the sanitizers cannot share a process
fi
exec valgrind --quiet --error-exitcode=9 --keep-debuginfo=yes --leak-check=full \
  --show-leak-kinds=definite,indirect --errors-for-leak-kinds=definite,indirect \
  "$driver" "$plugin" "$config" /mnt/state
