# SPDX-License-Identifier: Apache-2.0
"""ShedLock and rlock on one table of a database, or one collection of MongoDB: they exclude each other in both directions."""
import concurrent.futures
import subprocess
import time

from rlock import finish
from waiting import wait_until

AT_MOST_MS = 60_000
LATE_MS = 1_500


def held_by_rlock(scene, key, ttl="10s"):
    """rlock that holds the lock until it gets SIGTERM."""
    process = scene.rlock.run("plain", key, "--ttl", ttl, job=["sleep", "60"])
    wait_until("rlock holds the lock", lambda: scene.server.holder(scene.library, key))
    return process


def end(process):
    process.terminate()
    process.communicate(timeout=20)


def is_busy(scene, key):
    return finish_code(scene, key, "-n") == 75


def finish_code(scene, key, *options):
    process = scene.rlock.run("plain", key, *options, job=["true"])
    process.communicate(timeout=60)
    return process.returncode


def java_excludes_rlock(scene, clock):
    scene.library.expect("held", "a", "lock", clock, "j", AT_MOST_MS, 0)
    assert is_busy(scene, "j"), "rlock got a lock that ShedLock holds"
    waiting = scene.rlock.run("plain", "j", "-w", "20s", job=["true"])
    time.sleep(1)
    assert waiting.poll() is None, "rlock does not wait for ShedLock"
    scene.library.expect("released", "a", "unlock", clock, "j")
    finish(waiting)
    scene.library.expect("held", "a", "lock", clock, "j", AT_MOST_MS, 0)  # after rlock
    scene.library.expect("released", "a", "unlock", clock, "j")


def rlock_excludes_java(scene, clock):
    for key in ("new", "new"):  # without a row, and with the row of a holder before
        holder = held_by_rlock(scene, key)
        scene.library.expect("busy", "a", "lock", clock, key, AT_MOST_MS, 0)
        end(holder)
        scene.library.expect("held", "a", "lock", clock, key, AT_MOST_MS, 0)
        scene.library.expect("released", "a", "unlock", clock, key)


def renewals_keep_java_out(scene, clock):
    holder = scene.rlock.run("plain", "r", "--ttl", "2s", job=["sleep", "6"])
    time.sleep(1)
    for _ in range(16):
        scene.library.expect("busy", "a", "lock", clock, "r", AT_MOST_MS, 0)
        time.sleep(0.25)
    finish(holder)


def at_least(scene, clock):
    """lockAtLeastFor keeps the lock after the unlock."""
    scene.library.expect("held", "a", "lock", clock, "l", AT_MOST_MS, 3_000)
    begun = time.monotonic()
    scene.library.expect("released", "a", "unlock", clock, "l")
    assert is_busy(scene, "l"), "rlock ignores lockAtLeastFor"
    assert finish_code(scene, "l", "-w", "20s") == 0
    assert time.monotonic() - begun > 2.5


def at_most(scene, clock):
    """A JVM that does not unlock, as after kill -9, blocks until lockAtMostFor is over."""
    scene.library.expect("held", "a", "lock", clock, "m", 2_000, 0)
    assert is_busy(scene, "m")
    assert finish_code(scene, "m", "-w", "20s") == 0


def extension(scene, clock):
    scene.library.expect("held", "a", "lock", clock, "e", 2_000, 0)
    scene.library.expect("held", "a", "extend", clock, "e", AT_MOST_MS, 0)
    time.sleep(2.5)
    assert is_busy(scene, "e"), "rlock ignores the extension"
    scene.library.expect("released", "a", "unlock", clock, "e")
    assert finish_code(scene, "e", "-n") == 0


def extension_after_rlock(scene, clock):
    """A lock that has ended and that rlock has taken is not extended."""
    scene.library.expect("held", "a", "lock", clock, "x", 500, 0)
    time.sleep(0.7)
    holder = held_by_rlock(scene, "x")
    scene.library.expect("lost", "a", "extend", clock, "x", AT_MOST_MS, 0)
    assert is_busy(scene, "x")
    end(holder)


def late_unlock(scene, clock):
    """Java's lock has ended, rlock has taken it, Java unlocks: a loss with the JVM's clock, with which no owner is compared."""
    scene.library.expect("held", "a", "lock", clock, "u", 500, 0)
    time.sleep(0.7)
    holder = held_by_rlock(scene, "u", "3s")
    scene.library.expect("released", "a", "unlock", clock, "u")
    time.sleep(LATE_MS / 1000)
    if clock == "db":
        assert holder.poll() is None and is_busy(scene, "u"), "a late unlock ended the lock of rlock"
        end(holder)
    else:
        errors = finish(holder, 121)
        assert "was lost" in errors, errors


def queue(scene, clock):
    """rlock processes in line behind ShedLock run one after the other; no row is deleted."""
    scene.library.expect("held", "a", "lock", clock, "q", AT_MOST_MS, 0)
    before = scene.server.rows(scene.library)
    waiters = []
    for i in range(4):
        waiters.append(scene.rlock.start("plain", "q", scene.traces, who=f"rlock{i}", hold=20))
    time.sleep(1)
    scene.library.expect("released", "a", "unlock", clock, "q")
    for waiter in waiters:
        finish(waiter)
    scene.traces.check()
    assert scene.server.rows(scene.library) == before


def wait_verb(scene, clock):
    """`rlock wait` notices the unlock."""
    scene.library.expect("held", "a", "lock", clock, "w", AT_MOST_MS, 0)
    waiting = subprocess.Popen(scene.rlock.argv("wait", "plain", "w", "-w", "20s"), env=scene.rlock.environment)
    time.sleep(1)
    assert waiting.poll() is None
    scene.library.expect("released", "a", "unlock", clock, "w")
    assert waiting.wait(5) == 0


def load(scene, clock):
    """Both take the lock again and again, and never hold it at once."""
    def java():
        while not scene.traces.has_stopped():
            if str(scene.library.ask("a", "lock", clock, "load", AT_MOST_MS, 0)) == "held":
                scene.traces.run("java", 5)
                scene.library.expect("released", "a", "unlock", clock, "load")
            time.sleep(0.02)

    with concurrent.futures.ThreadPoolExecutor() as pool:
        loops = [pool.submit(java), pool.submit(scene.rlock.loop, "plain", "load", scene.traces, "rlock", 5)]
        scene.traces.let_take_turns(len(loops))
        for loop in loops:
            loop.result(60)
    scene.note(f"turns under load: {dict(scene.traces.check())}")


SCENARIOS = [
    ("a lock of ShedLock keeps rlock out, and rlock waits for it", java_excludes_rlock),
    ("a lock of rlock keeps ShedLock out", rlock_excludes_java),
    ("renewals of rlock keep ShedLock out", renewals_keep_java_out),
    ("lockAtLeastFor", at_least),
    ("lockAtMostFor", at_most),
    ("extension", extension),
    ("no extension of a lock that rlock has taken", extension_after_rlock),
    ("late unlock", late_unlock),
    ("a queue of rlock behind ShedLock", queue),
    ("wait", wait_verb),
    ("load", load),
]


CLOCKS = {"db": "usingDbTime", "jvm": "clock of the JVM", "mongo": "clock of the JVM"}


def scenarios(clocks):
    return [(f"{name}, {CLOCKS[clock]}", function, clock) for clock in clocks for name, function in SCENARIOS]
