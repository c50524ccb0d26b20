"""Runs as compact lines: what a test puts in is a script, what it compares is a transcript.

    1/1.m1 model started
    1/1.m1 completed: [add]
    1/1.c1 tool add started
    1/1.c1 completed: 3

An id is `activation/turn.place`: c a call, c? its approval, m an attempt of the model, w a wait.
"""

import asyncio
from collections.abc import Iterable
from contextlib import aclosing
from typing import Any

from antiphon import Record, Result, RunFailed
from antiphon.kernel.facts.events import (
    ApprovalEffect,
    CallEffect,
    CancelRequested,
    Detail,
    EffectFinished,
    EffectStarted,
    LimitEffect,
    MessagePosted,
    ModelEffect,
    PermissionDecided,
    QuestionEffect,
    ResultEffect,
    RoomEffect,
    RunClosed,
    RunResumed,
    RunStarted,
    StateChanged,
    TimerEffect,
    TranscriptCompacted,
    TurnFinished,
    TurnStarted,
)
from antiphon.kernel.run.api import stream


def line(record: Record) -> str:
    """One record in one line, without times and digests."""
    match record.event:
        case RunStarted():
            return "run started"
        case RunResumed():
            return "run resumed"
        case RunClosed():
            return "run closed"
        case MessagePosted(message=message, dead_letter=""):
            return f"mail for {record.agent}: {message.sender}: {message.content or _calls(message.calls)}"
        case MessagePosted(message=message, dead_letter=dead):
            return f"dead letter for {message.receiver}: {message.content} ({dead})"
        case TurnStarted(activation=number, messages=taken):
            return f"{number} {record.agent} turn started, {taken} taken"
        case TurnFinished(activation=number, another_turn=more, reminder=nudge):
            return f"{number} {record.agent} turn finished" + ", more" * more + ", nudged" * bool(nudge)
        case EffectStarted() as event:
            return f"{event.id} {' '.join(part for part in _words(event.detail) if part)} started"
        case EffectFinished(reply=None) as event:
            said = "; ".join(
                part for part in (event.content, event.reason or str(event.failure or "")) if part
            )
            return f"{event.id} {event.outcome}" + (f": {said}" if said else "")
        case EffectFinished(reply=reply) as event:
            said = " ".join(part for part in (reply.content, _calls(reply.calls)) if part)
            return f"{event.id} {event.outcome}: {said}"
        case PermissionDecided() as event:
            return f"{event.id} {'allowed' if event.allowed else 'refused'} by {event.decided_by}"
        case TranscriptCompacted(activation=number, trimmed=trimmed, summary=summary):
            what = f"{trimmed} results trimmed" if trimmed else f"compacted: {summary}"
            return f"{number} {record.agent} {what}"
        case StateChanged(activation=number, set=changed, append=longer):
            return f"{number} {record.agent} set {changed}" + (f", appended {longer}" if longer else "")
        case CancelRequested(target=target):
            return f"cancel {target or 'everything'}"
    raise AssertionError(f"no line for {record.type}")


def _words(detail: Detail) -> tuple[str, ...]:
    """What an effect is, and of what."""
    match detail:
        case ModelEffect(purpose=purpose):
            return ("model", purpose if purpose != "reply" else "")
        case CallEffect(agent=agent, own_model=own, breach=breach):
            return ("call", "ask" if own else "limit" if breach else "", agent)
        case ApprovalEffect(name=name):
            return ("wait", "approval", name)
        case QuestionEffect():
            return ("wait", "question", "user")
        case LimitEffect():
            return ("wait", "limit", "user")
        case TimerEffect(purpose=purpose):
            return ("wait", purpose)
        case ResultEffect(call_id=call_id):
            return ("wait", "result", call_id)
        case RoomEffect():
            return ("wait", "room")
    return (
        type(detail).__name__.removesuffix("Effect").lower(),
        getattr(detail, "name", "") or getattr(detail, "agent", ""),
    )


def _calls(calls: Iterable[Any]) -> str:
    names = ", ".join(call.name for call in calls)
    return f"[{names}]" if names else ""


def lines(records: Iterable[Record]) -> list[str]:
    """Every record, one line each."""
    return [line(record) for record in records]


def effects(records: Iterable[Record], *kinds: str) -> list[str]:
    """The lines of effects and rulings alone; `kinds`: only effects whose place begins with one of these."""
    types = (EffectStarted, EffectFinished, PermissionDecided)
    found = [record for record in records if isinstance(record.event, types)]
    return [line(each) for each in found if not kinds or each.event.id.rpartition(".")[2].startswith(kinds)]


async def recorded_run(entry: Any, message: str, **options: Any) -> tuple[Result, list[Record]]:
    """Run to the end: the result, of a failed run too, and every record up to the request's end."""
    async with stream(entry, message, **options) as events:
        records = [item async for item in events if isinstance(item, Record)]
        try:
            return await events.result(), records
        except RunFailed as failed:
            return failed.result, records


def recorded(entry: Any, message: str, **options: Any) -> tuple[Result, list[Record]]:
    """`recorded_run` for tests without a loop."""
    return asyncio.run(recorded_run(entry, message, **options))


def shown(request: Any) -> list[str]:
    """What a model request shows, `role: text` per message, its tail last; calls as `role: [names]`."""
    said = [
        f"{each.role}: " + " ".join(part for part in (each.content, _calls(each.calls)) if part)
        for each in request.messages
    ]
    return [*said, f"tail: {request.tail}"] if request.tail else said


def results_shown(request: Any) -> list[str]:
    """The tool results in a model request, in their order."""
    return [each.content for each in request.messages if each.role == "tool"]


def sent(result: Result) -> list[str]:
    """The message log, `type sender>receiver: text` each."""
    return [f"{each.type} {each.sender}>{each.receiver}: {each.content}" for each in result.messages]


PATIENCE = 60
"""Seconds after which what should have happened has not; never reached when all is well."""


async def until(run: Any, said: str) -> None:
    """Read a run's records from the first on until one of them is this line."""
    async with asyncio.timeout(PATIENCE), aclosing(run.events(deltas=False)) as events:
        async for record in events:
            if line(record) == said:
                return


class Gate:
    """A scripted reply that is held back until somebody opens the gate."""

    def __init__(self, reply: Any) -> None:
        self.open, self._reply = asyncio.Event(), reply

    async def __call__(self, request: object) -> Any:
        await self.open.wait()
        return self._reply
