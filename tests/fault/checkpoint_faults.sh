#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Saves three steps again and again, each time with a kill, or a full disk, at the next of the calls
# that change files, until a run gets through unharmed. Whatever happens, three ranks must then load
# some committed step, whole, and never one older than what was committed before.
#   checkpoint_faults.sh kill|full PROGRAM
set -euo pipefail
mode=$1
program=$2
work=$(mktemp -d /tmp/acb-faults-XXXXXX)
trap 'rm -rf "$work"' EXIT

"$program" train "$work/base" 2 none 0 >/dev/null
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
  if [ "$step" -lt 2 ] || [ "$step" -gt 5 ]; then
    echo "call $n: loads step $step, expected 2 to 5" >&2
    exit 1
  fi
  if [ "$told" = unharmed ]; then
    [ "$step" -eq 5 ] || { echo "unharmed, but loads step $step" >&2; exit 1; }
    [ "$n" -ge 20 ] || { echo "only $n calls were struck" >&2; exit 1; }
    echo "$mode at each of $n calls: always a whole step"
    exit 0
  fi
done
echo "no run got through within 500 calls" >&2
exit 1
