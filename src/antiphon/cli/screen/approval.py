"""What stands in the editor's place while a person is asked: what may be said, and how far it reaches.

Nothing that was typed before answers: until no key has come for a moment, keys go on to write.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from typing import Any, Literal, Protocol

import msgspec
from msgspec import Struct
from rich.text import Text

from antiphon.cli.display import terminal_escape
from antiphon.cli.screen.given import Given
from antiphon.values.policy import Grant

SETTLED = 0.5
"""Seconds without a key after which keys answer."""
OFFERED = 4
"""Patterns that may be allowed for good, at most."""
_UNCLEAR = re.compile(r"[*?\[\];|&<>$`\n]")
"""Signs of a pattern, and of a line of several commands: rules judge each of these alone."""
_SHOWN = 60


class OfferedGrant(Struct, frozen=True):
    """How far an `always` may reach, in words."""

    text: str
    grant: Grant


def reaches(tool: str, arguments: str) -> list[OfferedGrant]:
    """What may be allowed for good when this call is asked for, the narrowest first, OFFERED at most."""
    try:
        given: Any = msgspec.json.decode(arguments or "{}")
    except msgspec.DecodeError:
        given = {}
    items = given.items() if isinstance(given, dict) else ()
    texts = [(name, text) for name, text in items if isinstance(text, str) and text]
    found: list[tuple[tuple[str, str], ...]] = []
    plain = [each for each in texts if not _UNCLEAR.search(each[1])]
    if texts and plain == texts:
        found.append(tuple(texts))
    for name, text in plain[:1]:
        words, folder = text.split(" "), text.rpartition("/")[0]
        if len(words) > 2:
            found.append(((name, f"{words[0]} {words[1]} *"),))
        if len(words) > 1:
            found.append(((name, f"{words[0]} *"),))
        elif folder and ".." not in text.split("/"):
            found.append(((name, f"{folder}/*"),))
    offered = [OfferedGrant(_called(tool, each), Grant(each)) for each in dict.fromkeys(found)][: OFFERED - 1]
    return [*offered, OfferedGrant(f"every {terminal_escape.line(tool, 64)}", Grant())]


def _called(tool: str, arguments: tuple[tuple[str, str], ...]) -> str:
    said = ", ".join(terminal_escape.line(text, _SHOWN) for _, text in arguments)
    return f"{terminal_escape.line(tool, 64)}({said})"


class Fill(Protocol):
    """Has a text written in the editor. keep: what was there is not part of any answer."""

    def __call__(self, text: str, *, keep: bool) -> None: ...


class Panel:
    """Asks one question. tool: what is asked for, empty where a text is the answer. offers: whether `always`
    may be given a reach. given: called once, with the answer. changed: called when it is to be drawn again.

    until it is `live`, keys are not for it.
    """

    def __init__(
        self, tool: str, arguments: str, *, offers: bool, given: Callable[[Given], None],
        put: Fill, changed: Callable[[], None],
    ) -> None:  # fmt: skip
        self.tool, self.live = tool, False
        self.mode: Literal["choose", "edit", "reason", "text"] = "choose" if tool else "text"
        self._arguments, self._given, self._put, self._changed = arguments, given, put, changed
        self._reaches = reaches(tool, arguments) if offers else [OfferedGrant("for this run", Grant())]
        self._wrong = ""
        self._timer: asyncio.TimerHandle | None = None

    @property
    def writes(self) -> bool:
        """Whether keys write what is sent as an answer."""
        return self.live and self.mode != "choose"

    @property
    def mark(self) -> str:
        """What stands before what is written."""
        return {"edit": "arguments: ", "reason": "why not: ", "text": "answer: "}.get(self.mode, "> ")

    def wait(self, become_live: Callable[[], None]) -> None:
        """Let a moment pass without a key, then be live; called again with each key."""
        self.close()
        self._timer = asyncio.get_running_loop().call_later(SETTLED, become_live)

    def close(self) -> None:
        """Wait no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def rows(self) -> list[Text]:
        """What may be said."""
        style = "bold" if self.live else "dim"
        if self.mode == "text":
            return []
        if self.mode != "choose":
            told = {"edit": "Enter allows the call with these arguments, Esc goes back",
                    "reason": "Enter says no, with what is written as the reason, Esc goes back"}  # fmt: skip
            return [Text(self._wrong, "yellow")] * bool(self._wrong) + [Text(told[self.mode], "dim")]
        rows = [Text("  y  yes, once", style)]
        for number, each in enumerate(self._reaches, 1):
            key = "a" if number == len(self._reaches) else str(number)
            rows.append(Text(f"  {key}  always: {each.text}", style))
        edits = [Text("  e  edit the arguments", style)] if self._arguments else []
        return [*rows, *edits, Text("  n  no; why may be said", style)]

    def pressed(self, key: str) -> bool:
        """Take a key of a live panel; whether it was for it. What says nothing here is written."""
        if self.mode != "choose":
            if key == "escape" and self.mode != "text":
                self._switch("choose", "")
                return True
            return False
        if key in ("y", "Y"):
            self._given(Given("yes"))
        elif key in ("a", "A"):
            self._given(Given("always", grant=self._reaches[-1].grant))
        elif key.isdecimal() and 0 < int(key) < len(self._reaches):
            self._given(Given("always", grant=self._reaches[int(key) - 1].grant))
        elif key in ("e", "E") and self._arguments:
            self._switch("edit", self._arguments)
        elif key in ("n", "N"):
            self._switch("reason", "")
        else:
            # Nothing is sent from behind a question.
            return key == "enter"
        return True

    def sent(self, text: str) -> None:
        """What was written is the answer."""
        if self.mode == "reason":
            self._given(Given("no", reason=text.strip()))
        elif self.mode == "text":
            self._given(Given(text))
        else:
            try:
                edited = msgspec.json.decode(text)
            except msgspec.DecodeError as error:
                edited, self._wrong = None, f"(no JSON: {terminal_escape.line(str(error), 100)})"
            if isinstance(edited, dict):
                self._given(Given("yes", arguments=text))
            else:
                self._wrong = self._wrong or "(arguments are a JSON object)"
                self._put(text, keep=False)
                self._changed()

    def _switch(self, mode: Literal["choose", "edit", "reason"], text: str) -> None:
        before, self.mode, self._wrong = self.mode, mode, ""
        self._put(text, keep=before == "choose")
        self._changed()
