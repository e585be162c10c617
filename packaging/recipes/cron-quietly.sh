#!/bin/sh
# cron mails the output of a job. This script prints the output of a job only if the job fails, and prints nothing if another host has the lock:
#   15 3 * * *  /usr/local/bin/cron-quietly.sh nightly /usr/local/bin/nightly
set -u
key=$1
shift
log=$(mktemp) || exit
trap 'rm -f "$log"' EXIT
run=''
trap '[ -z "$run" ] || kill "$run"' HUP INT TERM  # rlock stops the job
rlock run -k "$key" -n -E 187 -q --wait-server 30m -- "$@" <&0 >"$log" 2>&1 &  # 187: busy, and no usual code of a job
run=$!
# rlock runs in the background, so that a signal reaches the trap at once. The job ignores INT and QUIT, as each job in the background does.
until wait "$run"; code=$?; ! kill -0 "$run" 2>/dev/null; do :; done  # a signal ends wait, not rlock
case $code in
  0 | 187) exit 0 ;;
esac
cat "$log"
echo "$key ended with exit code $code"
exit "$code"
