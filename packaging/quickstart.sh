#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# From a fresh clone to a job that runs under a lock on a real Redis.
set -eu
cd "$(dirname "$0")/.."

echo '== what rlock needs'
began=$(date +%s)
sh packaging/install-deps.sh
installed=$(date +%s)

echo '== building build/release/rlock'
cmake --preset release
cmake --build --preset release

echo '== rlock run -S local: --key stock --lease auto -- ./job.sh'
cd packaging/demo
../../build/release/rlock run -S local: --key stock --lease auto -- ./job.sh
echo "== done in $(($(date +%s) - installed)) s, after $((installed - began)) s of installing"
