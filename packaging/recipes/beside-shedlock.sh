#!/bin/sh
# A job of cron that a Java service also runs, by @SchedulerLock(name = "nightly-report", lockAtMostFor = "10m"): never both at
# once. The key is the name of ShedLock's lock, and both use its table. The service's configuration has usingDbTime().
#
# Once, by a user who may alter the table:
#   rlock acl -S 'postgresql://db1/app?table=shedlock' --user deploy | psql -h db1 app
# The same with MySQL and MongoDB (which needs no preparation of its collection):
#   rlock acl -S 'mysql://db1/app?table=shedlock' --user deploy | mysql -h db1 app
#   RLOCK_SERVER='mysql://deploy@db1/app?table=shedlock'
#   RLOCK_SERVER='mongodb://deploy@db1/app?table=shedLock'
exec rlock run -n -E 0 -S "${RLOCK_SERVER:-postgresql://deploy@db1/app?table=shedlock}" -k nightly-report -- /usr/local/bin/nightly-report
