#!/bin/sh
# Maintenance: no job starts under these locks while a command works, and for two hours at most, whatever becomes of this script.
#   ./freeze.sh 'deploy:*' 'database upgrade' ./upgrade-database.sh
# The command starts when the jobs that run under the locks have ended. A pattern takes the locks that the server knows. Jobs that
# want a frozen lock wait, or end with 75 and say who has frozen it until when, and why; rlock status says so, too.
set -eu
locks=$1 reason=$2
shift 2
trap 'exit 130' INT
trap 'exit 143' TERM
trap 'rlock thaw "$locks" || true' EXIT
rlock freeze "$locks" --for "${FREEZE_FOR:-2h}" --reason "$reason"
"$@"
