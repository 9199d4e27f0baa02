#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A job over own and rented nodes: the nodes join with a one-time secret, its MPI ranks run on all of them, and
# everything is given back.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/../fault/burst_lib.sh"
burst_cluster

# shellcheck disable=SC2016 # for the job
job=$(submit ctl -N2 --autocloud-burst=2 --ntasks-per-node=1 --gres=gpu:1 \
  <<<'mpirun sh -c "echo \$(hostname) \$AUTOCLOUD_NODE"; while [ ! -e stop ]; do sleep 0.1; done')
wait_for_job "$job" RUNNING 25
ranks_have_reported() {
  [ "$(output_of "$job" 2>/dev/null | wc -l)" -eq 4 ]
}
within 15 ranks_have_reported
equal "$(output_of "$job" | sort | tr '\n' ';')" "burst-0 cloud;burst-1 cloud;own-0 onprem;own-1 onprem;" "ranks"
matches "$(job_field "$job" BatchHost)" "^own-" "batch host"
equal "$(rented)" 2 "instances while the job runs"
matches "$(on ctl scontrol show config | grep "^SuspendTime ")" INFINITE "power saving for all nodes"
equal "$(on burst-0 cat /etc/munge/munge.key | md5sum)" "$(on ctl cat /etc/munge/munge.key | md5sum)" "munge key"

# absent HOST TEXT PLACE...: no file there holds the text. The same search finds a decoy in the last place.
absent() {
  local host=$1 text=$2 decoy=${*: -1}
  shift 2
  [ ! -d "$decoy" ] || decoy+=/decoy
  [ -n "$text" ] || fail "an empty text is absent from nowhere"
  equal "$(on "$host" grep -rlsF -e "$text" "$@")" "" "files on $host that hold it"
  # shellcheck disable=SC2016 # for the host
  on "$host" sh -c 'printf "%s\n" "$1" >>"$2"' sh "$text" "$decoy"
  equal "$(on "$host" grep -rlsF -e "$text" "$@")" "$decoy" "what the search for a decoy finds on $host"
  on "$host" sed -i '$d' "$decoy"
}
absent own-0 burst /etc/hosts
absent burst-0 "$(on ctl cat /etc/autocloud-burst/cloud.key)" /etc /run /var/lib /var/log/slurm

as_user ctl touch stop
wait_for_job "$job" COMPLETED 10
within 20 nothing_rented
