#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""start_order.py [BUILD]: writes cli/start_order.ld, the order of the program's functions. BUILD is the build
directory of the preset `release`. Needs valgrind.

Callgrind tells which instructions ordinary runs execute, and the linker's map which function, in a section of its own, has them."""
import bisect
import glob
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), "../.."))
sys.path.insert(1, os.path.join(ROOT, "tests/interop"))

from servers import Server
from waiting import wait_until

HEAD = """\
/* SPDX-License-Identifier: Apache-2.0
   Made by tests/bench/start_order.py. The functions that ordinary runs of `rlock run` execute stand together, so that a start maps
   fewer pages of the program. A name that no longer exists does no harm; a new function that is not here stands with the others. */
SECTIONS
{
  .text.start : {
"""
TAIL = """\
  }
}
INSERT BEFORE .text;
"""


class Runs:
    """Runs of the program under callgrind, with their children."""

    def __init__(self, program, directory):
        self._program, self._directory = program, directory

    def _begin(self, url, *words):
        tool = ["valgrind", "--quiet", "--tool=callgrind", "--dump-instr=yes", "--compress-pos=no",
                f"--callgrind-out-file={self._directory}/callgrind.%p"]
        return subprocess.Popen([*tool, self._program, "run", "-S", url, "-k", "stock", *words])

    def all(self, server):
        for url in (server.url, server.socket_url):
            self._await([self._begin(url, "--", "true")])
        holder = self._begin(server.url, "--ttl", "3s", "--", "sleep", "4")  # renewed by its watchdog
        wait_until("the lock is held", lambda: server.ask("EXISTS", "stock") == 1)
        waiter = self._begin(server.url, "--", "true")  # tells that it waits
        self._await([holder, waiter])

    @staticmethod
    def _await(runs):
        for run in runs:
            if run.wait() != 0:
                raise SystemExit(f"start_order.py: {' '.join(run.args)} ended with {run.returncode}")

    def addresses(self):
        """Of the instructions that were executed. The program stands at a fixed address."""
        found = set()
        for path in glob.glob(f"{self._directory}/callgrind.*"):
            with open(path, encoding="utf-8", errors="replace") as file:
                found.update(int(address, 16) for address in re.findall(r"^(0x[0-9a-f]+) ", file.read(), re.M))
        return found


class Map:
    """What the linker's map tells of the functions of the program."""

    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            text = file.read().partition("Linker script and memory map")[2]
        row = re.compile(r"^ (\.text\S*)\s+0x([0-9a-f]+)\s+0x([0-9a-f]+) (\S+)$", re.M)
        rows = ((int(begin, 16), int(size, 16), name, file) for name, begin, size, file in row.findall(text))
        self._sections = sorted((begin, begin + size, name, file) for begin, size, name, file in rows if begin and size)
        self._begins = [section[0] for section in self._sections]

    def patterns(self, addresses):
        """The patterns of the functions with these addresses."""
        found = set()
        for address in addresses:
            at = bisect.bisect_right(self._begins, address) - 1
            if at >= 0 and address < self._sections[at][1]:
                found.add(pattern(*self._sections[at][2:]))
        return found


def pattern(name, file):
    """What names a section in any build: compilers add suffixes to parts of a function, and a file may be a part of an archive."""
    if name in (".text", ".text.startup", ".text.unlikely"):
        archive = re.fullmatch(r"(?:.*/)?([^/(]+)\((.+)\)", file)
        owner = f"*{archive[1]}:{archive[2]}" if archive else f"*{os.path.basename(file)}"
        return f"    {owner}({name})"
    whole = re.sub(r"\.(isra|part|constprop|cold)\b.*", "", name)
    return f"    *({whole}*)"


def main():
    build = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else os.path.join(ROOT, "build/release"))
    with tempfile.TemporaryDirectory() as directory:
        runs, server = Runs(f"{build}/rlock", directory), Server(os.path.join(directory, "server"))
        try:
            runs.all(server)
        finally:
            server.stop()
        patterns = Map(f"{build}/rlock.map").patterns(runs.addresses())
    with open(f"{ROOT}/cli/start_order.ld", "w", encoding="utf-8") as file:
        file.write(HEAD + "\n".join(sorted(patterns)) + "\n" + TAIL)


if __name__ == "__main__":
    main()
