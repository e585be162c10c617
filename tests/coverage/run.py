#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""run.py [--report] [CTEST ARGUMENTS...]: which lines of core/ the tests reach.

Builds the preset `coverage`, runs its tests, and prints the share of the lines of each folder and the lines that were not reached.
--report: only prints what the last run counted. Exit code: 1 if less than 90 % were reached."""

import collections
import itertools
import json
import os
import pathlib
import shutil
import subprocess
import sys

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = TOP / "build/coverage"
ENOUGH = 90


def run_tests(arguments):
    subprocess.run(["cmake", "--preset", "coverage"], cwd=TOP, check=True)
    subprocess.run(["cmake", "--build", "--preset", "coverage"], cwd=TOP, check=True)
    for counters in BUILD.rglob("*.gcda"):
        counters.unlink()
    # A test that fails, because this rlock is slower, has reached its lines all the same.
    jobs = str(2 * (os.cpu_count() or 1))
    subprocess.run(["ctest", "--test-dir", BUILD, "-LE", "^on-|^interop|^judge", "-j", jobs, *arguments], check=False)


def counted_files():
    """Of each file: its lines, and whether they were reached."""
    report = BUILD / "coverage.json"
    subprocess.run(["gcovr", "--root", TOP, "--filter", "core/", "--json", report, BUILD / "core", BUILD / "cli"],
                   cwd=TOP, check=True)
    for file in json.loads(report.read_text())["files"]:
        code = [line for line in file["lines"] if not line.get("gcovr/noncode")]
        yield pathlib.PurePath(file["file"]), {line["line_number"]: line["count"] > 0 for line in code}


def ranges(numbers):
    """[1, 2, 3, 7] as "1-3 7"."""
    groups = itertools.groupby(enumerate(sorted(numbers)), lambda pair: pair[1] - pair[0])
    spans = [[number for _, number in group] for _, group in groups]
    return " ".join(str(span[0]) if len(span) == 1 else f"{span[0]}-{span[-1]}" for span in spans)


def row(name, reached, all_lines):
    return f"{name:24} {reached:6} of {all_lines:6} {100 * reached / max(all_lines, 1):6.1f} %"


def main():
    arguments = sys.argv[1:]
    if arguments in (["-h"], ["--help"]):
        print(__doc__)
        return
    if not shutil.which("gcovr"):
        sys.exit("no gcovr: coverage is not measured")
    if arguments != ["--report"]:
        run_tests(arguments)
    folders = collections.defaultdict(lambda: [0, 0])
    for path, lines in sorted(counted_files()):
        missed = [number for number, reached in lines.items() if not reached]
        for total in (folders[str(path.parent)], folders["all of core"]):
            total[0] += len(lines) - len(missed)
            total[1] += len(lines)
        if missed:
            print(f"{path}: {ranges(missed)}")
    print()
    for name, total in sorted(folders.items(), key=lambda folder: folder[0].replace("all", "~")):
        print(row(name, *total))
    reached, all_lines = folders["all of core"]
    sys.exit(0 if all_lines and 100 * reached >= ENOUGH * all_lines else 1)


if __name__ == "__main__":
    main()
