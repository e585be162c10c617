#!/bin/sh
# A check for monitoring (Nagios, Icinga, Zabbix, monit): ./check-overdue.sh nightly
# Critical when the job, which runs with --every, is late, and when the server knows of no run of it; unknown when the server is away.
# Without a name it checks all jobs with --every that the server knows, which cannot find one that never ran.
# For Prometheus, from cron each minute instead:
#   rlock list --all -o prometheus >/var/lib/node_exporter/rlock.new && mv /var/lib/node_exporter/rlock.new /var/lib/node_exporter/rlock.prom
# The user of the monitoring needs RLOCK_SERVER, and with a password a RLOCK_PASSWORD_FILE that only this user may read.
told=$(rlock list --overdue "$@" 2>&1)
case $?:$told in
  0:*'nothing was checked') echo "UNKNOWN: $told"; exit 3 ;;
  0:*) echo "OK: no job is late" ;;    # a warning may stand in it
  1:*) echo "CRITICAL: a job is late, or the server does not know it"; echo "$told"; exit 2 ;;
  *) echo "UNKNOWN: rlock could not ask its server"; echo "$told"; exit 3 ;;
esac
