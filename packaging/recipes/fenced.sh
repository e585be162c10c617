#!/bin/sh
# The job of `rlock run -k account:7 -- ./fenced.sh 7 10`: takes the amount from the account, unless a later holder
# has changed the account already. Any database with a command-line client will do.
set -eu
sql=$(sed -e '/^--/d' -e "s/:amount/${2:?}/; s/:fence/${RLOCK_FENCE:?}/g; s/:id/${1:?}/" "$(dirname "$0")/fenced.sql")
changed=$(${DATABASE:-sqlite3 bank.db} "$sql SELECT changes();")
[ "$changed" = 1 ] || { echo "a later holder was here: nothing is changed" >&2; exit 1; }
