#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""run.py [--build DIR] [--default | --all] [NUMBER...]: makes each mistake of list.txt, and expects a test to fail.

Works on a copy of the last commit in DIR (build/mutations), so the checkout stays as it is. Prints which test failed
first, or "survived". --default: only what the list names for a mistake, as far as it is in the default suite; mistakes in databases
and consensus stores alone are left out. --all: a mutation that survived also meets the rest of the suite. Exit code: 1 if one
survived, 2 if one could not be made or built."""

import argparse
import fnmatch
import pathlib
import re
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
TOP = HERE.parent.parent
ALWAYS = ["lua/", "contract/", "lock/"]
NOT_OF_CODE = "-tce=deliberate mistakes: each mutation fits the code"  # which no code with a mistake does
BROKEN = "DOES NOT BUILD"
OTHER_STORES = re.compile(r"core/stores/(postgres|mysql|mongo|etcd|zookeeper)/")


class Mutation:
    def __init__(self, name):
        self.name, self.file, self.old, self.new, self.cases, self.sources = name, "", [], [], [], []


def read_list():
    mutations = []
    for line in (HERE / "list.txt").read_text().splitlines():
        kind, text = line[:1], line[2:]
        if kind == "=":
            mutations.append(Mutation(text))
        elif kind == "@":
            mutations[-1].file = text
        elif kind == "-":
            mutations[-1].old.append(text)
        elif kind == "+":
            mutations[-1].new.append(text)
        elif kind == "!":
            mutations[-1].cases.append(text)
        elif kind == "?":
            mutations[-1].sources = text.split()
    return mutations


def mutated(mutation, text):
    """The text with the mistake; the lines of the list are parts of lines, apart from those that are deleted."""
    old, new = "\n".join(mutation.old), "\n".join(mutation.new)
    if text.count(old) != 1:
        sys.exit(f"{mutation.file}: {text.count(old)} times instead of once: {old}")
    return text.replace(old if new else old + "\n", new)


def run(command, tree, seconds):
    try:
        return subprocess.run(command, cwd=tree, capture_output=True, text=True, errors="replace", timeout=seconds)
    except subprocess.TimeoutExpired as late:
        return subprocess.CompletedProcess(command, 1, f"TEST CASE:  no end within {late.timeout} s\n", "")


def failed_case(output):
    found = re.search(r"TEST CASE:\s*(.*)", output)
    if not found:
        sys.exit(f"no test case failed, or none was run:\n{output}")
    return found.group(1).strip()


def steps_of(mutation):
    """What may see the mistake, the likeliest first: a program and its arguments. Scripts have no unit tests."""
    # A comma separates titles there.
    steps = [("rlock_tests", ["-tc=" + case.replace(",", "*")]) for case in mutation.cases]
    for source in mutation.sources:
        program = "rlock_unit_tests" if source.startswith("unit/") else "rlock_tests"
        steps.append((program, [f"-sf=*/tests/{source}_test.cpp"]))
    if not mutation.file.startswith("lua/"):
        steps.append(("rlock_unit_tests", [NOT_OF_CODE]))
    return steps + [("rlock_tests", [f"-sf=*/tests/{folder}*"]) for folder in ALWAYS]


def patterns_of_default_suite(kind):
    lines = (HERE.parent / "default_suite.txt").read_text().splitlines()
    return [line[2:] for line in lines if line.startswith(kind + " ")]


def default_steps_of(mutation):
    """What the list names for this mistake and the default suite has."""
    left_out = "-tce=" + ",".join(each.replace(",", "*") for each in patterns_of_default_suite("-"))
    names = patterns_of_default_suite("!")
    is_default = {"-tc=" + case.replace(",", "*") for case in mutation.cases if case in names}
    is_default |= {f"-sf=*/tests/{source}_test.cpp" for source in mutation.sources
                   if any(fnmatch.fnmatchcase(source, each) for each in patterns_of_default_suite("?"))}
    return [(program, [*arguments, left_out]) for program, arguments in steps_of(mutation) if arguments[0] in is_default]


def build(tree, program):
    targets = [program] if program == "rlock_unit_tests" else [program, "rlock"]
    return run(["cmake", "--build", "--preset", "dev", "--target", *targets], tree, 3600)


def first_failure(tree, mutation, steps, everything):
    """What failed first, or None. BROKEN if it cannot be built."""
    built = None
    for program, arguments in steps:
        if program != built and build(tree, program).returncode != 0:
            return BROKEN
        built = program
        result = run([tree / "build/dev/tests" / program, "-aa=1", *arguments], tree, 600)
        if result.returncode != 0:
            return failed_case(result.stdout)
    if everything:
        result = run(["ctest", "--test-dir", "build/dev", "-LE", "^on-|^interop", "-j4", "--stop-on-failure"], tree, 3600)
        if result.returncode != 0:
            return failed_case(result.stdout)
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default=TOP / "build/mutations", type=pathlib.Path)
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--all", action="store_true")
    which.add_argument("--default", action="store_true")
    parser.add_argument("numbers", nargs="*", type=int)
    options = parser.parse_args()
    tree = options.build.resolve()
    if not tree.exists():
        subprocess.run(["git", "clone", "-q", TOP, tree], check=True)
    subprocess.run(["git", "fetch", "-q", "origin", "HEAD"], cwd=tree, check=True)
    subprocess.run(["git", "checkout", "-q", "--force", "--detach", "FETCH_HEAD"], cwd=tree, check=True)
    subprocess.run(["cmake", "--preset", "dev", "-DCMAKE_CXX_FLAGS_DEBUG=-O0", "-DCMAKE_COMPILE_WARNING_AS_ERROR=OFF"],
                   cwd=tree, check=True, capture_output=True)
    survived = broken = 0
    for number, mutation in enumerate(read_list(), 1):
        if options.numbers and number not in options.numbers:
            continue
        if options.default and OTHER_STORES.match(mutation.file):
            continue
        steps = default_steps_of(mutation) if options.default else steps_of(mutation)
        began = time.monotonic()
        file = tree / mutation.file
        original = file.read_text()
        file.write_text(mutated(mutation, original))
        try:
            failure = first_failure(tree, mutation, steps, options.all)
        finally:
            file.write_text(original)
        seconds = time.monotonic() - began
        if failure == BROKEN:
            broken += 1
            result = BROKEN
        elif failure is None:
            survived += 1
            result = "SURVIVED"
        else:
            result = "red: " + failure
        print(f"{number:3} {seconds:4.0f} s  {mutation.name}: {result}", flush=True)
    print(f"{survived} survived, {broken} did not build")
    sys.exit(2 if broken else 1 if survived else 0)


if __name__ == "__main__":
    main()
