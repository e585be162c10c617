#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A job that must run once at a time. rlock passes the lock and the fencing number in the environment.
set -eu
echo "job: pid $$ runs under the lock '${RLOCK_KEY:-none}', fencing number ${RLOCK_FENCE:-none}"
sleep 1
echo 'job: done'
