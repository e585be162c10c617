#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# check.sh: what can be checked without the whole suite. The format of all C++ files; clang-tidy and cppcheck on what has changed;
# the model of the lock, of which Spin visits all states; a build with clang, whose warnings are errors; and what it built, unit tests and
# simulation, under the address and undefined-behaviour sanitizers. `cmake --build --preset lint` reads all files, `sh tests/run.sh all asan` runs all tests.
set -eu
cd "$(dirname "$0")/.."
build=build/clang-asan
recent=20     # commits whose files count as changed where the commit that landed last is not known
most_files=40 # that clang-tidy reads, the newest changes first: it takes five seconds of processor time for each

# step NAME COMMAND...: runs COMMAND and prints how long it took.
step() {
  name=$1
  shift
  began=$(date +%s)
  echo "== $name"
  "$@"
  echo "== $name: $(($(date +%s) - began)) s"
}

# The .cpp files of core and cli that have changed, the newest change first: since the branch left origin/main, or else in the last
# commits. In a clone without history these are all files.
changed() {
  git='git -c safe.directory=*' # in a container the files may belong to another user
  base=$($git merge-base origin/main HEAD 2>/dev/null || true)
  range=HEAD
  [ -z "$base" ] || [ "$base" = "$($git rev-parse HEAD)" ] || range=$base..HEAD
  $git log -n "$recent" --format= --name-only "$range" -- 'core/*.cpp' 'cli/*.cpp' >"$build/history"
  awk '!seen[$0]++' "$build/history" | while read -r file; do
    [ ! -f "$file" ] || echo "$file"
  done
}

# clang-tidy counts the warnings of the system's headers on standard error, in lines that only hide its findings.
read_with_clang_tidy() {
  xargs -P "$(nproc)" -n 4 clang-tidy -p "$build" --quiet 2>"$build/clang-tidy.log" ||
    { grep -v 'warnings\? \(and .* \)\?generated\.$' "$build/clang-tidy.log" >&2; return 1; }
}
lint_changes() {
  changed >"$build/changed"
  count=$(wc -l <"$build/changed")
  [ "$count" -gt 0 ] || return 0
  [ "$count" -le "$most_files" ] || echo "clang-tidy reads $most_files of $count changed files; cmake --build --preset lint reads all"
  head -n "$most_files" "$build/changed" | read_with_clang_tidy
  xargs cppcheck --quiet --error-exitcode=1 --enable=warning,performance,portability --std=c++20 --inline-suppr \
    -j "$(nproc)" -Icore -Icli <"$build/changed"
}

# The programs themselves, because ctest would start a process for each case. That the rules of the simulation notice mistakes is left
# to the dev build.
run_tests() {
  ASAN_OPTIONS=exitcode=99 UBSAN_OPTIONS=exitcode=99:print_stacktrace=1
  export ASAN_OPTIONS UBSAN_OPTIONS
  "$build/tests/rlock_sim" --minimal=true -tce='*the rules notice*' >"$build/sim.log" 2>&1 &
  sim=$!
  failed=
  "$build/tests/rlock_unit_tests" --minimal=true || failed=unit
  wait "$sim" || { cat "$build/sim.log"; failed=sim; }
  [ -z "$failed" ]
}

step install sh packaging/install-deps.sh tests lint
step configure cmake --preset clang-asan
step format cmake --build "$build" --target check-format
step model sh tests/model/run.sh
step build cmake --build --preset clang-asan
step 'clang-tidy and cppcheck' lint_changes
step 'tests under sanitizers' run_tests
