# SPDX-License-Identifier: Apache-2.0
"""The scenarios with Redisson. `at.java` is its driver, `at.version` its version, `at.rlock` is rlock, `at.server` the server,
`at.traces` the traces of the scenario's critical sections."""
from concurrent.futures import ThreadPoolExecutor

from rlock import PERMITS, finish
from waiting import wait_until

WATCHDOG_MS = 3000
TTL = ["--ttl", f"{WATCHDOG_MS}ms"]
FOR_EVER, WATCHDOG = -1, -1
HOLD_MS = 2
LOST_WAKE_UP_S = 5

CHANNEL = {"plain": "redisson_lock__channel", "fenced": "redisson_lock__channel", "fair": "redisson_lock__channel",
           "read": "redisson_rwlock", "write": "redisson_rwlock", "permits": "redisson_sc"}

# Each side has three workers. A worker of a read-write lock is a writer or a reader.
WORKERS = {"rw": ["write", "read", "read"]}


def limit_of(kind):
    return PERMITS if kind == "permits" else 1


def prepare(at, kind, key):
    """A semaphore must be told its number once."""
    if kind == "permits":
        at.java.expect("true", "main", "permits", kind, key, PERMITS)


def fill(at, kind, key):
    """Takes all permits but one, so that two clients compete for it."""
    prepare(at, kind, key)
    for number in range(limit_of(kind) - 1):
        at.java.expect("held", f"other{number}", "lock", kind, key, 0, 600_000)


def waits_for_message(at, kind, key):
    """Whether a client of this library or rlock listens for the release of the lock."""
    return any(count > 0 for count in at.server.ask("PUBSUB", "NUMSUB", f"{CHANNEL[kind]}:{{{key}}}")[1::2])


def java_waits(at):
    clients = at.server.ask("CLIENT", "LIST", "TYPE", "PUBSUB").splitlines()
    return any(" name=java " in client and " sub=0 " not in client for client in clients)


def load(at, kind):
    """Workers of both sides loop: no two are inside, no increment is lost, and each gets its turns."""
    prepare(at, kind, kind)
    kinds = WORKERS.get(kind, [kind] * (6 if kind == "permits" else 3))
    with ThreadPoolExecutor() as pool:
        java = [at.java.start(f"j{i}", "loop", one, kind, at.traces.directory, f"java{i}", HOLD_MS)
                for i, one in enumerate(kinds)]
        loops = [pool.submit(at.rlock.loop, one, kind, at.traces, f"rlock{i}", HOLD_MS) for i, one in enumerate(kinds)]
        at.traces.let_take_turns(2 * len(kinds))
    for one in loops:
        one.result()
    told = sum(int(one.result(60).words[1]) for one in java)
    turns = at.traces.check(limit_of(kind))
    of_java = sum(count for who, count in turns.items() if who.startswith("java"))
    at.note(f"turns: Redisson {of_java}, rlock {sum(turns.values()) - of_java}")
    assert told == of_java, f"Redisson says {told}"
    if kind == "permits":
        assert at.server.ask("GET", kind) == str(PERMITS), "a permit was lost"


def wake_rlock(at, held, waiting, times):
    """Redisson holds, rlock waits: the time from the call of unlock to the first act of rlock's job."""
    key, gaps = f"{held}-{waiting}", []
    fill(at, held, key)
    for _ in range(times):
        at.java.expect("held", "holder", "lock", held, key, 0, 60_000)
        waiter = at.rlock.start(waiting, key, at.traces, hold=0)
        wait_until("rlock listens", lambda: waits_for_message(at, held, key))
        begin = int(at.java.expect("released", "holder", "unlock", held, key).words[1])
        finish(waiter)
        gaps.append(at.traces.times("+")[-1] - begin)
    check_gaps(gaps)
    at.note_gaps(f"Redisson {held} to rlock {waiting}", gaps)


def wake_java(at, held, waiting, times):
    """rlock holds, Redisson waits: the time from the last act of rlock's job to the return of Redisson's lock."""
    key, gaps = f"{held}-{waiting}", []
    fill(at, held, key)
    for turn in range(1, times + 1):
        holder = at.rlock.start(held, key, at.traces)
        wait_until("the job of rlock has begun", lambda: len(at.traces.times("+")) == turn)
        waiter = at.java.start("waiter", "lock", waiting, key, FOR_EVER, 60_000)
        wait_until("Redisson listens", lambda: java_waits(at))
        finish(holder)
        answer = waiter.result(60)
        assert str(answer) == "held", answer
        gaps.append(answer.at - at.traces.times("-")[-1])
        at.java.expect("released", "waiter", "unlock", waiting, key)
        wait_until("Redisson no longer listens", lambda: not java_waits(at))
    check_gaps(gaps)
    at.note_gaps(f"rlock {held} to Redisson {waiting}", gaps)


def check_gaps(gaps):
    """A message that is lost costs the rest of a ttl, or the time to the next request; a busy machine costs less."""
    assert max(gaps) < LOST_WAKE_UP_S * 1e9, f"a hand-over took {max(gaps) / 1e9:.1f} s"


def watchdogs(at):
    """Both renew for several periods, in locks that the other side waits for, and as readers of one lock."""
    at.java.expect("held", "holder", "lock", "plain", "of-java", 0, WATCHDOG)
    at.java.expect("held", "reader", "lock", "read", "of-both", 0, WATCHDOG)
    of_rlock = at.rlock.start("plain", "of-rlock", at.traces, *TTL)
    reader = at.rlock.start("read", "of-both", at.traces, *TTL, who="reader")
    wait_until("both jobs have begun", lambda: len(at.traces.times("+")) == 2)
    waiter = at.rlock.start("plain", "of-java", at.traces, hold=0, who="waiter")
    writer = at.java.start("writer", "lock", "write", "of-both", FOR_EVER, WATCHDOG)
    java_waiter = at.java.start("waiter", "lock", "plain", "of-rlock", FOR_EVER, WATCHDOG)

    keys = ["of-java", "of-rlock", *at.server.ask("KEYS", "{of-both}:*:rwlock_timeout:1")]
    assert len(keys) == 4, keys
    counts = [Renewals(at.server, key) for key in keys]
    wait_until("each hold was renewed five times", lambda: min(count.seen() for count in counts) >= 5)
    assert waiter.poll() is None and not writer.done() and not java_waiter.done(), "a waiter has passed a holder"

    finish(reader)
    assert not writer.done(), "the writer has passed Redisson's reader"
    at.java.expect("released", "reader", "unlock", "read", "of-both")
    at.java.expect("released", "holder", "unlock", "plain", "of-java")
    finish(of_rlock)
    finish(waiter)
    for thread, future, kind, key in (("writer", writer, "write", "of-both"), ("waiter", java_waiter, "plain", "of-rlock")):
        assert str(future.result(60)) == "held"
        at.java.expect("released", thread, "unlock", kind, key)


class Renewals:
    """Counts how often the ttl of a key went up."""

    def __init__(self, server, key):
        self._server, self._key, self._count, self._last = server, key, 0, 0

    def seen(self):
        ttl = self._server.ask("PTTL", self._key)
        assert ttl > 0, f"{self._key} has expired ({ttl})"
        self._count += self._last > 0 and ttl > self._last + WATCHDOG_MS // 10
        self._last = ttl
        return self._count


def killed_jvm(at):
    """The lock of a killed JVM is handed to rlock when its ttl is over, and no earlier."""
    java = at.new_driver()
    java.expect("held", "main", "lock", "plain", "orphan", 0, WATCHDOG)
    waiter = at.rlock.start("plain", "orphan", at.traces, hold=0)
    wait_until("rlock listens", lambda: waits_for_message(at, "plain", "orphan"))
    java.kill()
    left = at.server.ask("PTTL", "orphan")
    assert left > 0 and waiter.poll() is None
    wait_until("the lock has expired", lambda: at.server.ask("HEXISTS", "orphan", "x") == 0 and waiter.poll() is not None)
    finish(waiter)


def java_forces(at, kind):
    """forceUnlock of Redisson while a job of rlock runs: the job is stopped and told with 121."""
    job = at.rlock.start(kind, kind, at.traces)
    wait_until("the job has begun", lambda: at.traces.times("+"))
    wait_until("rlock listens", lambda: waits_for_message(at, kind, kind))
    at.java.expect("true", "main", "force", kind, kind)
    errors = wait_for_end(job, 121)
    assert "lost" in errors or "force" in errors, errors


def wait_for_end(process, code):
    """Waits for a process without ending its section."""
    wait_until("rlock has ended", lambda: process.poll() is not None)
    return finish(process, code)


def rlock_forces(at, kind):
    """force-unlock of rlock while Redisson holds: the lock is deleted after --grace, and the unlock in Java fails."""
    prepare(at, kind, kind)
    at.java.expect("held", "holder", "lock", kind, kind, 0, WATCHDOG)
    waiter = at.java.start("waiter", "lock", kind, kind, FOR_EVER, WATCHDOG) if kind == "plain" else None
    done = at.rlock.call("force-unlock", kind, kind, "--yes", "--grace", "1s")
    assert done.returncode == 0, done.stderr
    if waiter:  # a waiting JVM learns of it as of any release
        assert str(waiter.result(60)) == "held"
        at.java.expect("released", "waiter", "unlock", kind, kind)
    if kind == "plain" or kind != "permits" and at.version > (3, 44):  # before, a read-write lock says nothing
        at.java.expect("error IllegalMonitorStateException", "holder", "unlock", kind, kind)
    finish(at.rlock.start(kind, kind, at.traces, "-n", hold=0))


def fences(at):
    """RFencedLock and rlock count with one counter, and each new holder has a greater number."""
    numbers = []
    for turn in range(1, 6):
        at.java.expect("held", "main", "lock", "fenced", "fenced", 0, WATCHDOG)
        numbers.append(int(at.server.ask("GET", "redisson_lock_token:{fenced}")))
        at.java.expect("released", "main", "unlock", "fenced", "fenced")
        held = at.rlock.run("fenced", "fenced", job=["sh", "-c", 'echo "$RLOCK_FENCE" >"$0/fence"', at.traces.directory])
        finish(held)
        with open(f"{at.traces.directory}/fence") as file:
            numbers.append(int(file.read()))
    assert numbers == sorted(set(numbers)), numbers


def mixed_kinds(at):
    """What must not share a name: rlock refuses it, and a Java read-write lock ignores a plain lock."""
    at.java.expect("true", "main", "permits", "permits", "semaphore", PERMITS)
    assert "semaphore" in finish(at.rlock.start("plain", "semaphore", at.traces, "-n"), 78)
    at.java.expect("held", "main", "lock", "plain", "lock", 0, WATCHDOG)
    finish(at.rlock.start("permits", "lock", at.traces, "-n"), 78)
    finish(at.rlock.start("one", "lock", at.traces, "-n"), 78)
    finish(at.rlock.start("write", "lock", at.traces, "-n"), 75)
    at.java.expect("held", "other", "lock", "write", "lock", 0, WATCHDOG)  # Redisson's own fault, see rlock-interop(7)


def scenarios(version, handovers):
    has_fenced = version > (3, 19)
    some = max(2, handovers // 4)
    kinds = ["plain", *(["fenced"] if has_fenced else []), "fair", "rw", "permits", "multi"]
    yield from ((f"load {kind}", load, kind) for kind in kinds)
    pairs = [("plain", "plain", handovers), *([("fenced", "fenced", some)] if has_fenced else []), ("fair", "fair", some),
             ("write", "read", some), ("read", "write", some), ("permits", "permits", some)]
    for held, waiting, times in pairs:
        # The release of a fair lock tells rlock nothing; it asks once a second.
        yield f"wake rlock {held}", wake_rlock, held, waiting, times if held != "fair" else 3
        yield f"wake Redisson {held}", wake_java, held, waiting, times
    yield "watchdogs", watchdogs
    yield "killed JVM", killed_jvm
    yield from ((f"forceUnlock {kind}", java_forces, kind) for kind in ("plain", "write"))
    yield from ((f"rlock force-unlock {kind}", rlock_forces, kind) for kind in ("plain", "write", "read", "permits"))
    if has_fenced:
        yield "fences", fences
    yield "mixed kinds", mixed_kinds
