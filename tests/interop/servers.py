# SPDX-License-Identifier: Apache-2.0
"""Real servers on free ports of the loopback, and clients for questions about their data: redis-server, PostgreSQL."""
import glob
import os
import shutil
import signal
import socket
import subprocess

from waiting import wait_until


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def server_program():
    program = os.environ.get("RLOCK_TEST_SERVER") or shutil.which("redis-server") or shutil.which("valkey-server")
    if not program:
        raise SystemExit("interop: there is neither redis-server nor valkey-server")
    return program


class Server:
    def __init__(self, directory):
        os.mkdir(directory)
        self._directory = directory
        for _ in range(5):  # another process may take the port first
            self.port = free_port()
            self.process = subprocess.Popen(
                [server_program(), "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--dir", directory,
                 "--unixsocket", os.path.join(directory, "socket"), "--maxclients", "5000",
                 "--logfile", os.path.join(directory, "log"), "--daemonize", "no"])
            wait_until("the server answers or ends", lambda: self.process.poll() is not None or self._answers())
            if self.process.poll() is None:
                return
        raise SystemExit(f"interop: the server does not start, see {directory}/log")

    @property
    def url(self):
        return f"redis://127.0.0.1:{self.port}"

    @property
    def socket_url(self):
        return f"unix://{self._directory}/socket"

    def ask(self, *words):
        """The reply to a command: None, a number, text or a list."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=10) as connection:
            parts = [str(word).encode() for word in words]
            connection.sendall(b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(p), p) for p in parts))
            with connection.makefile("rb") as answer:
                return self._reply(answer)

    def clear(self):
        self.ask("FLUSHALL")

    def stop(self):
        self.process.terminate()
        self.process.wait()

    def _answers(self):
        try:
            return self.ask("PING") == "PONG"
        except OSError:
            return False

    def _reply(self, answer):
        line = answer.readline().decode().rstrip("\r\n")
        sign, rest = line[:1], line[1:]
        if sign == "*":
            return [self._reply(answer) for _ in range(int(rest))]
        if sign == "$":
            return None if rest == "-1" else answer.read(int(rest) + 2)[:-2].decode(errors="replace")
        if sign == "-":
            raise RuntimeError(rest)
        return int(rest) if sign == ":" else rest


# The table as ShedLock's documentation makes it.
SHEDLOCK_TABLE = """create table shedlock(name varchar(64) not null, lock_until timestamp not null, locked_at timestamp not null,
    locked_by varchar(255) not null, primary key (name))"""


class Postgres:
    """Private, with the table of ShedLock and what `rlock acl` adds to it. As root it runs as the user postgres."""

    @staticmethod
    def programs():
        """The directory of its programs; None: there are none."""
        found = sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"))
        return os.path.dirname(found[-1]) if found else None

    def __init__(self, directory, rlock):
        self._programs = self.programs()
        os.mkdir(directory)
        self._as_user = []
        if os.geteuid() == 0:
            shutil.chown(directory, "postgres", "postgres")
            os.chmod(os.path.dirname(directory), 0o711)
            self._as_user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
        data = os.path.join(directory, "data")
        subprocess.run([*self._as_user, f"{self._programs}/initdb", "--no-sync", "-A", "trust", "-U", "postgres", "-D", data],
                       cwd="/", check=True, stdout=subprocess.DEVNULL)
        self.port = free_port()
        with open(os.path.join(os.path.dirname(directory), "postgres.log"), "w") as log:
            self.process = subprocess.Popen(
                [*self._as_user, f"{self._programs}/postgres", "-D", data, "-c", "listen_addresses=127.0.0.1",
                 "-c", f"unix_socket_directories={directory}", "-c", f"port={self.port}"],
                cwd="/", stdout=log, stderr=log)
        wait_until("PostgreSQL answers", lambda: subprocess.run(
            [f"{self._programs}/pg_isready", "-q", "-h", "127.0.0.1", "-p", str(self.port)]).returncode == 0)
        self.ask(SHEDLOCK_TABLE)
        self.ask(subprocess.run([rlock, "acl", "-S", self.url, "--user", "postgres"], check=True, capture_output=True,
                                text=True).stdout)

    @property
    def url(self):
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres?table=shedlock"

    @property
    def jdbc_url(self):
        return f"jdbc:postgresql://127.0.0.1:{self.port}/postgres?user=postgres"

    def ask(self, sql):
        """The rows of an answer, a line each."""
        return subprocess.run([f"{self._programs}/psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1",
                               "-p", str(self.port), "-U", "postgres", "-c", sql, "postgres"],
                              check=True, capture_output=True, text=True).stdout.strip()

    def clear(self):
        """Leaves the rows, which ShedLock remembers."""
        self.ask("update shedlock set lock_until = timezone('utc', now())")

    def stop(self):
        self.process.send_signal(signal.SIGINT)  # ends the sessions too
        self.process.wait()
