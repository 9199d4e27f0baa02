# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154 # the settings and paths are set by ../vcluster
# The state folder of a cluster, its lock, and the identity of its init process.
#
# A cluster is one PID namespace: everything in it, rented hosts and jobs included, is a descendant of its init. Mounts,
# links and namespaces are held by those processes alone, so the death of init is the end of all of them, however it came.

state_root=${XDG_RUNTIME_DIR:-/tmp}/autocloud-vcluster-$UID
settings=(onprem burst gpus cpus build scenario cloud plain slurm_conf autocloud_toml rate local_mb shared_mb)

use_cluster() {
  [[ $1 =~ ^[a-z0-9][a-z0-9-]{0,30}$ ]] ||
    die "cluster name: $1: only a-z, 0-9 and '-', at most 31 characters, are allowed"
  name=$1
  state=$state_root/$name
}

# Takes the cluster's lock as descriptor 9. The file may be removed by the `down` that is waited for: then it is made anew.
lock_cluster() {
  local wait_s=$1
  if [ -e "$state_root" ] && [ "$(stat -c %u "$state_root")" -ne "$UID" ]; then
    die "state folder: $state_root: it belongs to another user"
  fi
  while :; do
    mkdir -p "$state_root" "$state"
    { exec 9>"$state/lock"; } 2>/dev/null || continue
    flock -w "$wait_s" 9 || die "cluster $name: another vcluster command works on it"
    [ "$state/lock" -ef /proc/self/fd/9 ] && return
  done
}

# Sets keeper_pid, the parent of init, and init_pid, 0 as long as there is none; fails if the cluster has no living keeper.
# A pid alone may have been given to another process since, so that its start time has to match too.
find_init() {
  local started stat
  [ -r "$state/keeper" ] && read -r keeper_pid started <"$state/keeper" || return 1
  read -r -a stat 2>/dev/null <"/proc/$keeper_pid/stat" || return 1
  [ "${stat[21]}" = "$started" ] || return 1
  init_pid=0
  [ -r "$state/init" ] || return 0
  read -r started <"$state/init"
  read -r -a stat 2>/dev/null <"/proc/$started/stat" || return 0
  [ "${stat[3]}" != "$keeper_pid" ] || init_pid=$started
}

require_up() {
  if ! find_init || [ ! -e "$state/up" ]; then
    die "cluster $name: it is not up (vcluster -n $name up)"
  fi
  load_settings "$state/settings"
}

save_settings() {
  local setting
  for setting in "${settings[@]}"; do
    printf '%s=%q\n' "$setting" "${!setting}"
  done >"$state/settings"
}

load_settings() {
  # shellcheck source=/dev/null
  . "$1"
}

gone() {
  local pid=$1 tries
  for ((tries = 0; tries < 1000; ++tries)); do
    [ -e "/proc/$pid" ] || return 0
    sleep 0.01
  done
  return 1
}

# Ends every process of the cluster; with them go its mounts and namespaces. Needs the lock.
destroy_cluster() {
  if find_init; then
    if [ "$init_pid" -gt 0 ]; then
      kill -KILL "$init_pid" 2>/dev/null || say "cluster $name: its init had gone already"
      gone "$init_pid" || die "cluster $name: its init, pid $init_pid, does not die"
    fi
    kill -KILL "$keeper_pid" 2>/dev/null || gone "$keeper_pid"
    gone "$keeper_pid" || die "cluster $name: the parent of its init, pid $keeper_pid, does not die"
  fi
  find "$state" -mindepth 1 -maxdepth 1 ! -name lock -exec rm -rf {} +
}

forget_cluster() {
  rm -rf "$state"
  rmdir --ignore-fail-on-non-empty "$state_root"
}

# Runs one of our functions in the namespaces of the cluster's init: the router's network, the root all hosts start from.
inside() {
  if [ -e /vcluster/hosts ]; then
    nsenter -t 1 --mount --net --uts --ipc -- "$self" -n "$name" _inside "$@"
  else
    nsenter -t "$init_pid" --pid --mount --net --uts --ipc -- "$self" -n "$name" _inside "$@" 9>&-
  fi
}

# The cluster's init: makes the common root and the router, then reaps orphans until it is killed.
run_init() {
  local stat
  read -r -a stat </proc/self/stat # /proc is still the machine's: this is the pid that others see
  echo "${stat[0]}" >"$state/init"
  make_root
  make_router
  : >"$state/init-ready"
  while :; do
    sleep 3600 &
    wait "$!"
  done
}

# The parent of init: holds the lock until it has said who it is, so that not even a `kill -9` of `up` can leave a
# cluster that `down` does not find.
run_keeper() {
  local stat
  read -r -a stat </proc/self/stat
  echo "$$ ${stat[21]}" >"$state/keeper.new"
  mv "$state/keeper.new" "$state/keeper"
  exec 9>&-
  exec unshare --pid --fork --kill-child --mount --net --uts --ipc --propagation private -- "$self" -n "$name" _init
}

start_init() {
  local tries
  setsid -f "$self" -n "$name" _keeper </dev/null >"$state/init.log" 2>&1
  for ((tries = 0; tries < 1000; ++tries)); do
    [ -e "$state/init-ready" ] && find_init && return
    sleep 0.01
  done
  die "cluster $name: its root could not be made: $(tail -n 3 "$state/init.log")"
}
