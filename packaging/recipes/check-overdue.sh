#!/bin/sh
# A check for monitoring (Nagios, Icinga, Zabbix, monit): critical when a job with --every is late, unknown when the server is away.
# For Prometheus, from cron each minute instead:
#   rlock list --all -o prometheus >/var/lib/node_exporter/rlock.new && mv /var/lib/node_exporter/rlock.new /var/lib/node_exporter/rlock.prom
late=$(rlock list --overdue)
case $? in
  0) echo "OK: no job is late" ;;
  1) echo "CRITICAL: a job is late"; echo "$late"; exit 2 ;;
  *) echo "UNKNOWN: rlock could not ask its server"; exit 3 ;;
esac
