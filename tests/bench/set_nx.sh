#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# set_nx.sh URL KEY JOB...: the simplest correct lock of a shell script: SET NX PX, the job, compare and delete. Not renewed.
url=$1 key=$2
shift 2
read -r token </proc/sys/kernel/random/uuid
until [ "$(redis-cli -u "$url" SET "$key" "$token" NX PX 60000)" = OK ]; do sleep 0.1; done
"$@"
code=$?
redis-cli -u "$url" EVAL "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end" \
  1 "$key" "$token" >/dev/null
exit $code
