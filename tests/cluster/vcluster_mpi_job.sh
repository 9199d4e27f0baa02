#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# An MPI program started by mpirun in a batch script of the job user runs on all its nodes, and its messages arrive.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib.sh"

command -v mpicc >/dev/null || skip "mpicc is missing"
cluster_up --plain --onprem 3
mpicc -x c -o "$(state_folder)/ring" - <<'PROGRAM'
#include <mpi.h>
#include <stdio.h>
int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, size = 0, sum = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  printf("rank %d of %d: sum %d\n", rank, size, sum);
  MPI_Finalize();
}
PROGRAM
as_user ctl sh -c 'cat >ring && chmod 755 ring' <"$(state_folder)/ring"

job=$(submit ctl -N3 --ntasks-per-node=2 --gres=gpu:1 <<<'id -un; mpirun ./ring')
wait_for_job "$job" COMPLETED 30
equal "$(output_of "$job" | sort | tr '\n' ';')" \
  "$(for i in 0 1 2 3 4 5; do echo "rank $i of 6: sum 15"; done | tr '\n' ';')researcher;" "output"
