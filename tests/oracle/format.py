"""How a transcript is written: all knowledge of what an event looks like is in `said`, and only in this file.

    > message forward user>user: "" [call_agent {"agent_name":"a","message":"go"}] mail=1
      0/1.c1 call a started background

A line that begins with `>` came from outside, the lines after it are what the rules made of it. Texts
and data are JSON. Left out is what a transcript cannot compare: times, digests, held amounts, and ids
of messages that nobody names; other random ids are numbered as they come, `<1>`.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from antiphon import Record
from antiphon.kernel.facts.events import (
    CancelRequested,
    DrainStarted,
    EffectFinished,
    EffectStarted,
    FilesChanged,
    MessagePosted,
    PermissionDecided,
    RunClosed,
    RunResumed,
    RunStarted,
    StateChanged,
    ToolsetOffered,
    TranscriptCompacted,
    TurnFinished,
    TurnStarted,
)
from antiphon.values.model import ModelRequest

_RANDOM = re.compile(r"(?<![0-9a-zA-Z])(?:[0-9a-f]{32}|(?<=:)[0-9a-f]{12})(?![0-9a-zA-Z])")
"""Ids that are drawn, and the hash in the id of what an action began."""
_TIME = re.compile(r"\b1[6-9]\d{8}(?:\.\d+)?\b")
"""Unix seconds of these years."""


def _resumed(event: RunResumed) -> str:
    return _line(
        "run resumed", interactive=event.interactive, policy=event.policy, imported=event.imported,
        renamed=event.renamed, dropped=event.dropped, run_limits=event.run_limits, rules=_rules(event)
    )  # fmt: skip


def _toolset(event: ToolsetOffered) -> str:
    names = None if event.tools is None else ([each.name for each in event.tools] or ["none"])
    return _line(f"toolset {event.name}", tools=names, why=event.reason)


def _files(event: FilesChanged) -> str:
    """The folder is another one on each machine."""
    files = [f"{each.path}: {_json(each.before)} -> {_json(each.after)}" for each in event.changes]
    return _line(f"{event.id} changed files", changes=files)


def said(record: Record) -> str:
    """One record in one line."""
    event, agent = record.event, record.agent
    match event:
        case RunStarted():
            return _line("run started", **_said(event.options), data=event.data, rules=_rules(event))
        case RunResumed():
            return _resumed(event)
        case ToolsetOffered():
            return _toolset(event)
        case DrainStarted():
            return _line("drain started", not_begun=event.not_begun)
        case RunClosed():
            return _line("run closed", why=event.reason)
        case MessagePosted(message=message):
            head = f"message {message.type} {message.sender}>{message.receiver} to {event.to}"
            return _line(
                f"{head}: {_json(message.content)}{_calls(message.calls)}",
                dead=event.dead_letter, by=event.by, hook=event.hook, mail=event.command,
                begins=event.begins, traceparent=event.traceparent, call=message.call_id,
                thread=message.task_id, reply_to=message.in_reply_to, intent=message.intent,
                topic=message.topic, source=message.source, labels=message.labels,
                attachments=message.attachments, data=message.data, priority=message.priority,
            )  # fmt: skip
        case TurnStarted():
            shown = [_message(each) for each in event.input or ()]
            does = _calls(event.calls) or " [nothing]" if event.calls is not None else ""
            return _line(
                f"{event.activation} {agent} turn started, {event.messages} taken{' acts' * event.act}{does}",
                shown=shown or (event.input is not None and "nothing"),
                tail=event.suffix,
                only=None if event.offered_tools is None else list(event.offered_tools) or "nothing",
                by=event.by, rules=event.rules,
            )  # fmt: skip
        case EffectStarted() | EffectFinished():
            return _effect(event)
        case FilesChanged():
            return _files(event)
        case PermissionDecided():
            return _line(
                f"{event.id} {'allowed' if event.allowed else 'refused'} by {event.decided_by}",
                why=event.reason, arguments=event.arguments, remember=bool(event.remember), grant=event.grant,
                rule=event.rule,
            )  # fmt: skip
        case StateChanged():
            return _line(f"{event.activation} {agent} data", set=event.set, append=event.append, by=event.by)
        case TranscriptCompacted():
            return _line(
                f"{event.activation} {agent} history compacted",
                retain=event.retain, summary=event.summary, next=event.next, last_turns=event.last_turns,
                oldest=event.oldest, trimmed=event.trimmed,
            )  # fmt: skip
        case TurnFinished():
            return _line(
                f"{event.activation} {agent} turn finished",
                more=event.another_turn, nudge=event.reminder, by=event.by, rules=event.rules,
            )  # fmt: skip
        case CancelRequested():
            return _line(f"cancel {event.target or 'everything'}", why=event.reason, mail=event.command)
    raise AssertionError(f"no line for {record.type}")


def _rules(event: RunStarted | RunResumed) -> list[str]:
    """The ids of the rules in force."""
    return [each.id for each in event.rules]


def _effect(event: EffectStarted | EffectFinished) -> str:
    """The start or the end of an effect."""
    if isinstance(event, EffectStarted):
        return _started(event.id, event.detail)
    reply = event.reply
    answer = {}
    if reply is not None:
        answer = {"stop": reply.stop if reply.stop not in ("stop", "calls") else "",
                  "reasoning": reply.reasoning, "billed": _usage(reply.usage),
                  "unpriced": event.cost_nano_usd is None}  # fmt: skip
    text = event.content if reply is None else reply.content
    return _line(
        f"{event.id} {event.outcome}" + (f": {_json(text)}" if text else "")
        + (_calls(reply.calls) if reply is not None else ""),
        why=str(event.failure) if event.failure else event.reason, ends=event.finishes, by=event.decided_by,
        replaced_by=event.replaced_by, arguments=event.arguments, grant=event.grant,
        incomplete=event.incomplete,
        mail=event.command, attachments=event.attachments, files=event.files,
        retry_after=event.failure.retry_after if event.failure else None,
        status=event.failure.status if event.failure else 0, cost=event.cost_nano_usd,
        usage=_usage(event.usage), labels=event.labels, **answer,
    )  # fmt: skip


def _started(effect_id: str, detail: Any) -> str:
    """The start of an effect, by what it is."""
    kind, purpose, name, text = type(detail).__name__.removesuffix("Effect").lower(), "", "", ""
    for field in ("name", "agent", "model", "call_id"):
        name = name or getattr(detail, field, "")
    if kind in ("approval", "question", "limit", "result", "timer", "room"):
        purpose = detail.purpose if kind == "timer" else kind
        kind, name = "wait", "user" if kind in ("question", "limit") else name
    elif kind == "model":
        purpose = detail.purpose if detail.purpose != "reply" else ""
        text = detail.reason
    elif kind == "call":
        purpose = "ask" if detail.own_model else "limit" if detail.breach else ""
        text = detail.breach or detail.shown
    what = " ".join(part for part in (effect_id, kind, purpose, name) if part)
    given = lambda field: getattr(detail, field, "")  # noqa: E731
    return _line(
        f"{what} started",
        arguments=given("arguments"), text=text or given("text"), allowed=given("allowed"),
        repaired=given("repaired"), ends=given("finishes"), background=given("background"),
        keep=given("stays_dormant"), continues=given("reactivates"), queued=given("queued"),
        fallback=given("fallback"),
        scope=given("scope") or given("outside"), limits=given("limits"), by=given("by"),
        options=list(given("options")), schema=given("schema"), until=given("deadline"), joins=given("joins"),
        tool=given("tool"), labels=given("labels"),
    )  # fmt: skip


def asked(requests: Iterable[ModelRequest]) -> Iterator[str]:
    """What a model was asked: of each request what is new since the agent's last one."""
    known: dict[str, tuple[Any, list[Any]]] = {}
    for request in requests:
        who = request.effect_id.partition("/")[0]
        head = (request.system, request.tools, request.tool_choice, request.output_schema, request.examples)
        old_head, old = known.get(who, (None, []))
        messages = [_message(each) for each in request.messages]
        same = messages[: len(old)] == old
        choice = request.tool_choice if request.tool_choice != "auto" else ""
        yield _line(f"{request.effect_id} asked", choice=choice, tail=request.tail)
        if head != old_head:
            yield _line("  told", system=request.system, tools=[each.name for each in request.tools],
                        schema=request.output_schema, examples=request.examples)  # fmt: skip
        if not same:
            yield "  anew"
        yield from (f"  {each}" for each in (messages[len(old) :] if same else messages))
        known[who] = head, messages


def normal(lines: Iterable[str], folder: str) -> str:
    """A transcript as it is stored: ids numbered, times and the folder of the test blanked."""
    numbers: dict[str, str] = {}
    text = "\n".join(lines).replace(folder, "<folder>")
    text = _RANDOM.sub(lambda found: numbers.setdefault(found[0], f"<{len(numbers) + 1}>"), text)
    return _TIME.sub("<time>", text) + "\n"


def _line(head: str, **parts: Any) -> str:
    """The head, and those parts that say something."""
    found = [head]
    for name, value in parts.items():
        text = value if value is True or isinstance(value, str) else _json(value)
        if value is True:
            found.append(name)
        elif value not in ("", 0, None, (), [], {}) and text != "{}":
            found.append(f"{name}={_json(value) if isinstance(value, str) else text}")
    return " ".join(found)


def _said(options: Any) -> dict[str, Any]:
    """The options of a run that say something."""
    return {name: value for name, value in msgspec.to_builtins(options).items() if value}


def _message(message: Any) -> str:
    """One message of a conversation."""
    return _line(
        f"{message.role}: {_json(message.content)}{_calls(message.calls)}",
        name=message.name, error=message.is_error, attachments=message.attachments, given=message.given,
    )  # fmt: skip


def _calls(calls: Iterable[Any]) -> str:
    found = [
        f"{call.name} {call.arguments}" + (f" {_json(call.attachments)}" if call.attachments else "")
        for call in calls
    ]
    return f" [{'; '.join(found)}]" if found else ""


def _usage(usage: Any) -> str:
    return (
        f"{usage.input_tokens}+{usage.output_tokens}"
        if usage is not None and (usage.input_tokens or usage.output_tokens)
        else ""
    )


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
