#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A job over own and rented nodes: the nodes join with a one-time secret, its MPI ranks run on all of them, and
# everything is given back.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"

scenario=$(mktemp /tmp/scenario-XXXXXX)
changes=$(mktemp /tmp/changes-XXXXXX)
at_end+=("rm -f $scenario $changes")
cat >"$scenario" <<'TOML'
[boot]
delay_s = 0.2
[offers.v100-spot]
gpu_type = "v100-32gb"
market = "spot"
price = "0.91"
TOML
printf '[nodes]\nidle_release_s = 1\n' >"$changes"
cluster_up --scenario "$scenario" --autocloud-toml "$changes"

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
equal "$(on burst-0 cat /etc/munge/munge.key | md5sum)" "$(on ctl cat /etc/munge/munge.key | md5sum)" "munge key"
fails on own-0 grep burst /etc/hosts
fails on burst-0 grep -rqs "$(on ctl cat /etc/autocloud-burst/cloud.key)" /etc /run /var/lib /var/log/slurm

as_user ctl touch stop
wait_for_job "$job" COMPLETED 10
nothing_rented() {
  [ "$(rented)" -eq 0 ]
}
within 20 nothing_rented
