#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Real submits, accepted and refused, under valgrind: nothing that it reports has our plugin in its stack. What it says of
# Slurm's own code is not ours to mend.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/../cluster/lib.sh"

command -v valgrind >/dev/null || skip "valgrind is missing"
plugin=$build/lib/spank_autocloud.so
if nm -D "$plugin" | grep -qE '__(asan|tsan)_'; then
  skip "valgrind and the sanitizers cannot share a process"
fi
cluster_up --no-cloud
on ctl sh -c 'mkdir -p /etc/autocloud-burst && cat >/etc/autocloud-burst/autocloud.toml' <<'TOML'
[twins]
batch = "batch-burst"
TOML
as_user ctl sh -c 'printf "#!/bin/sh\n#SBATCH --autocloud-burst=1\ntrue\n" >burst.sh; printf "#!/bin/sh\ntrue\n" >plain.sh'

# records: what valgrind reports with a plugin in its stack. srun's spank_unset_job_env() leaks the environment that it
# replaces: not ours to mend.
records() {
  on ctl grep -q 'ERROR SUMMARY' "$home/valgrind.log" || fail "valgrind did not come to its end"
  # A record is what stands between empty lines.
  on ctl sed -E 's/^==[0-9]+== ?//' "$home/valgrind.log" |
    awk 'BEGIN { RS = "" } /spank_autocloud|acb::|slurm_spank_/ && !/_xstrcat .*spank_unset_job_env \(in [^)]*srun\)/ { print; print "" }'
}
under_valgrind() {
  as_user ctl valgrind --keep-debuginfo=yes --leak-check=full --show-leak-kinds=definite,indirect \
    --errors-for-leak-kinds=definite,indirect --num-callers=40 --log-file=valgrind.log "$@" 2>&1 || true
}
# submits EXPECTED-OUTPUT COMMAND...: says that, and valgrind nothing of ours.
submits() {
  local wanted=$1
  shift
  matches "$(under_valgrind "$@")" "$wanted" "$*"
  equal "$(records)" "" "what valgrind reports of $*"
}

submits 'Submitted batch job' sbatch plain.sh
submits 'Submitted batch job' sbatch -H -N2 -t5 --autocloud-burst=2 --autocloud-market=on-demand plain.sh
submits 'Submitted batch job' sbatch -H -t5 burst.sh
submits "'0': must be 1 to" sbatch --autocloud-burst=0 burst.sh
submits 'must be one of' sbatch --autocloud-burst=1 --autocloud-gpu=rtx plain.sh
submits 'multiple of --nodes=2' sbatch -N2 -n3 --autocloud-burst=1 plain.sh
submits 'start the job with sbatch' srun --autocloud-burst=1 true

# A plugin with faults is found out, in its stack as in its memory.
on ctl sh -c 'cat >/opt/faulty.c' <<'C'
#include <slurm/spank.h>
#include <stdlib.h>
SPANK_PLUGIN(faulty, 1)
int slurm_spank_init(spank_t spank, int argc, char **argv) {
  char *volatile lost = malloc(77);
  int set = lost[70] == 'x';
  lost = NULL;
  return set ? -1 : 0;
}
C
on ctl cc -shared -fPIC -g -O0 -w -o /opt/faulty.so /opt/faulty.c
on ctl sh -c 'echo "required /opt/faulty.so" >>/etc/slurm/plugstack.conf'
under_valgrind sbatch plain.sh >/dev/null
matches "$(records)" 'uninitialised value.*slurm_spank_init.*77 bytes.*definitely lost' "what valgrind reports of a faulty plugin"
