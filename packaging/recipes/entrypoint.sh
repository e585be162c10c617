#!/bin/sh
# The entrypoint of a container of which one at a time may work, however many are started, on any host or orchestrator.
# In the Dockerfile:  COPY --from=rlock /usr/bin/rlock /usr/bin/
#                     COPY entrypoint.sh /  and  ENTRYPOINT ["/entrypoint.sh"]  CMD ["/app/worker"]
# exec: rlock is process 1, and gets the TERM of `docker stop`. Let that wait longer than --kill-after (docker stop -t 30).
exec rlock run -k "${RLOCK_NAME:?}" --wait-server "${RLOCK_WAIT_SERVER:-5m}" --kill-after 20s -- "$@"
