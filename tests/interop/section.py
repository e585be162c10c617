# SPDX-License-Identifier: Apache-2.0
"""The traces of critical sections in a directory, `log` and `counter`, and what they must look like.

A section writes a line `TIME + WHO MODE` when it begins and `TIME - WHO MODE` when it ends. Appends to a file have an order, so
the lines show each overlap, however short. Between its lines a section increments the number in `counter`, by reading, waiting
and writing, unless the lock has several holders (the modes of SHARED)."""
import collections
import os
import time

from waiting import wait_until

SHARED = ("read", "permits")
LOAD_S, LEAST_TURNS = 3, 2


class Traces:
    def __init__(self, directory):
        self.directory = directory
        os.makedirs(directory)
        with open(self._path("counter"), "w") as file:
            file.write("0\n")

    def lines(self):
        """The complete lines. While sections run, a reader may see only the first part of the line that is being appended: the
        kernel makes a write visible page by page."""
        if not os.path.exists(self._path("log")):
            return []
        with open(self._path("log")) as file:
            return [line.split() for line in file if line.endswith("\n")]

    def times(self, sign):
        """The times of all begins ("+") or ends ("-"), in their order."""
        return [int(line[0]) for line in self.lines() if line[1] == sign]

    def let_take_turns(self, workers):
        """Lets loops of sections go on until each worker had some turns; then they stop."""
        def all_had_turns():
            turns = collections.Counter(line[2] for line in self.lines() if line[1] == "+")
            return len(turns) == workers and min(turns.values()) >= LEAST_TURNS

        try:
            time.sleep(LOAD_S)
            wait_until(f"each of {workers} workers had {LEAST_TURNS} turns, see {self._path('log')}", all_had_turns)
        finally:
            open(self._path("stop"), "w").close()

    def has_stopped(self):
        return os.path.exists(self._path("stop"))

    def run(self, who, hold_ms):
        """A critical section of this process."""
        self._note("+", who)
        count = self._count()
        time.sleep(hold_ms / 1000)
        with open(self._path("counter"), "w") as file:
            file.write(f"{count + 1}\n")
        self._note("-", who)

    def check(self, limit=1):
        """At most `limit` sections at a time; readers may be many, without a writer. Returns the turns of each WHO."""
        inside, turns, increments = [], collections.Counter(), 0
        for number, (_, sign, who, mode) in enumerate(self.lines(), 1):
            if sign == "-":
                inside.remove((who, mode))
                continue
            inside.append((who, mode))
            turns[who] += 1
            increments += mode not in SHARED
            together = len(inside) <= limit or all(held == "read" for _, held in inside)
            assert together, f"overlap in line {number} of {self._path('log')}: {inside}"
        assert not inside, f"sections that did not end: {inside}"
        assert self._count() == increments, f"the counter is {self._count()} after {increments} increments"
        return turns

    def _note(self, sign, who):
        with open(self._path("log"), "a") as file:
            file.write(f"{time.monotonic_ns()} {sign} {who} plain\n")

    def _count(self):
        with open(self._path("counter")) as file:
            return int(file.read())

    def _path(self, name):
        return os.path.join(self.directory, name)
