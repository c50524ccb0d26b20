"""Reasoning that a model writes into its text: `<think>…</think>` and its kin."""

from __future__ import annotations

import re
from collections.abc import Callable

NAMES = ("think", "thinking", "reason", "reasoning")
_OPEN = re.compile(rf"<({'|'.join(NAMES)})>", re.IGNORECASE | re.ASCII)
_CLOSE = {name: re.compile(f"</{name}>", re.IGNORECASE | re.ASCII) for name in NAMES}
_LONGEST = max(len(name) for name in NAMES) + 3


def strip_reasoning(text: str) -> str:
    """The text outside reasoning tags.

    A tag is closed only by its own name; one that never is takes everything to the end with it.
    A text without tags is given back as it is; otherwise white space around the rest is dropped.
    """
    if "<" not in text or not _OPEN.search(text):
        return text
    outside: list[str] = []
    divider = TagDivider(outside.append, lambda _: None)
    divider.feed(text)
    divider.close()
    return "".join(outside).strip()


class TagDivider:
    """Divides a text that comes in pieces: `text` gets what is outside the tags, `reasoning` the inside."""

    def __init__(self, text: Callable[[str], None], reasoning: Callable[[str], None]) -> None:
        self._text, self._reasoning = text, reasoning
        self._inside = ""
        self._held = ""

    @property
    def plain(self) -> bool:
        """Whether a piece without `<` can bypass `feed`."""
        return not (self._inside or self._held)

    def feed(self, piece: str) -> None:
        """Pass on what is certain; hold back an end that may be the start of a tag."""
        rest, at = self._held + piece, 0
        self._held = ""
        while at < len(rest):
            tag = (_CLOSE[self._inside] if self._inside else _OPEN).search(rest, at)
            to = self._reasoning if self._inside else self._text
            if tag is None:
                self._hold_end(rest[at:], to)
                return
            if tag.start() > at:
                to(rest[at : tag.start()])
            at, self._inside = tag.end(), "" if self._inside else tag[1].lower()

    def close(self) -> None:
        """No more pieces: what was held back is what it looks like."""
        if self._held:
            (self._reasoning if self._inside else self._text)(self._held)
            self._held = ""

    def _hold_end(self, rest: str, to: Callable[[str], None]) -> None:
        """Hand on all but an unfinished tag at the end."""
        at = rest.rfind("<", max(0, len(rest) - _LONGEST + 1))
        if at >= 0 and self._may_become_tag(rest[at:].lower()):
            rest, self._held = rest[:at], rest[at:]
        if rest:
            to(rest)

    def _may_become_tag(self, end: str) -> bool:
        if self._inside:
            return f"</{self._inside}>".startswith(end)
        return any(f"<{name}>".startswith(end) for name in NAMES)
