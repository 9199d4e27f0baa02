#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# docs/training.md tells of every setting what --help tells: train_settings.sh BIN_FOLDER
set -euo pipefail
told=$("$1/autocloud-train" --help | sed -nE '
  s/^  --(model|train|data|run|checkpoint)-([a-z0-9-]+) +(.*)$/\1.\2|\3/p')
# shellcheck disable=SC2016 # the backquotes are those of the table
listed=$(sed -nE 's/^\| `([a-z]+\.[a-z0-9_]+)` \| ([^|]*) \| (.*) \|$/\1|\3\2/p' docs/training.md | tr -d ' ')
expected=$(while IFS='|' read -r key text; do
  echo "${key//-/_}|$(sed -E 's/^(.*) \[(.*)\]$/\1\2/' <<<"$text")"
done <<<"$told" | tr -d ' ')
[ "$(wc -l <<<"$told")" -gt 20 ] || { echo "train_settings.sh: --help shows no settings" >&2; exit 1; }
diff <(echo "$expected") <(echo "$listed")
