#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A cancelled job stays cancelled, and leaves no process and no memory on its node.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/train_lib.sh"

cancelled=$(submit ctl -N1 --ntasks-per-node=1 --no-kill -t 5 <<<'exec ./job.sh --train-steps 100000')
within 30 step_reached "$cancelled" 3
as_user ctl scancel "$cancelled"
wait_for_job "$cancelled" CANCELLED 40
nothing_left() {
  [ -z "$(on own-0 find /dev/shm -mindepth 1 -name '*auto*' -o -name 'vader*')" ] &&
    ! pgrep -f "run-$cancelled" >/dev/null
}
within 15 nothing_left
equal "$(job_field "$cancelled" Restarts)" 0 "restarts of a cancelled job"
