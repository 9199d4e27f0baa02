# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034,SC2154
# For fault tests of bursts: a quick cloud, the daemon's end and start, and what must hold afterwards, as seen from the
# cloud's own books.
. "$(dirname "${BASH_SOURCE[0]}")/../cluster/lib.sh"

# burst_cluster OPTION...: own and cloud nodes, with a cloud that boots within half a second. OPTION as for vcluster up.
# Lines for [nodes] of autocloud.toml stand in $node_settings.
burst_cluster() {
  scenario=$(mktemp /tmp/scenario-XXXXXX)
  changes=$(mktemp /tmp/changes-XXXXXX)
  at_end+=("rm -f $scenario $changes")
  cat >"$scenario" <<'TOML'
[boot]
delay_s = 0.3
[release]
delay_s = 0.2
[offers.v100-spot]
gpu_type = "v100-32gb"
market = "spot"
price = "0.91"
capacity = 64
[offers.v100]
gpu_type = "v100-32gb"
price = "1.82"
capacity = 64
TOML
  printf '[nodes]\nidle_release_s = 1\n%s\n' "${node_settings:-}" >"$changes"
  cluster_up --scenario "$scenario" --autocloud-toml "$changes" "$@"
}

burst() { submit ctl -N1 -t 5 --ntasks-per-node=1 --autocloud-burst=2 "$@" <<<'srun hostname'; }

start_daemon() {
  on ctl setsid -f setpriv --reuid=slurm --regid=slurm --clear-groups sh -c 'exec autocloudd >>/tmp/autocloudd.log 2>&1'
}
kill_daemon() {
  on ctl sh -c 'pkill -KILL -x autocloudd && while pgrep -x autocloudd >/dev/null; do sleep 0.02; done' ||
    fail "no autocloudd to kill"
}

# fault CMD...: `cloudsim fault`, such as `fault add NAME --kind drop`.
fault() { on cloud cloudsim fault "$@" --state /var/lib/cloudsim >/dev/null; }

leases() { on ctl autocloud leases --json; }
bill() { cloudsim bill --json; }

nothing_rented() { [ "$(rented)" -eq 0 ]; }

all_given_back() {
  nothing_rented && leases | jq -e '.leases | all(.state == "gone")' >/dev/null &&
    [ "$(on ctl sinfo -h -N -p batch-burst -o '%N %T' | sed -n 's|^burst-[0-9]* ||p' | sort -u)" = 'idle~' ]
}

# Every machine that the cloud bills is in the ledger, at the same price for the same time.
ledger_equals_bill() {
  [ "$(bill | jq '.instances | length')" -ge "${1:-1}" ] || fail "the cloud has billed less than ${1:-1} machines"
  equal "$(leases | jq -c '[.leases[] | select(.instance != null) | [.instance, .billed_s, .cost]] | sort')" \
    "$(bill | jq -c '[.instances[] | [.instance_id, .billed_s, .cost]] | sort')" "leases and the cloud's bill"
}

# Never two machines at one time for one (job, restart, node): keys are cluster/job/restart/node/attempt.
never_two_for_one() {
  local twice
  twice=$(leases | jq -c '
    [.leases[] | select(.from != null) | {of: (.lease | sub("/[0-9]+$"; "")), from, to: (.to // "9999")}] | group_by(.of)[] |
    sort_by(.from) | . as $l | range(1; length) | select($l[.].from < $l[. - 1].to) | $l[.].of')
  equal "$twice" "" "two machines at one time for"
}
