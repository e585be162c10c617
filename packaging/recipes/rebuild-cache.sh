#!/bin/sh
# A page that expired in the cache: one caller renders it, the other callers wait and read.
set -eu
page=${1:?}

cat "cache/$page" 2>/dev/null || exec rlock run -k "cache:$page" -w 10s -- sh -c '
  cat "cache/$1" 2>/dev/null || { ./render.sh "$1" && cat "cache/$1"; }' sh "$page"
