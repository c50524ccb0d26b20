"""After a crash: what a run came to, and whether anything was lost, repeated or told wrongly."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from antiphon.journal.port import Journal
from antiphon.kernel.context.tool_search import SEARCH_TOOLS
from antiphon.kernel.facts.events import (
    CallEffect,
    EffectFinished,
    EffectStarted,
    MessagePosted,
    StepEffect,
    ToolEffect,
    ToolsetOffered,
)
from antiphon.kernel.facts.fold.apply import apply
from antiphon.kernel.facts.ids import activation_of
from antiphon.kernel.facts.state import RunState
from antiphon.kernel.run.rows import events_of
from antiphon.testing.invariants import InvariantBroken, check_run
from antiphon.testing.world import World, lines
from antiphon.values.agent import Agent, own_tools
from antiphon.values.tool import Tool, tool
from antiphon.values.tool.offered import tool_of

IN_DOUBT = "it may or may not have taken effect"
"""What an agent is told of a tool that a crash left unknown."""


@tool(effect="idempotent")
async def _step() -> None:
    """A step of an action, as far as its contract goes: what a crash cut off is run again."""


@tool(effect="read")
async def _search() -> None:
    """The kernel's own search of tools, as far as its contract goes."""


_ID = re.compile(rb"\b[0-9a-f]{32}\b")
"""An id of a message, which is another one each time."""


class ProcessSnapshot(Struct, frozen=True):
    """What a process found when it began: tools and steps ended and in flight, how often each ran."""

    ended: tuple[str, ...] = ()
    in_flight: tuple[str, ...] = ()
    deeds: dict[str, int] = {}


class RunOutcome(Struct, frozen=True):
    """What a run came to, without what a crash may change (numbers, times, ids of messages).

    requests: outcome and output of each. said: what each activation said and heard, by the path of
    calls that led to it. log: the messages between agents. kept: what actions recorded, by the same path.
    """

    requests: dict[str, tuple[str, str]]
    said: dict[str, list[tuple[str, str, str, str]]]
    log: list[tuple[str, str, str, str]]
    kept: dict[str, dict[str, Any]] = {}


async def look(journal: Journal, run_id: str, world: World) -> ProcessSnapshot:
    """The life of a process that begins now."""
    in_flight: dict[str, None] = {}
    ended = []
    for row in await journal.read(run_id):
        for event in await events_of(journal, run_id, row):
            if type(event) is EffectStarted and type(event.detail) in (ToolEffect, StepEffect):
                in_flight[world.known_as(event.id)] = None
            elif type(event) is EffectFinished and world.known_as(event.id) in in_flight:
                del in_flight[world.known_as(event.id)]
                ended.append(world.known_as(event.id))
    return ProcessSnapshot(tuple(ended), tuple(in_flight), _counts(world))


async def account_of(journal: Journal, run_id: str) -> RunOutcome:
    """Fold a stored run once more, event by event."""
    state = RunState()
    paths = {0: ""}
    requests: dict[str, tuple[str, str]] = {}
    said: dict[str, list[tuple[str, str, str, str]]] = {}
    log: list[tuple[str, str, str, str]] = []
    kept: dict[str, dict[str, Any]] = {}
    for row in await journal.read(run_id):
        state.at = row.at
        for event in await events_of(journal, run_id, row):
            if type(event) is EffectFinished:
                opened = state.open.get(event.id)
                if opened is not None and opened.child:
                    callee = state.activations[opened.child]
                    said[paths[opened.child]] = [
                        (each.role, each.content, each.call_id, _calls(each.calls))
                        for each in callee.conversation.transcript.messages
                    ]
                    kept[paths[opened.child]] = dict(callee.data)
                    if not activation_of(event.id):
                        requests[event.id] = event.outcome, event.content
            before = len(state.log)
            apply(state, event)
            log += [
                (one.message.type, one.message.sender, one.message.receiver, one.message.content)
                for one in state.log[before:]
            ]
            begun, number = "", 0
            if type(event) is EffectStarted and type(event.detail) is CallEffect and not event.detail.queued:
                begun, number = event.id, event.detail.reactivates or state.activation_count
            elif type(event) is MessagePosted and event.begins:
                begun, number = event.begins, event.to
            if begun:
                paths[number] = f"{paths[activation_of(begun)]}/{begun.partition('/')[2]}"
    found = RunOutcome(requests, said, sorted(log), {path: data for path, data in kept.items() if data})
    return msgspec.json.decode(_ID.sub(b"(id)", msgspec.json.encode(found)), type=RunOutcome)


def _calls(calls: Iterable[Any]) -> str:
    return "; ".join(f"{each.id} {each.name} {each.arguments}" for each in calls)


async def judge(
    journal: Journal,
    run_id: str,
    folder: Path,
    agents: Sequence[Agent],
    world: World,
    account: RunOutcome,
    expected: RunOutcome | None,
) -> list[str]:
    """Everything that is wrong with a run that has been seen through; empty when nothing is."""
    tools = {each.name: each for agent in agents for each in own_tools(agent)}
    reading = {name for name, each in tools.items() if not each.has_side_effects}
    reading |= {SEARCH_TOOLS} - tools.keys()
    wrong = []
    try:
        await check_run(journal, run_id, reading=reading)
    except InvariantBroken as error:
        wrong.append(str(error))
    wrong += await _lost(journal, run_id, folder)
    wrong += await _repeated(journal, run_id, folder, tools, world)
    if expected is not None:
        wrong += _differences(account, expected)
    return wrong


async def judge_forks(journal: Journal, run_id: str, account: RunOutcome) -> list[str]:
    """What is wrong with the fork of a run, made when all requests had ended: there is one, a whole one."""
    forks = [each.run_id for each in await journal.runs() if each.origin == run_id]
    wrong = [] if len(forks) == 1 else [f"there are {len(forks)} forks"]
    rows = list(await journal.read(run_id))
    for each in forks:
        try:
            await check_run(journal, each)
        except InvariantBroken as error:
            wrong.append(str(error))
        taken = [row for row in await journal.read(each) if row in rows]
        if not taken or rows[: len(taken)] != taken or len(await journal.read(each)) != len(taken) + 1:
            wrong.append(f"{each} is no beginning of {run_id} with a record of its own")
        wrong += _differences(await account_of(journal, each), account)
    return wrong


async def _lost(journal: Journal, run_id: str, folder: Path) -> list[str]:
    """Rows that were acknowledged and are not there; a command that was never taken in."""
    rows = await journal.read(run_id)
    stored = {b"%d %s" % (row.seq, row.digest.hex().encode()) for row in rows}
    wrong = [
        f"row {line.decode()} was acknowledged and is lost"
        for line in lines(folder / "acknowledged")
        if line not in stored
    ]
    taken: set[int] = set()
    for row in rows:
        taken.update(getattr(event, "command", 0) for event in await events_of(journal, run_id, row))
    asked = [command for command in await journal.commands(run_id) if command.key.startswith("request ")]
    return wrong + [
        f"command {command.key} was never taken in" for command in asked if command.number not in taken
    ]


async def _repeated(
    journal: Journal, run_id: str, folder: Path, tools: dict[str, Tool], world: World
) -> list[str]:
    """Tools and steps that ran when their contract says they must not, or did not when it says they must."""
    started: dict[str, Tool] = {}
    offered: dict[str, Tool] = {}
    ends: dict[str, EffectFinished] = {}
    deeds, now, known = world.deeds(), _counts(world), {SEARCH_TOOLS: _search} | tools
    for row in await journal.read(run_id):
        of_this_row: set[str] = set()
        for event in await events_of(journal, run_id, row):
            if type(event) is EffectStarted and type(event.detail) in (ToolEffect, StepEffect):
                detail = event.detail
                name = world.known_as(event.id)
                started[name] = _step
                if type(detail) is ToolEffect:
                    started[name] = offered.get(detail.digest) or known[detail.name]
                of_this_row.add(name)
            elif type(event) is ToolsetOffered:
                offered.update({each.digest: each for each in map(tool_of, event.tools or ())})
            elif type(event) is EffectFinished:
                ends[world.known_as(event.id)] = event
                if world.known_as(event.id) in of_this_row:
                    # Answered by a rule of the agent: nothing was to be performed.
                    del started[world.known_as(event.id)]
    lives = [msgspec.json.decode(line, type=ProcessSnapshot) for line in lines(folder / "lives")]
    wrong = [f"{each} ran though its start is not on record" for each in now if each not in started]
    for life in lives:
        for each in life.ended:
            if now.get(each, 0) != life.deeds.get(each, 0):
                wrong.append(f"{each} had ended and ran again")
    for each, contract in started.items():
        count, end = now.get(each, 0), ends.get(each)
        lost = [life for life in lives if each in life.in_flight]
        if len({deed.key for deed in deeds if deed.effect_id == each}) > 1:
            wrong.append(f"{each} ran under different keys")
        if contract.effect == "once" and count > 1:
            wrong.append(f"{each} ({contract.name}, once) ran {count} times")
        # A reading tool does not wait until its start is on record, so each process may run it once.
        if count > (1 + len(lost) if contract.has_side_effects else len(lives)):
            wrong.append(f"{each} ran {count} times, {len(lost)} crashes found it in flight")
        if end is None:
            continue
        if (
            contract.effect == "once"
            and lost
            and contract.reconcile is None
            and end.outcome not in ("unknown", "cancelled")
        ):
            wrong.append(f"{each} was in flight and is {end.outcome}, not unknown")
        # The kernel's own search tells the world nothing of it where calls are not counted.
        quiet = contract is _search or (lost and contract.reconcile)
        if end.outcome == "completed" and not count and not quiet:
            wrong.append(f"{each} is completed and never ran")
        if contract.effect != "once" and end.outcome == "unknown":
            wrong.append(f"{each} could be run again and is unknown")
    return wrong


def _counts(world: World) -> dict[str, int]:
    counts: dict[str, int] = {}
    for deed in world.deeds():
        counts[deed.effect_id] = counts.get(deed.effect_id, 0) + 1
    return counts


def _differences(account: RunOutcome, expected: RunOutcome) -> list[str]:
    wrong = []
    if account.requests != expected.requests:
        wrong.append(f"requests ended {account.requests}, uninterrupted {expected.requests}")
    if account.log != expected.log:
        wrong.append(f"the messages are {account.log}, uninterrupted {expected.log}")
    if account.kept != expected.kept:
        wrong.append(f"on record is {account.kept}, uninterrupted {expected.kept}")
    if account.said.keys() != expected.said.keys():
        wrong.append(f"agents were called at {sorted(account.said)}, uninterrupted {sorted(expected.said)}")
    for path in account.said.keys() & expected.said.keys():
        mine, theirs = account.said[path], expected.said[path]
        if len(mine) != len(theirs) or not all(map(_same, mine, theirs)):
            wrong.append(f"{path} has the conversation {mine}, uninterrupted {theirs}")
    return wrong


def _same(mine: tuple[str, str, str, str], theirs: tuple[str, str, str, str]) -> bool:
    """Equal, or a result that the crash left in doubt and says so."""
    return mine == theirs or (mine[0] == "tool" and IN_DOUBT in mine[1] and mine[2:] == theirs[2:])
