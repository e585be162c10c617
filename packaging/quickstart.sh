#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# From a fresh clone to a job that runs under a lock on a real Redis.
set -eu
cd "$(dirname "$0")/.."

echo '== what rlock needs'
sh packaging/install-deps.sh

echo '== building build/release/rlock'
cmake --preset release
cmake --build --preset release

echo '== rlock run -S local: --key stock --lease auto -- ./job.sh'
cd packaging/demo
../../build/release/rlock run -S local: --key stock --lease auto -- ./job.sh
