# SPDX-License-Identifier: Apache-2.0
"""A real redis-server on a free port of the loopback, and a client for questions about its data."""
import os
import shutil
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
