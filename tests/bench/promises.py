# SPDX-License-Identifier: Apache-2.0
"""What rlock promises about its speed and size. The key is the row of the table; each number is the most that is allowed."""

PROMISES = {
    "start: rlock": (1.5, "x flock"),
    "instructions of a start": (1.0, "million"),
    "round trips of a start": (2, ""),
    "gap, 50 waiting, jobs of 3 ms: rlock": (1.25, "x flock"),
    "gap, 200 waiting, jobs of 3 ms: rlock": (1.25, "x flock"),
    "gap, 50 waiting, empty jobs: rlock": (1.5, "x flock"),
    "gap, 200 waiting, empty jobs: rlock": (1.5, "x flock"),
    "server time, plain: acquire, release": (25, "us"),
    "server time, plain: hand-over": (35, "us"),
    "scripts in a waiter's life": (3, ""),
    "subscriptions and ZSCOREs in a waiter's life": (2, ""),
    "requests of a silent waiter in 10 s": (1, ""),
    "resident: waiter": (5, "MiB"),
    "resident: holder and its guardian": (5, "MiB"),
    "list of 20 locks among 150000 hashes": (3, "x scan"),
    "scripts of that list": (200, ""),
    "list --all of 1000 free locks: Redis": (0.2, "s"),
    "list --all of 1000 free locks: PostgreSQL": (0.5, "s"),
    "program, stripped": (6, "MiB"),
}
