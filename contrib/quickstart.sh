#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# See it work: a whole cluster on this machine, one job over two own nodes and two rented ones, a rented node
# taken away in mid-run, and the same weights as if nothing had happened.
#
#   contrib/quickstart.sh          as root on Debian 12; writes build/quickstart/summary.json
#
# PRESET names the build to use (release).
set -euo pipefail
cd "$(dirname "$0")/.."
. contrib/quickstart/timeline.sh
. contrib/quickstart/cluster.sh
. contrib/quickstart/summary.sh

preset=${PRESET:-release}
out=build/quickstart

prepare() {
  [ "$(id -u)" -eq 0 ] || die "it needs root: the cluster's hosts are namespaces"
  local missing
  if ! missing=$(contrib/install-deps.sh --check); then
    say "installing Debian packages: $(echo "$missing" | wc -l) are missing"
    contrib/install-deps.sh >"$out/install.log" 2>&1 || die "installing failed: see $out/install.log"
  fi
  say "building (the first time takes some minutes; log: $out/build.log)"
  build >"$out/build.log" 2>&1 || die "the build failed: see $out/build.log"
}

build() {
  { [ -e "build/$preset/build.ninja" ] || cmake --preset "$preset"; } && cmake --build --preset "$preset" --target programs
}

main() {
  rm -rf "$out" && mkdir -p "$out"
  prepare
  start_cluster
  trap stop_cluster EXIT

  say "\$ sbatch -N2 --autocloud-burst=2 job.sh"
  submit burst -N2 --autocloud-burst=2
  burst_job=$job burst_submitted=$submitted
  watch_start
  lose_a_rented_node
  watch_end burst
  await_given_back

  say "\$ sbatch -N2 job.sh (the same run, undisturbed, on the own nodes alone)"
  submit undisturbed -N2
  watch_end undisturbed

  write_summary
  stop_cluster
  trap - EXIT
  show_summary
}

main "$@"
