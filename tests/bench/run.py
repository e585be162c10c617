#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures how fast rlock is, beside other programs and libraries, and compares it with what it promises (promises.py). Prints a
table, writes results.json and pictures to build/bench, and fails when a promise is missed. `cmake --build build/release --target bench`
builds all that is needed and calls this; run `run.py --help` for parts of it.

The peers take turns with rlock in each round, and each round has one ratio; their median counts. A machine that does something
else makes all figures worse, so the table and the pictures name its load."""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import traceback

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), "../.."))
sys.path.insert(1, os.path.join(ROOT, "tests/interop"))

import hand_over
import idle
import large_server
import pictures
import start
import stores
from peers import Peers
from results import Results, server_version
from servers import Server, server_program

MIB = 1 << 20


class Bench:
    """What a measurement needs."""

    def __init__(self, options, directory):
        self.rlock, self.directory, self.quick = options.rlock, directory, options.quick
        self.rounds = options.rounds or (1 if options.quick else 5)
        self.crowds = [10, 50, 200] if options.quick else [10, 50, 200, 1000]
        self.crowds_of_others = [10] if options.quick else [10, 50]
        self._programs, self.libraries = options.programs, options.peers
        self.results = Results(self.rounds, server_version(server_program()))
        self.server = Server(os.path.join(directory, "server"))
        self.peers = Peers(self.rlock, self.server, directory, options.peers, self.results.note)

    def program(self, name):
        path = os.path.join(self._programs, name)
        if not os.path.exists(path):
            raise RuntimeError(f"{path} is not built: cmake --build build/release --target {name}")
        return path

    def json_of(self, name, *arguments):
        done = subprocess.run([self.program(name), *map(str, arguments)], stdout=subprocess.PIPE, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"{name} ended with {done.returncode}")
        return json.loads(done.stdout)

    def stop(self):
        self.peers.stop()
        self.server.stop()


def server_core(bench):
    """The time of the server for each kind of lock."""
    measured = bench.json_of("rlock_server_core", bench.rounds)
    simplest = measured.pop("simplest")
    bench.results.row("server time, simplest lock: acquire, release", "us", simplest["us"])
    bench.results.figures["pair_us"] = {"SET NX PX,\\ncompare and DEL": statistics.median(simplest["us"])}
    for what, cost in measured.items():
        kind, step = what.split(": ")
        bench.results.row(f"server time, {what}", "us", cost["us"], f"{cost['commands']:.0f} commands")
        if step == "acquire, release":
            bench.results.figures["pair_us"][kind] = statistics.median(cost["us"])


def held_locks(bench):
    """Many held locks, which few connections renew."""
    count = 10_000 if bench.quick else 100_000
    measured = bench.json_of("rlock_held_locks", count, bench.rounds)
    for what, unit in (("renewals a second", ""), ("commands a second", ""), ("share of a core", ""), ("server time", "us each")):
        bench.results.row(f"{count} held, {measured['connections']} connections: {what}", unit, measured[what])


def shards(bench):
    measured = bench.json_of("rlock_shards", bench.rlock, bench.program("rlock_stamp"), bench.rounds)
    for name, ratios in measured.items():
        bench.results.row(f"jobs a second with 5 shards: {name}", "x one lock", ratios)


def size(bench):
    bench.results.row("program, stripped", "MiB", [os.path.getsize(bench.rlock) / MIB])


MEASUREMENTS = {"size": size, "start": start.measure, "instructions": start.instructions, "server": server_core,
                "held": held_locks, "list": large_server.measure, "idle": idle.measure, "shards": shards,
                "hand-over": hand_over.measure, "stores": stores.measure}


def measure_all(options, directory):
    bench = Bench(options, directory)
    try:
        for name in options.only or MEASUREMENTS:
            print(f"measuring: {name}", flush=True)
            try:
                MEASUREMENTS[name](bench)
            except Exception as problem:
                traceback.print_exc()
                bench.results.fail(f"{name} could not be measured: {problem}")
    finally:
        bench.stop()
    return bench.results


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    rounds = int(os.environ.get("ROUNDS", 0))
    parser.add_argument("--rounds", type=int, default=rounds, help="of each measurement; default: ROUNDS, or 5")
    parser.add_argument("--quick", action="store_true", default=rounds == 1,
                        help="smaller crowds, and one round: about three minutes; the same as ROUNDS=1 in the environment")
    parser.add_argument("--rlock", default=f"{ROOT}/build/release/rlock")
    parser.add_argument("--programs", default=f"{ROOT}/build/release/tests", help="where the measuring programs are")
    parser.add_argument("--out", default=f"{ROOT}/build/bench")
    parser.add_argument("--peers", default=f"{ROOT}/build/interop", help="where the libraries are")
    parser.add_argument("--no-download", action="store_true", help="only peers that are there")
    parser.add_argument("only", nargs="*", metavar="MEASUREMENT", help=", ".join(MEASUREMENTS))
    options = parser.parse_args()
    if set(options.only) - set(MEASUREMENTS):
        parser.error(f"no such measurement: {' '.join(options.only)}")
    return options


def main():
    options = parse_options()
    os.makedirs(options.out, exist_ok=True)
    if not options.no_download:
        subprocess.run(["sh", f"{ROOT}/tests/interop/run.sh", "--download"], check=True)
    for name in [name for name in os.environ if name.startswith("RLOCK_") and name != "RLOCK_TEST_SERVER"]:
        del os.environ[name]
    with tempfile.TemporaryDirectory(prefix="rlock-bench-") as directory:
        os.environ["HOME"] = directory  # no configuration of rlock
        results = measure_all(options, directory)
    results.print_table()
    results.write(f"{options.out}/results.json")
    if pictures.is_installed():
        with open(f"{options.out}/results.json") as file:
            pictures.draw(json.load(file), options.out)
    else:
        results.note("no pictures, because gnuplot is not installed")
    print(f"results.json and pictures: {options.out}")
    for what in results.missed():
        print(f"missed: {what}")
    return 1 if results.missed() or results.failed else 0


if __name__ == "__main__":
    sys.exit(main())
