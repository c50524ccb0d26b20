"""Delegation: agents that call each other with `call_agent` and end with `finish`.

The style needs no code of its own to run: an `Agent` as it is delegates. Here is how to look at
what happened: `event_log`, a flat list that can be filtered, and `trace`, the tree of calls.

    async with stream(lead, "…", agents=team) as events:
        records = [item async for item in events if isinstance(item, Record)]
    print(format_trace(trace(records)))

Both read a run's records from the first on (`Conversation.records()` has those of a stored run),
and give fresh lists of immutable entries: nothing that is done to them reaches the run.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from msgspec import Struct, field

from antiphon import Record, ToolCall
from antiphon.event import EffectFinished, EffectStarted, MessagePosted, TurnStarted

EntryType = Literal[
    "llm_call", "llm_response", "tool_exec", "agent_call", "agent_return", "finish", "error"
]
"""What an entry tells of: a model asked or heard; a tool's result; a call and its return; a `finish`;
anything that went wrong."""

USER_ID = ""
"""The `parent_call_id` of a user's request: nobody called the user."""


class Entry(Struct, frozen=True):
    """One line of the log.

    agent: who did it; of an `agent_call` or `agent_return` the callee. call_id: the call of that
    agent. parent_call_id: the call it was made in. name: of the tool, model or agent. at: Unix
    seconds. text: the message, result or reply; of an error, why.
    """

    type: EntryType
    agent: str
    call_id: str
    parent_call_id: str
    at: float
    name: str = ""
    text: str = ""


class ToolUse(Struct, frozen=True):
    """One call of a tool, with the outcome of its effect. Times in Unix seconds.

    start: when it began; of a call that never did, when it was refused.
    """

    id: str
    name: str
    arguments: str
    start: float
    end: float | None = None
    outcome: str = ""
    result: str = ""


class Span(Struct, frozen=True):
    """One agent at work on one call. `end` is None, and `outcome` empty, while it goes on."""

    agent: str
    call_id: str
    parent_call_id: str
    message: str
    start: float
    end: float | None = None
    outcome: str = ""
    result: str = ""
    tool_calls: tuple[ToolUse, ...] = ()
    children: tuple[Span, ...] = ()


class _Live(Struct):
    """A call as it is being read."""

    agent: str
    call_id: str
    parent: _Live | None
    message: str
    start: float
    calls: tuple[ToolCall, ...] = ()
    given: tuple[ToolCall, ...] = ()
    end: float | None = None
    outcome: str = ""
    result: str = ""
    uses: dict[str, ToolUse] = field(default_factory=dict)
    children: list[_Live] = field(default_factory=list)

    @property
    def parent_id(self) -> str:
        return self.parent.call_id if self.parent is not None else USER_ID

    def wish(self, effect_id: str) -> ToolCall | None:
        """The call of this turn that an effect does."""
        place = effect_id.rpartition(".c")[2].rstrip("?")
        index = int(place) - 1 if place.isdecimal() else -1
        return self.calls[index] if 0 <= index < len(self.calls) else None


class _Reader:
    """Reads records in order: whose call each belongs to, and what it means."""

    def __init__(self) -> None:
        user = _Live("user", USER_ID, None, "", 0.0)
        self.user = user
        self.entries: list[Entry] = []
        self._at_work = {0: user}
        self._calls: dict[str, _Live] = {}

    def take(self, record: Record) -> None:
        """The next record."""
        event, live = record.event, self._at_work.get(record.activation, self.user)
        if isinstance(event, MessagePosted):
            live.given = (*live.given, *event.message.calls)
        elif isinstance(event, TurnStarted):
            live.calls, live.given = event.calls or live.given, ()
        elif isinstance(event, EffectStarted):
            self._started(record, event, live)
        elif isinstance(event, EffectFinished):
            self._finished(record, event, live)

    def _started(self, record: Record, event: EffectStarted, live: _Live) -> None:
        if event.kind == "model":
            self._note("llm_call", record, live, event.name)
            return
        wish = live.wish(event.id)
        arguments = event.arguments or (wish.arguments if wish is not None else "")
        if event.kind == "tool":
            live.uses[event.id] = ToolUse(event.id, event.name, arguments, record.at)
        elif event.kind == "call":
            callee = _Live(event.name, event.id, live, _message(arguments), record.at)
            live.children.append(callee)
            self._calls[event.id] = callee
            self._at_work[len(self._at_work)] = callee
            self._note("agent_call", record, callee, event.name, callee.message)

    def _finished(self, record: Record, event: EffectFinished, live: _Live) -> None:
        reply, failed = event.reply, event.outcome != "completed"
        callee, wish = self._calls.get(event.id), live.wish(event.id)
        if reply is not None:
            live.calls = reply.calls
            self._note("llm_response", record, live, reply.model, reply.content)
        elif callee is not None:
            callee.end, callee.outcome, callee.result = record.at, event.outcome, event.content
            self._note("agent_return", record, callee, callee.agent, event.content)
        elif event.id in live.uses or (wish is not None and wish.name not in ("call_agent", "finish")):
            name = self._used(record, event, live, wish)
            self._note("tool_exec", record, live, name, event.content)
        elif event.ends and not failed:
            self._note("finish", record, live, "finish", event.content)
        if failed and event.outcome != "skipped":
            name = callee.agent if callee is not None else wish.name if wish is not None else ""
            self._note("error", record, callee or live, name, event.why)

    def _used(self, record: Record, event: EffectFinished, live: _Live, wish: ToolCall | None) -> str:
        known = live.uses.get(event.id)
        if known is None:
            name, arguments = (wish.name, wish.arguments) if wish is not None else ("", "")
            known = ToolUse(event.id, name, arguments, record.at)
        result = event.content or event.why
        live.uses[event.id] = ToolUse(
            known.id, known.name, known.arguments, known.start, record.at, event.outcome, result
        )
        return known.name

    def _note(self, type_: EntryType, record: Record, live: _Live, name: str, text: str = "") -> None:
        self.entries.append(Entry(type_, live.agent, live.call_id, live.parent_id, record.at, name, text))


def _message(arguments: str) -> str:
    return _decode(arguments).message


def event_log(records: Iterable[Record], *, agent: str = "", type: EntryType | Literal[""] = "") -> list[Entry]:
    """What happened, in order; of one agent or of one type only, if asked."""
    entries = _read(records).entries
    return [each for each in entries if agent in ("", each.agent) and type in ("", each.type)]


def trace(records: Iterable[Record]) -> tuple[Span, ...]:
    """The tree of calls, one root for each request of the user."""
    return tuple(_span(each) for each in _read(records).user.children)


def _read(records: Iterable[Record]) -> _Reader:
    reader = _Reader()
    for record in records:
        reader.take(record)
    return reader
