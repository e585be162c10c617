#!/bin/sh
# Sends a mail about each run that did not succeed, except runs that were cancelled or did not get the lock:
#
#   rlock run -k nightly --notify '/usr/local/lib/notify-mail.sh root' -- ./nightly.sh
case $RLOCK_OUTCOME in
  succeeded | cancelled | busy | replaced) exit 0 ;;
esac
mail -s "$RLOCK_KEY on $RLOCK_HOST: $RLOCK_OUTCOME" "$1" <<EOT
$RLOCK_MESSAGE
$RLOCK_COMMAND, began $RLOCK_STARTED, attempt $RLOCK_ATTEMPT

exit code ${RLOCK_EXIT_CODE:-unknown}, after $((RLOCK_DURATION_MS / 1000)) s
What became of the runs before: rlock history -S '$RLOCK_SERVER' -k '$RLOCK_KEY'
EOT
