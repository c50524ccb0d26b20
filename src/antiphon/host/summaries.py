"""The list of runs: what it says of one, in words that every list shares."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import get_args

import msgspec
from msgspec.structs import replace

from antiphon.journal import Journal
from antiphon.journal.listing import RunFilter, RunInfo
from antiphon.kernel.facts.summary import RunSummary, decode, summary_of
from antiphon.kernel.run.snapshots.keeping import latest_state
from antiphon.values.result import Outcome

STATES: Mapping[str, RunFilter] = {
    "running": RunFilter(states=("open",), driven=True),
    "suspended": RunFilter(states=("open",), driven=False),
    "waiting": RunFilter(states=("waiting",)),
    "idle": RunFilter(states=("idle",)),
    "closed": RunFilter(states=("closed",)),
    **{
        outcome: RunFilter(states=("idle", "closed"), outcomes=(outcome,))
        for outcome in get_args(Outcome)[:7]
    },
}
"""How a store finds runs by the word for their state; the last seven are how a request can end.

It knows what a run last told of itself, at most a second ago while somebody drives it. One whose owner has
died since is found as it was then, until it is taken up again.
"""


def in_state(where: RunFilter, word: str) -> RunFilter:
    """The runs of a filter whose state is that word, one of STATES."""
    found = STATES[word]
    return replace(where, states=found.states, driven=found.driven, outcomes=found.outcomes)


async def stored_summary(journal: Journal, info: RunInfo) -> RunSummary:
    """A run in one line: as its last owner wrote it down, or folded where that is missing or old."""
    known = current_summary(info)
    if known is None:
        known = summary_of((await latest_state(journal, info.run_id)).state, info.seq)
    return known


def current_summary(info: RunInfo) -> RunSummary | None:
    """What its owner wrote down; None without it, or where an owner that has died wrote more after it.

    An owner that lives tells what changes, within a second.
    """
    if info.summary:
        # It is a cache: one that a later version wrote in its own way is as good as none.
        with suppress(msgspec.MsgspecError):
            known = decode(info.summary)
            if known.seq == info.seq or (info.owner and known.seq and known.activity):
                return known
    return None


def is_closed(info: RunInfo) -> bool:
    """Whether the list of runs says that a run is closed."""
    known = current_summary(info)
    return known is not None and known.state == "closed"


def state_word(info: RunInfo, known: RunSummary) -> str:
    """A run's state in one word: whether it asks a person, somebody drives it, or how it ended."""
    if known.state == "waiting":
        return "waiting"
    if known.state == "open":
        return "running" if info.owner else "suspended"
    return known.outcome or ("closed" if known.state == "closed" else "idle")
