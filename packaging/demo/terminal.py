# SPDX-License-Identifier: Apache-2.0
"""A terminal of fixed size that keeps every state of its rows, and SVG text made of these states."""
import re
from html import escape

CHAR_WIDTH = 7.2
LINE_HEIGHT = 16
COLORS = {"": "#d7dae0", "bold": "#ffffff", "dim": "#8b949e", "red": "#ff7b72", "green": "#7ee787", "yellow": "#f2cc60",
          "blue": "#79c0ff", "magenta": "#d2a8ff", "cyan": "#76e3ea", "inverse": "#1b1f27", "title": "#8b949e", "caption": "#768390"}
# The parameters of SGR (ECMA-48). Of several that hold, the one that is named first here is shown.
STYLES = {7: "inverse", 31: "red", 32: "green", 33: "yellow", 34: "blue", 35: "magenta", 36: "cyan", 2: "dim", 90: "dim", 1: "bold"}
FRAME_S = 0.04  # states that last for less than this are not shown

ESCAPE = re.compile(r"\x1b\[([?0-9;]*)([A-Za-z])")
WORDS = re.compile(r"\S+(?: \S+)*")


class Terminal:
    """Understands what rlock and a shell write: text, CR, LF, BS, and the sequences for clearing, home and colours."""

    def __init__(self, columns, rows):
        self.columns, self.rows = columns, rows
        self.cells = [[(" ", "")] * columns for _ in range(rows)]
        self.row = self.column = 0
        self.sgr = set()
        self.style = ""
        self.states = [[] for _ in range(rows)]  # of each row: (time, cells) whenever it changes

    def feed(self, time, text):
        at = 0
        while at < len(text):
            match = ESCAPE.match(text, at)
            if match:
                self._control(match[1], match[2])
                at = match.end()
            else:
                self._write(text[at])
                at += 1
        for row, cells in enumerate(self.cells):
            states = self.states[row]
            if not states or states[-1][1] != cells:
                if states and time - states[-1][0] < FRAME_S:
                    time_of_last, _ = states.pop()
                    states.append((time_of_last, list(cells)))
                else:
                    states.append((time, list(cells)))

    def _control(self, numbers, letter):
        if letter == "K":
            self.cells[self.row][self.column:] = [(" ", "")] * (self.columns - self.column)
        elif letter == "H":
            self.row = self.column = 0
        elif letter == "J":
            self._control("", "K")
            for row in range(self.row + 1, self.rows):
                self.cells[row] = [(" ", "")] * self.columns
        elif letter == "m":
            self._set_style([int(number or 0) for number in numbers.split(";")])

    def _set_style(self, parameters):
        for parameter in parameters:
            if parameter == 0:
                self.sgr.clear()
            elif parameter == 39:
                self.sgr -= {31, 32, 33, 34, 35, 36, 90}
            elif parameter == 22:
                self.sgr -= {1, 2}
            else:
                self.sgr = {each for each in self.sgr if each < 30 or parameter < 30} | {parameter}
        self.style = next((style for each, style in STYLES.items() if each in self.sgr), "")

    def _write(self, char):
        if char == "\r":
            self.column = 0
        elif char == "\b":
            self.column = max(0, self.column - 1)
        elif char == "\n":
            self._line_feed()
        elif char >= " ":
            if self.column == self.columns:
                self.column = 0
                self._line_feed()
            self.cells[self.row][self.column] = (char, self.style)
            self.column += 1

    def _line_feed(self):
        if self.row + 1 < self.rows:
            self.row += 1
        else:
            self.cells = self.cells[1:] + [[(" ", "")] * self.columns]

    def svg(self, x, y, end):
        """The rows as SVG at (x, y). Each state is visible from its time to the next one's; the last one without animation."""
        return "".join(
            self._state_svg(cells, x, y + LINE_HEIGHT * (row + 1), start,
                            states[index + 1][0] if index + 1 < len(states) else end, end)
            for row, states in enumerate(self.states) for index, (start, cells) in enumerate(states))

    def _state_svg(self, cells, x, y, start, stop, end):
        runs, column = [], 0
        while column < self.columns:
            style, first = cells[column][1], column
            while column < self.columns and cells[column][1] == style:
                column += 1
            left = x + first * CHAR_WIDTH
            if style == "inverse":
                runs.append(f'<rect x="{left:.1f}" y="{y - 12:.0f}" width="{(column - first) * CHAR_WIDTH:.1f}" '
                            f'height="{LINE_HEIGHT}" fill="{COLORS[""]}"/>')
            text = "".join(char for char, _ in cells[first:column])
            for words in WORDS.finditer(text):  # not all browsers keep several blanks
                runs.append(text_svg(words[0], left + words.start() * CHAR_WIDTH, y, style))
        if not runs:
            return ""
        return f"<g{animation(start, stop, end)}{''.join(runs)}</g>\n"


def text_svg(text, x, y, style=""):
    fill = f' fill="{COLORS[style]}"' if style else ""
    return f'<text x="{x:.1f}" y="{y:.0f}" textLength="{len(text) * CHAR_WIDTH:.1f}"{fill}>{escape(text)}</text>'


def animation(start, stop, end):
    """The rest of an opening tag: visible from start to stop of a film that lasts until end and begins anew."""
    if end == 0 or (start <= 0 and stop >= end):
        return ">"
    times = [(0, "hidden" if start > 0 else "visible")]
    times += [(start, "visible")] if start > 0 else []
    times += [(stop, "hidden")] if stop < end else []
    values = ";".join(value for _, value in times)
    key_times = ";".join(f"{time / end:.4f}" for time, _ in times)
    hidden = ' visibility="hidden"' if stop < end else ""
    return (f'{hidden}><animate attributeName="visibility" calcMode="discrete" dur="{end:.1f}s" '
            f'repeatCount="indefinite" values="{values}" keyTimes="{key_times}"/>')


def window_svg(terminal, title, x, y, end):
    """A terminal with its title bar. Returns the SVG, its width and its height."""
    width, height = terminal.columns * CHAR_WIDTH + 20, terminal.rows * LINE_HEIGHT + 40
    return (f'<rect x="{x}" y="{y}" width="{width:.0f}" height="{height}" rx="6" fill="#1b1f27" stroke="#444c56"/>\n'
            f'{text_svg(title, x + 10, y + 17, "title")}\n'
            f'<path d="M{x} {y + 25.5}h{width:.0f}" stroke="#444c56"/>\n'
            f'{terminal.svg(x + 10, y + 27, end)}', width, height)


def picture(width, height, body):
    return ('<?xml version="1.0" encoding="UTF-8"?>\n'
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
            f'height="{height:.0f}" font-family="ui-monospace,Menlo,Consolas,DejaVu Sans Mono,monospace" '
            f'font-size="12" fill="{COLORS[""]}">\n{body}</svg>\n')
