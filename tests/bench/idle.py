# SPDX-License-Identifier: Apache-2.0
"""What waiting and holding cost: memory, requests, and how late a waiter gives up whose time is over."""
import collections
import contextlib
import re
import statistics
import subprocess
import time

import hand_over
from requests_of_clients import Requests
from waiting import wait_until

KIB_OF_MIB = 1024


def measure(bench):
    for _ in range(bench.rounds):
        weigh(bench)
    for who, values in bench.results.figures["resident_mib"].items():
        bench.results.row(f"resident: {who}", "MiB", values)
    requests_of_waiters(bench)
    requests_of_silent_waiters(bench, *((200, 20) if bench.quick else (1000, 30)))
    give_up_waiting(bench)


@contextlib.contextmanager
def standstill(bench, waiting):
    """A holder, and waiters behind it that are never served; [holder, waiter...]"""
    def words(job):
        return [*bench.peers.rlock.words("standstill"), *job]

    def start(job):
        return subprocess.Popen(words(job), stderr=subprocess.DEVNULL)

    def all_listen():
        return len(bench.server.ask("PUBSUB", "CHANNELS", "rlock:owner:*")) == len(processes)

    processes = [start(["sleep", "1000"])]
    try:
        wait_until("the lock is taken", lambda: bench.server.ask("EXISTS", "standstill") == 1)
        processes += [start(["true"]) for _ in range(waiting)]
        wait_until("all listen", all_listen, 120)
        yield processes
    finally:
        for process in reversed(processes):
            process.terminate()
        for process in processes:
            process.wait()


def weigh(bench):
    with standstill(bench, 3) as (holder, *waiters):
        wait_until("the first waiter has a guardian", lambda: any(children(waiter.pid) for waiter in waiters))
        first = next(waiter for waiter in waiters if children(waiter.pid))
        other = next(waiter for waiter in waiters if waiter is not first)
        figures = bench.results.figures.setdefault("resident_mib", collections.defaultdict(list))
        figures["waiter"].append(resident_mib(other.pid))
        for who, pid in (("holder", holder.pid), ("first waiter", first.pid)):
            figures[f"{who} and its guardian"].append(resident_mib(pid) + resident_mib(guardian(pid)))


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return [int(child) for child in file.read().split()]


def guardian(pid):
    """It is the runner's first child."""
    return children(pid)[0]


def resident_mib(pid):
    with open(f"/proc/{pid}/smaps_rollup") as file:
        return int(re.search(r"Rss:\s+(\d+)", file.read())[1]) / KIB_OF_MIB


def requests_of_waiters(bench):
    """From the first request to the last: what fifty more waiters add."""
    def requests(waiting):
        counter = Requests(bench.server)
        hand_over.drain(bench, bench.peers.rlock, 3, waiting)
        return counter.count()

    more = 50
    pairs = [(requests(2), requests(2 + more)) for _ in range(bench.rounds)]
    for number, what in enumerate(("scripts", "subscriptions and ZSCOREs")):
        bench.results.row(f"{what} in a waiter's life", "", [(many[number] - one[number]) / more for one, many in pairs])


def requests_of_silent_waiters(bench, waiting, seconds):
    with standstill(bench, waiting):
        time.sleep(1)
        counter = Requests(bench.server)
        time.sleep(seconds)
        per_waiter = sum(counter.count()) / waiting / seconds * 10
    bench.results.row("requests of a silent waiter in 10 s", "", [per_waiter], f"{waiting} waiters for {seconds} s")


def give_up_waiting(bench):
    with standstill(bench, 0):
        ends, waiters, late = [], [], []
        for turn in range(1, 21):
            limit = turn * 0.2
            words = bench.peers.rlock.words("standstill")
            ends.append(time.monotonic() + limit)
            waiters.append(subprocess.Popen([*words[:-1], "-w", f"{limit * 1000:.0f}ms", "--", "true"],
                                            stderr=subprocess.DEVNULL))
        for waiter, end in zip(waiters, ends):
            if waiter.wait() != 75:
                raise RuntimeError(f"rlock with -w ended with {waiter.returncode}")
            late.append((time.monotonic() - end) * 1e3)
    bench.results.row("end of a waiter after its -w", "ms", late, f"{statistics.quantiles(late, n=20)[-1]:.1f} ms in 95 of 100")
