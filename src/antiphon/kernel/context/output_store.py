"""Outputs: tool results too large to be shown whole, cut at a line and kept under a handle.

The handle is the id of the effect that gave the result, so it means the same after a restart.
"""

from __future__ import annotations

from collections.abc import Iterable

from antiphon.values.message import Attachment

FILE_MARK = "#"
"""In the handle of a file: behind it stands its number among the files of the result, from 1."""
READERS = frozenset({"read_output", "grep_output"})
"""Tools whose results are never cut: they are bounded themselves."""
DONE = "Task complete"
"""What the model is shown as the result of a tool that ended the task and said nothing."""


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


def files_apart(
    content: str, files: Iterable[Attachment], handle: str
) -> tuple[str, tuple[Attachment, ...], list[tuple[str, str]]]:
    """A result whose files are not all shown: its text, which names those first; the others; and what is
    kept of those, by their handles, in base64."""
    shown, told, kept = list[Attachment](), list[str](), list[tuple[str, str]]()
    for number, each in enumerate(files, 1):
        if each.shown:
            shown.append(each)
            continue
        name = f"{handle}{FILE_MARK}{number}"
        what = " ".join(f"{each.name}, {each.media_type}".split())[:300].removeprefix(", ")
        size = len(each.data) * 3 // 4
        told.append(f'[not shown: {what}, about {size:,} bytes; read_output(handle="{name}") reads it]')
        kept.append((name, each.data))
    return "\n".join([*told, content] if content else told), tuple(shown), kept


def trimmed(handle: str) -> str:
    """What stands in place of a result that was taken out of the conversation."""
    return f'[an old tool result was removed here; read_output(handle="{handle}") may still have it]'
