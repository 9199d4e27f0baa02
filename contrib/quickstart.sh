#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# See it work: a whole cluster on this machine, one job over two own nodes and two rented ones, a rented node
# taken away in mid-run, and the same weights as if nothing had happened.
#
# As root on Debian 12; see usage() below.
set -euo pipefail
cd "$(dirname "$0")/.."
. contrib/quickstart/timeline.sh
. contrib/quickstart/cluster.sh
. contrib/quickstart/summary.sh

preset=${PRESET:-release}
out=build/quickstart

usage() {
  cat <<'USAGE'
usage: contrib/quickstart.sh

Installs the Debian packages that are missing, builds, starts a virtual cluster and a simulated cloud on this machine,
loses a rented node in mid-run, and compares the weights with those of an undisturbed run. Needs root and Debian 12.
Writes build/quickstart/summary.json, and leaves nothing running. One at a time on a machine.

PRESET in the environment names the build to use (release).
Exit status: 0 all is as it should be, 1 it is not, 2 wrong usage.
USAGE
}

# Once a machine, since the cluster is found by its name. The lock dies with its holder: what may outlive this
# script gets 9>&-.
take_lock() {
  exec 9>>/run/autocloud-burst-quickstart.lock
  flock -n 9 || die "one is running already (pid $(tail -n 1 /run/autocloud-burst-quickstart.lock))"
  echo $$ >/run/autocloud-burst-quickstart.lock
}

prepare() {
  local missing
  if ! missing=$(contrib/install-deps.sh --check); then
    say "installing Debian packages: $(echo "$missing" | wc -l) are missing"
    contrib/install-deps.sh >"$out/install.log" 2>&1 9>&- || die "installing failed: see $out/install.log"
  fi
  say "building (the first time takes some minutes; log: $out/build.log)"
  build >"$out/build.log" 2>&1 9>&- || die "the build failed: see $out/build.log"
}

build() {
  { [ -e "build/$preset/build.ninja" ] || cmake --preset "$preset"; } && cmake --build --preset "$preset" --target programs
}

# However it ends: the cluster goes, its logs stay where the run failed, and a last line says so.
at_exit() {
  local code=$?
  set +e
  [ "$code" -eq 0 ] || [ "${told:-}" = yes ] || say "stopped: a command failed with $code, see above (is a disk full?)" >&2
  if [ "$cluster_up" = yes ]; then
    [ "$code" -eq 0 ] || keep_logs
    stop_cluster
  fi
  exit "$code"
}

main() {
  case ${1-} in
    -h | --help) usage; exit 0 ;;
  esac
  [ $# -eq 0 ] || { echo "quickstart.sh: '$1': it takes nothing but --help" >&2; exit 2; }
  [ "$(id -u)" -eq 0 ] || die "it needs root: the cluster's hosts are namespaces"
  take_lock
  cluster_up=no
  trap at_exit EXIT
  trap 'die "ended by a signal"' INT TERM HUP
  rm -rf "$out" && mkdir -p "$out"
  prepare
  cluster_up=yes
  start_cluster

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
  cluster_up=no
  show_summary
}

main "$@"
