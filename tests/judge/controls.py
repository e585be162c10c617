#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""controls.py [--build DIR] [--seed S] [NAME...]: shows that the judge finds each rlock that is broken on purpose.

Each patch in controls/ breaks one promise; its first line says which. The judge must find a violation in a storm of little
more than a minute, and none in the storm of the unbroken rlock with the same seed. Works on a copy of the last commit in
DIR (build/controls). Exit code: 1 if a control was not found or the unbroken rlock was not acquitted, 2 if a patch does
not apply, a broken rlock does not build, or the judge itself fails."""

import argparse
import pathlib
import random
import re
import shutil
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
TOP = HERE.parent.parent
STORM = 1.2  # minutes; the checks take some seconds more
MANY = ["--rate", "5", "--server-pause", "1"]  # in little time


def run(command, tree, **options):
    return subprocess.run(command, cwd=tree, capture_output=True, text=True, errors="replace", **options)


def prepare(tree):
    if not tree.exists():
        subprocess.run(["git", "clone", "-q", TOP, tree], check=True)
    subprocess.run(["git", "fetch", "-q", "origin", "HEAD"], cwd=tree, check=True)
    subprocess.run(["git", "checkout", "-q", "--force", "--detach", "FETCH_HEAD"], cwd=tree, check=True)
    run(["cmake", "--preset", "dev", "-DCMAKE_CXX_FLAGS_DEBUG=-O0"], tree, check=True)
    run(["cmake", "--build", "--preset", "dev", "--target", "rlock_judge"], tree, check=True)


def build(tree, patch):
    """The rlock with this patch, or None."""
    if patch and run(["git", "apply", patch], tree).returncode != 0:
        print(f"{patch.stem}: DOES NOT APPLY", flush=True)
        return None
    built = run(["cmake", "--build", "--preset", "dev", "--target", "rlock"], tree)
    if patch:
        run(["git", "apply", "-R", patch], tree, check=True)
    if built.returncode != 0:
        print(f"{patch.stem if patch else 'unbroken'}: DOES NOT BUILD\n{built.stdout[-2000:]}", flush=True)
        return None
    program = tree / "build" / ("rlock-" + (patch.stem if patch else "unbroken"))
    shutil.copy(tree / "build/dev/rlock", program)
    return program


def judge(tree, program, seed):
    """What the judge has found, as the names of the broken promises, and after how many seconds. None: the judge failed."""
    began = time.monotonic()
    command = [tree / "build/dev/tests/rlock_judge", "--minutes", str(STORM), "--seed", str(seed), "--on", "unix", *MANY]
    result = run([*command, "--rlock", program], tree)
    violations = re.search(r"^violations: \d+\n((?:  .*\n)*)", result.stdout, re.MULTILINE)
    found = {}
    for line in violations.group(1).splitlines() if violations else []:
        promise = line.strip().split(":")[0]
        found[promise] = found.get(promise, 0) + 1
    if result.returncode != (1 if found else 0):
        print(f"THE JUDGE FAILED with {result.returncode}: {result.stderr[-2000:]}", flush=True)
        return None, 0
    return found, time.monotonic() - began


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default=TOP / "build/controls", type=pathlib.Path)
    parser.add_argument("--seed", default=random.randrange(2**32), type=int)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    tree = options.build.resolve()
    prepare(tree)
    patches = [patch for patch in sorted(HERE.glob("controls/*.patch")) if not options.names or patch.stem in options.names]
    print(f"seed {options.seed}", flush=True)
    broken = failed = 0
    for patch in [None, *patches]:
        program = build(tree, patch)
        if program is None:
            broken += 1
            continue
        found, seconds = judge(tree, program, options.seed)
        if found is None:
            broken += 1
            continue
        text = ", ".join(f"{promise} ({count})" for promise, count in found.items()) or "nothing"
        good = bool(found) == bool(patch)
        failed += not good
        print(f"{patch.stem if patch else 'unbroken':20} {seconds:4.0f} s  {'' if good else 'WRONG: '}{text}", flush=True)
    sys.exit(2 if broken else 1 if failed else 0)


if __name__ == "__main__":
    main()
