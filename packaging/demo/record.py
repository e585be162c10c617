#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""record.py [--to DIRECTORY] RLOCK [PICTURE...]: records the pictures of the README, kill-9.svg and watch.svg, from real sessions
of that program, to the directory of this script.

Each terminal is a shell on a pty in a UTS namespace of its own (unshare(1)), so that it has a host name. The keys are
typed by this script; every byte of the answers is rlock's, the shell's or the job's, shown at the time at which it came.
The server is a private one (`local:`) in a temporary directory. A session that does not show what the picture is about is an
error. Needs Linux, Python 3.9, unshare and redis-server; another user than root needs user namespaces.
"""
import argparse
import atexit
import fcntl
import json
import os
import pty
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
from pathlib import Path

from terminal import Terminal, picture, text_svg, window_svg

HERE = Path(__file__).resolve().parent
KEY_S = 0.06  # between two keystrokes
LONGEST_S = 30  # until a session shows what is awaited


def on_host(host, command):
    """The command, as on the host of the given name."""
    user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    return ["unshare", *user, "--uts", "sh", "-c", f"hostname {host} && exec {command}"]


class Session:
    """An interactive shell on a pty, as on the host of the given name."""

    def __init__(self, stage, host, columns, rows):
        self.terminal = Terminal(columns, rows)
        self.title = host
        self.stage = stage
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(stage.directory)
            os.execvpe("unshare", on_host(host, "sh -i"), stage.environment)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        stage.sessions.append(self)

    def await_text(self, text):
        self.stage.await_until(lambda: self.shows(text), f"{self.title} shows '{text}'")

    def shows(self, text):
        return any(text in "".join(char for char, _ in cells) for cells in self.terminal.cells)

    def type(self, line, key_s=KEY_S):
        for key in line:
            os.write(self.fd, key.encode())
            self.stage.watch_for(key_s)
        self.stage.watch_for(0.2)
        os.write(self.fd, b"\n")


class Stage:
    """The sessions of one recording, their directory and their clock."""

    def __init__(self, rlock):
        self.directory = Path(tempfile.mkdtemp(prefix="rlock-demo-"))
        programs = self.directory / "bin"
        programs.mkdir()
        shutil.copy(rlock, programs / "rlock")
        shutil.copy(HERE / "deploy.sh", self.directory)
        self.environment = {"PATH": f"{programs}:/usr/bin:/bin:/usr/sbin", "PS1": "$ ", "TERM": "xterm",
                            "RLOCK_SERVER": "local:", "RLOCK_LOCAL_NAME": "demo", "XDG_RUNTIME_DIR": str(self.directory)}
        self.sessions, self.jobs = [], []
        self.start = time.monotonic()
        atexit.register(self.close)  # when a recording fails

    def now(self):
        return time.monotonic() - self.start

    def watch_for(self, seconds, until=lambda: False):
        """Shows what the sessions write for so long, or until the condition is true."""
        end = self.now() + seconds
        while self.now() < end and not until():
            ready, _, _ = select.select([session.fd for session in self.sessions], [], [], min(0.01, max(0, end - self.now())))
            for session in self.sessions:
                if session.fd in ready:
                    session.terminal.feed(self.now(), os.read(session.fd, 65536).decode("utf-8", "replace"))

    def await_until(self, condition, what):
        self.watch_for(LONGEST_S, condition)
        if not condition():
            sys.exit(f"record.py: not within {LONGEST_S} s: {what}")

    def background(self, host, command):
        self.jobs.append(subprocess.Popen(on_host(host, command), cwd=self.directory, env=self.environment, stdin=subprocess.DEVNULL,
                                          stderr=subprocess.DEVNULL, start_new_session=True))

    def await_locks(self, keys, waiting):
        """Until all these locks are held and have so many waiters."""
        end = time.monotonic() + LONGEST_S
        while True:
            listed = subprocess.run(["rlock", "list", "--json"], env=self.environment, stdout=subprocess.PIPE, check=False).stdout
            locks = [json.loads(line) for line in listed.splitlines()]
            if {lock["key"] for lock in locks} == keys and sum(len(lock["waiting"]) for lock in locks) == waiting:
                return
            if time.monotonic() > end:
                sys.exit(f"record.py: not within {LONGEST_S} s: {keys} with {waiting} waiters; there are {locks}")
            time.sleep(0.1)

    def death_of(self, pid):
        """Returns a function that returns the time at which the process died."""
        died = []
        process = os.pidfd_open(pid)
        waiting = threading.Thread(target=lambda: (select.select([process], [], []), died.append(self.now())), daemon=True)
        waiting.start()
        return lambda: (waiting.join(10), died[0])[1]

    def close(self):
        atexit.unregister(self.close)
        for session in self.sessions:
            os.write(session.fd, b"q\x03")  # ends rlock watch, or the job
        self.watch_for(1)
        for session in self.sessions:
            os.kill(session.pid, signal.SIGKILL)
            os.waitpid(session.pid, 0)
            os.close(session.fd)
        for job in self.jobs:
            job.terminate()
        for job in self.jobs:
            job.wait()
        for path in self.directory.rglob("*.sock"):
            with socket.socket(socket.AF_UNIX) as server:
                server.connect(str(path))
                server.sendall(b"SHUTDOWN NOSAVE\r\n")
                server.recv(1)
        shutil.rmtree(self.directory)


def record_kill(rlock):
    """Two hosts want to deploy; rlock of the first one is killed. Its job is dead before the second one starts."""
    stage = Stage(rlock)
    left, right = Session(stage, "web1", 62, 11), Session(stage, "web2", 62, 11)
    for session in (left, right):
        session.await_text("$")
    stage.watch_for(0.8)
    left.type("rlock run -k deploy -- ./deploy.sh &")
    left.await_text("step 1")
    stage.watch_for(1.5)
    right.type("rlock run -k deploy -- ./deploy.sh")
    right.await_text("held for")
    stage.watch_for(2)

    job = int((stage.directory / "deploy.pid").read_text())
    job_died = stage.death_of(job)
    step = 5
    while left.shows(f"step {step}"):
        step += 1
    left.await_text(f"step {step}")  # the keys come between two lines of the job
    left.type("kill -9 $!", 0.03)
    killed = stage.now()
    right.await_text("is dead")  # deploy.sh looks, and would say STILL RUNS
    started = stage.now()
    left.type("")
    stage.watch_for(3)
    end = stage.now() + 2.5

    first, width, height = window_svg(left.terminal, left.title, 4, 4, end)
    second, _, _ = window_svg(right.terminal, right.title, 12 + width, 4, end)
    caption = (f"After kill -9 of rlock its job is dead within {(job_died() - killed) * 1000:.0f} ms, "
               f"and the next job writes its first line after {(started - killed) * 1000:.0f} ms.")
    stage.close()
    total = 2 * width + 16
    return picture(total, height + 32, first + second + text_svg(caption, 8, height + 23, "caption"))


def record_watch(rlock):
    """Some locks of a small fleet, and the screen of `rlock watch`."""
    stage = Stage(rlock)
    for name, seconds in {"nightly.sh": 60, "bill.sh": 60, "import.sh": 60}.items():
        (stage.directory / name).write_text(f"#!/bin/sh\nsleep {seconds}\n")
        (stage.directory / name).chmod(0o755)
    stage.background("web2", "rlock run -k billing:42 --label invoices -- ./bill.sh")
    stage.background("web1", "rlock run -k import:shop --permits 3 -- ./import.sh")
    stage.background("web3", "rlock run -k import:shop --permits 3 -- ./import.sh")
    stage.background("web1", "rlock run -k nightly -- ./nightly.sh")
    stage.await_locks({"billing:42", "import:shop", "nightly"}, waiting=0)
    for host in ("web2", "web3"):
        stage.background(host, "rlock run -k nightly -- ./nightly.sh")
    stage.await_locks({"billing:42", "import:shop", "nightly"}, waiting=2)
    time.sleep(2)  # ages that are not 0 s
    terminal = Session(stage, "ops", 92, 21)
    terminal.await_text("$")
    terminal.type("rlock watch")
    terminal.await_text("nightly")
    for _ in range(3):  # down to the last row
        os.write(terminal.fd, b"\x1b[B")
        stage.watch_for(0.5)
    terminal.await_text("web3")  # a waiter of the selected lock
    stage.watch_for(1.5)
    last = Terminal(92, 21)
    last.states = [[(0, states[-1][1])] for states in terminal.terminal.states]
    body, width, height = window_svg(last, "rlock watch", 4, 4, 0)
    stage.close()
    return picture(width + 8, height + 8, body)


PICTURES = {"kill-9": record_kill, "watch": record_watch}


def main():
    parser = argparse.ArgumentParser(description="Records the pictures of the README.")
    parser.add_argument("--to", type=Path, default=HERE, metavar="DIRECTORY")
    parser.add_argument("rlock", type=lambda path: Path(path).resolve(strict=True))
    parser.add_argument("pictures", nargs="*", metavar="PICTURE", help=f"of {', '.join(PICTURES)}; all by default")
    arguments = parser.parse_args()
    for name in arguments.pictures or PICTURES:
        (arguments.to / f"{name}.svg").write_text(PICTURES[name](arguments.rlock))


if __name__ == "__main__":
    main()
