#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The quickstart's job, as a user would write it: mpirun behind one word. $1 is the folder of this run.
#SBATCH --job-name=quickstart
#SBATCH --ntasks-per-node=1
#SBATCH --gres=gpu:1
#SBATCH --time=10
exec autocloud-run --run-dir "$1" -- \
  mpirun autocloud-train --config "$1/train.toml" --data-path "$1/../kjv.txt" --run-folder "$1"
