#!/bin/sh
# A maintenance freeze: no job runs under the lock for two hours, or until it is ended. No process needs to stay.
#   ./freeze.sh begin deploy:production 'database upgrade'     ./freeze.sh end deploy:production
# rlock status shows the label. Jobs that wait go on when it is over; with -n they end with 75. --cancel-in-progress does not
# shorten it, but then it can no longer be renewed. A job that holds the lock is waited for.
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
    [ "$code" -gt 1 ] || rm "$file"  # 1: it was over already
    exit "$code"
    ;;
  *) exit 64 ;;
esac
