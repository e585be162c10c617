#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""pictures.py RESULTS.json: draws the figures as SVG files beside it, with gnuplot."""
import glob
import json
import os
import shutil
import subprocess
import sys

HEAD = """set terminal svg size {size} enhanced background "white" font "sans-serif,14" linewidth 1.5
set output "{path}"
set title "{title}\\n{{/*0.7 {subtitle}}}"
set border 3 lc rgb "#303030"
set tics nomirror
set grid {axis} lc rgb "#d0d0d0" lw 0.7
"""
COLOURS = {"rlock": "0xd02020", "flock": "0x1f4fa0", "etcdctl lock": "0x208040", "consul lock": "0x708000",
           "redis-cli recipe": "0xe08000", "redis-py": "0x8040a0", "redsync": "0x008898", "rslock": "0x805030",
           "node-redlock": "0xb0307c", "Redisson 4.7.0": "0x606060"}


def draw(results, directory):
    """Returns the paths. A picture of a measurement that was not made is removed."""
    for old in glob.glob(f"{directory}/*.svg"):
        os.remove(old)
    figures = results["figures"]
    return [picture(results, directory, figures[name]) for name, picture in PICTURES.items() if name in figures]


def start(results, directory, times):
    """Horizontal bars, the fastest on top."""
    bars = sorted(times.items(), key=lambda one: -one[1])

    def label(name, value):
        return f"{value:.1f} ms" + (f", {results['rows'][f'start: {name}']['median']:.1f} x" if name != "flock" else "")

    rows = [f'{row} {value} "{name}" {colour_of(name)} "{label(name, value)}"' for row, (name, value) in enumerate(bars)]
    return gnuplot(results, directory, "start", "x", "Start of an empty job under a free lock, and its end", f"""
set logscale x
set xlabel "median, milliseconds (logarithmic); x: median of the ratios to flock in each round"
set xrange [{min(times.values()) / 2}:{max(times.values()) * 12}]
set yrange [-0.7:{len(bars) - 0.3}]
unset key
set style fill solid 1.0 noborder
plot $data using 2:1:({min(times.values()) / 2}):2:($1-0.32):($1+0.32):4:ytic(3) with boxxyerror lc rgb variable, \\
     $data using 2:1:5 with labels left offset 0.6,0
""", {"data": rows}, f"860,{120 + 34 * len(bars)}")


def hand_over(results, directory, lines):
    """A line for each peer; a dashed one for empty jobs."""
    data = {f"line{i}": [f"{waiting} {gap}" for waiting, gap in sorted(points.items(), key=lambda one: int(one[0]))]
            for i, points in enumerate(lines.values())}
    plots = []
    for i, name in enumerate(lines):
        shape = "dashtype 2 pt 6" if name.endswith("empty jobs") else "pt 7"
        plots.append(f'$line{i} with linespoints {shape} ps 0.7 lc rgb {colour_of(name)} title "{name}"')
    return gnuplot(results, directory, "hand-over", "x y", "From the end of a job to the begin of the next, jobs of 3 ms", f"""
set logscale xy
set xlabel "processes that wait (logarithmic)"
set ylabel "median gap, microseconds (logarithmic)"
set xtics (10, 50, 200, 1000)
set format y "%.0f"
set xrange [8:1250]
set key outside right top
plot {", ".join(plots)}
""", data, "860,460")


def server(results, directory, kinds):
    bars = [f'{row} {value} "{name}" {colour_of("flock" if row == 0 else "rlock")} "{value:.0f}"'
            for row, (name, value) in enumerate(kinds.items())]
    return gnuplot(results, directory, "server", "y", "Server time of an uncontended acquire and its release", f"""
set ylabel "microseconds"
set yrange [0:{max(kinds.values()) * 1.15}]
set xrange [-0.7:{len(bars) - 0.3}]
unset key
set style fill solid 1.0 noborder
set boxwidth 0.6
set bmargin 4
plot $data using 1:2:4:xtic(3) with boxes lc rgb variable, $data using 1:2:5 with labels offset 0,0.7
""", {"data": bars}, "860,380")


PICTURES = {"start_ms": start, "gap_us": hand_over, "pair_us": server}


def colour_of(name):
    """"rlock, unix socket" has the colour of rlock."""
    return COLOURS[name.split(",")[0]]


def gnuplot(results, directory, name, axis, title, commands, data, size):
    path = os.path.join(directory, f"{name}.svg")
    head = HEAD.format(size=size, path=path, title=title, subtitle=results["subtitle"], axis=axis)
    blocks = "".join(f"${block} << END\n" + "\n".join(rows) + "\nEND\n" for block, rows in data.items())
    subprocess.run(["gnuplot"], input=head + blocks + commands, text=True, check=True)
    return path


def is_installed():
    return shutil.which("gnuplot") is not None


if __name__ == "__main__":
    with open(sys.argv[1]) as results_file:
        print(*draw(json.load(results_file), os.path.dirname(os.path.abspath(sys.argv[1]))), sep="\n")
