#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run.sh [PRESET]: installs what the tests need, builds (dev, asan or tsan) and runs them all.
set -eu
cd "$(dirname "$0")/.."
preset=${1:-dev}

sh packaging/install-deps.sh tests
cmake --preset "$preset"
cmake --build --preset "$preset"
ctest --preset "$preset" -j 2
