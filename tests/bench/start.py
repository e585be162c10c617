# SPDX-License-Identifier: Apache-2.0
"""How long `true` under a lock takes that is free: rlock, flock and the other peers in turns; and the instructions of rlock."""
import glob
import os
import re
import shutil
import statistics
import subprocess
import time

from requests_of_clients import Requests

TURNS = 40
SLOW_S = 0.02  # a peer that takes longer is measured in every eighth turn


def measure(bench):
    peers = [bench.peers.flock, bench.peers.rlock, bench.peers.rlock_unix, *bench.peers.others]
    words = {peer.name: [*peer.words("start"), "true"] for peer in peers}
    every = {name: 8 if run(words[name]) > SLOW_S else 1 for name in words}  # the first run is not measured
    rounds = []
    for _ in range(bench.rounds):
        times = {name: [] for name in words}
        for turn in range(TURNS):
            for name in words:
                if turn % every[name] == 0:
                    times[name].append(run(words[name]))
        rounds.append({name: statistics.median(times[name]) for name in words})
    for name in words:
        milliseconds = [one[name] * 1e3 for one in rounds]
        bench.results.figures.setdefault("start_ms", {})[name] = statistics.median(milliseconds)
        if name == "flock":
            bench.results.row("start: flock", "ms", milliseconds)
        else:
            bench.results.row(f"start: {name}", "x flock", [one[name] / one["flock"] for one in rounds],
                              f"{statistics.median(milliseconds):.2f} ms")
    requests(bench)


def requests(bench):
    words = [*bench.peers.rlock.words("requests"), "true"]
    run(words)  # the server now has the scripts
    counter = Requests(bench.server)
    run(words)
    bench.results.row("round trips of a start", "", [sum(counter.count())])


def run(words):
    """Seconds of a command, which must succeed."""
    begin = time.perf_counter()
    pid = os.posix_spawnp(words[0], words, os.environ)
    _, status = os.waitpid(pid, 0)
    end = time.perf_counter()
    if status != 0:
        raise RuntimeError(f"{' '.join(words)} ended with {os.waitstatus_to_exitcode(status)}")
    return end - begin


def instructions(bench):
    """Up to the execve(2) of the job, which fails: callgrind does not come to an end with a job that runs."""
    if not shutil.which("valgrind"):
        bench.results.note("not measured, because valgrind is not installed: instructions of a start")
        return
    counts = []
    for _ in range(min(bench.rounds, 3)):
        done = subprocess.run(
            ["valgrind", "--tool=callgrind", f"--callgrind-out-file={bench.directory}/callgrind.%p",
             *bench.peers.rlock.words("instructions"), "/nonexistent"], capture_output=True, text=True, timeout=120)
        counts.append(sum(map(int, re.findall(r"Collected : (\d+)", done.stderr))) / 1e6)
        for file in glob.glob(f"{bench.directory}/callgrind.*"):
            os.remove(file)
    bench.results.row("instructions of a start", "million", counts)
