#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Before its time limit a job under autocloud-run saves, and asks for its own requeue.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/autocloud_run_lib.sh"

limited=$(submit ctl -N2 --ntasks-per-node=1 --no-kill --requeue --open-mode=append -t 1 <<<'exec ./job.sh 2400')
restarted() { [ "$(job_field "$limited" Restarts)" = 1 ]; }
within 90 restarted
equal "$(event "$limited" requeue reason)" "time limit" "why it was requeued"
as_user ctl scancel "$limited"
