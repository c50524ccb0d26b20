"""Reading what a model was shown only in part, by its handle: tool results that were cut or removed, and
files that it was not shown. A file that is no text is read as rows of 16 bytes.

Agent("reader", tools=[search, read_output, grep_output])
"""

from __future__ import annotations

import base64
import json
import re
import subprocess
from collections.abc import Iterator, Sequence

from antiphon.errors import ToolError
from antiphon.tools.child import run_alone
from antiphon.values.tool import ToolContext, tool

ROW = 16
"""Bytes of a file that is no text on one line."""
_NO_TEXT = re.compile(r"[\x00-\x08\x0e-\x1f\x7f]")
_NO_ASCII = re.compile(r"[^ -~]")
SECONDS = 5.0
"""How long a search may take; a pattern that takes longer is given up."""
LINE = 1_000
"""Characters of one line that is shown."""
ANSWER = 65_536
"""Bytes of one answer."""


@tool(effect="read", timeout=SECONDS)
def read_output(ctx: ToolContext, handle: str, offset: int = 1, limit: int = 200) -> str:
    """Read lines of an earlier tool result that was cut or removed.

    Args:
        handle: The handle that was shown in place of the text.
        offset: Number of the first line, from 1.
        limit: How many lines at most.
    """
    return _read(_kept(ctx, handle), offset, limit)


@tool(effect="read", timeout=SECONDS)
def grep_output(
    ctx: ToolContext, handle: str, pattern: str, regex: bool = False, around: int = 0, most: int = 50
) -> str:
    """Search an earlier tool result that was cut or removed; gives matching lines with their numbers.

    Args:
        handle: The handle that was shown in place of the text.
        pattern: What to look for.
        regex: Whether the pattern is a regular expression.
        around: Lines shown before and after each match.
        most: How many matches at most.
    """
    lines = _kept(ctx, handle)
    hits = _search(lines, pattern) if regex else _find(lines, pattern)
    return _matches(lines, hits, pattern, max(around, 0), max(most, 1))


def _read(lines: Sequence[str], offset: int, limit: int) -> str:
    """Lines `offset` (from 1) and following, numbered; says so when there are none."""
    if offset > len(lines):
        return f"Line {offset} is beyond the end: the output has {len(lines)} lines."
    first = max(offset, 1)
    wanted = lines[first - 1 : first - 1 + max(limit, 1)]
    shown, last = _numbered(enumerate(wanted, first))
    if last < len(lines):
        return shown + f"\n[{len(lines) - last} more lines; go on with offset={last + 1}]"
    return shown + "\n[end of output]"


def _find(lines: Sequence[str], pattern: str) -> list[int]:
    """The indexes of the lines that hold a text."""
    return [index for index, line in enumerate(lines) if pattern in line]


def _matches(lines: Sequence[str], hits: Sequence[int], pattern: str, around: int, most: int) -> str:
    """The lines found, numbered, with `around` lines of context; at most `most` matches."""
    if not hits:
        return f"No match for {pattern!r} in {len(lines)} lines."
    wanted = sorted(
        {
            near
            for hit in hits[:most]
            for near in range(max(hit - around, 0), min(hit + around + 1, len(lines)))
        }
    )
    shown, _ = _numbered((index + 1, lines[index]) for index in wanted)
    return shown + (f"\n[{len(hits) - most} more matches]" if len(hits) > most else "")


def _numbered(lines: Iterator[tuple[int, str]]) -> tuple[str, int]:
    """Numbered lines as far as they fit into one answer, and the number of the last."""
    shown: list[str] = []
    size, last = 0, 0
    for number, line in lines:
        clipped = line if len(line) <= LINE else line[:LINE] + f" [… {len(line) - LINE} more characters]"
        size += len(clipped.encode("utf-8", "replace")) + 10
        if size > ANSWER and shown:
            break
        shown.append(f"{number:>6}  {clipped}")
        last = number
    return "\n".join(shown), last


_PROGRAM = """
import json, re, sys
asked = json.load(sys.stdin)
try:
    found = re.compile(asked["pattern"])
except (re.error, OverflowError, RecursionError) as error:
    json.dump(str(error), sys.stdout)
else:
    json.dump([i for i, line in enumerate(asked["lines"]) if found.search(line)], sys.stdout)
"""


def _search(lines: Sequence[str], pattern: str) -> list[int]:
    """The indexes of the lines that match a regular expression.

    In a process of its own: Python's matcher lets no other thread run, and some patterns never end.
    """
    given = json.dumps({"pattern": pattern, "lines": list(lines)})
    try:
        told = run_alone(_PROGRAM, given, seconds=SECONDS * 0.8)
    except subprocess.TimeoutExpired as error:
        raise ToolError("The search took too long; use a simpler pattern") from error
    except subprocess.CalledProcessError as error:
        if error.returncode < 0:
            raise ToolError("The search took too long; use a simpler pattern") from error
        raise ToolError("The search needs too much memory; use a simpler pattern, or regex=false") from error
    except OSError as error:
        raise ToolError("Regular expressions cannot be searched for here; use regex=false") from error
    found = json.loads(told)
    if isinstance(found, str):
        raise ToolError(f"The pattern is not a regular expression: {found}")
    return list(found)


def _kept(ctx: ToolContext, handle: str) -> list[str]:
    """The lines that a handle stands for."""
    text = ctx.read_output(handle)
    if text is None:
        raise ToolError(f"No output is kept under the handle {handle!r}; call the tool again if you need it")
    return text.split("\n") if "#" not in handle else _file_lines(handle, text)


def _text_of(held: bytes) -> str | None:
    """What bytes say, if they are text."""
    try:
        text = held.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
    return None if _NO_TEXT.search(text) else text


def _file_lines(handle: str, data: str) -> list[str]:
    """The lines of a file: of a text its own, of anything else rows as programs show bytes."""
    try:
        held = base64.b64decode(data, validate=True)
    except ValueError as error:
        raise ToolError(f"The file {handle!r} is not base64, and cannot be read") from error
    text = _text_of(held)
    if text is not None:
        return text.splitlines() or [""]
    return [
        f"{at:08x}  {part.hex(' '):<47}  {_NO_ASCII.sub('.', part.decode('latin-1'))}"
        for at in range(0, len(held), ROW)
        for part in [held[at : at + ROW]]
    ]
