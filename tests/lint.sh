#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What a machine can see of the code's form: format, lint, sizes, names, boundaries between the parts.
#
#   tests/lint.sh            everything; configures build/tidy and build/no-parts for itself and builds nothing
#   tests/lint.sh --quick    all but what takes minutes: clang-tidy, headers that compile alone, optional parts
set -euo pipefail
shopt -s lastpipe  # report counts in this shell, at the end of a pipe
cd "$(dirname "$0")/.."
contrib/install-deps.sh --check >/dev/null || contrib/install-deps.sh
faults=0

# report TITLE: prints what comes on stdin, if anything, under the title and counts it as a fault.
report() {
  local lines
  lines=$(cat)
  [ -z "$lines" ] && return 0
  printf 'lint: %s\n%s\n' "$1" "$lines" >&2
  faults=$((faults + 1))
}

files() { git ls-files -co --exclude-standard -- "$@"; }
sources() { files '*.cpp' '*.h'; }

longer_than() {  # LIMIT PATTERN...
  local limit=$1
  shift
  files "$@" | while read -r file; do
    if [ "$(wc -l <"$file")" -gt "$limit" ]; then
      echo "$file: $(wc -l <"$file") lines, at most $limit"
    fi
  done
}

found() { git grep -nIE "$@" || [ $? -eq 1 ]; }

format_faults() {
  sources | xargs -r clang-format --dry-run --Werror 2>&1 | grep -E 'error:' | head -20 || true  # xargs fails where there are any
}

shell_faults() {
  { files '*.sh' .ci/run contrib/vcluster/vcluster; files 'contrib/vcluster/lib/*'; } | sort -u |
    xargs -r shellcheck -x -f gcc -S warning || [ $? -eq 1 ] || [ $? -eq 123 ]
}

without_licence() {
  { sources; files '*.sh'; } | while read -r file; do
    head -3 "$file" | grep -q 'SPDX-License-Identifier: Apache-2.0' || echo "$file"
  done
}

# configured FOLDER OPTION...: configures the project there; says why if that fails.
configured() {
  local folder=$1
  shift
  cmake -S . -B "$folder" -G Ninja -DBUILD_TESTING=OFF "$@" >"$folder.log" 2>&1 && return 0
  grep -A3 'CMake Error' "$folder.log" || tail -n 3 "$folder.log"
  return 1
}

# One translation unit a target: the library headers, most of the work, are then read once for each. What it
# reports of an included .cpp file passes the header filter of .clang-tidy.
tidy_faults() {
  local build=build/tidy
  configured "$build" -DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=0 \
    -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON || return 0
  jq -r '.[].file' "$build/compile_commands.json" | sort -u | xargs -P "$(nproc)" -I{} bash -c '
    skip=-bugprone-suspicious-include
    # Half of the time in a program, for functions of the library that parses command lines.
    [[ $2 == */acb_* ]] || skip=$skip,-performance-unnecessary-value-param
    exec clang-tidy -p "$1" --quiet --checks="$skip" "$2"' _ "$build" {} >"$build.log" 2>&1 && return 0
  grep -E '(warning|error):' "$build.log" | sed "s|^$PWD/||" | sort -u || tail -n 20 "$build.log"
}

# A header that needs another one before it includes too little.
header_faults() {
  local flags
  read -ra flags < <(pkg-config --cflags ompi-cxx spdlog)
  files '*.h' ':!tests' | xargs -P "$(nproc)" -n 1 g++ -std=c++20 -fsyntax-only -I. -Icontrib -Ibuild/tidy/generated \
    "${flags[@]}" -x c++ 2>&1 | grep 'error:' | sort -u || [ $? -eq 1 ]
}

# The optional parts may be missing.
part_faults() {
  configured build/no-parts -DACB_SLURM=OFF -DACB_MPI=OFF || return 0
}

longer_than 250 '*.h' | report "headers too long"
longer_than 500 '*.cpp' '*.sh' 'contrib/vcluster/*' | report "sources too long"
format_faults | report "not formatted (clang-format -i)"
shell_faults | report "shellcheck"
without_licence | report "no SPDX line"
found '\b(TODO|FIXME|XXX|HACK)\b' -- '*.cpp' '*.h' '*.sh' '*.md' '*.toml' ':!tests/lint.sh' | report "unfinished"
found '(class|struct) \w*(Manager|Helper|Utils?|ForTest)\b|\w+_for_test\(' -- '*.cpp' '*.h' | report "names that say nothing"
found '#include "(cloudburst|spank_plugin)/' -- mpi_runtime | report "mpi_runtime knows only base"
found '#include "(mpi_runtime|spank_plugin)/' -- cloudburst | report "cloudburst knows only base"
found '#include "(mpi_runtime|cloudburst)/' -- spank_plugin | report "the plugins know only base"
found '#include <slurm/' -- cloudburst ':!cloudburst/slurm' | report "libslurm outside cloudburst/slurm"
found '#include <(curl|sqlite3|SQLiteCpp)' -- cloudburst ':!cloudburst/http' ':!cloudburst/ledger' | report "a C library wrapped twice"
found '#include <mpi.h>' -- mpi_runtime ':!mpi_runtime/comm' | report "MPI outside mpi_runtime/comm"
found 'ffast-math|funsafe-math' -- '*.txt' '*.cmake' '*.json' | report "bits at the compiler's liberty"
if [ "${1:-}" != --quick ]; then
  mkdir -p build
  part_faults | report "does not configure without its optional parts"
  tidy_faults | report "clang-tidy"
  header_faults | report "headers that do not compile alone"
fi

[ "$faults" -eq 0 ] && { echo "lint: clean"; exit 0; }
echo "lint: $faults kinds of fault" >&2
exit 1
