# SPDX-License-Identifier: Apache-2.0
"""Locks in databases and consensus stores, beside what people use there: psql and mariadb with an advisory lock, ShedLock, etcdctl
lock, kazoo and Curator. One server of each, which writes each commit to its disk. FerretDB, which is not MongoDB, is not measured."""
import contextlib
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import time

import databases
import hand_over
import large_server
import requests_of_stores
import start
from peers import Etcd, Peer, answers, java
from servers import free_port

TURNS = 10
AT_ONCE = 50
WAITING = 20
CURATOR_SESSION_MS = 30_000
KAZOO = """
import subprocess, sys
from kazoo.client import KazooClient
client = KazooClient(sys.argv[1])
client.start()
with client.Lock("/kazoo/" + sys.argv[2]):
    code = subprocess.call(sys.argv[3:])
client.stop()
sys.exit(code)
"""


class Zookeeper:
    JAR, TLS_JAR = "/usr/share/java/zookeeper.jar", "/usr/share/java/netty-codec.jar"

    def __init__(self, directory, rlock):
        self.port, self.data = free_port(), f"{directory}/data"
        os.makedirs(self.data)
        with open(f"{directory}/zoo.cfg", "w") as file:
            file.write(f"dataDir={self.data}\nclientPort={self.port}\nclientPortAddress=127.0.0.1\n"
                       "tickTime=2000\nadmin.enableServer=false\nmaxClientCnxns=0\n")
        with open(f"{directory}/log", "w") as log:
            self.process = subprocess.Popen(
                ["java", "-Xmx256m", "-cp", f"{self.JAR}:{self.TLS_JAR}",
                 "org.apache.zookeeper.server.quorum.QuorumPeerMain", f"{directory}/zoo.cfg"],
                cwd=directory, stdout=log, stderr=log)
        answers(self.process, "ZooKeeper", lambda: subprocess.run(
            [rlock, "list", "-S", f"zookeeper://127.0.0.1:{self.port}/rlock"], capture_output=True).returncode == 1)  # no lock is held

    def ask(self, command):
        """The answer to one of its four-letter commands."""
        with socket.create_connection(("127.0.0.1", self.port)) as connection:
            connection.sendall(command.encode())
            with connection.makefile() as answer:
                return answer.read()

    def stop(self):
        self.process.terminate()
        self.process.wait()


class Store:
    """A running server, its URL for rlock, rlock on it and the peers beside."""

    def __init__(self, bench, name, server, url, peers):
        def waiting(key):
            done = subprocess.run([bench.rlock, "status", "-S", url, "--json", key], capture_output=True, text=True)
            return len(json.loads(done.stdout)["waiting"]) if done.stdout else 0

        self.name, self.server, self.url = name, server, url
        self.rlock = Peer(f"rlock on {name}", lambda key: [bench.rlock, "run", "-S", url, "-k", key, "--"], waiting)
        self.peers = [self.rlock, *(peer for peer in peers if peer)]


def client(name, argv, option, lock):
    """A client program that takes the lock by a statement, and then runs the job from its shell escape."""
    script = f"statement=$1; shift; exec {' '.join(argv)} {option} \"$statement\" {option} \"\\\\! $*\" >/dev/null"
    return Peer(name, lambda key: ["sh", "-c", script, "sh", lock.format(key)])


def has_shedlock(bench):
    return shutil.which("java") and os.path.exists(f"{bench.libraries}/shedlock.ready")


def shedlock(bench, server):
    """A JVM for each job, which does not wait for a lock."""
    jars = f"{bench.libraries}/shedlock"
    return Peer(f"ShedLock on {server.name}", lambda key: [*java(jars, "ShedDriver", server.java_url), "--", key],
                most_waiting=0) if has_shedlock(bench) else None


def curator(bench, address):
    """A JVM for each job; the path is that of the lock."""
    ready = shutil.which("java") and os.path.exists(f"{bench.libraries}/curator.ready")
    words = [*java(f"{bench.libraries}/curator", "CuratorLock"), address, str(CURATOR_SESSION_MS)]
    return Peer("Curator", lambda key: [*words, f"/curator/{key}"], most_waiting=0) if ready else None


def postgres(bench, directory, options):
    server = databases.Postgres(directory, bench.rlock, options)
    psql = [f"{os.path.dirname(databases.Postgres.program())}/psql", "-X", "-q", "-h", "127.0.0.1", "-p",
            str(server.port), "-U", "postgres", "-d", "postgres"]
    peer = client("psql with pg_advisory_lock", psql, "-c", "select pg_advisory_lock(hashtext('{}'))")
    return Store(bench, "PostgreSQL", server, server.url.split("?")[0], [peer, shedlock(bench, server)])


def mariadb(bench, directory, options):
    server = databases.Mariadb(directory, bench.rlock, options)
    program = ["mariadb", "--no-defaults", "--user=deploy", "--host=127.0.0.1", f"--port={server.port}", "--batch"]
    peer = client("mariadb with get_lock", program, "-e", "do get_lock('{}', 60)")
    return Store(bench, "MariaDB", server, server.url.split("?")[0], [peer, shedlock(bench, server)])


def etcd(bench, directory, _):
    os.mkdir(directory)
    server = Etcd(directory)
    return Store(bench, "etcd", server, server.url.replace("http://", "etcd://") + "/rlock", [server.peer()])


def zookeeper(bench, directory, _):
    server = Zookeeper(directory, bench.rlock)
    address = f"127.0.0.1:{server.port}"
    python = next((one for one in (sys.executable, "/usr/bin/python3") if knows_kazoo(one)), None)
    kazoo = Peer("kazoo", lambda key: [python, "-c", KAZOO, address, key]) if python else None
    return Store(bench, "ZooKeeper", server, f"zookeeper://{address}/rlock", [kazoo, curator(bench, address)])


def knows_kazoo(python):
    return subprocess.run([python, "-c", "import kazoo"], capture_output=True).returncode == 0


STORES = {"PostgreSQL": (postgres, databases.Postgres.program, requests_of_stores.PostgresCounts),
          "MariaDB": (mariadb, databases.Mariadb.program, requests_of_stores.MariadbCounts),
          "etcd": (etcd, lambda: shutil.which("etcd") and shutil.which("etcdctl"), requests_of_stores.EtcdCounts),
          "ZooKeeper": (zookeeper, lambda: os.path.exists(Zookeeper.JAR) and shutil.which("java"),
                        requests_of_stores.ZookeeperCounts)}


def measure(bench):
    if not has_shedlock(bench):
        bench.results.note("not measured, because it is not built: ShedLock")
    for name, (make, program, counts) in STORES.items():
        if not program():
            bench.results.note(f"not measured, because it is not installed: {name}")
            continue
        with running(make(bench, f"{bench.directory}/{name}-timed", ())) as store:
            times(bench, store)
        with running(make(bench, f"{bench.directory}/{name}-counted", counts.OPTIONS)) as store:
            requests_of_stores.measure(bench, store, counts(store.server), lambda key: crowd(store.rlock, key))


@contextlib.contextmanager
def running(store):
    try:
        yield store
    finally:
        store.server.stop()


def times(bench, store):
    whole_process(bench, store.peers)
    at_once(bench, [peer for peer in store.peers if peer.most_waiting >= AT_ONCE])
    one_connection(bench, store)
    large_server.free_locks(bench, store.name, store.url)
    crowds = [peer for peer in store.peers if peer.waiting]
    drains = [{peer.name: hand_over.drain(bench, peer, 3, WAITING) for peer in crowds} for _ in range(bench.rounds)]
    for peer in crowds:
        bench.results.row(f"gap, {WAITING} waiting, jobs of 3 ms: {peer.name}", "ms",
                          [one[peer.name][0] / 1e3 for one in drains])


def whole_process(bench, peers):
    rounds = []
    for _ in range(bench.rounds):
        times = {peer.name: [] for peer in peers}
        for _ in range(TURNS):
            for peer in peers:
                times[peer.name].append(start.run([*peer.words("start"), "true"]))
        rounds.append({name: statistics.median(values) for name, values in times.items()})
    for peer in peers:
        bench.results.row(f"run of true: {peer.name}", "ms", [one[peer.name] * 1e3 for one in rounds])


def at_once(bench, peers):
    for peer in peers:
        times = []
        for number in range(bench.rounds):
            begin = time.perf_counter()
            crowd(peer, f"once{number}")
            times.append(time.perf_counter() - begin)
        bench.results.row(f"{AT_ONCE} runs of true at once: {peer.name}", "s", times)


def crowd(peer, key):
    """All of them start at the same time, and want the same lock."""
    runs = [subprocess.Popen([*peer.words(key), "true"]) for _ in range(AT_ONCE)]
    codes = {one.wait() for one in runs}
    if codes != {0}:
        raise RuntimeError(f"{peer.name}: some of {AT_ONCE} ended with {codes}")


def one_connection(bench, store):
    rounds = [json_lines([bench.rlock, "bench", "-S", store.url, "--json", "--connections", "1"]) for _ in range(bench.rounds)]
    bench.results.row(f"acquire and release on one connection: {store.name}", "ms",
                      [(one["acquire"]["p50_us"] + one["release"]["p50_us"]) / 1e3 for one in rounds])


def json_lines(words):
    done = subprocess.run(words, check=True, capture_output=True, text=True)
    return {line["measure"]: line for line in map(json.loads, done.stdout.splitlines())}
