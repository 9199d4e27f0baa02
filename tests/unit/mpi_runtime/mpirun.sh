#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs a program on N ranks of this machine, however few cores it has: mpirun.sh N PROGRAM ARGS...
set -euo pipefail
ranks=$1
shift
command -v mpirun >/dev/null || { echo "mpirun.sh: mpirun is not installed" >&2; exit 77; }
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
exec mpirun --oversubscribe --mca mpi_yield_when_idle 1 -n "$ranks" "$@"
