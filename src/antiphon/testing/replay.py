"""Replay: a recorded run is taken through its rules again, and everything must follow as it did.

A row is what the runtime was given from outside (a message, the end of an effect, an action's end
with what it published) and what `step` made of it. Given the same facts, at the time of the row and
with the same team, `step` must yield the same events, byte for byte; where it does not, a rule
rests on something that no record holds, and a recovered, forked or upgraded run would go another way.

    differs(run_id, rows)         # the first difference as a text, or ""

Hooks are called again: those that read what changed since, count their calls or draw ids are found.
So a run that is kept as a file is a regression test of a team, which asks no model and calls no tool:

    await save_run(journal, run_id, "refund.json")      # once
    check_recorded("refund.json", team)                 # in a test, from then on
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest
from math import inf
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from antiphon.errors import ModelError, UnknownName, UserError
from antiphon.journal.port import Journal
from antiphon.kernel.facts.events import Event, RunResumed, RunStarted, decode, encode
from antiphon.kernel.facts.fold.apply import apply
from antiphon.kernel.facts.options import Options
from antiphon.kernel.facts.state import RunState
from antiphon.kernel.rules.step import step
from antiphon.kernel.rules.team.compile import make_team
from antiphon.kernel.rules.team.compiled import CompiledTeam, ModelOption
from antiphon.kernel.run.rows import fold_next, unpack
from antiphon.kernel.run.tools.readers import readers
from antiphon.models.rates import rates_of
from antiphon.values.agent import Agent, AnyAgent, RetryPolicy, agents_of
from antiphon.values.model import Emit, ModelRequest, Reply
from antiphon.view import export_file

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


class ReplayDiffers(AssertionError):
    """Something else follows from what a run was given than what is on record; the text says where."""


async def save_run(journal: Journal, run_id: str, path: str | os.PathLike[str]) -> None:
    """Write a run to a file, as `antiphon runs export` does; one that is there is replaced.

    The file holds all that was said: read it before it is shared. Raises UnknownName, JournalCorrupt.
    """
    entries = await journal.runs()
    entry = next((each for each in entries if each.run_id == run_id), None)
    if entry is None:
        raise UnknownName("run", run_id, [each.run_id for each in entries])
    found, _ = await export_file.export_of(journal, entry)
    text = json.dumps(msgspec.to_builtins(found), ensure_ascii=False, indent=2)
    export_file.write(Path(path), (text + "\n").encode())


def check_recorded(
    path: str | os.PathLike[str], team: AnyAgent | Iterable[AnyAgent], *, same_requests: bool = True
) -> None:
    """Give a recorded run's facts to today's team: everything must follow as it did.

    The facts are what came from outside: requests, answers, replies of models, results of tools. No model is
    asked and no tool is called; hooks are. same_requests: models must be asked the same to the letter, so
    that a changed prompt, tool or setting is a difference; False lets those change as long as the agents go
    the same way. Raises ReplayDiffers with the first difference; OSError, UserError, JournalError for a file
    that cannot be replayed.
    """
    run = export_file.checked(export_file.load(os.fspath(path)))
    given: Any = team
    listed = given if isinstance(given, Iterable) else (given,)
    agents = tuple(each for one in listed for each in agents_of(one))
    state, rows, models = RunState(), list[Recorded](), dict[str, Any]()
    compiled: tuple[Options, CompiledTeam] | None = None
    for row in run.rows:
        body = unpack(row.body, row.refs, dict(run.blobs)) if row.refs else row.body
        events = decode(body)
        if not row.given or encode(events) != body:
            raise UserError(f"{path} is of an older Antiphon and cannot be replayed; record it again")
        fold_next(run.run_id, state, row, events)
        for event in events:
            if isinstance(event, RunStarted | RunResumed) and event.manifest:
                models, compiled = msgspec.json.decode(run.blobs[event.manifest])["models"], None
        if compiled is None or compiled[0] != state.options:
            compiled = state.options, _team(agents, state.options, models)
        rows.append(Recorded(row.seq, row.at, row.given, body, events, compiled[1]))
    found = differs(run.run_id, rows, inf, len(rows), same_requests=same_requests)
    if found:
        raise ReplayDiffers(
            f"{path}: what was recorded does not follow any more. If this is meant, record it again.\n{found}"
        )


class _RecordedModel:
    """Stands for a model in a replay, which asks none."""

    def __init__(self, name: str) -> None:
        self.name = name

    async def complete(self, request: ModelRequest, emit: Emit) -> Reply:
        raise ModelError("validation", f"{self.name} is asked in a replay, which asks no model")


def _team(agents: tuple[Agent, ...], options: Options, recorded: Mapping[str, Any]) -> CompiledTeam:
    """Today's agents with the models that they had, and what was known of those."""

    def models_of(agent: Agent) -> tuple[ModelOption, ...]:
        found = []
        for name, _, window, of_input, of_output, spare, *more in recorded.get(agent.name, ()):
            share = rates_of(_RecordedModel(name), {}).cached_share
            model = _RecordedModel(name)
            retry = msgspec.convert(more[0], RetryPolicy) if more else None
            found.append(
                ModelOption(model, window, of_input, of_output, None, share, spare=spare, retry=retry)
            )
        return tuple(found)

    return make_team(agents, options, models_of, readers)


def differs(
    run_id: str, rows: Sequence[Recorded], patience: float = PATIENCE_S, longest: int | None = None, *,
    same_requests: bool = True,
) -> str:  # fmt: skip
    """The first place where a run does not follow from what it was given; empty when all of it does.

    Raises TooLong beyond `longest` rows (None: LONGEST) or `patience` seconds. same_requests: what models are
    asked is compared too.
    """
    if len(rows) > (LONGEST if longest is None else longest):
        raise TooLong
    run, end = RunState(), time.perf_counter() + patience
    for row in rows:
        if time.perf_counter() > end:
            raise TooLong
        found = _row_differs(run, row, same_requests)
        if found:
            return f"Run {run_id}, row {row.seq}, {found}"
    return ""


def _row_differs(run: RunState, row: Recorded, same_requests: bool) -> str:
    """Fold one row's given events in and compare what follows from them."""
    run.at = row.at
    for event in row.events[: row.given]:
        apply(run, event)
    recorded = list(map(bytes, _split(row.body)))[row.given :]
    following = _following(run, row.team)
    for number, (was, again) in enumerate(zip_longest(recorded, following, fillvalue=b""), row.given + 1):
        if was == again:
            continue
        only_asked = bool(was and again) and _without_request(was) == _without_request(again)
        if only_asked and not same_requests:
            continue
        what = " (an agent's prompt, tools, settings or what it is shown)" if only_asked else ""
        return f"event {number} of {len(row.events)}{what}:\n  {_difference(was, again)}"
    return ""


def _without_request(event: bytes) -> Any:
    """An event without what stands for the words that a model is asked with."""
    try:
        found = msgspec.json.decode(event)
    except msgspec.DecodeError:
        return event
    detail = found.get("detail")
    if isinstance(detail, dict):
        for name in ("digest", "prefix", "held_tokens", "held_nano_usd"):
            detail.pop(name, None)
    return found


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
