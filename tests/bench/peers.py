# SPDX-License-Identifier: Apache-2.0
"""rlock and the programs and libraries beside it. Each runs a job under a lock: words(key) + the job."""
import dataclasses
import os
import shutil
import subprocess
import sys
import typing

from servers import free_port
from waiting import wait_until

HERE = os.path.dirname(os.path.abspath(__file__))
STRINGS = os.path.join(HERE, "../interop/strings")


@dataclasses.dataclass
class Peer:
    name: str
    words: typing.Callable  # the command before the job, of a key
    waiting: typing.Callable = None  # how many processes wait for that key; None: not known
    most_waiting: int = 50  # not measured with more


def rlock(program, server):
    def queued(key):
        return server.ask("ZCARD", f"rlock:queue:{{{key}}}")

    def words(url):
        return lambda key: [program, "run", "-S", url, "-k", key, "--"]

    return [Peer("rlock", words(server.url), queued, 10_000), Peer("rlock, unix socket", words(server.socket_url), queued)]


def flock(directory):
    def path(key):
        return os.path.join(directory, key)

    def waiting(key):
        inode = f":{os.stat(path(key)).st_ino} "
        with open("/proc/locks") as file:
            return sum("->" in line and inode in line for line in file)

    return Peer("flock", lambda key: ["flock", path(key)], waiting, 10_000)


def java(directory, *words):
    return ["java", "-Xmx128m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Dslf4j.internal.verbosity=ERROR", "-cp",
            f"{directory}/classes:{directory}/*", *words]


def libraries(out, server):
    """(Peer, whether it is there) of each library that tests/interop/run.sh downloads and builds: a process for each job."""
    def peer(name, argv, most_waiting=50, connections=1):
        def waiting(_):
            clients = server.ask("CLIENT", "LIST").count("\n") - 1  # without this one
            return clients // connections - 1  # without the holder

        return Peer(name, lambda key: [*argv, server.url, "--", key], waiting, most_waiting)

    redisson = java(f"{out}/redisson-4.7.0", "Driver", "30000")
    python = ["env", f"PYTHONPATH={out}/redis-py", sys.executable, "-B"]
    known = {"redis-py": peer("redis-py", [*python, f"{STRINGS}/redis_py.py"]),
             "redsync": peer("redsync", [f"{out}/redsync"]),
             "rslock": peer("rslock", [f"{out}/rslock/release/peer"]),
             "node-redlock": peer("node-redlock", ["node", f"{out}/node-redlock/node_redlock.mjs"]),
             "redisson-4.7.0": peer("Redisson 4.7.0", redisson, most_waiting=10, connections=2)}
    return [(one, os.path.exists(f"{out}/{name}.ready")) for name, one in known.items()]


def answers(process, name, asks):
    """Waits until a server answers; ends one that does not."""
    try:
        wait_until(f"{name} answers", asks)
    except AssertionError:
        process.kill()
        process.wait()
        raise


class Etcd:
    def __init__(self, directory):
        client, other = (f"http://127.0.0.1:{free_port()}" for _ in range(2))
        self.url = client
        self._log = open(os.path.join(directory, "etcd.log"), "w")
        self.process = subprocess.Popen(
            ["etcd", "--data-dir", os.path.join(directory, "etcd"), "--listen-client-urls", client,
             "--advertise-client-urls", client, "--listen-peer-urls", other, "--initial-advertise-peer-urls", other,
             "--initial-cluster", f"default={other}"], stdout=self._log, stderr=self._log)
        answers(self.process, "etcd", lambda: self.ctl("endpoint", "health").returncode == 0)

    def peer(self):
        def waiting(key):
            return len(self.ctl("get", "--prefix", f"{key}/", "--keys-only").stdout.split()) - 1

        return Peer("etcdctl lock", lambda key: ["etcdctl", f"--endpoints={self.url}", "lock", key], waiting)

    def stop(self):
        self.process.terminate()
        self.process.wait()

    def ctl(self, *words):
        return subprocess.run(["etcdctl", f"--endpoints={self.url}", *words], capture_output=True, text=True)


class Consul:
    def __init__(self, directory):
        self.port = free_port()
        self._log = open(os.path.join(directory, "consul.log"), "w")
        known = subprocess.run(["consul", "agent", "-help"], capture_output=True, text=True).stdout
        off = [f"-{name}-port=-1" for name in ("dns", "grpc", "grpc-tls") if f"-{name}-port" in known]  # grpc-tls since 1.14
        unused = [f"-{name}-port={free_port()}" for name in ("server", "serf-lan", "serf-wan")]
        self.process = subprocess.Popen(
            ["consul", "agent", "-dev", "-bind=127.0.0.1", f"-http-port={self.port}", *off, *unused],
            stdout=self._log, stderr=self._log)
        answers(self.process, "consul", lambda: subprocess.run(
            ["consul", "kv", "put", f"-http-addr=127.0.0.1:{self.port}", "there", "1"],
            capture_output=True).returncode == 0)

    def peer(self):
        # After each release a waiter pauses for seconds, so only the start is measured.
        return Peer("consul lock", lambda key: ["consul", "lock", f"-http-addr=127.0.0.1:{self.port}", "-shell=false",
                                                "-child-exit-code", key], most_waiting=0)

    def stop(self):
        self.process.terminate()
        self.process.wait()


class Peers:
    """All that are here, and the servers of those that need one."""

    def __init__(self, program, server, directory, out, note):
        self._stores = []
        self.rlock, self.rlock_unix = rlock(program, server)
        self.flock = flock(directory)
        self.others = []
        for store, *programs in ((Etcd, "etcd", "etcdctl"), (Consul, "consul")):
            self._add_store(store, programs, directory, note)
        if is_installed("redis-cli", note):
            self.others.append(Peer("redis-cli recipe", lambda key: [f"{HERE}/set_nx.sh", server.url, key]))
        for peer, is_ready in libraries(out, server):
            if is_ready:
                self.others.append(peer)
            else:
                note(f"not measured, because it is not built: {peer.name}")

    def stop(self):
        for store in self._stores:
            store.stop()

    def _add_store(self, store, programs, directory, note):
        if not all(is_installed(program, note) for program in programs):
            return
        try:
            started = store(directory)
        except AssertionError as problem:
            note(f"not measured: {programs[0]}: {problem}")
            return
        self._stores.append(started)
        self.others.append(started.peer())


def is_installed(program, note):
    if not shutil.which(program):
        note(f"not measured, because it is not installed: {program}")
        return False
    return True
