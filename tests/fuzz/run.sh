#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run.sh MINUTES [FUZZER...]: builds the preset `fuzz` and runs all fuzzers, or the named ones, at once for that time, each from its
# corpus. What they find goes to build/fuzz/found/FUZZER, and a summary is printed. Fails when a fuzzer found a crash, a leak or a
# hang: `build/fuzz/tests/rlock_fuzz_FUZZER FILE` repeats it.
# RLOCK_FUZZ_MINIMISE=1 adds to the corpora in the tree what the run found to cover more, minimised.
set -eu
cd "$(dirname "$0")/../.."
minutes=${1:?"usage: run.sh MINUTES [FUZZER...]"}
shift
[ $# -gt 0 ] || set -- $(ls tests/fuzz/corpus)

cmake --preset fuzz >/dev/null
cmake --build --preset fuzz
for name in "$@"; do
  found=build/fuzz/found/$name
  mkdir -p "$found/corpus"
  # Limits for one input: 60 s, 1 GiB; on a busy machine a fuzzer gets little time. A leak ends the run, as a crash does.
  (cd "$found" && exec nice -n 19 ../../tests/rlock_fuzz_"$name" corpus "../../../../tests/fuzz/corpus/$name" \
    -max_total_time=$((minutes * 60)) -timeout=60 -rss_limit_mb=1024 -malloc_limit_mb=256 -detect_leaks=1 -max_len=4096 \
    -print_final_stats=1 -artifact_prefix=./ >log 2>&1) &
done
wait || true

if [ "${RLOCK_FUZZ_MINIMISE-}" = 1 ]; then
  for name in "$@"; do
    build/fuzz/tests/rlock_fuzz_"$name" -merge=1 -max_len=512 "tests/fuzz/corpus/$name" "build/fuzz/found/$name/corpus" 2>/dev/null
  done
fi

printf '%-12s %12s %8s %9s %9s  %s\n' fuzzer executions edges features inputs found
failed=0
for name in "$@"; do
  found=build/fuzz/found/$name
  executions=$(sed -n 's/^stat::number_of_executed_units: *//p' "$found/log")
  last=$(grep ' cov: ' "$found/log" | tail -n 1)
  field() { echo "$last" | sed -n "s/.* $1: \([0-9]*\).*/\1/p"; }
  what=$(cd "$found" && ls | grep -E '^(crash|leak|timeout|oom|slow-unit)-' | tr '\n' ' ' || true)
  # Without its final statistics it did not run to the end.
  [ -n "$executions" ] || what="${what}no end, see $found/log" failed=1
  printf '%-12s %12s %8s %9s %9s  %s\n' "$name" "${executions:--}" "$(field cov)" "$(field ft)" "$(field corp)" "${what:-nothing}"
  case $what in *crash-* | *leak-* | *timeout-* | *oom-*) failed=1 ;; esac
done
exit $failed
