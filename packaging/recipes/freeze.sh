#!/bin/sh
# A maintenance freeze: no job runs under the lock for two hours, or until it is ended. No process needs to stay.
#   ./freeze.sh begin deploy:production 'database upgrade'     ./freeze.sh end deploy:production
# rlock status shows the label. Jobs that wait go on when it is over; with -n they end with 75. --cancel-in-progress does not
# shorten it. A job that holds the lock is waited for.
set -eu
file=${FREEZE_DIR:-/var/tmp}/freeze-$(printf %s "$2" | tr / _)
case $1 in
  begin)
    umask 077
    rlock acquire -k "$2" --lease 2h --label "freeze: $3" >"$file.new"
    mv "$file.new" "$file"
    ;;
  end)
    token=$(cat "$file")
    rm "$file"
    rlock release -k "$2" --token "$token"
    ;;
  *) exit 64 ;;
esac
