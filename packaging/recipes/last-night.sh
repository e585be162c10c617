#!/bin/sh
# What failed last night? For an operator in the morning, or for a mail from cron at 7:00: it prints nothing when all is well.
# The jobs run with --history 30d and --every 26h.
set -eu
rlock history --failed --since 12h 2>/dev/null || true    # exit code 1: no run failed
rlock list --overdue || true                              # jobs that did not run or did not succeed; exit code 1: there is one
