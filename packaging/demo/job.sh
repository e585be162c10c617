#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A job that must not run twice at a time, on any host. rlock tells it what it runs under.
set -eu
echo "job: pid $$ runs under the lock '${RLOCK_KEY:-none}', fencing number ${RLOCK_FENCE:-none}"
sleep 1
echo 'job: done'
