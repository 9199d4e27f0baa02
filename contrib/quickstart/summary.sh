# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154,SC2034
# build/quickstart/summary.json, and what of it a person wants to see. Needs timeline.sh and cluster.sh.

hash_of() { "build/$preset/bin/autocloud-ckpt" hash "$out/$1/final" | cut -d' ' -f1; }

# The burst as the daemon saw it; status shows it until long after the job.
burst_times() {
  ctl autocloud status "$burst_job" --json | jq '.bursts | map(select(.restart == 0)) | first'
}

write_summary() {
  burst_times >"$out/burst.json"
  jq -n \
    --arg job "$burst_job" --arg submitted "$burst_submitted" --arg lost_at "$lost_at" \
    --arg hash "$(hash_of burst)" --arg hash_undisturbed "$(hash_of undisturbed)" \
    --slurpfile burst "$out/burst.json" --slurpfile events "$out/burst-events.jsonl" \
    --slurpfile undisturbed "$out/undisturbed-events.jsonl" \
    --slurpfile leases "$out/leases.json" --slurpfile bill "$out/bill.json" \
    -f contrib/quickstart/summary.jq >"$out/summary.json"
}

# check WHAT CONDITION: a jq condition on the summary.
check() {
  jq -e "$2" "$out/summary.json" >/dev/null || {
    say "NOT as it should be: $1"
    failed=yes
  }
}

show_summary() {
  failed=no
  check "both runs end with the same weights" '
    (.weights_sha256 | test("^[0-9a-f]{64}$")) and .weights_sha256 == .weights_sha256_undisturbed'
  check "both runs end with the same loss" '.final_loss != null and .final_loss == .final_loss_undisturbed'
  check "the loss falls by a fifth or more" '.final_loss <= 0.8 * .first_loss'
  check "our ledger and the cloud's bill agree" '.billed_as_ledgered'
  check "nothing rented is left" '.instances_left == 0'
  check "at most 1% of the steps are computed twice" '.steps.redone <= 0.01 * .steps.total'
  jq -r '"
  loss              \(.first_loss) -> \(.final_loss)
  undisturbed       \(.first_loss) -> \(.final_loss_undisturbed)
  weights           \(.weights_sha256[0:32])...
  undisturbed       \(.weights_sha256_undisturbed[0:32])...
  loss to training  \(.seconds.lost_to_training) s, \(.steps.redone) step(s) computed again
  rented            \([.leases[] | "\(.instance) \(.billed_s) s"] | join(", "))
  cost              \(.cost) \(.currency)
  instances left    \(.instances_left)"' "$out/summary.json"
  echo "  summary           $out/summary.json"
  told=$failed
  [ "$failed" = no ] || exit 1
}
