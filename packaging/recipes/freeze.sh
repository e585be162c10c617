#!/bin/sh
# A maintenance freeze: no job runs under the lock for two hours, or until the operator ends the freeze. No process needs to stay.
#   ./freeze.sh begin deploy:production 'database upgrade'     ./freeze.sh end deploy:production
# rlock status shows the label. Waiting jobs begin when the freeze is over; with -n they end with 75. --cancel-in-progress does not
# shorten the freeze, but the freeze can no longer be renewed then. The freeze begins when the job that holds the lock has ended.
set -eu
name=$(printf %s "$2" | sed 's/%/%25/g; s|/|%2F|g')
file=${FREEZE_DIR:-/var/tmp}/freeze-$name
case $1 in
  begin)
    if [ -e "$file" ] && rlock check -k "$2" --token "$(cat "$file")" >/dev/null 2>&1; then
      echo "$2 is frozen already" >&2
      exit 1
    fi
    umask 077
    rlock acquire -k "$2" --lease 2h --label "freeze: $3" >"$file.new" || { code=$?; rm "$file.new"; exit "$code"; }
    mv "$file.new" "$file"
    ;;
  end)
    token=$(cat "$file") code=0
    rlock release -k "$2" --token "$token" || code=$?
    [ "$code" -gt 1 ] || rm "$file"  # 1: the freeze was over already
    exit "$code"
    ;;
  *) exit 64 ;;
esac
