"""Summary: a run in one line, for lists of runs. A cache: whoever folds the run gets the same."""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec import Struct

from antiphon.kernel.facts.events import HumanInput
from antiphon.kernel.facts.state import RunState

TITLE = 120
"""Characters kept of the first message."""


class RunSummary(Struct, frozen=True, gc=False, omit_defaults=True):
    """A run as it was when its record `seq` was the last one."""

    seq: int
    entry: str = ""
    """Whom the user asked last."""
    title: str = ""
    """The start of what was said."""
    state: Literal["open", "waiting", "idle", "closed"] = "idle"
    """`waiting`: a person must answer before an open request can go on."""
    outcome: str = ""
    """Of the request that ended last."""
    tokens: int = 0
    """Input and output."""
    nano_usd: int = 0
    unpriced: int = 0
    """Model calls whose cost is not known, and so not in `nano_usd`."""


def summary_of(run: RunState, seq: int) -> RunSummary:
    """The summary of a folded run."""
    # The user also tells and answers; only the message that a request's call carries opens it.
    asked = next((each.message for each in reversed(run.log) if each.message.id == each.request + ">"), None)
    user = run.activations.get(0)
    ended = list(user.done.values()) if user is not None else []
    busy: Literal["open", "waiting", "idle"] = "idle"
    if user is not None and user.open:
        asks = any(isinstance(opened.detail, HumanInput) for opened in run.open.values())
        busy = "waiting" if asks else "open"
    return RunSummary(
        seq,
        asked.receiver if asked is not None else "",
        asked.content[:TITLE] if asked is not None else "",
        "closed" if run.closed else busy,
        ended[-1].event.outcome if ended else "",
        sum(each.total for each in run.totals.usage.values()),
        run.totals.nano_usd,
        run.totals.unpriced,
    )


encode = msgspec.json.Encoder().encode
decode = msgspec.json.Decoder(RunSummary).decode
