#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What an installation puts where: every program that the shipped configuration and unit name is there, and the
# plugins lie where the distribution's Slurm looks for plugins.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

there() { # PATH, who names it
  [ -e "$work$1" ] || {
    echo "install: $1 is not installed, though $2 names it" >&2
    failed=1
  }
}

DESTDIR=$work cmake --install "$ACB_BUILD_DIR" >/dev/null
share=/usr/share/autocloud-burst
named=0
while IFS=: read -r file path; do
  there "$path" "${file#"$work"}"
  named=$((named + 1))
done < <(grep -roE '/usr/[a-z]+/[a-z/-]*autocloud[a-z-]*' "$work$share" "$work/usr/lib/systemd/system/autocloudd.service")
[ "$named" -ge 5 ] || {
  echo "install: only $named programs are named; is the configuration installed?" >&2
  failed=1
}
for file in autocloud.toml user-data.tmpl slurm/plugstack.conf slurm/autocloud-burst.conf slurm/autocloud-nodes.conf; do
  there "$share/$file" docs/admin.md
done
for program in autocloud autocloud-run autocloud-agent autocloud-train autocloud-ckpt autocloud-node; do
  there "/usr/bin/$program" docs/admin.md
done
plugin_dir=$(dirname "$(dpkg -L slurm-wlm-basic-plugins | grep '/auth_munge\.so$')")
there "$plugin_dir/job_submit_autocloud.so" autocloud-burst.conf
there "$plugin_dir/spank_autocloud.so" plugstack.conf
exit $failed
