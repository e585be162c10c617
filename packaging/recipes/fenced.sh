#!/bin/sh
# The job of `rlock run -k account:7 -- ./fenced.sh 7 10 invoice-42`: takes the amount from the account, unless a later holder
# has changed the account already, and once for each booking. On PostgreSQL: DATABASE='psql -X -q -t -A bank -c'.
set -eu
sql=$(sed -e '/^--/d' -e "s/:amount/${2:?}/; s/:fence/${RLOCK_FENCE:?}/g; s/:id/${1:?}/; s/:booking/${3:?}/" "$(dirname "$0")/fenced.sql")
changed=$(${DATABASE:-sqlite3 bank.db} "$sql")
[ "$changed" = 1 ] || { echo "a later holder was here: nothing is changed" >&2; exit 1; }
