# SPDX-License-Identifier: Apache-2.0
"""The scenarios with libraries that take a lock by SET NX PX, and `--format string` of rlock. `at.library` is the driver. A kind is
`one`, a lock on one server, or `quorum`, a lock on three."""
import os
import time
from concurrent.futures import ThreadPoolExecutor

from rlock import finish
from waiting import wait_until

LEASE_MS = 60_000
SHORT_MS = 3000  # rlock renews each third and stops its job after two, so the machine may stand still for a second
HOLD_MS = 2
WAIT_MS = 30_000


def drivers(out):
    """(name, argv, kinds) of each library that was downloaded."""
    here = os.path.dirname(os.path.abspath(__file__))
    known = [("redis-py", ["env", f"PYTHONPATH={out}/redis-py", "python3", "-B", f"{here}/strings/redis_py.py"], ["one"]),
             ("redsync", [f"{out}/redsync"], ["one", "quorum"]),
             ("node-redlock", ["node", f"{out}/node-redlock/node_redlock.mjs"], ["one", "quorum"])]
    return [one for one in known if os.path.exists(f"{out}/{one[0]}.ready")]


def exclusion(at, kind):
    """Each side is refused while the other holds, and has the lock after the release."""
    at.library.expect("held", "main", "lock", kind, "k", 0, LEASE_MS)
    finish(at.rlock.start(kind, "k", at.traces, "-n", hold=0), 75)
    waiter = at.rlock.start(kind, "k", at.traces, hold=0)
    at.library.expect("released", "main", "unlock", kind, "k")
    finish(waiter)
    holder = at.rlock.start(kind, "k", at.traces)
    wait_until("the job has begun", lambda: len(at.traces.times("+")) == 2)
    at.library.expect("busy", "main", "lock", kind, "k", 0, LEASE_MS)
    next_one = at.library.start("main", "lock", kind, "k", WAIT_MS, LEASE_MS)
    finish(holder)
    assert str(next_one.result(60)) == "held"
    at.library.expect("released", "main", "unlock", kind, "k")


def load(at, kind):
    """Two workers of each side loop: no two are inside, no increment is lost, and each gets its turns."""
    def loop(who):
        while not at.traces.has_stopped():
            if str(at.library.ask(who, "lock", kind, "k", WAIT_MS, LEASE_MS)) == "held":
                at.traces.run(who, HOLD_MS)
                at.library.expect("released", who, "unlock", kind, "k")

    with ThreadPoolExecutor() as pool:
        done = [pool.submit(loop, f"library{i}") for i in range(2)]
        done += [pool.submit(at.rlock.loop, kind, "k", at.traces, f"rlock{i}", HOLD_MS) for i in range(2)]
        at.traces.let_take_turns(4)
    for one in done:
        one.result()
    turns = at.traces.check()
    of_library = sum(count for who, count in turns.items() if who.startswith("library"))
    at.note(f"turns: the library {of_library}, rlock {sum(turns.values()) - of_library}")


def renewal(at, kind):
    """A lock that its holder extends or renews stays with it, although the other side waits."""
    at.library.expect("held", "main", "lock", kind, "theirs", 0, SHORT_MS)
    waiter = at.rlock.start(kind, "theirs", at.traces, hold=0)
    for _ in range(4):
        time.sleep(SHORT_MS / 3000)
        at.library.expect("extended", "main", "extend", kind, "theirs", SHORT_MS)
    assert waiter.poll() is None, "rlock has passed a holder that extends"
    at.library.expect("released", "main", "unlock", kind, "theirs")
    finish(waiter)

    holder = at.rlock.start(kind, "own", at.traces, "--ttl", f"{SHORT_MS}ms")
    wait_until("the job has begun", lambda: len(at.traces.times("+")) == 2)
    at.library.expect("busy", "main", "lock", kind, "own", SHORT_MS * 3 // 2, LEASE_MS)
    finish(holder)


def most(found):
    """Of the servers. A quorum gives the others 50 ms only, so on a busy machine one of them may miss a lock."""
    found = list(found)
    return 2 * sum(found) > len(found)


def values(at, kind):
    """Neither side extends or releases a lock that the other has taken meanwhile."""
    servers = at.servers[:3 if kind == "quorum" else 1]
    at.library.expect("held", "main", "lock", kind, "k", 0, LEASE_MS)
    for server in servers:
        server.ask("DEL", "k")
    holder = at.rlock.start(kind, "k", at.traces, "--ttl", f"{SHORT_MS}ms")
    wait_until("the job has begun", lambda: at.traces.times("+"))
    for verb in (("extend", LEASE_MS), ("unlock",)):
        at.library.expect("error", "main", verb[0], kind, "k", *verb[1:])
    ttls = [server.ask("PTTL", "k") for server in servers]
    assert max(ttls) <= SHORT_MS and most(ttl > 0 for ttl in ttls), f"the library has changed the lock of rlock: {ttls}"

    for server in servers:
        server.ask("DEL", "k")
    at.library.expect("held", "main", "lock", kind, "k", 0, LEASE_MS)
    wait_until("rlock has ended", lambda: holder.poll() is not None)
    finish(holder, 121)
    ttls = [server.ask("PTTL", "k") for server in servers]
    assert most(ttl > SHORT_MS for ttl in ttls), f"rlock has changed the lock of the library: {ttls}"
    at.library.expect("released", "main", "unlock", kind, "k")


def scenarios(kinds):
    for kind in kinds:
        for check in (exclusion, load, renewal, values):
            yield f"{check.__name__} {kind}", check, kind
