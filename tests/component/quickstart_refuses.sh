#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# When the quickstart does not start, it says why, and deletes nothing of an earlier run.
set -euo pipefail
[ "$(id -u)" -eq 0 ] || exit 77
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

# In a copy: what it would delete must not be a person's results.
mkdir -p "$work/build/quickstart"
cp -r contrib "$work/"
echo kept >"$work/build/quickstart/summary.json"
chmod -R a+rX "$work"

# refuses EXIT-CODE TEXT CMD...
refuses() {
  local want=$1 text=$2 code=0 said
  shift 2
  said=$("$@" 2>&1) || code=$?
  if [ "$code" -ne "$want" ] || [[ $said != *"$text"* ]] || [ ! -e "$work/build/quickstart/summary.json" ]; then
    echo "quickstart: $*: exit code $code instead of $want, or the earlier results are gone; it said: $said" >&2
    failed=1
  fi
}

refuses 0 "usage: contrib/quickstart.sh" "$work/contrib/quickstart.sh" --help
refuses 2 "'--fast': it takes nothing but --help" "$work/contrib/quickstart.sh" --fast
refuses 1 "it needs root" setpriv --reuid=65534 --regid=65534 --clear-groups "$work/contrib/quickstart.sh"
# Somebody else's quickstart may hold the lock; then it refuses all the same.
exec 8>>/run/autocloud-burst-quickstart.lock
flock -n 8 || true
refuses 1 "one is running already (pid " "$work/contrib/quickstart.sh"
exit $failed
