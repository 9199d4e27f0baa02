#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The hooks as slurmctld runs them: without environment and output, with signals blocked; with a daemon that
# answers, hangs or is not there, and with a full disk. /etc and /run are private to the test.
set -euo pipefail

if [ "${1:-}" != inside ]; then
  if ! unshare --mount true 2>/dev/null; then
    echo "hooks.sh: needs to be root, for a mount namespace" >&2
    exit 77
  fi
  exec unshare --mount --pid --fork --kill-child --propagation private -- "$0" inside
fi

bin=$(readlink -f "${ACB_BUILD_DIR:?}/bin")
work=$(mktemp -d /tmp/acb-hooks-XXXXXX)
mount -t tmpfs none "$work"
trap 'umount "$work"; rmdir "$work"' EXIT
mkdir "$work/etc" "$work/spool"
cp -a /etc/passwd /etc/group /etc/nsswitch.conf /etc/ld.so.cache "$work/etc/"
mkdir "$work/etc/autocloud-burst"
mount --bind "$work/etc" /etc
inbox=$work/spool/inbox

# configure [SITE RESUME HOOK] [SITE PROLOG]
configure() {
  cat >/etc/autocloud-burst/autocloud.toml <<TOML
cluster = "test"
[nodes]
cloud = "burst-[0-3]"
[twins]
batch = "batch-burst"
[hooks]
resume = "${1:-}"
prolog = "${2:-}"
[paths]
state = "$work/state"
spool = "$work/spool"
run = "$work/run"
TOML
}

fail() {
  echo "hooks.sh: $*" >&2
  exit 1
}

# As slurmctld does: no environment but what is named, nothing on descriptors 0 to 2, SIGTERM blocked.
as_slurmctld() {
  perl -MPOSIX -e '
    my $set = POSIX::SigSet->new(SIGTERM, SIGINT); sigprocmask(SIG_BLOCK, $set);
    POSIX::close($_) for 0 .. 2; exec {$ARGV[0]} @ARGV or POSIX::_exit(99);' -- env -i "$@"
}

milliseconds() { echo $((($(date +%s%N) - $1) / 1000000)); }

# serve REPLY: a daemon that answers every line with REPLY; an empty one never answers.
serve() {
  mkdir -p "$work/run"
  perl -MIO::Socket::UNIX -e '
    my ($path, $reply, $log) = @ARGV; unlink $path;
    my $server = IO::Socket::UNIX->new(Local => $path, Listen => 50) or die;
    my @held;
    while (my $client = $server->accept) {
      if ($reply eq "") { push @held, $client; next; }
      my $line = <$client>;
      open my $out, ">>", $log; print $out $line; close $out;
      print $client "$reply\n"; close $client;
    }' "$work/run/autocloudd.sock" "$1" "$work/asked" &
  server=$!
  for _ in $(seq 100); do
    [ -S "$work/run/autocloudd.sock" ] && return 0
    sleep 0.02
  done
  fail "the test's own daemon does not start"
}
unserve() {
  kill "$server"
  wait "$server" 2>/dev/null || [ $? -gt 128 ]
  rm -f "$work/run/autocloudd.sock"
}

test_order() {
  configure
  local start
  start=$(date +%s%N)
  as_slurmctld "$bin/autocloud-resume" 'burst-[0-1]' || fail "resume exits $?"
  [ "$(milliseconds "$start")" -lt 1000 ] || fail "resume takes a second or more"
  local order
  order=$(cat "$inbox"/*-resume.json)
  [ "$(jq -c '[.kind, .hosts]' <<<"$order")" = '["resume","burst-[0-1]"]' ] || fail "order: $order"
  [ "$(stat -c %a "$inbox")" = 700 ] || fail "inbox is open to others"
  as_slurmctld "$bin/autocloud-suspend" burst-2 || fail "suspend exits $?"
  [ "$(jq -c '[.kind, .hosts]' "$inbox"/*-suspend.json)" = '["suspend","burst-2"]' ] || fail "suspend order"
  as_slurmctld "$bin/autocloud-resumefail" burst-3 || fail "resumefail exits $?"
  [ "$(find "$inbox" -type f | wc -l)" -eq 3 ] || fail "$(ls "$inbox")"
  rm -f "$inbox"/*
}

test_hanging_daemon() {
  configure
  serve ''
  local start
  start=$(date +%s%N)
  as_slurmctld "$bin/autocloud-resume" burst-0 || fail "resume with a hanging daemon exits $?"
  [ "$(milliseconds "$start")" -lt 1000 ] || fail "resume waits for a hanging daemon"
  unserve
  [ "$(find "$inbox" -name '*.json' | wc -l)" -eq 1 ] || fail "no order"
  rm -f "$inbox"/*
}

test_site_hook() {
  cat >"$work/site" <<'SH'
#!/bin/bash
echo "$1 resume=$SLURM_RESUME_FILE blocked=$(grep SigBlk /proc/$$/status | cut -f2)" >"$(dirname "$0")/site.out"
exit 3
SH
  chmod +x "$work/site"
  configure "$work/site"
  local status=0
  as_slurmctld SLURM_RESUME_FILE=/dev/null "$bin/autocloud-resume" 'aws-[1-2],burst-0' || status=$?
  [ "$status" -eq 3 ] || fail "the site's exit code is lost: $status"
  [ "$(cat "$work/site.out")" = 'aws-[1-2] resume=/dev/null blocked=0000000000000000' ] || fail "site: $(cat "$work/site.out")"
  [ "$(jq -r .hosts "$inbox"/*.json)" = burst-0 ] || fail "our share"
  rm -f "$inbox"/*
}

test_full_disk() {
  configure
  mkdir -p "$inbox"
  mount -t tmpfs -o size=16k,nr_inodes=100 none "$inbox"
  dd if=/dev/zero of="$inbox/filler" bs=4k 2>/dev/null || [ $? -eq 1 ]
  local status=0
  as_slurmctld "$bin/autocloud-resume" burst-0 || status=$?
  [ "$status" -ne 0 ] || fail "a lost order goes unnoticed"
  [ "$(ls "$inbox")" = filler ] || fail "half an order stays: $(ls "$inbox")"
  umount "$inbox"
}

test_faults_elsewhere_in_the_file() {
  printf '#!/bin/bash\necho "$1" >%q\n' "$work/site.out" >"$work/site"
  printf '#!/bin/bash\nexit 5\n' >"$work/prolog"
  chmod +x "$work/site" "$work/prolog"
  configure "$work/site" "$work/prolog"
  sed -i -e 's/^\[nodes\]/[nodes]\nidle_relese_s = 7/' -e '/^cluster/d' /etc/autocloud-burst/autocloud.toml
  as_slurmctld "$bin/autocloud-resume" 'other-[1-2],burst-0' || fail "resume exits $?"
  [ "$(cat "$work/site.out")" = 'other-[1-2]' ] || fail "a typo switches off the site's hook"
  [ "$(jq -r .hosts "$inbox"/*.json)" = burst-0 ] || fail "our share"
  rm -f "$inbox"/*
  prolog 5 0 500 SLURM_JOB_ID=8
  # No TOML at all: the daemon's copy of the last good file counts.
  mkdir -p "$work/var/lib/autocloud-burst"
  cp /etc/autocloud-burst/autocloud.toml "$work/var/lib/autocloud-burst/"
  mount --bind "$work/var" /var
  echo 'nonsense' >/etc/autocloud-burst/autocloud.toml
  prolog 5 0 500 SLURM_JOB_ID=8
  umount /var
  rm -r "${work:?}/var"
}

test_broken_configuration() {
  echo 'nonsense' >/etc/autocloud-burst/autocloud.toml
  mkdir -p "$work/var"
  mount --bind "$work/var" /var
  local status=0
  as_slurmctld "$bin/autocloud-resume" burst-0 || status=$?
  [ "$status" -ne 0 ] || fail "a broken configuration goes unnoticed"
  [ "$(jq -r .hosts /var/spool/autocloud-burst/inbox/*.json)" = burst-0 ] || fail "the order is lost with the configuration"
  umount /var
}

# prolog EXPECTED_STATUS LEAST_MS MOST_MS VARIABLES...
prolog() {
  local expected=$1 least=$2 most=$3 start status=0 took
  shift 3
  start=$(date +%s%N)
  as_slurmctld "$@" "$bin/autocloud-prolog" || status=$?
  took=$(milliseconds "$start")
  [ "$status" -eq "$expected" ] || fail "prolog exits $status with $*"
  if [ "$took" -lt "$least" ] || [ "$took" -gt "$most" ]; then
    fail "prolog takes $took ms, not $least to $most, with $*"
  fi
}

test_prolog() {
  configure
  prolog 0 0 500 SLURM_JOB_ID=7
  prolog 0 4900 6000 SLURM_JOB_ID=7 SPANK_AUTOCLOUD_BURST=2
  serve '{"go":true,"restart":0}'
  prolog 0 0 900 SLURM_JOB_ID=7 SPANK_AUTOCLOUD_BURST=2
  [ "$(jq -c . "$work/asked")" = '{"job":7,"op":"prolog","restart":-1}' ] || fail "asked: $(cat "$work/asked")"
  unserve
  serve ''
  prolog 0 4900 6500 SLURM_JOB_ID=7 SPANK_AUTOCLOUD_BURST=2
  unserve
  serve '{"go":false,"restart":0}'
  # A daemon that restarts in the middle: the prolog goes on asking.
  prolog 0 900 2500 SLURM_JOB_ID=7 SPANK_AUTOCLOUD_BURST=2 &
  local waiting=$!
  sleep 1
  unserve
  serve '{"go":true,"restart":0}'
  wait "$waiting" || exit 1
  unserve
}

test_site_prolog() {
  printf '#!/bin/bash\necho "$SLURM_JOB_ID" >>%q\nexit 5\n' "$work/prolog.out" >"$work/prolog"
  chmod +x "$work/prolog"
  configure '' "$work/prolog"
  prolog 5 0 500 SLURM_JOB_ID=8
  serve '{"go":true,"restart":0}'
  prolog 5 0 900 SLURM_JOB_ID=9 SPANK_AUTOCLOUD_BURST=2
  unserve
  [ "$(tr '\n' ' ' <"$work/prolog.out")" = '8 9 ' ] || fail "site prolog: $(cat "$work/prolog.out")"
  configure '' /nonexistent/prolog
  prolog 0 0 500 SLURM_JOB_ID=8
}

for name in order hanging_daemon site_hook full_disk faults_elsewhere_in_the_file broken_configuration prolog site_prolog; do
  "test_$name"
  echo "ok: $name"
done
