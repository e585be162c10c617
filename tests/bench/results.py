# SPDX-License-Identifier: Apache-2.0
"""What was measured: the rows of the table, figures for the pictures, and what was left out. Writes results.json."""
import datetime
import json
import os
import platform
import re
import statistics
import subprocess
import time

from promises import PROMISES


class Results:
    def __init__(self, rounds, server):
        self.rows, self.figures, self.notes, self.failed = {}, {}, [], []
        self.about = {"date": f"{datetime.datetime.now():%Y-%m-%d %H:%M}", "machine": machine(), "server": server,
                      "rounds": rounds, "load_before": os.getloadavg()[0], "busy_before": busy_share(3)}

    def row(self, what, unit, values, remark=""):
        """`values` are those of the rounds."""
        self.rows[what] = {"unit": unit, "values": values, "median": statistics.median(values), "remark": remark}

    def note(self, text):
        self.notes.append(text)
        print(f"  {text}", flush=True)

    def fail(self, text):
        """A measurement that could not be made, though its tools are there."""
        self.failed.append(text)
        self.note(text)

    def missed(self):
        return [what for what, (most, _) in PROMISES.items() if what in self.rows and self.rows[what]["median"] > most]

    def print_table(self):
        self._width = max(map(len, [*PROMISES, *self.rows]))
        print(f"\n{self.subtitle()}")
        print(f"{'':{self._width}} {'promise':>16} {'median':>8} {'least - most':>17}  rounds that met it")
        for what in [*PROMISES, *(row for row in self.rows if row not in PROMISES)]:
            print(self._line(what))

    def write(self, path):
        self.about["load_after"] = os.getloadavg()[0]
        promises = {what: {"most": most, "unit": unit} for what, (most, unit) in PROMISES.items()}
        with open(path, "w") as file:
            json.dump({**self.about, "subtitle": self.subtitle(), "promises": promises, "missed": self.missed(),
                       "rows": self.rows, "figures": self.figures, "notes": self.notes}, file, indent=1)

    def subtitle(self):
        about = self.about
        return (f"{about['date']}, {about['machine']}, {about['server']}, rounds: {about['rounds']}; before: "
                f"load {about['load_before']:.1f}, {about['busy_before']:.0%} busy")

    def _line(self, what):
        most, unit = PROMISES.get(what, (None, ""))
        promise = f"<= {most:g} {unit}" if most else ""
        row = self.rows.get(what)
        if not row:
            return f"{what:{self._width}} {promise:>16} not measured"
        values = row["values"]
        spread = f"{number(min(values))} - {number(max(values))}" if len(values) > 1 else ""
        line = f"{what:{self._width}} {promise or row['unit']:>16} {number(row['median']):>8} {spread:>17}"
        met = f"{sum(value <= most for value in values)} of {len(values)}" if most else ""
        return f"{line}  {met:6} {'MISSED' if most and row['median'] > most else '':6} {row['remark']}".rstrip()


def number(value):
    return f"{value:.2f}" if value < 100 else f"{value:.0f}"


def machine():
    with open("/proc/cpuinfo") as file:
        model = re.search(r"model name\s*: (.*)", file.read())
    cpu = re.sub(r"\((R|TM)\)", "", model[1]) if model else platform.machine()
    return f"{len(os.sched_getaffinity(0))} cores of {cpu}, Linux {platform.release().split('-')[0]}"


def busy_share(seconds):
    """Of all cores, by this and all other work."""
    def times():
        with open("/proc/stat") as file:
            columns = list(map(int, file.readline().split()[1:9]))
        return sum(columns), columns[3] + columns[4]  # idle and iowait

    all_before, idle_before = times()
    time.sleep(seconds)
    all_after, idle_after = times()
    return 1 - (idle_after - idle_before) / (all_after - all_before)


def server_version(program):
    words = subprocess.run([program, "--version"], capture_output=True, text=True).stdout
    name = "Valkey" if "valkey" in words.lower() else "Redis"
    return f"{name} {re.search(r'v=([0-9.]+)', words)[1]}"
