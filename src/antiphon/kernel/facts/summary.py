"""Outline: a run in one line, for lists of runs. A cache: whoever folds the run gets the same."""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec import Struct

from antiphon.kernel.facts.events import ASKING
from antiphon.kernel.facts.state import State
from antiphon.values.model import Usage

TITLE = 120
"""Characters kept of the first message."""


class Outline(Struct, frozen=True, gc=False, omit_defaults=True):
    """A run as it was when its record `seq` was the last one.

    entry, title: whom the user asked last, and the start of what was said.
    state: `open` while a request is open, `waiting` when a person must answer first, `rest` when
    nothing is open, `closed`. outcome: of the request that ended last. tokens: input and output.
    spent: nano-USD. unpriced: model calls whose cost is not known, and so not in `spent`.
    """

    seq: int
    entry: str = ""
    title: str = ""
    state: Literal["open", "waiting", "rest", "closed"] = "rest"
    outcome: str = ""
    tokens: int = 0
    spent: int = 0
    unpriced: int = 0


def outline(state: State, seq: int) -> Outline:
    """The outline of a folded run."""
    # The user also tells and answers; only the message that a request's call carries opens it.
    asked = next(
        (each.message for each in reversed(state.log) if each.message.id == each.request + ">"), None
    )
    user = state.activations.get(0)
    ended = list(user.done.values()) if user is not None else []
    busy: Literal["open", "waiting", "rest"] = "rest"
    if user is not None and user.open:
        asks = any(opened.effect.purpose in ASKING for opened in state.open.values())
        busy = "waiting" if asks else "open"
    return Outline(
        seq,
        asked.receiver if asked is not None else "",
        asked.content[:TITLE] if asked is not None else "",
        "closed" if state.closed else busy,
        ended[-1].event.outcome if ended else "",
        sum(state.usage.values(), Usage()).total,
        state.spent,
        state.unpriced,
    )


encode = msgspec.json.Encoder().encode
decode = msgspec.json.Decoder(Outline).decode
