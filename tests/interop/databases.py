# SPDX-License-Identifier: Apache-2.0
"""Real databases on free ports of the loopback, each with what ShedLock keeps its locks in and what `rlock acl` adds to it, and
clients for questions about the locks: PostgreSQL, MariaDB, FerretDB. As root a server runs as the user of its package. `options`
are more arguments of the server program."""
import atexit
import glob
import os
import shutil
import signal
import subprocess

from servers import free_port
from waiting import wait_until


def run(argv, **options):
    return subprocess.run(argv, check=True, capture_output=True, text=True, cwd="/", **options).stdout.strip()


class Database:
    """The URLs are those for rlock, and for ShedDriver.java."""
    clocks = ("db", "jvm")

    def __init__(self, directory, user):
        os.mkdir(directory)
        self.port = free_port()
        self._directory, self._as_user = directory, []
        if user and os.geteuid() == 0:
            shutil.chown(directory, user, user)
            os.chmod(os.path.dirname(directory), 0o711)
            self._as_user = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"]

    def _start(self, argv, has_answered):
        with open(f"{self._directory}.log", "w") as log:
            self.process = subprocess.Popen([*self._as_user, *argv], cwd="/", stdout=log, stderr=log)
        atexit.register(self.process.kill)  # when its preparation fails
        wait_until(f"the database answers, see {self._directory}.log",
                   lambda: self.process.poll() is not None or has_answered())
        assert self.process.poll() is None, f"the database does not start, see {self._directory}.log"

    def _add_what_acl_prints(self, rlock, user):
        self.ask(run([rlock, "acl", "-S", self.url, "--user", user]))

    def holder(self, _, key):
        """Who holds the lock by the table; empty: nobody."""
        return self.ask(f"select locked_by from shedlock where name = '{key}' and lock_until > {self.now}")

    def rows(self, _):
        return self.ask("select count(*) from shedlock")

    def clear(self):
        """Leaves the rows, which ShedLock remembers."""
        self.ask(f"update shedlock set lock_until = {self.now}")

    def stop(self):
        self.process.send_signal(signal.SIGINT)  # ends the sessions too
        self.process.wait()


class Postgres(Database):
    name, now = "PostgreSQL", "timezone('utc', now())"

    @staticmethod
    def program():
        """initdb; None: there is none."""
        found = sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"))
        return found[-1] if found else None

    def __init__(self, directory, rlock, options=()):
        super().__init__(directory, "postgres")
        self._programs = os.path.dirname(self.program())
        data = os.path.join(directory, "data")
        run([*self._as_user, self.program(), "--no-sync", "-A", "trust", "-U", "postgres", "-D", data])
        self._start([f"{self._programs}/postgres", "-D", data, "-c", "listen_addresses=127.0.0.1",
                     "-c", f"unix_socket_directories={directory}", "-c", f"port={self.port}", *options],
                    lambda: subprocess.run([f"{self._programs}/pg_isready", "-q", "-h", "127.0.0.1", "-p", str(self.port)]
                                           ).returncode == 0)
        # As ShedLock's documentation makes it.
        self.ask("""create table shedlock(name varchar(64) not null, lock_until timestamp not null,
            locked_at timestamp not null, locked_by varchar(255) not null, primary key (name))""")
        self._add_what_acl_prints(rlock, "postgres")

    @property
    def url(self):
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres?table=shedlock"

    @property
    def java_url(self):
        return f"jdbc:postgresql://127.0.0.1:{self.port}/postgres?user=postgres"

    def ask(self, sql):
        """The rows of an answer, a line each."""
        return run([f"{self._programs}/psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1", "-p",
                    str(self.port), "-U", "postgres", "-c", sql, "postgres"])


class Mariadb(Database):
    name, now = "MariaDB", "utc_timestamp(3)"

    @staticmethod
    def program():
        return shutil.which("mariadbd", path=f"{os.environ['PATH']}:/usr/sbin")

    def __init__(self, directory, rlock, options=()):
        super().__init__(directory, "mysql")
        data = os.path.join(directory, "data")
        run([*self._as_user, "mariadb-install-db", "--no-defaults", f"--datadir={data}", f"--tmpdir={directory}",
             "--auth-root-authentication-method=normal", "--skip-test-db", "--skip-name-resolve"])
        self._client = ["mariadb", "--no-defaults", "--user=root", f"--socket={directory}/socket", "--batch",
                        "--skip-column-names"]
        self._start([self.program(), "--no-defaults", f"--datadir={data}", f"--tmpdir={directory}",
                     f"--socket={directory}/socket", f"--pid-file={directory}/pid", "--bind-address=127.0.0.1",
                     f"--port={self.port}", "--skip-name-resolve", *options],
                    lambda: subprocess.run([*self._client, "-e", "select 1"], capture_output=True).returncode == 0)
        run([*self._client, "-e", "create database app; create user deploy@'%'; grant all on app.* to deploy@'%'"])
        # As ShedLock's documentation makes it.
        self.ask("""create table shedlock(name varchar(64) not null, lock_until timestamp(3) not null,
            locked_at timestamp(3) not null default current_timestamp(3), locked_by varchar(255) not null,
            primary key (name))""")
        self._add_what_acl_prints(rlock, "deploy")

    @property
    def url(self):
        return f"mariadb://deploy@127.0.0.1:{self.port}/app?table=shedlock"

    @property
    def java_url(self):
        return f"jdbc:mariadb://127.0.0.1:{self.port}/app?user=deploy"

    def ask(self, sql):
        return run([*self._client, "--database=app", "-e", sql])

    def stop(self):
        self.process.terminate()
        self.process.wait()


class Mongo(Database):
    """FerretDB as tests/ferretdb/build.sh builds it, or the mongod that RLOCK_TEST_MONGOD names. ShedDriver answers the questions."""
    name, clocks = "MongoDB", ("mongo",)

    @staticmethod
    def program():
        cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
        return os.environ.get("RLOCK_TEST_MONGOD") or shutil.which(f"{cache}/rlock-tests/ferretdb")

    def __init__(self, directory, _):
        super().__init__(directory, None)
        data = os.path.join(directory, "data")
        os.mkdir(data)
        self._start([self.program(), "--dbpath", data, "--bind_ip", "127.0.0.1", "--port", str(self.port)]
                    if os.environ.get("RLOCK_TEST_MONGOD") else
                    [self.program(), "-dir", data, "-tcp", f"127.0.0.1:{self.port}"], self._listens)

    def _listens(self):
        return subprocess.run(["bash", "-c", f"exec 3<>/dev/tcp/127.0.0.1/{self.port}"], capture_output=True).returncode == 0

    @property
    def url(self):
        return f"{self.java_url}?table=shedLock"

    @property
    def java_url(self):
        return f"mongodb://127.0.0.1:{self.port}/app"

    def holder(self, library, key):
        holder = str(library.ask("a", "holder", "mongo", key))
        return "" if holder == "free" else holder

    def rows(self, library):
        return str(library.ask("a", "rows", "mongo", "-"))

    def clear(self):
        """Each scenario has keys of its own, because there is but one clock."""

    def stop(self):
        self.process.terminate()
        self.process.wait()
