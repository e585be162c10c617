# SPDX-License-Identifier: Apache-2.0
"""Runs the scenarios with each library that run.sh has downloaded, and prints a line for each and a table of figures."""
import argparse
import os
import re
import shutil
import signal
import statistics
import sys
import tempfile
import time
import traceback

import redisson
import shedlock
import string_locks
from databases import Mariadb, Mongo, Postgres
from driver import Driver
from rlock import Rlock
from section import Traces
from servers import Server

REDISSON = ("4.7.0", "3.16.8")
HANDOVERS = 100
JAVA = ["java", "-Xmx128m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp"]
LINES_OF_ERRORS = 60  # shown of the drivers, when a scenario has failed


class Scene:
    """What a scenario sees."""

    def __init__(self, bench, name, driver, new_driver, version, rlock):
        self.java = self.library = driver
        self.version = version
        self.new_driver = new_driver
        self.rlock, self.server, self.servers = rlock, rlock.servers[0], rlock.servers
        self.traces = Traces(os.path.join(bench.directory, re.sub(r"\W+", "-", name)))
        self._bench, self._name = bench, name

    def note(self, text):
        self._bench.figures.append(f"{self._name}: {text}")

    def note_gaps(self, what, gaps):
        gaps = sorted(gap / 1e6 for gap in gaps)
        p99 = gaps[min(len(gaps) - 1, len(gaps) * 99 // 100)]
        self.note(f"{what}, {len(gaps)} times: median {statistics.median(gaps):.1f} ms, p99 {p99:.1f} ms")


class Bench:
    def __init__(self, options):
        self.options, self.failed, self.ran, self.figures = options, {}, 0, []
        self.directory = tempfile.mkdtemp(prefix="rlock-interop-")
        self.servers = [Server(os.path.join(self.directory, f"server{i}")) for i in range(3)]

    def chosen(self, library, scenarios):
        return [one for one in scenarios if re.search(self.options.pattern, f"{library}: {one[0]}")]

    def library(self, name, argv, scenarios, version=(), servers=None):
        """Runs those scenarios of a library whose names match. `servers`: other servers than those of the bench."""
        chosen = self.chosen(name, scenarios)
        if not chosen:
            return
        rlock = Rlock(self.options.rlock, os.path.join(self.options.out, "job"), servers or self.servers)
        urls = [] if servers else [server.url for server in self.servers]

        def new_driver():
            return Driver([*argv, *urls], os.path.join(self.directory, "stderr"))

        driver = new_driver()
        for scenario, function, *arguments in chosen:
            if not self._run(f"{name}: {scenario}", function, arguments, driver, new_driver, version, rlock):
                driver.kill()  # it may still wait for locks
                driver = new_driver()
        driver.stop()

    def _run(self, name, function, arguments, driver, new_driver, version, rlock):
        if time.time() > self.options.until:
            print(f"not run: {name}, because the time is over", flush=True)
            return True
        for server in rlock.servers:
            server.clear()
        begin = time.monotonic()
        self.ran += 1
        try:
            function(Scene(self, name, driver, new_driver, version, rlock), *arguments)
            result = "ok    "
        except Exception:
            self.failed[name] = traceback.format_exc()
            result = "FAILED"
        print(f"{result} {name} ({time.monotonic() - begin:.1f} s)", flush=True)
        return name not in self.failed

    def end(self):
        for server in self.servers:
            server.stop()
        for figure in self.figures:
            print(f"  {figure}")
        print(f"interop: {self.ran} scenarios, {len(self.failed)} failed" if self.ran else
              "interop: skipped: no scenario was run, because no library is there or no name matches")
        if not self.failed:
            shutil.rmtree(self.directory)
            return 0
        for name, what in self.failed.items():
            print(f"interop: FAILED {name}\n{what}")
        self._print_errors_of_drivers()
        print(f"interop: repeat one with: sh tests/interop/run.sh '{re.escape(next(iter(self.failed)))}'; files: {self.directory}")
        return 1

    def _print_errors_of_drivers(self):
        with open(os.path.join(self.directory, "stderr")) as file:
            lines = file.readlines()[-LINES_OF_ERRORS:]
        print("interop: the standard error of the drivers ends with:\n" + "".join(lines) if lines else
              "interop: the drivers printed no error")


def run_redisson(bench, out, version):
    jars = os.path.join(out, f"redisson-{version}")
    if not os.path.exists(f"{jars}.ready"):
        return
    java = [*JAVA, f"{jars}/classes:{jars}/*", "Driver", str(redisson.WATCHDOG_MS)]
    number = tuple(int(part) for part in version.split("."))
    bench.library(f"Redisson {version}", java, redisson.scenarios(number, HANDOVERS), number)


def run_shedlock(bench, out):
    jars = os.path.join(out, "shedlock")
    if not os.path.exists(f"{jars}.ready"):
        return
    for database in (Postgres, Mariadb, Mongo):
        if not database.program():
            print(f"interop: shedlock on {database.name} is skipped: there is no such server")
            continue
        library, scenarios = f"ShedLock on {database.name}", shedlock.scenarios(database.clocks)
        if not bench.chosen(library, scenarios):
            continue
        server = database(os.path.join(bench.directory, database.name), bench.options.rlock)
        try:
            bench.library(library, [*JAVA, f"{jars}/classes:{jars}/*", "ShedDriver", server.java_url], scenarios,
                          servers=[server])
        finally:
            server.stop()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rlock", required=True)
    parser.add_argument("--out", required=True, help="where run.sh put the libraries")
    parser.add_argument("--until", type=float, default=float("inf"), help="time(2) from which on no scenario begins")
    parser.add_argument("pattern", nargs="?", default="", help="only the scenarios that match")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the servers are stopped
    bench = Bench(options)
    try:
        run_redisson(bench, options.out, REDISSON[0])
        run_shedlock(bench, options.out)
        for name, argv, kinds in string_locks.drivers(options.out):
            bench.library(name, argv, string_locks.scenarios(kinds))
        for version in REDISSON[1:]:
            run_redisson(bench, options.out, version)
    finally:
        code = bench.end()
    return code


sys.exit(main())
