# SPDX-License-Identifier: Apache-2.0
"""Counts what rlock asks of a database or consensus store, as the server itself tells: the requests of an acquire with its release and
of a run, and how many commits of a crowd are wasted. A commit writes the record of a lock if it has not changed since it was read;
otherwise it is wasted, and rlock reads again.

Counting makes a server slower, so its times are not measured."""
import dataclasses
import glob
import json
import re
import signal
import struct
import subprocess
import time
import urllib.request

import start

RUNS = 10
SECONDS = 2  # of pairs


@dataclasses.dataclass
class Counts:
    requests: int
    commits: int  # with those that are wasted
    wasted: int

    def __sub__(self, before):
        return Counts(*(now - then for now, then in zip(dataclasses.astuple(self), dataclasses.astuple(before))))


class PostgresCounts:
    """The calls of each statement that did not fail, and the rows of its answers. A commit that wrote the record answers with a row."""
    OPTIONS = ("-c", "shared_preload_libraries=pg_stat_statements")

    def __init__(self, server):
        self._server = server
        server.ask("create extension pg_stat_statements")

    def now(self):
        commits = "filter (where query like 'with w as (update %')"
        return counts_in(self._server.ask(
            f"select sum(calls), coalesce(sum(calls) {commits}, 0), coalesce(sum(calls - rows) {commits}, 0) "
            "from pg_stat_statements where query not like '%pg_stat_statements%'"))


class MariadbCounts:
    """The requests of rlock's user in the general log. A commit is one request of several statements; its UPDATE, of which the
    performance schema counts the calls and the rows, finds the row of the lock or not."""
    OPTIONS = ("--performance-schema=on", "--general-log=on", "--log-output=TABLE")

    def __init__(self, server):
        self._server = server

    def now(self):
        return counts_in(self._server.ask(
            "select (select count(*) from mysql.general_log where command_type = 'Query' and user_host like '%deploy%'), "
            "count_star, count_star - sum_rows_affected "
            "from performance_schema.events_statements_summary_by_user_by_event_name "
            "where user = 'deploy' and event_name = 'statement/sql/update'"))


def counts_in(row):
    return Counts(*map(int, re.split(r"[|\t]", row)))


class EtcdCounts:
    """The messages that the server has received, of its metrics. The version of a key is the number of commits that wrote it. A proposal
    that was applied and made neither a lease nor a revision is a wasted commit; so is, by mistake, the end of a lease without keys, of
    which a crowd of 50 has about three."""
    OPTIONS = ()

    def __init__(self, server):
        self._server, self._own = server, 0

    def now(self):
        self._own += 1
        records = json.loads(self._server.ctl("get", "--prefix", "rlock/lock/", "-w", "json").stdout)
        written = sum(one["version"] for one in records.get("kvs", []))
        with urllib.request.urlopen(f"{self._server.url}/metrics") as answer:
            metrics = answer.read().decode()
        received = total(metrics, r"grpc_server_msg_received_total\{.*\}")
        leases = total(metrics, r'grpc_server_msg_received_total\{grpc_method="LeaseGrant".*\}')
        wasted = total(metrics, "etcd_server_proposals_applied_total") - leases - records["header"]["revision"]
        return Counts(received - self._own, written + wasted, wasted)


def total(metrics, name):
    return int(sum(map(float, re.findall(f"^{name} (\\S+)", metrics, re.M))))


class ZookeeperCounts:
    """The packets that the server has received, by its command srvr. Its transaction log has all multis, also those that failed; a
    commit is one that begins with a check."""
    OPTIONS = ()
    CHECK, MULTI, FAILED = 13, 14, -1  # types of transactions

    def __init__(self, server):
        self._server, self._own = server, 0

    def now(self):
        self._own += 1
        received = int(re.search(r"^Received: (\d+)", self._server.ask("srvr"), re.M)[1])
        commits = [types for types in self._multis() if types[0] == self.CHECK]
        return Counts(received - self._own, len(commits), sum(self.FAILED in types for types in commits))

    def _multis(self):
        """The types of the parts of each."""
        for path in glob.glob(f"{self._server.data}/version-2/log.*"):
            with open(path, "rb") as file:
                log = file.read()
            at = 16  # behind the head of the file
            while True:
                _, length = struct.unpack_from(">qi", log, at)
                if length == 0:
                    break
                *_, kind = struct.unpack_from(">qiqqi", log, at + 12)
                if kind == self.MULTI:
                    yield self._parts(log, at + 44)
                at += 12 + length + 1

    @staticmethod
    def _parts(log, at):
        count, = struct.unpack_from(">i", log, at)
        at, types = at + 4, []
        for _ in range(count):
            kind, length = struct.unpack_from(">ii", log, at)
            types.append(kind)
            at += 8 + length
        return types


def measure(bench, store, counts, crowd):
    """`crowd` starts many runs of true under one lock at the same time, and waits for them."""
    name, key = store.name, "counted"
    words = [*store.rlock.words(key), "true"]
    start.run(words)  # makes the tables and the record
    runs = [counted(counts, lambda: start.run(words)) for _ in range(RUNS)]
    crowds = [counted(counts, lambda: crowd(key)) for _ in range(bench.rounds)]
    bench.results.row(f"requests, a run of true: {name}", "", [one.requests for one in runs])
    bench.results.row(f"requests, acquire and release on one connection: {name}", "", [requests_of_a_pair(bench, store, counts)])
    bench.results.row(f"wasted commits, runs of true at once: {name}", "%", [100 * one.wasted / one.commits for one in crowds],
                      f"{sum(one.wasted for one in crowds)} of {sum(one.commits for one in crowds)}")


def counted(counts, act):
    before = counts.now()
    act()
    return settled(counts) - before


def requests_of_a_pair(bench, store, counts):
    """`rlock bench` takes and releases a lock again and again: two commits are a pair."""
    process = subprocess.Popen([bench.rlock, "bench", "-S", store.url, "--for", "1h", "--connections", "1"])
    try:
        time.sleep(SECONDS)  # it has connected and begun
        before = while_stopped(process, counts)
        time.sleep(SECONDS)
        pairs = while_stopped(process, counts) - before
    finally:
        process.terminate()
        process.wait()
    return 2 * pairs.requests / pairs.commits


def while_stopped(process, counts):
    process.send_signal(signal.SIGSTOP)
    now = settled(counts)
    process.send_signal(signal.SIGCONT)
    return now


def settled(counts):
    """When the server has ended what it was asked."""
    now, later = None, counts.now()
    while now != later:
        time.sleep(0.1)
        now, later = later, counts.now()
    return now
