#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run.sh [all|rest] [PRESET]: installs what the tests need, builds them in the tree of PRESET (release, which the README's first command
# has built; dev, asan or tsan), and runs the default suite (default_suite.txt). `all` also installs databases and consensus stores, and
# runs every case, those of the suite topology-quick on the other kinds of servers, the judge, and rlock beside the real libraries;
# `rest` the same without the default suite.
set -eu
cd "$(dirname "$0")/.."
suite=default
case ${1-} in
  all | rest)
    suite=$1
    shift ;;
esac
preset=${1:-release}
tree=build/$preset
# The suite topology on other kinds of servers takes hours, and on one member or on three these stores do the same.
by_hand='^on-[a-z0-9]+$|^on-(etcd3?|zookeeper3?|s3)-quick$'
case $suite in
  default)
    groups=tests
    chosen='-L ^default$' ;;
  all)
    groups='tests databases'
    chosen="-LE $by_hand" ;;
  rest)
    groups='tests databases'
    chosen="-LE ^default\$|$by_hand" ;;
esac

# show_failures LOG: what each failed test printed stands in the middle of ctest's log.
show_failures() {
  awk '/^[0-9]+\/[0-9]+ Testing: / { text = "" } { text = text $0 "\n" } /^Test Failed\.$/ { printf "\n%s", text }' "$1" | tail -n 400
}

# shellcheck disable=SC2086  # a list of words
sh packaging/install-deps.sh $groups
began=$(date +%s)
cmake --preset "$preset" -DRLOCK_TESTS=ON
cmake --build --preset "$preset"
built=$(date +%s)
# More jobs than cores, because most cases wait for a timeout of a lock or of a server. The sanitizers need the cores.
case $preset in
  release | dev) jobs=$(($(nproc) * 3)) ;;
  *) jobs=$(nproc) ;;
esac
export ASAN_OPTIONS=exitcode=99 UBSAN_OPTIONS=exitcode=99:print_stacktrace=1
export TSAN_OPTIONS="exitcode=99:suppressions=$PWD/tests/tsan.supp"
# A few cases that fail beside others are tried once more, alone. What passes then is named, so that somebody looks: a case that
# fails now and then is a fault of rlock or of the case.
most_retries=3
retry() {
  failed="$tree/Testing/Temporary/LastTestsFailed.log"
  [ "$(wc -l <"$failed")" -le "$most_retries" ] || return 1
  names=$(cut -d: -f2- "$failed" | sort -u)
  ctest --test-dir "$tree" --rerun-failed -j 1 --no-tests=error || return 1
  printf 'FAILED ONCE, and passed alone afterwards. Mend it:\n%s\n' "$names"
}
code=0
# shellcheck disable=SC2086  # a list of words
ctest --test-dir "$tree" $chosen -j "$jobs" --no-tests=error || {
  code=$?
  show_failures "$tree/Testing/Temporary/LastTest.log"
  if retry; then code=0; fi
}
echo "ran the suite '$suite' in $(($(date +%s) - built)) s, after $((built - began)) s of building; sh tests/run.sh all runs every case, on every kind of server"
exit "$code"
