#!/bin/sh
# A job of cron that a Java service also runs, by @SchedulerLock(name = "nightly-report", lockAtMostFor = "10m"): never both at
# once. The key is the name of ShedLock's lock, and both use its table. The service's configuration has usingDbTime().
#
# Once, by a user who may alter the table:
#   rlock acl -S 'postgresql://db1/app?table=shedlock' --user deploy | psql -h db1 app
exec rlock run -n -E 0 -S "${RLOCK_SERVER:-postgresql://deploy@db1/app?table=shedlock}" -k nightly-report -- /usr/local/bin/nightly-report
