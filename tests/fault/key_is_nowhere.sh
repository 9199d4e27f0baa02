#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The cloud key is in the daemon's memory and its own file alone: not in a log, the ledger, a command line, an
# environment or a core file. The same search finds a decoy wherever it looks.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/../cluster/lib.sh"

cluster_up --onprem 2
key=$(on ctl cat /etc/autocloud-burst/cloud.key)

# places TEXT: every place that holds it, of all hosts and processes of the cluster, the key's own file left out.
places() {
  # shellcheck disable=SC2016 # for the host; the text comes on standard input, to be on no command line itself
  on "${2:-ctl}" bash -c 'read -r text
    grep -rlsF -f /dev/stdin /var/log /var/lib/autocloud-burst /var/spool /run /etc /tmp <<<"$text" |
      grep -vx /etc/autocloud-burst/cloud.key
    for f in /proc/[0-9]*/environ /proc/[0-9]*/cmdline; do
      grep -qsF -f /dev/stdin "$f" <<<"$text" && echo "$f"
    done; true' <<<"$1"
}

job=$(submit ctl -N1 -t 5 --ntasks-per-node=1 --autocloud-burst=1 <<<'while [ ! -e stop ]; do sleep 0.1; done')
wait_for_job "$job" RUNNING 30
on ctl test -s /var/lib/autocloud-burst/ledger.db || fail "no ledger where it is looked for"

on ctl env DECOY=decoy-f00d sh -c 'echo decoy-f00d >>/var/lib/autocloud-burst/decoy; exec sleep 30' &
decoy=$!
decoy_is_found() {
  local found
  found=$(places decoy-f00d)
  [[ $found == */var/lib/autocloud-burst/decoy* && $found == */environ* && $found == */cmdline* ]]
}
within 10 decoy_is_found
kill "$decoy"
on ctl rm /var/lib/autocloud-burst/decoy
for host in ctl own-0 burst-0 cloud; do
  equal "$(places "$key" "$host")" "" "places of the key on $host"
done

# The other way to give it: in the environment. A place where it may leave a core file, if it were let.
daemon_is_gone() {
  ! on ctl pgrep -x autocloudd >/dev/null
}
as_slurm='cd /var/lib/autocloud-burst && ulimit -c unlimited && exec setpriv --reuid=slurm --regid=slurm --clear-groups'
on ctl pkill -TERM -x autocloudd
within 10 daemon_is_gone
on ctl mv /etc/autocloud-burst/cloud.key /root/cloud.key
on ctl bash -c "read -r AUTO_CLOUD_API_KEY && export AUTO_CLOUD_API_KEY
  $as_slurm setsid -f autocloudd >/var/log/slurm/autocloudd-2.log 2>&1 </dev/null" <<<"$key"
status_answers() {
  as_user ctl autocloud status --json >/dev/null 2>&1
}
within 20 status_answers
equal "$(places "$key")" "" "places of the key that came in the environment"

cores() {
  on ctl find /var/lib/autocloud-burst -name 'core*' -type f
}
on ctl pkill -ABRT -x autocloudd
within 10 daemon_is_gone
equal "$(cores)" "" "core files of the daemon"
# shellcheck disable=SC2016 # for the host
on ctl bash -c "$as_slurm"' sh -c "kill -ABRT \$\$"' >/dev/null 2>&1 && fail "SIGABRT ended nothing"
case $(cat /proc/sys/kernel/core_pattern) in
  core*) [ -n "$(cores)" ] || fail "the search for core files does not find one" ;;
esac
equal "$(places "$key")" "" "places of the key after SIGABRT"

# The daemon is down: one line, which names the socket.
down=$(fails as_user ctl autocloud status)
equal "$(wc -l <<<"$down")" 1 "lines of the error"
matches "$down" /run/autocloud-burst/autocloudd.sock "error of a daemon that is down"
