"""What stands in the editor's place while a person is asked: what may be said, and how far it reaches.

Nothing that was typed before answers: until no key has come for a moment, keys go on to write.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from typing import Any, Literal, Protocol

import msgspec
from msgspec import Struct
from rich.text import Text

from antiphon.cli.display import terminal_escape
from antiphon.cli.screen.given import Given
from antiphon.values.policy import CallSubject, Grant

SETTLED = 0.5
"""Seconds without a key after which keys answer."""
OFFERED = 4
"""Patterns that may be allowed for good, at most."""
_UNCLEAR = re.compile(r"[*?\[\];|&<>$`\n]")
"""Signs of a pattern, and of a line of several commands: rules judge each of these alone."""
_SIGNS = re.compile(r"[*?\[]")
_QUOTES = re.compile(r"[\"']")
_SHOWN = 60
LEVELS = 3
"""How far offers reach: a call as it is, its first two words, its first one."""
TOGETHER = 6
"""Patterns of one offer: nobody reads more."""

Reach = tuple[tuple[str, str], ...]
"""Names and patterns of arguments, as in a Grant."""


class OfferedGrant(Struct, frozen=True):
    """How far an `always` may reach, in words."""

    text: str
    grant: Grant


def reaches(tool: str, arguments: str, subjects: Sequence[CallSubject] = ()) -> list[OfferedGrant]:
    """What may be allowed for good when this call is asked for, the narrowest first, OFFERED at most.

    subjects: what the call does, thing by thing, where that is known; each offer then covers all of it.
    Without them a text that may do several things is no pattern.
    """
    if subjects:
        found = [_alike([_reach(each, level) for each in subjects]) for level in range(LEVELS)]
    else:
        found = [[each] for each in _of_arguments(arguments)]
    offers = [_offered(tool, each) for each in found if 0 < len(each) <= TOGETHER]
    every = OfferedGrant(f"every {terminal_escape.line(tool, 64)}", Grant())
    return [*[*dict.fromkeys(offers)][: OFFERED - 1], every]


def _of_arguments(arguments: str) -> list[Reach]:
    texts = _texts(arguments)
    plain = [each for each in texts if not _UNCLEAR.search(each[1])]
    found = [tuple(texts)] if texts and plain == texts else []
    for name, text in plain[:1]:
        found += [((name, each),) for each in _patterns(text) if each != text]
    return found


def _reach(subject: CallSubject, level: int) -> Reach:
    """The arguments that cover one thing that a call does: from 0, as it is, to its first word alone."""
    texts = _texts(subject.arguments)
    if level and texts and texts[0][0] not in subject.verbatim and not _SIGNS.search(texts[0][1]):
        name, text = texts[0]
        patterns = _patterns(text)
        return ((name, patterns[min(level - 1, len(patterns) - 1)]),)
    return tuple((name, _SIGNS.sub(r"[\g<0>]", text)) for name, text in texts)


def _patterns(text: str) -> list[str]:
    """What a text begins like, the longer first; of a path its folder; itself where it is neither."""
    words, folder = text.split(" "), text.rpartition("/")[0]
    if len(words) > 1:
        longer = [f"{words[0]} {words[1]} *"] if len(words) > 2 and not _QUOTES.search(words[1]) else []
        return [*(longer or [text]), f"{words[0]} *"] if not _QUOTES.search(words[0]) else [text]
    return [f"{folder}/*"] if folder and ".." not in text.split("/") else [text]


def _texts(arguments: str) -> list[tuple[str, str]]:
    try:
        given: Any = msgspec.json.decode(arguments or "{}")
    except msgspec.DecodeError:
        given = {}
    items = given.items() if isinstance(given, dict) else ()
    return [(name, text) for name, text in items if isinstance(text, str) and text]


def _alike(found: list[Reach]) -> list[Reach]:
    """Each once; none where one of them would be every call."""
    return [*dict.fromkeys(found)] if all(found) else []


def _offered(tool: str, found: list[Reach]) -> OfferedGrant:
    first, *more = found
    return OfferedGrant(", ".join(_called(tool, each) for each in found), Grant(first, also=tuple(more)))


def _called(tool: str, arguments: Reach) -> str:
    said = ", ".join(terminal_escape.line(text, _SHOWN) for _, text in arguments)
    return f"{terminal_escape.line(tool, 64)}({said})"


class Fill(Protocol):
    """Has a text written in the editor. keep: what was there is not part of any answer."""

    def __call__(self, text: str, *, keep: bool) -> None: ...


class Panel:
    """Asks one question. tool: what is asked for, empty where a text is the answer. offers: whether `always`
    may be given a reach. subjects: what the call does, see `reaches`. given: called once, with the answer.
    changed: called when it is to be drawn again.

    until it is `live`, keys are not for it.
    """

    def __init__(
        self, tool: str, arguments: str, *, offers: bool, given: Callable[[Given], None],
        put: Fill, changed: Callable[[], None], subjects: Sequence[CallSubject] = (),
    ) -> None:  # fmt: skip
        self.tool, self.live = tool, False
        self.mode: Literal["choose", "edit", "reason", "text"] = "choose" if tool else "text"
        self._arguments, self._given, self._put, self._changed = arguments, given, put, changed
        wide = OfferedGrant("for this run", Grant())
        self._reaches = reaches(tool, arguments, subjects) if offers else [wide]
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
