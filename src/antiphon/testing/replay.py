"""Replay: a recorded run is taken through its rules again, and everything must follow as it did.

A row is what the runtime was given from outside (a message, the end of an effect, an action's end
with what it published) and what `step` made of it. Given the same facts, at the time of the row and
with the same team, `step` must yield the same events, byte for byte; where it does not, a rule
rests on something that no record holds, and a recovered, forked or upgraded run would go another way.

    differs(run_id, rows)         # the first difference as a text, or ""

Hooks are called again: those that read what changed since, count their calls or draw ids are found.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import zip_longest

import msgspec
from msgspec import Struct

from antiphon.kernel.facts.events import Event, encode
from antiphon.kernel.facts.fold.apply import apply
from antiphon.kernel.facts.state import RunState
from antiphon.kernel.rules.step import step
from antiphon.kernel.rules.team.compiled import CompiledTeam

LONGEST, PATIENCE_S = 3_000, 0.5
"""Rows, and seconds, of one run that are replayed at most; a run beyond either is skipped."""
_SHOWN = 400
"""Bytes of an event that a difference quotes."""
_split = msgspec.json.Decoder(list[msgspec.Raw]).decode


class Recorded(Struct, frozen=True, gc=False):
    """One row as it was written. `given`: how many of its events came from outside.

    body: its events as JSON, large payloads in place. team: what the runtime ran at the time.
    """

    seq: int
    at: float
    given: int
    body: bytes
    events: Sequence[Event]
    team: CompiledTeam


class TooLong(Exception):
    """The run is longer than a replay may take."""


def differs(run_id: str, rows: Sequence[Recorded], patience: float = PATIENCE_S) -> str:
    """The first place where a run does not follow from what it was given; empty when all of it does.

    Raises TooLong beyond LONGEST rows or `patience` seconds.
    """
    if len(rows) > LONGEST:
        raise TooLong
    run, end = RunState(), time.perf_counter() + patience
    for row in rows:
        if time.perf_counter() > end:
            raise TooLong
        found = _row_differs(run, row)
        if found:
            return f"Run {run_id}, row {row.seq}, {found}"
    return ""


def _row_differs(run: RunState, row: Recorded) -> str:
    """Fold one row's given events in and compare what follows from them."""
    run.at = row.at
    for event in row.events[: row.given]:
        apply(run, event)
    recorded = list(map(bytes, _split(row.body)))[row.given :]
    following = _following(run, row.team)
    for number, (was, again) in enumerate(zip_longest(recorded, following, fillvalue=b""), row.given + 1):
        if was != again:
            return f"event {number} of {len(row.events)}:\n  {_difference(was, again)}"
    return ""


def _following(run: RunState, team: CompiledTeam) -> list[bytes]:
    """What the rules make of the run, each event encoded before the next one follows."""
    found: list[bytes] = []

    def emit(event: Event) -> None:
        found.append(encode([event])[1:-1])
        apply(run, event)

    try:
        step(emit, run, team)
    except Exception as error:  # noqa: BLE001 - a rule that raises now, and did not then, is a difference
        found.append(f"{type(error).__name__}: {error}".encode())
    return found


def _difference(was: bytes, again: bytes) -> str:
    """Both texts from a little before the place where they part."""
    parting = next((at for at, (a, b) in enumerate(zip(was, again, strict=False)) if a != b), 0)
    start = max(parting - _SHOWN // 2, 0)
    return f"recorded {_cut(was, start)}\n  replayed {_cut(again, start)}"


def _cut(data: bytes, start: int) -> str:
    if not data:
        return "nothing"
    shown = data[start : start + _SHOWN].decode("utf-8", "replace")
    return "…" * (start > 0) + shown + "…" * (start + _SHOWN < len(data))
