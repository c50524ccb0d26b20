"""Format 2 of the journal, read as today's: the same facts under today's names.

Format 2 said what an effect is by flags, kept the kind of a failure in prose, and left to the fold which
planned calls a question detaches (`detaches` is None here, and the fold derives it as it did then).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

_OLD_TAG = b'[{"type":"'
_decode = msgspec.json.decode
_encode = msgspec.json.encode

Fields = dict[str, Any]

_LIMITS = {"seconds": "timeout_seconds", "breach": "on_breach", "to": "breach_target"}
_USAGE = {
    "input": "input_tokens", "output": "output_tokens", "cached": "cache_read_tokens",
    "reasoning": "reasoning_tokens", "cache_write": "cache_write_tokens",
}  # fmt: skip
_CALL = {
    "hand_over": "handoff",
    "mail": "inbox",
    "take": "forward",
    "until": "deadline",
    "hold": "deliver_only",
}
_OUTCOMES = {"missing": "not_found", "invalid": "invalid_arguments"}
_FAILURES = {"cut": "disconnected", "context": "context_length", "refused": "refusal"}


def is_format2(body: bytes) -> bool:
    """Whether a row is of format 2: its tags were the names of classes."""
    return body.startswith(_OLD_TAG) and 65 <= body[len(_OLD_TAG)] <= 90


def upcast(body: bytes) -> list[Fields]:
    """The events of a row of format 2 as the fields of today's."""
    return [_EVENTS[each.pop("type")](each) for each in _decode(body)]


def _renamed(fields: Fields, tag: str, **names: str) -> Fields:
    return {"type": tag} | {names.get(name, name): value for name, value in fields.items()}


def _run_started(fields: Fields) -> Fields:
    options = fields.get("options")
    if options:
        fields["options"] = {
            ("interactive" if key == "attended" else key): each for key, each in options.items()
        }
        _limits(fields["options"])
    return _renamed(fields, "run_started")


def _message_posted(fields: Fields) -> Fields:
    _calls(fields["message"])
    return _renamed(fields, "message", mail="command", dead="dead_letter")


def _turn_started(fields: Fields) -> Fields:
    _calls(fields)
    return _renamed(
        fields, "turn_started", taken="messages", shown="input", tail="suffix", only="offered_tools"
    )


def _limits(fields: Fields) -> None:
    """Bring `fields["limits"]` to today's names."""
    found = fields.get("limits")
    if found:
        found = {_LIMITS.get(name, name): value for name, value in found.items()}
        if found.get("on_breach") == "hand_over":
            found["on_breach"] = "handoff"
        fields["limits"] = found


def _calls(fields: Fields) -> None:
    """Bring the arguments of agent calls in `fields["calls"]` to today's names."""
    for call in fields.get("calls") or ():
        if call.get("name") == "call_agent" and "arguments" in call:
            call["arguments"] = _agent_call(call["arguments"])


def _agent_call(arguments: str) -> str:
    try:
        found = _decode(arguments)
    except msgspec.DecodeError:
        return arguments
    if not isinstance(found, dict):
        return arguments
    found = {_CALL.get(name, name): value for name, value in found.items()}
    _calls(found)
    for message in found.get("inbox") or ():
        _calls(message)
    _limits(found)
    return _encode(found).decode()


def _effect_started(fields: Fields) -> Fields:
    kind = fields.get("kind", "tool")
    make = _DETAILS[fields["purpose"] if kind == "wait" else kind]
    return {"type": "started", "id": fields["id"], "detail": make(fields)}


def _picked(kind: str, fields: Fields, **names: str) -> Fields:
    """A detail of these fields, under today's names: `today=then`."""
    return {"kind": kind} | {now: fields[then] for now, then in names.items() if then in fields}


def _model(fields: Fields) -> Fields:
    found = _picked(
        "model", fields, model="name", digest="digest", held_tokens="hold", prefix="head",
        held_nano_usd="cost", fallback="fallback", reason="text",
    )  # fmt: skip
    return {"digest": "", "held_tokens": 0} | found | {"purpose": fields.get("purpose") or "reply"}


def _tool(fields: Fields) -> Fields:
    return {"digest": ""} | _picked(
        "tool",
        fields,
        name="name",
        digest="digest",
        arguments="arguments",
        allowed="allowed",
        finishes="ends",
    )


def _call(fields: Fields) -> Fields:
    _limits(fields)
    found = {"digest": ""} | _picked(
        "call", fields, agent="name", digest="digest", arguments="arguments", limits="limits",
        background="background", finishes="ends", stays_dormant="keep", reactivates="continues",
        outside="scope",
    )  # fmt: skip
    if "arguments" in found:
        found["arguments"] = _agent_call(found["arguments"])
    if fields.get("purpose") == "limit":
        found["breach"] = fields.get("text", "")
    else:
        found["shown"] = fields.get("text", "")
    return found | {"own_model": fields.get("purpose") == "ask"}


def _approval(fields: Fields) -> Fields:
    found = _picked("approval", fields, name="name", arguments="arguments", digest="digest", text="text")
    return {"arguments": "", "digest": "", "detaches": None} | found


def _question(fields: Fields) -> Fields:
    return {"kind": "question", "text": fields.get("text", ""), "detaches": None}


def _limit(fields: Fields) -> Fields:
    return {"text": "", "detaches": None} | _picked("limit", fields, text="text", scope="scope")


def _timer(fields: Fields) -> Fields:
    found = _picked("timer", fields, purpose="purpose", due_at="until", text="text")
    return {"due_at": 0.0} | found


def _result(fields: Fields) -> Fields:
    return {"kind": "result", "call_id": fields["name"]}


def _named(kind: str, field: str) -> Callable[[Fields], Fields]:
    return lambda fields: {"kind": kind, field: fields.get("name", "")}


_DETAILS: Mapping[str, Callable[[Fields], Fields]] = {
    "model": _model,
    "tool": _tool,
    "call": _call,
    "approval": _approval,
    "question": _question,
    "limit": _limit,
    "retry": _timer,
    "deadline": _timer,
    "result": _result,
    "action": _named("action", "agent"),
    "step": _named("step", "name"),
}


def _effect_finished(fields: Fields) -> Fields:
    fields["outcome"] = _OUTCOMES.get(fields.get("outcome", ""), fields.get("outcome", "completed"))
    reply = fields.get("reply")
    if reply:
        _usage(reply)
        _calls(reply)
    _usage(fields)
    reason = fields.get("why", "")
    status, retry_after = fields.pop("status", 0), fields.pop("retry_after", None)
    if fields["outcome"] == "failed" and fields["id"].rpartition(".")[2].startswith("m"):
        kind, _, text = reason.partition(": ")
        fields["failure"] = {
            "kind": _FAILURES.get(kind, kind),
            "text": text,
            "status": status,
            "retry_after": retry_after,
        }
        fields.pop("why", None)
    return _renamed(
        fields, "finished", why="reason", ends="finishes", by="decided_by", mail="command",
        cost="cost_nano_usd",
    )  # fmt: skip


def _usage(fields: Fields) -> None:
    found = fields.get("usage")
    if found:
        fields["usage"] = {_USAGE.get(name, name): value for name, value in found.items()}


def _plain(tag: str, **names: str) -> Callable[[Fields], Fields]:
    return lambda fields: _renamed(fields, tag, **names)


_EVENTS: Mapping[str, Callable[[Fields], Fields]] = {
    "RunStarted": _run_started,
    "RunResumed": _plain("run_resumed", attended="interactive"),
    "MessagePosted": _message_posted,
    "TurnStarted": _turn_started,
    "EffectStarted": _effect_started,
    "EffectFinished": _effect_finished,
    "PermissionDecided": _plain("permission_decided", by="decided_by", why="reason"),
    "StateChanged": _plain("state_changed"),
    "HistoryCompacted": _plain("transcript_compacted"),
    "TurnFinished": _plain("turn_finished", more="another_turn", nudge="reminder"),
    "CancelRequested": _plain("cancel_requested", why="reason", mail="command"),
    "RunClosed": _plain("run_closed", why="reason"),
}
