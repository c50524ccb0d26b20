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

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from antiphon import Record, ToolCall
from antiphon.kernel.facts.events import EffectFinished, EffectStarted, MessagePosted, TurnStarted
from antiphon.values.message import USER

EntryType = Literal["llm_call", "llm_response", "tool_exec", "agent_call", "agent_return", "finish", "error"]
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
    """A call as it is being read. `inbox`: the calls that came with each message not taken yet."""

    agent: str
    call_id: str
    parent: _Live | None
    message: str
    start: float
    inbox: list[tuple[ToolCall, ...]]
    calls: tuple[ToolCall, ...] = ()
    end: float | None = None
    outcome: str = ""
    result: str = ""
    uses: dict[str, ToolUse] = field(default_factory=dict)
    children: list[_Live] = field(default_factory=list)

    @property
    def parent_id(self) -> str:
        """The call that this one was made in."""
        return self.parent.call_id if self.parent is not None else USER_ID

    def wish(self, effect_id: str) -> ToolCall:
        """The call of this turn that an effect does."""
        place = effect_id.rpartition(".c")[2]
        index = int(place) - 1 if place.isdecimal() else -1
        return self.calls[index] if 0 <= index < len(self.calls) else _NONE


_NONE = ToolCall("", "")


class _Asked(Struct):
    message: str = ""


_asked = msgspec.json.Decoder(_Asked).decode


class _Reader:
    """Reads records in order: whose call each belongs to, and what it means."""

    def __init__(self) -> None:
        self.user = _Live(USER, USER_ID, None, "", 0.0, [])
        self.entries: list[Entry] = []
        self._at_work = {0: self.user}
        self._calls: dict[str, _Live] = {}
        self._ending: set[str] = set()
        self._born = 0

    def take(self, record: Record) -> None:
        """The next record."""
        event, live = record.event, self._at_work.get(record.activation, self.user)
        if isinstance(event, MessagePosted):
            if not event.dead:
                live.inbox.append(event.message.calls)
        elif isinstance(event, TurnStarted):
            given = tuple(call for calls in live.inbox[: event.taken] for call in calls)
            del live.inbox[: event.taken]
            live.calls = event.calls if event.calls is not None else given
        elif isinstance(event, EffectStarted):
            self._started(record, event, live)
        elif isinstance(event, EffectFinished) and not event.id.endswith("?"):
            self._finished(record, event, live)

    def _started(self, record: Record, event: EffectStarted, live: _Live) -> None:
        arguments = event.arguments or live.wish(event.id).arguments
        if event.kind == "model":
            self._note("llm_call", record, live, event.name)
        elif event.kind == "tool" or event.purpose == "result":
            name = event.name if event.kind == "tool" else live.wish(event.id).name
            live.uses[event.id] = ToolUse(event.id, name, arguments, record.at)
            if event.ends:
                self._ending.add(event.id)
        elif event.kind == "call" or event.purpose == "question":
            callee = _Live(event.name, event.id, live, _asked(arguments).message, record.at, [()])
            live.children.append(callee)
            self._calls[event.id] = callee
            if event.kind == "call":
                # The number of one that goes on with an earlier call; others are counted.
                self._born += not event.continues
                self._at_work[event.continues or self._born] = callee
            self._note("agent_call", record, callee, event.name, callee.message)

    def _finished(self, record: Record, event: EffectFinished, live: _Live) -> None:
        failed, wish = event.outcome != "completed", live.wish(event.id)
        callee = self._calls.get(event.id)
        name = callee.agent if callee is not None else wish.name
        if event.reply is not None:
            live.calls = event.reply.calls
            self._note("llm_response", record, live, event.reply.model, event.reply.content)
        elif callee is not None:
            callee.end, callee.outcome, callee.result = record.at, event.outcome, event.content
            self._note("agent_return", record, callee, name, event.content)
        elif event.id in live.uses or name not in ("", "call_agent", "finish"):
            name = self._used(record, event, live, wish)
            self._note("tool_exec", record, live, name, event.content)
        if not failed and (event.ends or event.id in self._ending):
            self._note("finish", record, live, name, event.content)
        elif failed and event.outcome != "skipped":
            self._note("error", record, callee or live, name, event.why)

    def _used(self, record: Record, event: EffectFinished, live: _Live, wish: ToolCall) -> str:
        known = live.uses.get(event.id) or ToolUse(event.id, wish.name, wish.arguments, record.at)
        live.uses[event.id] = replace(
            known, end=record.at, outcome=event.outcome, result=event.content or event.why
        )
        return known.name

    def _note(self, type_: EntryType, record: Record, live: _Live, name: str, text: str = "") -> None:
        self.entries.append(Entry(type_, live.agent, live.call_id, live.parent_id, record.at, name, text))


def _read(records: Iterable[Record]) -> _Reader:
    reader = _Reader()
    for record in records:
        reader.take(record)
    return reader


def event_log(
    records: Iterable[Record], *, agent: str = "", type: EntryType | Literal[""] = ""
) -> list[Entry]:
    """What happened, in order; of one agent or of one type only, if asked."""
    entries = _read(records).entries
    return [each for each in entries if agent in ("", each.agent) and type in ("", each.type)]


def trace(records: Iterable[Record]) -> tuple[Span, ...]:
    """The tree of calls: one root for each request of the user."""
    user = _read(records).user
    found: list[_Live] = []
    waiting = list(user.children)
    while waiting:
        found.append(waiting.pop())
        waiting.extend(found[-1].children)
    # Callees come after their callers here, so from the end every child is made before its parent.
    spans: dict[str, Span] = {}
    for live in reversed(found):
        spans[live.call_id] = Span(
            live.agent,
            live.call_id,
            live.parent_id,
            live.message,
            live.start,
            live.end,
            live.outcome,
            live.result,
            tuple(live.uses.values()),
            tuple(spans[child.call_id] for child in live.children),
        )
    return tuple(spans[root.call_id] for root in user.children)


def format_trace(spans: Sequence[Span]) -> str:
    """The tree as text, one line for each call and tool; `(empty trace)` when there is nothing."""
    lines: list[str] = []
    waiting = [(span, 0) for span in reversed(spans)]
    while waiting:
        span, depth = waiting.pop()
        indent = "  " * depth
        lines.append(f"{indent}{span.agent} {span.call_id}{_ending(span)}")
        lines.extend(f"{indent}  {use.name}({use.arguments}){_ending(use)}" for use in span.tool_calls)
        waiting.extend((child, depth + 1) for child in reversed(span.children))
    return "\n".join(lines) or "(empty trace)"


def _ending(done: Span | ToolUse) -> str:
    if done.end is None:
        return " …"
    outcome = "" if done.outcome == "completed" else f" [{done.outcome}]"
    return f" {done.end - done.start:.2f} s{outcome} → {_short(done.result)}"


def _short(text: str, limit: int = 80) -> str:
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"
