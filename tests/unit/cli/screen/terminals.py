"""Terminals to draw on: pyte's, and one that breaks lines anew when its width changes."""

import re

import pyte

_PARTS = re.compile(r"\x1b\[(\?[0-9]+[hl]|[0-9;]*[A-Za-z])|([\r\n])|([^\x1b\r\n]+)")
MODES = {"?25l", "?25h", "?2004l", "?2004h", "?2026l", "?2026h"}


class Reflowing:
    """A terminal that keeps lines whole and breaks them at its width. It knows what a painter may write, and
    refuses anything else: absolute places, the alternate screen, erasing above."""

    def __init__(self, columns, rows):
        self.columns, self.rows = columns, rows
        self.lines, self._line, self._column = [""], 0, 0

    def resize(self, columns, rows):
        self.columns, self.rows = columns, rows

    def feed(self, text):
        at = 0
        while at < len(text):
            part = _PARTS.match(text, at)
            assert part is not None, f"no painter writes {text[at : at + 20]!r}"
            at = part.end()
            if part[3] is not None:
                line = self.lines[self._line].ljust(self._column)
                self.lines[self._line] = line[: self._column] + part[3] + line[self._column + len(part[3]) :]
                self._column += len(part[3])
            elif part[2] == "\r":
                self._column -= self._column % self.columns
            elif part[2] == "\n":
                self._line, self._column = self._line + 1, 0
                if self._line == len(self.lines):
                    self.lines.append("")
            else:
                self._control(part[1])

    def _control(self, code):
        if code == "J":
            self.lines[self._line :] = [self.lines[self._line][: self._column]]
        elif code == "2K":
            self.lines[self._line] = ""
        elif code.endswith("A"):
            up = int(code[:-1])
            assert up < self.rows, "what is drawn is higher than the terminal"
            drawn = self.lines[self._line - up : self._line + 1]
            assert all(len(each) < self.columns for each in drawn), "a row reaches the last column"
            self._line -= up
        else:
            assert code in MODES or code.endswith("m"), f"no painter writes {code!r}"

    def text(self):
        return without_blanks(self.lines)


class Cropping(pyte.HistoryScreen):
    """pyte, which cuts rows where it becomes narrower; above the cursor it keeps them, to be compared."""

    def __init__(self, columns, rows):
        super().__init__(columns, rows, history=100_000)
        self.stream = pyte.Stream(self)

    def feed(self, text):
        self.stream.feed(re.sub(r"\x1b\[\?2026[hl]", "", text))

    def resize(self, columns, rows):
        while self.cursor.y >= rows:
            self.history.top.append(self.buffer[0])
            for y in range(self.lines - 1):
                self.buffer[y] = self.buffer[y + 1]
            self.buffer.pop(self.lines - 1, None)
            self.cursor.y -= 1
        for y in [each for each in self.buffer if each >= rows]:
            del self.buffer[y]
        for y in [each for each in self.buffer if each >= self.cursor.y]:
            for x in [each for each in self.buffer[y] if each >= columns]:
                del self.buffer[y][x]
        self.columns, self.lines = columns, rows
        self.margins = None

    def text(self):
        rows = [*self.history.top, *(self.buffer[y] for y in range(self.lines))]
        return without_blanks("".join(row[x].data for x in range(max(row, default=-1) + 1)) for row in rows)


def without_blanks(rows):
    """The rows without colours, blanks at their ends, and blank rows at the end."""
    found = [re.sub(r"\x1b\[[0-9;]*m", "", each).rstrip() for each in rows]
    while found and not found[-1]:
        found.pop()
    return found
