#!/bin/sh
# What failed last night? For an operator in the morning, or for a mail from cron at 7:00: it prints nothing when all is well.
# The jobs run with --every 26h, which also keeps a month of history. A job is late 26 hours after its last success ended: one that takes up to three hours needs
# --every 27h, or this script at ten. The exit code is not 0 when the server cannot be asked.
set -u
told=$(rlock history --failed --since 12h 2>&1)
code=$?
[ "$code" -eq 1 ] || echo "$told"    # 1: no run failed
[ "$code" -le 1 ] || exit "$code"    # the server was not asked
rlock list --overdue                 # 1: a job did not run, or did not succeed
[ $? -le 1 ]
