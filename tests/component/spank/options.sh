#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The options in the real sbatch, salloc and srun, with a controller address where nobody listens: what is
# refused never gets that far, what is accepted does.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

cat >"$work/slurm.conf" <<CONF
ClusterName=nobody
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort=1
AuthType=auth/none
CredType=cred/none
MessageTimeout=2
PlugStackConfig=$work/plugstack.conf
NodeName=n1
PartitionName=batch Nodes=n1 Default=YES
CONF
line="$ACB_BUILD_DIR/lib/spank_autocloud.so max_nodes=64 gpu_types=a100-80gb,h100-80gb"
echo "required $line" >"$work/plugstack.conf"
export SLURM_CONF=$work/slurm.conf
unset SLURM_JOB_ID SLURM_JOBID
printf '#!/bin/sh\ntrue\n' >"$work/plain.sh"
printf '#!/bin/sh\n#SBATCH --autocloud-burst=0\ntrue\n' >"$work/bad.sh"
printf '#!/bin/sh\n#SBATCH --autocloud-burst=2\ntrue\n' >"$work/good.sh"

contacted='[Uu]nable to contact slurm controller'

# says TEXT COMMAND...: the command fails and its output holds the text; where the text is not about the
# controller, the controller was not asked.
says() {
  local text=$1 output status=0
  shift
  output=$(timeout 20 "$@" 2>&1) || status=$?
  local asked=0
  if grep -qE "$contacted" <<<"$output"; then asked=1; fi
  local wanted=0
  if [ "$text" = "$contacted" ]; then wanted=1; fi
  if [ "$status" -eq 0 ] || [ "$asked" -ne "$wanted" ] || ! grep -qE -- "$text" <<<"$output"; then
    printf 'options: %s\n  wanted: %s\n  got (exit %s): %s\n' "$*" "$text" "$status" "$output" >&2
    failures=$((failures + 1))
  fi
}

for value in 0 -1 x 1e9 2,3 '' ' 8' +8 8x 65; do
  wanted="error: autocloud: --autocloud-burst: '${value/+/\\+}': must be 1 to 64\$"
  says "$wanted" sbatch "--autocloud-burst=$value" "$work/plain.sh"
  says "$wanted" salloc "--autocloud-burst=$value" true
done
says "--autocloud-gpu: 'rtx': must be one of a100-80gb, h100-80gb" \
  sbatch --autocloud-burst=1 --autocloud-gpu=rtx "$work/plain.sh"
says "--autocloud-market: 'x': must be spot or on-demand" \
  sbatch --autocloud-burst=1 --autocloud-market=x "$work/plain.sh"
says "--autocloud-market: 'spot': needs --autocloud-burst=N" sbatch --autocloud-market=spot "$work/plain.sh"

# Script lines come before the command line, and the last value wins.
says "'0': must be 1 to 64" sbatch "$work/bad.sh"
says "$contacted" sbatch --autocloud-burst=2 "$work/bad.sh"
says "'x': must be 1 to 64" sbatch --autocloud-burst=x "$work/good.sh"
says "$contacted" sbatch --autocloud-burst=x --autocloud-burst=3 "$work/plain.sh"
says "'x': must be 1 to 64" sbatch --autocloud-burst=3 --autocloud-burst=x "$work/plain.sh"
says "$contacted" sbatch --autocloud-burst=2 --autocloud-gpu=h100-80gb --autocloud-market=on-demand "$work/plain.sh"
says "$contacted" sbatch "$work/plain.sh"

# What a burst leaves in its job's environment is not taken for an option by what the job submits.
inherited=(env SLURM_JOB_ID=7 SLURM_SPANK_AUTOCLOUD_BURST=2
           SLURM_SPANK__SLURM_SPANK_OPTION_autocloud_autocloud_burst=0)
says "$contacted" "${inherited[@]}" sbatch "$work/plain.sh"
says "$contacted" "${inherited[@]}" salloc true
says "'0': must be 1 to 64" "${inherited[@]}" sbatch "$work/bad.sh"
says "'0': must be 1 to 64" env SLURM_SPANK__SLURM_SPANK_OPTION_autocloud_autocloud_burst=0 sbatch "$work/plain.sh"

says 'not in srun; start the job with sbatch --autocloud-burst=\.\.\. or salloc --autocloud-burst=\.\.\.' \
  srun --autocloud-burst=2 true
says "$contacted" "${inherited[@]}" srun -n1 true

# A wrong line in plugstack.conf stops bursts, and no other job.
echo "required $ACB_BUILD_DIR/lib/spank_autocloud.so max_node=64" >"$work/plugstack.conf"
says "plugstack.conf: argument: 'max_node=64': must be" sbatch --autocloud-burst=2 "$work/plain.sh"
says "$contacted" sbatch "$work/plain.sh"
echo "required $line" >"$work/plugstack.conf"

for command in sbatch salloc; do
  help=$($command --help | tr -s ' \n' ' ')
  for text in '--autocloud-burst=N rent N cloud nodes for this job, 1 to 64' \
              '--autocloud-gpu=TYPE GPU type of the rented nodes, one of a100-80gb, h100-80gb' \
              '--autocloud-market=MARKET how to rent: spot'; do
    if [[ $help != *"$text"* ]]; then
      echo "options: $command --help: does not say: $text" >&2
      failures=$((failures + 1))
    fi
  done
done
[ "$failures" -eq 0 ]
