"""Outputs: tool results too large to be shown whole, cut at a line and kept under a handle.

The handle is the id of the effect that gave the result, so it means the same after a restart.
"""

from __future__ import annotations

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


def trimmed(handle: str) -> str:
    """What stands in place of a result that was taken out of the conversation."""
    return f'[an old tool result was removed here; read_output(handle="{handle}") may still have it]'
