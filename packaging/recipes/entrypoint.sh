#!/bin/sh
# The entrypoint of a container that works on one host at a time, however many are started. It needs JOB_NAME, RLOCK_SERVER and /bin/sh;
# with a password also RLOCK_PASSWORD_FILE. A job that ends, and that must run once and not in each container: `rlock once` instead.
# In the Dockerfile:  COPY --from=REGISTRY/rlock:VERSION /usr/bin/rlock /usr/bin/
#                     COPY entrypoint.sh /  and  ENTRYPOINT ["/entrypoint.sh"]  CMD ["/app/worker"]
# The program of the image is static, so it runs beside any libc.
# exec: rlock is process 1, and gets the TERM of `docker stop`, which sends KILL after 10 s (-t), as Kubernetes does after 30 s.
# --kill-after is shorter: rlock kills a worker that ignores TERM, and releases the lock, before docker kills rlock. Without that option
# a TERM never becomes KILL. When the container itself gets KILL, rlock dies with it, and the lock ends with its ttl (--ttl, 30 s).
# Every process of the worker gets the signals INT, TERM, HUP, QUIT, USR1 and USR2, not only its first one.
# Exit code 121: the lock was lost and the worker stopped; let the container be started again.
exec rlock run -k "${JOB_NAME:?}" --wait-server "${JOB_WAIT_SERVER:-5m}" --kill-after "${JOB_KILL_AFTER:-8s}" -- "$@"
