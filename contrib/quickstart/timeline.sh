# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154,SC2034
# What the newcomer reads: one line per thing that happens, with the time since the start.

timeline_start=$(date +%s.%3N)

now() { date +%s.%3N; }
since() { awk -v a="$1" -v b="${2:-$(now)}" 'BEGIN { printf "%.3f", b - a }'; }

say() {
  printf '%7.1f s  %b\n' "$(since "$timeline_start")" "$*"
}

die() {
  say "stopped: $*" >&2
  told=yes
  exit 1
}

# seconds_of TIME: an ISO time as seconds since 1970.
seconds_of() { date -d "$1" +%s.%3N; }

# wait_for SECONDS WHAT CMD...: until the command succeeds, or dies saying what did not come.
wait_for() {
  local limit=$1 what=$2 from
  shift 2
  from=$(now)
  until "$@"; do
    awk -v a="$from" -v b="$(now)" -v l="$limit" 'BEGIN { exit !(b - a < l) }' ||
      die "$what did not come within $limit s; logs are under $out"
    sleep 0.1
  done
}
