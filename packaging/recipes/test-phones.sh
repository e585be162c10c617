#!/bin/sh
# Each caller tests on a free one of the phones that phones.txt names, one a line; # begins a comment. A phone that is added there is used from the next
# call on. `rlock status phones` says how many are free while one is held.
set -eu
# shellcheck disable=SC2016  # for the inner shell
exec rlock run -k phones --shards @phones.txt -w 1h -- sh -c './test-on.sh "$RLOCK_SHARD_NAME"'
