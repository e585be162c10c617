# SPDX-License-Identifier: Apache-2.0
"""How fast a lock goes from job to job. Many processes wait behind a holder, whose job then ends. The gap is the time from the end
of a job to the begin of the next one, as the jobs wrote it down (stamp.cpp); the drain the time from the first begin to the last
end."""
import os
import statistics
import subprocess
import tempfile
import time

from waiting import wait_until


def measure(bench):
    for ms in (3, 0):
        for waiting in bench.crowds:
            compare(bench, ms, waiting)


def compare(bench, ms, waiting):
    jobs = f"{waiting} waiting, {f'jobs of {ms} ms' if ms else 'empty jobs'}"
    print(f"  {jobs}", flush=True)
    peers = [bench.peers.rlock, bench.peers.flock]
    if ms and waiting in bench.crowds_of_others:
        peers += [peer for peer in bench.peers.others if peer.most_waiting >= waiting]
    rounds = [{peer.name: drain(bench, peer, ms, waiting) for peer in peers} for _ in range(bench.rounds)]
    for peer in peers:
        for number, what, unit in ((0, "gap", "us"), (1, "drain", "ms")):
            values = [one[peer.name][number] for one in rounds]
            if what == "gap":
                lines = bench.results.figures.setdefault("gap_us", {})
                lines.setdefault(peer.name if ms else f"{peer.name}, empty jobs", {})[waiting] = statistics.median(values)
            if peer.name == "flock":
                bench.results.row(f"{what}, {jobs}: flock", unit, values)
            else:
                ratios = [value / one["flock"][number] for value, one in zip(values, rounds)]
                bench.results.row(f"{what}, {jobs}: {peer.name}", "x flock", ratios, f"{statistics.median(values):.0f} {unit}")


def drain(bench, peer, ms, waiting):
    """(median gap in us, drain in ms)"""
    with tempfile.TemporaryDirectory(dir=bench.directory) as directory:
        stamps, fifo = f"{directory}/stamps", f"{directory}/fifo"
        key = os.path.basename(directory)
        os.mkfifo(fifo)
        crowd, errors = [], tempfile.TemporaryFile("w+")

        def start(*job):
            crowd.append(subprocess.Popen([*peer.words(key), *job], stderr=errors))

        try:
            start("cat", fifo)
            end_of_holder = wait_until(f"{peer.name} holds", lambda: opened_by_job(fifo), 60)
            job = [bench.program("rlock_stamp"), stamps, *([str(ms)] if ms else [])]
            for _ in range(waiting):
                start(*job)
            if peer.waiting:
                wait_until(f"{waiting} of {peer.name} wait", lambda: peer.waiting(key) >= waiting, 180)
            time.sleep(1)  # lets the machine become quiet
            os.close(end_of_holder)
            codes = [one.wait(300) for one in crowd]
        finally:
            for one in crowd:
                one.kill()
                one.wait()
        if any(codes):
            errors.seek(0)
            raise RuntimeError(f"{peer.name}: some of {waiting} jobs failed, with {set(codes)}: {errors.read()[-500:]}")
        with open(stamps) as file:
            return figures_of(sorted(tuple(map(int, line.split())) for line in file))


def opened_by_job(fifo):
    """A descriptor, as soon as the job reads; the job ends when it is closed."""
    try:
        return os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
    except OSError:
        return None


def figures_of(jobs):
    gaps = [after[0] - before[1] for before, after in zip(jobs, jobs[1:])]
    return statistics.median(gaps) / 1e3, (jobs[-1][1] - jobs[0][0]) / 1e6
