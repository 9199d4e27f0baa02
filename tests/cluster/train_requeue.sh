#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A job that is told to leave, or that comes to its time limit, saves and goes back into the queue; its next start goes on, to
# the weights of an undisturbed run. One that must not go back says so and fails.
# shellcheck source-path=SCRIPTDIR
onprem=2
. "$(dirname "$0")/train_lib.sh"

# A requeue brings Slurm's own hold of two minutes. In the second of the kill slurmd refuses the next start.
start_again() { as_user ctl scontrol update "JobId=$1" StartTime=now+2; }
computed_once() { # JOB STEP: each step up to the one that was saved
  equal "$(as_user ctl cat "run-$1/events.jsonl" | jq -s "map(select(.event == \"step\" and .step <= $2)) | length")" \
    "$2" "steps up to the save of job $1, each computed once"
}
again() { submit ctl -N1 --ntasks-per-node=1 --no-kill --requeue --open-mode=append "$@"; }

# Its first start has twenty seconds of the minute left, of which the last quarter is for the save.
# shellcheck disable=SC2016 # for the job
limited=$(again -w own-1 -t 1 <<<'[ "${SLURM_RESTART_COUNT:-0}" -gt 0 ] || sleep 40
exec ./job.sh --train-steps 2000')

job=$(again -w own-0 -t 5 <<<'exec ./job.sh')
within 30 step_reached "$job" 20
as_user ctl scancel --signal=USR2 --batch "$job"
within 20 job_is "$job" PENDING
saved=$(event "$job" requeue .step)
start_again "$job"
wait_for_job "$job" COMPLETED 60
equal "$(job_field "$job" Restarts)" 1 "restarts"
computed_once "$job" "$saved"

alone=$(submit ctl -w own-0 -N1 --ntasks-per-node=1 -t 5 <<<'exec ./job.sh')
wait_for_job "$alone" COMPLETED 60
equal "$(hash_of "$job")" "$(hash_of "$alone")" "weights"

kept=$(submit ctl -w own-0 -N1 --ntasks-per-node=1 --no-kill -t 5 <<<'
exec ./autocloud-run --run-dir kept --no-requeue -- mpirun ./autocloud-train --config train.toml --run-folder kept')
running() { as_user ctl grep -q event...step kept/events.jsonl 2>/dev/null; }
within 30 running
as_user ctl scancel --signal=USR2 --batch "$kept"
wait_for_job "$kept" FAILED 30
matches "$(output_of "$kept")" 'not requeued, as asked' "what is said"

undisturbed=$(submit ctl -w own-0 -N1 --ntasks-per-node=1 -t 5 <<<'exec ./job.sh --train-steps 2000')
within 70 job_is "$limited" PENDING
equal "$(event "$limited" requeue .reason)" "time limit" "why it was requeued"
saved=$(event "$limited" requeue .step)
between "$saved" 1 1999 "step at which the time limit was met"
start_again "$limited"
# Slurm looks for jobs whose time has come twice a minute, and at each submit. On a slow machine the job meets the next start's
# limit too.
asked=$SECONDS
ended() {
  job_is "$limited" COMPLETED && return
  if job_is "$limited" PENDING; then
    [ $((SECONDS - asked)) -lt 60 ] || { asked=$SECONDS && start_again "$limited"; }
    sleep 4
    submit ctl -N1 -t 1 <<<true >/dev/null
  fi
  false
}
within 180 ended
computed_once "$limited" "$saved"
wait_for_job "$undisturbed" COMPLETED 90
equal "$(hash_of "$limited")" "$(hash_of "$undisturbed")" "weights after the time limit"
