#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run.sh [PRESET]: installs what the tests need, builds PRESET (dev, asan or tsan) and runs all tests. With RLOCK_TEST_PLACES=short
# it also installs databases, and runs the quick cases on the other kinds of servers (support/topology.h), and rlock beside the real
# libraries.
set -eu
cd "$(dirname "$0")/.."
preset=${1:-dev}
tests=$preset
groups=tests
if [ "$preset ${RLOCK_TEST_PLACES-}" = "dev short" ]; then
  tests=dev-quick-topologies
  groups='tests databases'
fi

# show_failures LOG: what each failed test printed stands in the middle of ctest's output, so here once more, at the end.
show_failures() {
  awk '/^[0-9]+\/[0-9]+ Testing: / { text = "" } { text = text $0 "\n" } /^Test Failed\.$/ { printf "\n%s", text }' "$1" | tail -n 400
}

# shellcheck disable=SC2086  # a list of words
sh packaging/install-deps.sh $groups
cmake --preset "$preset"
cmake --build --preset "$preset"
# More jobs than cores, because most cases wait for a timeout of a lock or of a server. The sanitizers need the cores.
case $preset in
  dev) jobs=$(($(nproc) * 2)) ;;
  *) jobs=$(nproc) ;;
esac
ctest --preset "$tests" -j "$jobs" || {
  code=$?
  show_failures "build/$preset/Testing/Temporary/LastTest.log"
  exit "$code"
}
