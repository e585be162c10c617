#!/bin/sh
# Hot stock: 2000 items in five segments of 400, so that five sell at a time. The job finds its segment in RLOCK_SHARD.
set -eu
# shellcheck disable=SC2016  # for the inner shell
exec rlock run -k stock --shards 5 -w 10s -- sh -c './take-one.sh "segment-$RLOCK_SHARD"'
