#!/bin/sh
# A page that has expired in the cache: one rebuilds it, all others wait for that and read.
set -eu
page=${1:?}

[ -e "cache/$page" ] || rlock once -k "cache:$page" --for 1s -w 10s -- ./render.sh "$page"
cat "cache/$page"
