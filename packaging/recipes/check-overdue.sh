#!/bin/sh
# A check for monitoring (Nagios, Icinga, Zabbix, monit): critical when a job with --every is late, unknown when the server is away.
# With the name of a lock it is also critical when the server knows of no run of that job: ./check-overdue.sh nightly
# For Prometheus, from cron each minute instead:
#   rlock list --all -o prometheus >/var/lib/node_exporter/rlock.new && mv /var/lib/node_exporter/rlock.new /var/lib/node_exporter/rlock.prom
told=$(rlock list --overdue "$@" 2>&1)
case $? in
  0) echo "OK: no job is late${told:+ ($told)}" ;;
  1) echo "CRITICAL: a job is late, or the server does not know it"; echo "$told"; exit 2 ;;
  *) echo "UNKNOWN: rlock could not ask its server"; echo "$told"; exit 3 ;;
esac
