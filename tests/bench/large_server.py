# SPDX-License-Identifier: Apache-2.0
"""`rlock list` on a server with many keys that are no locks, beside `redis-cli --scan`, in turns; of many held locks; and
`rlock list --all` of many free ones."""
import os
import re
import shutil
import subprocess
import time

from servers import Server

HASHES, LOCKS = 150_000, 20
HELD = 10_000
FREE = 1000


def measure(bench):
    held_locks(bench)
    server = Server(os.path.join(bench.directory, "free"))
    try:
        free_locks(bench, "Redis", server.url)
    finally:
        server.stop()
    other_keys(bench)


def free_locks(bench, name, url):
    """Of which the server knows a run."""
    run_each = 'for i in $(seq "$3"); do "$1" run -S "$2" -k "free$i" -- true || exit; done'
    subprocess.run(["sh", "-c", run_each, "sh", bench.rlock, url, str(FREE)], check=True)
    seconds = []
    for _ in range(bench.rounds):
        took, locks = timed([bench.rlock, "list", "-S", url, "--all"])
        if len(set(re.findall(r"\bfree\d+\b", locks))) != FREE:
            raise RuntimeError(f"rlock list --all shows: {locks[:200]}")
        seconds.append(took)
    bench.results.row(f"list --all of {FREE} free locks: {name}", "s", seconds)


def held_locks(bench):
    server = Server(os.path.join(bench.directory, "held"))
    try:
        acquire_each = 'for i in $(seq "$3"); do "$1" acquire -S "$2" -k "lock$i" --lease 1h || exit; done'
        subprocess.run(["sh", "-c", acquire_each, "sh", bench.rlock, server.url, str(HELD)], check=True, stdout=subprocess.DEVNULL)
        listing = [bench.rlock, "list", "-S", server.url]
        seconds = []
        for _ in range(bench.rounds):
            took, locks = timed(listing)
            if len(set(re.findall(r"\block\d+\b", locks))) != HELD:
                raise RuntimeError(f"rlock list shows: {locks[:200]}")
            seconds.append(took)
        bench.results.row(f"list of {HELD} held locks", "s", seconds)
        if shutil.which("time"):  # a child of this process inherits its resident memory (getrusage(2))
            done = subprocess.run(["time", "-f", "%M", *listing], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            bench.results.row(f"resident: list of {HELD} held locks", "MiB", [int(done.stderr.split()[-1]) / 1024])
        else:
            bench.results.note("not measured, because time is not installed: memory of a list")
    finally:
        server.stop()


def other_keys(bench):
    if not shutil.which("redis-cli"):
        bench.results.note("not measured, because redis-cli is not installed: list")
        return
    server = Server(os.path.join(bench.directory, "large"))
    try:
        server.ask("EVAL", "for i = 1, ARGV[1] do redis.call('HSET', 'hash:' .. i, 'field', i) end", 0, HASHES)
        for number in range(LOCKS):
            subprocess.run([bench.rlock, "acquire", "-S", server.url, "-k", f"lock{number}", "--lease", "1h"], check=True,
                           stdout=subprocess.DEVNULL)
        compare(bench, server)
    finally:
        server.stop()


def compare(bench, server):
    ratios, scripts = [], []
    for _ in range(bench.rounds):
        server.ask("CONFIG", "RESETSTAT")
        listing, locks = timed([bench.rlock, "list", "-S", server.url, "--json"])
        stats = server.ask("INFO", "commandstats")
        scripts.append(sum(map(int, re.findall(r"cmdstat_eval(?:sha|_ro|sha_ro)?:calls=(\d+)", stats))))
        if locks.count("lock") < LOCKS:
            raise RuntimeError(f"rlock list shows: {locks[:200]}")
        ratios.append(listing / timed(["redis-cli", "-u", server.url, "--scan"])[0])
    bench.results.row(f"list of {LOCKS} locks among {HASHES} hashes", "x scan", ratios)
    bench.results.row("scripts of that list", "", scripts)


def timed(words):
    """(seconds, standard output)"""
    begin = time.perf_counter()
    done = subprocess.run(words, capture_output=True, text=True)
    seconds = time.perf_counter() - begin
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(words[:2])} ended with {done.returncode} after {seconds:.1f} s: {done.stderr.strip()}")
    return seconds, done.stdout
