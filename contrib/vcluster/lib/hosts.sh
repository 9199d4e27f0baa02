# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154 # the settings and paths are set by ../vcluster
# Hosts: network, UTS and mount namespaces, and the links between them. Our record of a host is /vcluster/hosts/HOST.
#
# The network namespace is pinned by a file. The two others belong to a process that is not in that network, so that it
# is not among the host's own when power is cut: a bind of a mount namespace is refused now and then by Linux 6.18, whose
# test against loops compares identifiers that no longer grow in the order of creation.
#
# The router is the cluster's init namespace, with two bridges: 10.1.0.0/16 is the site, 10.2.0.0/16 the cloud. Nothing
# leads out of it, so that every cluster uses the same addresses.

job_user=researcher
job_uid=5001
hosts=/vcluster/hosts

make_router() {
  mkdir -p $hosts
  echo 1 >/proc/sys/net/ipv6/conf/all/disable_ipv6
  echo 1 >/proc/sys/net/ipv4/ip_forward
  ip -batch - <<LINKS
link set lo up
link add site type bridge
link add cloud type bridge
addr add 10.1.0.1/16 dev site
addr add 10.2.0.1/16 dev cloud
link set site up
link set cloud up
LINKS
  {
    echo "127.0.0.1 localhost"
    echo "10.1.0.2 ctl"
    local i
    for ((i = 0; i < onprem; ++i)); do
      echo "$(own_address "$i") own-$i"
    done
    echo "10.2.0.2 cloud"
  } >/vcluster/hosts.txt
}

own_address() {
  echo "10.1.$((1 + $1 / 200)).$((1 + $1 % 200))"
}

rented_address() {
  echo "10.2.$((1 + $1 / 200)).$((1 + $1 % 200))"
}

# in_host HOST CMD...: the command in the host's namespaces, as root. Only within the cluster.
in_host() {
  local record=$hosts/$1
  shift
  nsenter -t "$(<"$record/holder")" --net="$record/net" --uts --mount -- "$@"
}

host_exists() {
  [ -e "$hosts/$1/ready" ]
}

# Prints the host that is meant: its own name, or the node name that a rented host has given itself.
resolve_host() {
  local record
  host_exists "$1" && echo "$1" && return
  for record in "$hosts"/*; do
    if [ "$(nsenter -t "$(<"$record/holder")" --uts hostname 2>/dev/null)" = "$1" ]; then
      echo "${record##*/}"
      return
    fi
  done
  die "host: $1: there is none of that name; hosts: $(cd $hosts && echo ./* | sed "s|\./||g")"
}

# add_host HOST BRIDGE ADDRESS: makes the namespaces and the link; the host is up but runs nothing.
add_host() {
  local host=$1 bridge=$2 address=$3 record=$hosts/$1 link
  mkdir -p "$record"
  touch "$record/net"
  link=v$(next_number link)
  echo "$link" >"$record/link"
  echo "$address" >"$record/address"
  unshare --net="$record/net" true
  # shellcheck disable=SC2016 # expanded by the inner shell
  setsid -f unshare --uts --mount --propagation private -- \
    bash -c 'echo $$ >"$1/holder.new" && mv "$1/holder.new" "$1/holder" && exec sleep infinity' bash "$record" \
    </dev/null >/dev/null 2>&1
  ip link add "$link" type veth peer name eth0 netns "$record/net"
  ip link set "$link" master "$bridge" up
  [ "$rate" = 0 ] || limit_rate "$link"
  wait_until 10 test -e "$record/holder"
  in_host "$host" "$self" -n "$name" _inside set_up_host "$host" "$address"
  : >"$record/ready"
}

# A number never used before in this cluster. Rented hosts boot at the same time.
next_number() {
  local counter=/vcluster/next-$1 number
  exec 8>>"$counter.lock"
  flock 8
  number=$(cat "$counter" 2>/dev/null || echo 0)
  echo "$((number + 1))" >"$counter"
  exec 8>&-
  echo "$number"
}

# A burst of 10 ms of traffic, and not less than tbf needs to pass a whole offloaded segment.
limit_rate() {
  local burst=$((rate * 1000000 / 8 / 100))
  tc qdisc add dev "$1" root tbf rate "${rate}mbit" burst "$((burst > 65536 ? burst : 65536))" latency 50ms
}

set_up_host() {
  local host=$1 address=$2
  hostname "$host"
  mount_host "$host"
  echo 1 >/proc/sys/net/ipv6/conf/all/disable_ipv6
  ip -batch - <<LINKS
link set lo up
link set eth0 up
addr add $address/16 dev eth0
route add default via ${address%.*.*}.0.1
LINKS
  [ "$rate" = 0 ] || limit_rate eth0
  cp /vcluster/hosts.txt /etc/hosts
  echo "$host" >/etc/hostname
  echo "$job_user:x:$job_uid:$job_uid::/shared/home/$job_user:/bin/bash" >>/etc/passwd
  echo "$job_user:x:$job_uid:" >>/etc/group
  sed -i 's/^hosts:.*/hosts: files/' /etc/nsswitch.conf
  rm -f /etc/munge/munge.key
  # All hosts share the machine's few cores: no rank may be bound to one, and a waiting rank must yield.
  printf '%s\n' 'hwloc_base_binding_policy = none' 'mpi_yield_when_idle = 1' 'btl_tcp_if_include = eth0' \
    'oob_tcp_if_include = eth0' >>/etc/openmpi/openmpi-mca-params.conf
}

host_pids() {
  local process pin=$hosts/$1/net
  for process in /proc/[0-9]*; do
    [ "$process/ns/net" -ef "$pin" ] && echo "${process#/proc/}"
  done
  return 0
}

# Processes may fork while they are being listed: look again until none is left.
kill_host() {
  local pids
  while pids=$(host_pids "$1") && [ -n "$pids" ]; do
    # shellcheck disable=SC2086 # one word per pid
    kill -KILL $pids 2>/dev/null || sleep 0.01
  done
}

cut_host() {
  local host
  host=$(resolve_host "$1")
  ip link set "$(<"$hosts/$host/link")" down
  [ "${2:-}" = only-link ] || kill_host "$host"
}

heal_link() {
  ip link set "$(<"$hosts/$1/link")" up
}

# The boot command and the destroy command of an instance may both come here: the rename lets one of them in.
remove_host() {
  local record=$hosts/$1.gone
  mv -T "$hosts/$1" "$record" 2>/dev/null || return 0
  rm -f "$record/ready"
  kill_host "$1.gone"
  kill -KILL "$(<"$record/holder")"
  ip link delete "$(<"$record/link")"
  umount "$record/net"
  rm -rf "$record"
}
