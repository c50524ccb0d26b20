"""Outputs: tool results too large to be shown whole, cut at a line and kept under a handle.

The handle is the id of the effect that gave the result, so it means the same after a restart.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

READERS = frozenset({"read_output", "grep_output"})
"""Tools whose results are never cut: they are bounded themselves."""
DONE = "Task complete"
"""What the model is shown as the result of a tool that ended the task and said nothing."""
LINE = 1_000
"""Characters of one line that a read or a search shows."""
ANSWER = 65_536
"""Bytes of one answer of `read_output` or `grep_output`."""


def cut(text: str, limit: int, handle: str) -> str:
    """As many whole lines as fit into `limit` bytes, and how to read the rest.

    A text that fits is given back as it is; of a single longer line its beginning is shown.
    """
    data = text.encode("utf-8", "replace")
    if len(data) <= limit:
        return text
    shown = data[:limit]
    end = shown.rfind(b"\n")
    shown = shown[:end] if end > 0 else shown
    lines = text.count("\n") + 1
    return (
        shown.decode("utf-8", "ignore")
        + f"\n[cut: {len(shown):,} of {len(data):,} bytes shown, {lines:,} lines in all; "
        + f'read_output(handle="{handle}") or grep_output(handle="{handle}", pattern=...) shows the rest]'
    )


def trimmed(handle: str) -> str:
    """What stands in place of a result that was taken out of the conversation."""
    return f'[an old tool result was removed here; read_output(handle="{handle}") may still have it]'


def read(text: str, offset: int = 1, limit: int = 200) -> str:
    """Lines `offset` (from 1) and following, numbered; says so when there are none."""
    lines = text.split("\n")
    if offset > len(lines):
        return f"Line {offset} is beyond the end: the output has {len(lines)} lines."
    first = max(offset, 1)
    wanted = lines[first - 1 : first - 1 + max(limit, 1)]
    shown, last = _numbered(enumerate(wanted, first))
    if last < len(lines):
        return shown + f"\n[{len(lines) - last} more lines; go on with offset={last + 1}]"
    return shown + "\n[end of output]"


def find(lines: Sequence[str], pattern: str) -> list[int]:
    """The indexes of the lines that hold a text."""
    return [index for index, line in enumerate(lines) if pattern in line]


def matches(lines: Sequence[str], hits: Sequence[int], pattern: str, around: int = 0, most: int = 50) -> str:
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
