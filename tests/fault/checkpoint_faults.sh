#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Saves three steps again and again, each time with a kill, or a full disk, at the next of the calls
# that change files, until a run gets through unharmed. Whatever happens, three ranks must then load,
# whole, the last step that was told to be safe, or one that was about to be. A full disk costs the one
# save that it met, and a warning that names folder and cause.
#   checkpoint_faults.sh kill|full PROGRAM
set -euo pipefail
mode=$1
program=$2
work=$(mktemp -d /tmp/acb-faults-XXXXXX)
trap 'rm -rf "$work"' EXIT

"$program" train "$work/base" 2 none -1 >/dev/null
for ((n = 0; n < 500; n++)); do
  rm -rf "$work/now"
  cp -a "$work/base" "$work/now"
  rc=0
  # A full disk must leave the program alive; a kill must be seen as one (128 + 9).
  told=$("$program" train "$work/now" 3 "$mode" "$n" 2>"$work/log") || rc=$?
  if [ "$mode" = full ] && [ "$rc" -ne 0 ] || [ "$mode" = kill ] && [ "$rc" -ne 0 ] && [ "$rc" -ne 137 ]; then
    echo "call $n: exit $rc: $(cat "$work/log")" >&2
    exit 1
  fi
  step=$("$program" check "$work/now") || { echo "call $n: loads step $step, or not whole" >&2; exit 1; }
  safe=$(grep -E '^[0-9]+$' <<<"$told" | tail -n 1 || true)
  if [ "$step" -lt "${safe:-2}" ] || [ "$step" -gt 5 ]; then
    echo "call $n: loads step $step, and step ${safe:-2} was safe" >&2
    exit 1
  fi
  if [ "$mode" = full ] && [ "$(grep -c '^[0-9]' <<<"$told")" -lt 3 ]; then
    free="No space left on device: [0-9]+ bytes are needed in $work/now, [0-9]+ are free"
    if [ "$(grep -c '^[0-9]' <<<"$told")" -ne 2 ] ||
      ! grep -qE "$free: step [3-5] is not saved to level shared; the older checkpoint stays" "$work/log"; then
      printf 'call %s: told: %s\nlog: %s\n' "$n" "$told" "$(cat "$work/log")" >&2
      exit 1
    fi
  fi
  if [ "${told##*$'\n'}" = unharmed ]; then
    [ "$step" -eq 5 ] || { echo "unharmed, but loads step $step" >&2; exit 1; }
    [ "$n" -ge 20 ] || { echo "only $n calls were struck" >&2; exit 1; }
    echo "$mode at each of $n calls: always a whole step"
    exit 0
  fi
done
echo "no run got through within 500 calls" >&2
exit 1
