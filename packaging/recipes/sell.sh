#!/bin/sh
# 2000 items in five segments of 400, so that five callers sell at a time. RLOCK_SHARD names the segment of the job.
set -eu
# shellcheck disable=SC2016  # for the inner shell
exec rlock run -k stock --shards 5 -w 10s -- sh -c './take-one.sh "segment-$RLOCK_SHARD"'
