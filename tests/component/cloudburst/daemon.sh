#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# autocloudd and a simulated cloud, without a Slurm that answers: what it refuses to start with, each in one line, and
# what it says of a cloud that it cannot use. Mounts are private to the test.
set -euo pipefail

if [ "${1:-}" != inside ]; then
  if ! unshare --mount true 2>/dev/null; then
    echo "daemon.sh: needs to be root, for a mount namespace" >&2
    exit 77
  fi
  exec unshare --mount --pid --fork --kill-child --mount-proc --propagation private -- "$0" inside
fi

bin=$(readlink -f "${ACB_BUILD_DIR:?}/bin")
work=$(mktemp -d /tmp/acb-daemon-XXXXXX)
mount -t tmpfs none "$work"
trap 'umount -l "$work"; rmdir "$work"' EXIT
export SLURM_CONF=$work/slurm.conf
unset AUTO_CLOUD_API_KEY

fail() {
  echo "daemon.sh: $*" >&2
  tail -n 2 "$work"/*.log >&2
  exit 1
}
within() { # SECONDS COMMAND...
  local end=$((SECONDS + $1))
  shift
  until "$@"; do
    [ "$SECONDS" -lt "$end" ] || fail "never: $*"
    sleep 0.05
  done
}

certificate() { # NAME
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 1 -subj "/CN=$1" \
    -addext subjectAltName=IP:127.0.0.1 -keyout "$work/$1.key" -out "$work/$1.pem" 2>/dev/null
}
certificate cloud
certificate stranger
(umask 077 && echo the-cloud-key >"$work/key" && echo another-key >"$work/wrong-key" && : >"$work/no-key")
install -m 640 "$work/key" "$work/open-key"
echo munge >"$work/munge.key"
echo '@NODE@ @JOIN_SECRET@' >"$work/user-data.tmpl"
echo 'not a ledger, though longer than the header of one, which has a hundred bytes and begins otherwise' >"$work/text"
printf '[offers.v]\ngpu_type = "v100-32gb"\nprice = "0.91"\n' >"$work/scenario.toml"
mkdir -p "$work/readonly" "$work/corrupt"
cp "$work/text" "$work/corrupt/ledger.db"
mount -t tmpfs -o ro none "$work/readonly"
cat >"$SLURM_CONF" <<'CONF'
ClusterName=nobody
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort=1
AuthType=auth/none
CredType=cred/none
MessageTimeout=2
NodeName=own-0,burst-[0-3]
PartitionName=batch Nodes=ALL Default=YES
CONF

"$bin/cloudsim" serve --scenario "$work/scenario.toml" --cert "$work/cloud.pem" --key "$work/cloud.key" \
  --api-key-file "$work/key" --state "$work/cloud" >/dev/null 2>"$work/cloudsim.log" &
within 10 test -s "$work/cloud/endpoint.json"

# configure NAME [SED SCRIPT]: a sound configuration of its own folders, then changed.
configure() {
  cat >"$work/$1.toml" <<TOML
cluster = "test"
[twins]
batch = "batch-burst"
[nodes]
cloud = "burst-[0-3]"
[provider]
url = "$(jq -r .url "$work/cloud/endpoint.json")"
ca_file = "$work/cloud.pem"
key_file = "$work/key"
user_data_template = "$work/user-data.tmpl"
[join]
listen = "127.0.0.1:0"
munge_key_file = "$work/munge.key"
[paths]
state = "$work/$1/state"
spool = "$work/$1/spool"
run = "$work/$1/run"
TOML
  sed -i -e "${2:-}" "$work/$1.toml"
}
start() { # NAME
  "$bin/autocloudd" --config "$work/$1.toml" 2>"$work/$1.log" &
  daemon=$!
  within 10 test -S "$work/$1/run/autocloudd.sock"
}
stop() {
  kill "$daemon"
  wait "$daemon" || fail "autocloudd ends with $? on SIGTERM"
}
says() { grep -qF -- "$2" "$work/$1.log"; }

configure sound
start sound
first=$daemon
requests() { grep -c '"path":"/v1/gpu/allocations".*"status":200' "$work/cloud/requests.jsonl" || [ $? -eq 1 ]; }
asked() { [ "$(requests)" -gt 0 ]; }
within 10 asked
join_port=$(sed -nE 's/.*joining at .*:([0-9]+)$/\1/p' "$work/sound.log")

# What it must not start with: change of the configuration | what its one line holds.
number=0
while IFS='|' read -r change text; do
  number=$((number + 1))
  configure "bad-$number" "${change//WORK/$work}"
  status=0
  timeout 10 "$bin/autocloudd" --config "$work/bad-$number.toml" 2>"$work/bad-$number.log" || status=$?
  [ "$status" -eq 1 ] || fail "$change: exit code $status: $(cat "$work/bad-$number.log")"
  [ "$(wc -l <"$work/bad-$number.log")" -eq 1 ] || fail "$change: not one line: $(cat "$work/bad-$number.log")"
  says "bad-$number" "${text//WORK/$work}" || fail "$change: says $(cat "$work/bad-$number.log"), not $text"
done <<CASES
/^cluster/d|bad-$((number + 1)).toml: cluster: has no default: must be given
s,^cloud =,clouds =,|nodes.clouds
s,^url = .*,url = "http://cloud",|provider.url: 'http://cloud': must start with https://
s,^key_file.*,,|AUTO_CLOUD_API_KEY
s,^key_file.*,key_file = "WORK/none",|WORK/none
s,/key",/open-key",|WORK/open-key
s,/key",/no-key",|WORK/no-key: must hold 1 to
s,/cloud.pem",/none.pem",|provider.ca_file: WORK/none.pem
s,/cloud.pem",/text",|provider.ca_file: WORK/text: must hold PEM certificates
s,/munge.key",/none",|join.munge_key_file: WORK/none
s,^listen.*,listen = "127.0.0.1",|join.listen: '127.0.0.1': must be ADDRESS:PORT
s,^listen.*,listen = "127.0.0.1:$join_port",|127.0.0.1:$join_port: cannot listen there
s,/bad-[0-9]*/state",/readonly",|WORK/readonly/lock: Read-only file system
s,/bad-[0-9]*/state",/readonly/state",|WORK/readonly/state
s,/bad-[0-9]*/state",/text/state",|WORK/text
s,/bad-[0-9]*/state",/corrupt",|WORK/corrupt/ledger.db
s,/bad-[0-9]*/state",/sound/state",|WORK/sound/state/lock: another autocloudd is running
s,/bad-[0-9]*/run",/sound/run",|WORK/sound/run/autocloudd.sock
CASES
[ "$number" -gt 15 ] || fail "only $number bad configurations were tried"
"$bin/autocloud" --config "$work/sound.toml" status --json >/dev/null || fail "the first daemon no longer answers"
echo "ok: $number bad configurations"

# The check of it all: the cloud's offers are told, and that slurmctld is silent. Nothing is made.
configure checked
status=0
timeout 20 "$bin/autocloudd" --check --config "$work/checked.toml" >"$work/checked.out" 2>"$work/checked.log" || status=$?
[ "$status" -eq 1 ] || fail "--check without slurmctld exits $status"
for text in '  v: v100-32gb, on-demand, 0.91' 'fault: no offer fits a burst that names neither' 'fault: slurm: loading'; do
  grep -qF -- "$text" "$work/checked.out" || fail "--check does not say '$text': $(cat "$work/checked.out")"
done
[ ! -e "$work/checked" ] || fail "--check makes folders"
configure checked 's,^url = .*,url = "https://127.0.0.1:1",'
timeout 20 "$bin/autocloudd" --check --config "$work/checked.toml" >"$work/checked.out" 2>&1 && fail "--check without a cloud"
grep -q '^fault: provider.url: .*unreachable' "$work/checked.out" || fail "--check: $(cat "$work/checked.out")"
echo "ok: the check"

# A cloud that is not ours to use, now: it goes on, and says why.
while IFS='|' read -r name change text; do
  configure "$name" "$change"
  start "$name"
  within 10 says "$name" "$text"
  stop
done <<CASES
stranger|s,/cloud.pem",/stranger.pem",|cloud: list: auth: tls
wrong|s,/key",/wrong-key",|cloud: list: auth: 
absent|s,^url = .*,url = "https://127.0.0.1:1",|unreachable
CASES
daemon=$first
stop
[ "$(grep -rlF the-cloud-key "$work" | sort | xargs -n1 basename | tr '\n' ' ')" = 'key open-key ' ] ||
  fail "the key is in $(grep -rlF the-cloud-key "$work")"
echo "ok: a cloud that cannot be used"
