#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# up, exec, cut, heal and down do what their help says.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"

cluster_up --plain --gpus 2
equal "$(on ctl sinfo -h -N -o '%N %T %G' | tr '\n' ';')" "own-0 idle gpu:2;own-1 idle gpu:2;" "nodes after up"
matches "$(fails "$vcluster" -n "$cluster" up --plain)" "is up already" "a second up"

equal "$(on own-1 hostname)" own-1 "host name"
equal "$(as_user own-0 sh -c 'id -un; pwd' | tr '\n' ' ')" "researcher $home " "job user and its folder"
equal "$(on own-0 sh -c 'exit 7' || echo $?)" 7 "exit status of exec"
equal "$(echo text | on own-0 cat)" text "standard input of exec"
equal "$(getent passwd researcher || echo none)" none "job user on the machine itself"
matches "$(fails "$vcluster" -n "$cluster" exec own-9 -- true)" "own-9: there is none" "a host that is not there"

as_user own-0 touch /shared/home/researcher/seen
as_user own-1 ls /shared/home/researcher/seen
as_user own-0 touch /local/mine
matches "$(fails as_user own-1 ls /local/mine)" "No such file" "local storage of another host"

reach() {
  on ctl timeout 2 bash -c "exec 3<>/dev/tcp/$1/6818"
}
reach own-1
cut_link own-1
fails reach own-1 >/dev/null
heal own-1
reach own-1
pid=$(on own-1 sh -c 'setsid -f sleep 1000 >/dev/null 2>&1; pgrep -x -n sleep')
cut_power own-1
fails reach own-1 >/dev/null
fails on own-0 kill -0 "$pid"
equal "$(on own-0 pgrep -x -c slurmd)" 1 "slurmds that are left" # /proc is the cluster's
heal own-1
equal "$(as_user ctl srun -N2 --gres=gpu:2 hostname | sort | tr '\n' ' ')" "own-0 own-1 " "hosts of a job after heal"

cut_power ctl
heal ctl
within 10 as_user ctl srun -N2 hostname
