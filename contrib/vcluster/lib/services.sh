# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154 # the settings and paths are set by ../vcluster
# munged, slurmctld and slurmd on the hosts, started as at boot and waited for. All functions run in the cluster.

host_path=/opt/autocloud-burst/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin

# start -f|-w HOST LOG CMD...: in a session of its own, with no descriptor and no variable of ours; -w waits for its end.
start() {
  local how=$1 host=$2 log=$3 fd
  shift 3
  (
    for fd in /proc/self/fd/*; do
      fd=${fd##*/}
      [ "$fd" -le 2 ] || eval "exec $fd>&-"
    done
    in_host "$host" setsid "$how" env -i PATH="$host_path" LANG=C.UTF-8 "$@" </dev/null >>"$state/log/$host/$log" 2>&1
  )
}

# For programs that put themselves into the background once they know that they can work.
start_daemon() {
  local host=$1 log=$2
  start -w "$@" || fail_with_log "$host" "$log" "${log%.*}"
}

boot_munge() {
  local host=$1
  in_host "$host" bash -c 'install -d -o munge -g munge -m 755 /run/munge
    install -d -o munge -g munge -m 700 /etc/munge /var/lib/munge /var/log/munge
    [ -e /etc/munge/munge.key ] || install -o munge -g munge -m 400 /vcluster/munge.key /etc/munge/munge.key'
  start_daemon "$host" munged.out setpriv --reuid=munge --regid=munge --clear-groups munged
}

boot_ctl() {
  boot_munge ctl
  in_host ctl bash -c 'install -d -o slurm -g slurm /run/slurm /var/spool/slurmctld; chown slurm: /var/log/slurm'
  start_daemon ctl slurmctld.out slurmctld
}

boot_node() {
  local host=$1
  boot_munge "$host"
  in_host "$host" sh -c 'install -d -o slurm -g slurm /run/slurm; install -d /var/spool/slurmd'
  start_daemon "$host" slurmd.out slurmd -b
}

wait_until() {
  local seconds=$1 end
  shift
  end=$((SECONDS + seconds))
  until "$@"; do
    [ "$SECONDS" -lt "$end" ] || return 1
    sleep 0.05
  done
}

fail_with_log() {
  local log="$state/log/$1/$2"
  die "$3 on $1: it does not come up: $([ ! -s "$log" ] || tail -n 5 "$log")"
}

slurmctld_answers() {
  in_host ctl scontrol ping 2>/dev/null | grep -q 'is UP'
}

own_nodes_idle() {
  local idle
  idle=$(in_host ctl sinfo -h -N -p batch -t idle -o '%n %T' 2>/dev/null | grep -c ' idle$')
  [ "$idle" -eq "$onprem" ]
}

# node_is_back NODE TIME: its slurmd has registered since then, and it takes jobs. The state alone does not tell:
# slurmctld has not noticed a node that was away for a moment.
node_is_back() {
  local record
  record=$(in_host ctl env TZ=UTC scontrol -o show node "$1" 2>/dev/null) || return 1
  [[ $record =~ SlurmdStartTime=([^ ]*) && ! ${BASH_REMATCH[1]} < $2 && $record =~ State=(IDLE|MIXED|ALLOCATED) ]] &&
    [[ ! $record =~ State=[A-Z+*]*(NOT_RESPONDING|\*) ]]
}

# Runs the body of `up` in the cluster.
build_cluster() {
  local i
  head -c 128 /dev/urandom >/vcluster/munge.key
  chmod 400 /vcluster/munge.key
  write_slurm_conf
  if [ "$plain" = no ]; then
    make_certificates
    write_autocloud_toml
  fi
  install -d -o "$job_uid" -g "$job_uid" -m 700 "/shared/home/$job_user"
  say "hosts: ctl and $onprem own nodes"
  add_host ctl site 10.1.0.2
  in_host ctl "$self" -n "$name" _inside install_slurm_conf
  [ "$plain" = yes ] || in_host ctl "$self" -n "$name" _inside install_autocloud_conf
  boot_ctl
  for ((i = 0; i < onprem; ++i)); do
    add_own_node "$i" &
  done
  [ "$cloud" = no ] || boot_cloud
  wait
  wait_until 30 slurmctld_answers || fail_with_log ctl slurmctld.log slurmctld
  if [ "$cloud" = yes ]; then
    boot_daemon
    say "the cloud and autocloudd are up"
  fi
  wait_until 30 own_nodes_idle || die "own nodes are not idle: $(in_host ctl sinfo -N -l)"
  say "$onprem own nodes are idle"
}

add_own_node() {
  local host=own-$1
  add_host "$host" site "$(own_address "$1")"
  in_host "$host" "$self" -n "$name" _inside install_slurm_conf
  in_host "$host" "$self" -n "$name" _inside make_fake_gpus "$gpus"
  boot_node "$host"
}

heal_host() {
  local host since
  host=$(resolve_host "$1")
  if [ -n "$(host_pids "$host")" ]; then
    heal_link "$host"
    return
  fi
  case $host in
    ctl | own-*) ;;
    *) die "heal $host: only ctl and own nodes come back after a power cut; the cloud replaces a rented host" ;;
  esac
  in_host "$host" "$self" -n "$name" _inside forget_boot
  heal_link "$host"
  if [ "$host" = ctl ]; then
    boot_ctl
    wait_until 30 slurmctld_answers || fail_with_log ctl slurmctld.log slurmctld
    [ "$cloud" = no ] || boot_daemon
  else
    since=$(date -u +%FT%T)
    boot_node "$host"
    wait_until 30 node_is_back "$host" "$since" || fail_with_log "$host" slurmd.log slurmd
  fi
}
