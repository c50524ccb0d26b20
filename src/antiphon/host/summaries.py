"""The list of runs: what it says of one, in words that every list shares."""

from __future__ import annotations

from contextlib import suppress

import msgspec

from antiphon.journal import Journal
from antiphon.journal.listing import RunInfo
from antiphon.kernel.facts.summary import RunSummary, decode, summary_of
from antiphon.kernel.run.rows import fold


async def stored_summary(journal: Journal, info: RunInfo) -> RunSummary:
    """A run in one line: as its last owner wrote it down, or folded where that is missing or old."""
    known = current_summary(info)
    return known if known is not None else summary_of(await fold(journal, info.run_id), info.seq)


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


def state_word(info: RunInfo, known: RunSummary) -> str:
    """A run's state in one word: whether it asks a person, somebody drives it, or how it ended."""
    if known.state == "waiting":
        return "waiting"
    if known.state == "open":
        return "running" if info.owner else "suspended"
    return known.outcome or ("closed" if known.state == "closed" else "idle")
