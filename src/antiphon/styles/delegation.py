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

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from msgspec import Struct

from antiphon import Record
from antiphon.kernel.facts.agent_call import CALL_AGENT, FINISH
from antiphon.view import RunTree
from antiphon.view.changes import EffectEnd, EffectStart
from antiphon.view.nodes import ActivationNode, EffectNode

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


def event_log(
    records: Iterable[Record], *, agent: str = "", type: EntryType | Literal[""] = ""
) -> list[Entry]:
    """What happened, in order; of one agent or of one type only, if asked."""
    entries = _entries(records)
    return [each for each in entries if agent in ("", each.agent) and type in ("", each.type)]


def _entries(records: Iterable[Record]) -> Iterator[Entry]:
    tree = RunTree(recent=True)
    for record in records:
        for change in tree.add(record):
            if isinstance(change, EffectStart | EffectEnd) and not change.effect.is_approval:
                by, effect = change.activation, change.effect
                told = _started(effect) if isinstance(change, EffectStart) else _ended(effect)
                for type_, name, text in told:
                    # What is said of a call of an agent is said of the callee.
                    whose = (effect.name, effect.id, by.call)
                    if not _is_agent_call(effect):
                        whose = (by.agent, by.call, tree.activations[by.caller].call)
                    yield Entry(type_, *whose, record.at, name, text)


_Told = tuple[EntryType, str, str]
"""The type of an entry, a name and a text."""


def _started(effect: EffectNode) -> Iterator[_Told]:
    if effect.model is not None:
        yield "llm_call", effect.name, ""
    elif _is_agent_call(effect):
        yield "agent_call", effect.name, _message(effect)


def _ended(effect: EffectNode) -> Iterator[_Told]:
    name = _name(effect)
    if effect.model is not None and effect.model.reply is not None:
        yield "llm_response", effect.model.reply.model, effect.model.reply.content
    elif _is_agent_call(effect):
        yield "agent_return", name, effect.content
    elif _is_tool_use(effect):
        yield "tool_exec", name, effect.content
    if effect.outcome == "completed" and effect.finishes and effect.callee is None:
        yield "finish", name, effect.content
    elif effect.outcome not in ("completed", "skipped"):
        yield "error", name, effect.reason


def _is_agent_call(effect: EffectNode) -> bool:
    """Whether it is a call of an agent that began; the user is one."""
    return effect.callee is not None or effect.is_question


def _is_tool_use(effect: EffectNode) -> bool:
    """Whether it is a tool's, one that never started included; `get_result` counts when it waits."""
    if effect.started_at is not None:
        return effect.is_tool or effect.purpose == "result"
    return effect.name not in ("", CALL_AGENT, FINISH)


def _name(effect: EffectNode) -> str:
    """Of the agent, or of the tool as it was called; of all else nothing."""
    if _is_agent_call(effect) or effect.is_tool:
        return effect.name
    return effect.call.name if effect.call is not None else ""


def _message(effect: EffectNode) -> str:
    """What an agent, or the user, is asked."""
    return effect.callee.asked if effect.callee is not None else effect.text


def trace(records: Iterable[Record]) -> tuple[Span, ...]:
    """The tree of calls: one root for each request of the user."""
    roots = _calls_of(RunTree.of(records).user)
    found: list[tuple[EffectNode, str]] = []
    waiting = [(each, USER_ID) for each in roots]
    while waiting:
        call, parent = waiting.pop()
        found.append((call, parent))
        waiting.extend((each, call.id) for each in _calls_of(call.callee))
    # Callees come after their callers here, so from the end every child is made before its parent.
    spans: dict[str, Span] = {}
    for call, parent in reversed(found):
        spans[call.id] = Span(
            call.name,
            call.id,
            parent,
            _message(call),
            call.began_at,
            call.ended_at,
            call.outcome,
            call.content,
            tuple(_use(each) for each in _effects_of(call.callee) if _is_tool_use(each)),
            tuple(spans[each.id] for each in _calls_of(call.callee)),
        )
    return tuple(spans[root.id] for root in roots)


def _effects_of(activation: ActivationNode | None) -> Iterator[EffectNode]:
    for turn in activation.turns if activation is not None else ():
        yield from turn.effects


def _calls_of(activation: ActivationNode | None) -> list[EffectNode]:
    """The calls of agents that an activation has made."""
    return [each for each in _effects_of(activation) if _is_agent_call(each)]


def _use(effect: EffectNode) -> ToolUse:
    return ToolUse(
        effect.id,
        _name(effect),
        effect.arguments,
        effect.began_at,
        effect.ended_at,
        effect.outcome,
        effect.content or effect.reason,
    )


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
