# SPDX-License-Identifier: Apache-2.0
"""redis_py.py URL: takes and releases locks of redis-py as its standard input says.

A line is ID THREAD VERB KIND KEY [ARG...], and the answer ID TIME WORD..., with the time in nanoseconds (CLOCK_MONOTONIC) at
which the call returned. The verbs, which redsync and node_redlock.mjs have as well:
  lock KIND KEY WAIT_MS LEASE_MS   WAIT_MS 0: one attempt. held | busy
  extend KIND KEY LEASE_MS         the lock ends LEASE_MS from now: extended
  unlock KIND KEY                  released TIME_BEFORE_THE_CALL
An exception is answered by: error CLASS MESSAGE.

redis_py.py URL -- KEY JOB...: runs a job under a lock, for tests/bench. Redisson's driver, redsync and node_redlock.mjs do the same.
"""
import queue
import subprocess
import sys
import threading
import time

import redis


output = threading.Lock()


def tell(*words):
    with output:
        print(*words, flush=True)


class Worker(threading.Thread):
    def __init__(self, client):
        super().__init__(daemon=True)
        self.client, self.locks, self.orders = client, {}, queue.Queue()

    def run(self):
        while True:
            number, verb, key, args = self.orders.get()
            try:
                answer = getattr(self, verb)(key, *(int(arg) for arg in args))
            except Exception as problem:
                answer = f"error {type(problem).__name__} {problem}"
            tell(number, time.monotonic_ns(), answer)

    def lock(self, key, wait, lease):
        lock = self.locks[key] = self.client.lock(key, timeout=lease / 1000)
        held = lock.acquire(blocking_timeout=wait / 1000) if wait else lock.acquire(blocking=False)
        return "held" if held else "busy"

    def extend(self, key, lease):
        self.locks[key].extend(lease / 1000, replace_ttl=True)
        return "extended"

    def unlock(self, key):
        before = time.monotonic_ns()
        self.locks[key].release()
        return f"released {before}"


def run_job(client, key, job):
    with client.lock(key, timeout=60):
        return subprocess.call(job)


def main():
    client = redis.Redis.from_url(sys.argv[1])
    if sys.argv[2:3] == ["--"]:
        return run_job(client, sys.argv[3], sys.argv[4:])
    workers = {}
    tell(0, time.monotonic_ns(), "ready")
    for line in sys.stdin:
        number, thread, verb, _, key, *args = line.split()
        if thread not in workers:
            workers[thread] = Worker(client)
            workers[thread].start()
        workers[thread].orders.put((number, verb, key, args))
    return 0


sys.exit(main())
