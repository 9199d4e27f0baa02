#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What the SPANK and job_submit plugins make of jobs, as a real slurmctld shows it. Bursts are submitted held, so
# that nothing is rented.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"

# plain_job FILE: what a job without the options looks like, ids, times and places apart.
plain_job() {
  local job
  job=$(submit ctl -N2 -n2 --gres=gpu:1 -t 5 <<<'env | sort')
  wait_for_job "$job" COMPLETED 30
  {
    on ctl scontrol show job "$job" | tr ' ' '\n' | grep -vE '^(JobId|[A-Za-z]*Time|LastSchedEval|AllocNode:Sid|StdOut|StdErr)='
    output_of "$job" | grep -vE '^(SLURM_JOB_?ID|SLURM_TASK_PID|SLURM_JOB_(START|END)_TIME|TMPDIR|_|SLURMD_.*|SLURM_TOPOLOGY_ADDR.*)='
  } >"$1"
}

held() { submit ctl -H "$@" <<<true; }

refused() { # TEXT OPTION...
  local text=$1 output
  shift
  output=$(fails held "$@")
  matches "$output" "$text" "sbatch $*"
}

work=$(mktemp -d)
at_end+=("rm -rf $work")
cluster_up --plain
plain_job "$work/without"
"$vcluster" -n "$cluster" down
cluster_up --no-cloud
on ctl sh -c 'mkdir -p /etc/autocloud-burst && cat >/etc/autocloud-burst/autocloud.toml' <<'TOML'
[burst]
max_nodes = 64
[twins]
batch = "batch-burst"
TOML
plain_job "$work/with"
diff "$work/without" "$work/with" >&2 || fail "a plain job differs with the plugins"
before=$(on ctl squeue -h | wc -l)

burst=$(held -N2 -n4 -c1 -t 5 --gpus-per-node=1 --autocloud-burst=2)
equal "$(job_field "$burst" Partition)" batch-burst "partition"
equal "$(job_field "$burst" Features)" "[onprem*2&cloud*2]" "features"
equal "$(job_field "$burst" BatchFeatures)" onprem "batch features"
equal "$(job_field "$burst" NumNodes)" 4-4 "nodes"
equal "$(job_field "$burst" NumTasks)" 8 "tasks"
equal "$(job_field "$burst" Requeue)" 1 "requeue"
equal "$(job_field "$burst" TresPerNode)" gres:gpu:1 "GPUs per node"
record=$(on ctl scontrol show job "$burst" | sed -n 's/^ *AdminComment=\([^|]*\).*/\1/p')
matches "$record" "^autocloud:v1 burst=2 own=2 gpu=[a-z0-9.-]+ market=spot" "record"

refused "'0': must be 1 to 64" --autocloud-burst=0
refused "needs --nodes=M" -n 4 --autocloud-burst=1
refused "multiple of --nodes=2" -N2 -n3 --autocloud-burst=1
refused "fixed number of own nodes" -N1-2 --autocloud-burst=1
refused "write --gpus-per-node=K" -N2 --gpus=2 --autocloud-burst=1
refused "one job per burst" -a 0-1 --autocloud-burst=1
refused "use --constraint" -w own-0 --autocloud-burst=1
refused "use --constraint" -x own-0 --autocloud-burst=1
refused "no reservation" --reservation=r --autocloud-burst=1
refused "name one" -p batch,batch --autocloud-burst=1
refused "HH:MM:SS" -t infinite --autocloud-burst=1
refused "in the constraint" -C 'a|b' --autocloud-burst=1
refused "only bursts run there" -p batch-burst
refused "must be one of" --autocloud-burst=1 --autocloud-gpu=rtx
matches "$(fails as_user ctl salloc -N2 -n2 --autocloud-burst=1 true)" "not in salloc" "salloc -n"
matches "$(fails as_user ctl salloc -N1 -n1 --autocloud-burst=1 true)" "not in salloc" "salloc -n 1"
matches "$(fails as_user ctl srun --autocloud-burst=1 true)" "start the job with sbatch" "srun"
equal "$(on ctl squeue -h | wc -l)" "$((before + 1))" "jobs in the queue"

# The owner may not turn a burst into another job, nor any job into a burst; SlurmUser and root may.
for change in Partition=batch Features=onprem NumNodes=3 NumTasks=3 ReqNodeList=own-0; do
  fails as_user ctl scontrol update "jobid=$burst" "$change" >/dev/null
done
equal "$(job_field "$burst" Features),$(job_field "$burst" NumNodes)" "[onprem*2&cloud*2],4-4" "burst after changes"
as_user ctl scontrol update "jobid=$burst" TimeLimit=4 JobName=mine
plain=$(held -N1 -t 5)
fails as_user ctl scontrol update "jobid=$plain" Partition=batch-burst >/dev/null
as_user ctl scontrol update "jobid=$plain" Features=onprem
equal "$(job_field "$plain" Features)" onprem "a plain job's features after its owner's change"

on ctl scancel "$burst" "$plain"

# What the tasks see is made from the label in the job's environment alone, in the script and in its steps.
job=$(submit ctl -N1 -t 5 --export=SLURM_SPANK_AUTOCLOUD_BURST=2,SLURM_SPANK_AUTOCLOUD_MARKET=spot,PATH \
  <<<'env | grep ^AUTOCLOUD | sort; srun --export=NONE /usr/bin/env | grep ^AUTOCLOUD | sort')
wait_for_job "$job" COMPLETED 30
seen="AUTOCLOUD_BURST=2 AUTOCLOUD_MARKET=spot AUTOCLOUD_NODE=onprem AUTOCLOUD_RESTART=0 "
equal "$(output_of "$job" | tr '\n' ' ')" "$seen$seen" "the tasks' environment"
