#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A node cut without a word costs autocloud-run one restart, on the survivors; and the run's secret reaches remote ranks without
# standing on any command line.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/autocloud_run_lib.sh"

job=$(submit ctl -N3 --ntasks-per-node=1 --no-kill -t 5 <<<'exec ./job.sh 300')
within 30 step_reached "$job" 20
command_lines() { # of every process here, as far as they still exist
  for line in /proc/[0-9]*/cmdline; do tr '\0' ' ' 2>/dev/null <"$line"; done 2>/dev/null
}
rank=$(pgrep -f "^[^ ]*supervised-steps run-$job" | head -n 1)
secret=$(tr '\0' '\n' <"/proc/$rank/environ" | sed -n 's/^AUTOCLOUD_SECRET=//p')
equal "${#secret}" 64 "length of a rank's secret"
[[ $(command_lines) != *"$secret"* ]] || fail "the secret is on a command line"

cut_power own-2
# Slurm keeps the job until it has given the cut host up.
wait_for_job "$job" COMPLETED 120
equal "$(job_field "$job" ExitCode)" 0:0 "exit code"
equal "$(event "$job" restart 'nodes | join(",")')" own-0,own-1 "nodes of the restart"
equal "$(event "$job" "done" step)" 300 "last step"
after=$(event "$job" training after_s)
between "${after%.*}" 0 15 "seconds from the loss to training"
between "$(event "$job" training redone)" 0 3 "steps redone"
