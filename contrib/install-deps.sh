#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs the Debian packages that building, testing and the quickstart need, and starts no service.
#
#   contrib/install-deps.sh            install what is missing
#   contrib/install-deps.sh --check    list what is missing; exit 1 if anything is
#   contrib/install-deps.sh --list     list all packages
set -euo pipefail

build=(g++ cmake ninja-build pkg-config git)
libraries=(libslurm-dev libmunge-dev libopenmpi-dev libdnnl-dev libcurl4-openssl-dev
           libtomlplusplus-dev libcli11-dev nlohmann-json3-dev libcpp-httplib-dev libexpected-dev
           libspdlog-dev libxxhash-dev libsqlite3-dev libsqlitecpp-dev libssl-dev libgtest-dev
           libgmock-dev)
cluster=(munge slurmctld slurmd slurm-client openmpi-bin iproute2 util-linux procps psmisc openssl
         jq curl sqlite3 bible-kjv)
checks=(clang-format clang-tidy valgrind gdb binutils shellcheck python3)
packages=("${build[@]}" "${libraries[@]}" "${cluster[@]}" "${checks[@]}")

missing() {
  local package
  for package in "${packages[@]}"; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q '^install ok installed$' || echo "$package"
  done
}

# Debian starts a daemon when its package is installed unless policy-rc.d says no; a site's own is kept.
forbid_service_starts() {
  local policy=/usr/sbin/policy-rc.d
  [ -e "$policy" ] && mv "$policy" "$policy.autocloud-saved"
  printf '#!/bin/sh\nexit 101\n' >"$policy"
  chmod 755 "$policy"
  trap 'rm -f /usr/sbin/policy-rc.d
        [ -e /usr/sbin/policy-rc.d.autocloud-saved ] && mv /usr/sbin/policy-rc.d.autocloud-saved /usr/sbin/policy-rc.d
        true' EXIT
}

case "${1:-}" in
  --list) printf '%s\n' "${packages[@]}"; exit 0 ;;
  --check) m=$(missing); [ -z "$m" ] && exit 0; printf '%s\n' "$m"; exit 1 ;;
  "") ;;
  *) sed -n '2,6s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac

mapfile -t wanted < <(missing)
[ "${#wanted[@]}" -eq 0 ] && exit 0
if [ "$(id -u)" -ne 0 ]; then
  echo "install-deps: ${#wanted[@]} packages are missing and only root can install them: ${wanted[*]}" >&2
  exit 1
fi
forbid_service_starts
echo "install-deps: installing ${#wanted[@]} packages: ${wanted[*]}"
apt-get update -q
DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${wanted[@]}"
