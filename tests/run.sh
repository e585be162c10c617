#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run.sh [PRESET]: installs what the tests need, builds (dev, asan or tsan) and runs them all; with RLOCK_TEST_PLACES=short
# before that the quick stories on other kinds of servers as well.
set -eu
cd "$(dirname "$0")/.."
preset=${1:-dev}

sh packaging/install-deps.sh tests
cmake --preset "$preset"
cmake --build --preset "$preset"
[ "$preset ${RLOCK_TEST_PLACES-}" != "dev short" ] || sh tests/places.sh --short
ctest --preset "$preset" -j 2
