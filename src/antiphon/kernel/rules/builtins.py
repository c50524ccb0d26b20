"""The kernel's own calls. Of each, in one place: how a model is told of it, its arguments, what it does."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from math import inf
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import Struct

from antiphon.kernel.context.compaction import HISTORY
from antiphon.kernel.context.output_store import READERS
from antiphon.kernel.facts import ids
from antiphon.kernel.facts.activation import Activation
from antiphon.kernel.facts.agent_call import (
    CALL_AGENT,
    FINISH,
    GET_RESULT,
    SEND_MESSAGE,
    AgentCall,
    opening,
    read_call,
)
from antiphon.kernel.facts.events import (
    CallEffect,
    EffectFinished,
    EffectStarted,
    MessagePosted,
    QuestionEffect,
    ResultEffect,
)
from antiphon.kernel.facts.fold.calls import planned_above
from antiphon.kernel.facts.fold.inbox import full, labelled
from antiphon.kernel.facts.fold.transcript_edits import read_history
from antiphon.kernel.facts.ledger import no_more_calls
from antiphon.kernel.facts.state import RunState
from antiphon.kernel.rules.answers import deadline_of
from antiphon.kernel.rules.next import Emit
from antiphon.kernel.rules.team.compiled import CompiledAgent, CompiledTeam
from antiphon.kernel.rules.user.conversations import conversation_at_work, history_refused
from antiphon.values.agent import ALL
from antiphon.values.codec import encode_value
from antiphon.values.form import wrong_form
from antiphon.values.limits import UNLIMITED, Limits, tightest
from antiphon.values.message import USER, Message, ToolCall
from antiphon.values.model import ToolSpec
from antiphon.values.result import Outcome
from antiphon.values.schema.arguments import MAX_CHARACTERS, ArgumentParser, Invalid
from antiphon.values.schema.standins import from_json, to_json

BuiltinRule = Callable[[Emit, RunState, CompiledTeam, CompiledAgent | None, Activation, ToolCall, str], None]


class Builtin(Struct, frozen=True):
    """One of the kernel's own calls."""

    spec: ToolSpec
    """What a model is shown."""
    rule: BuiltinRule
    """What taking it up begins with."""
    prompt: str = ""
    """What the system prompt of an agent that has it says."""
    background: bool = False
    """Only in runs that allow calls in the background."""


def _spec(
    name: str, description: str, required: tuple[str, ...] = (), **properties: dict[str, Any]
) -> ToolSpec:
    needed = required or tuple(properties)
    return ToolSpec(name, description, {"type": "object", "properties": properties, "required": list(needed)})


def _text(description: str) -> dict[str, Any]:
    return {"type": "string", "description": description}


_Said = str | bool | int | float | list[Any] | dict[str, Any]
"""A message as a model may write it: a text, or a value that is handed on as JSON."""
_Asked = TypeVar("_Asked", bound=Struct)
_KINDS: Mapping[Any, dict[str, Any]] = {
    bool: {"type": "boolean"},
    tuple[str, ...]: {"type": "array", "items": {"type": "string"}},
    dict[str, Any] | None: {"type": "object"},
    float | None: {"type": "number"},
}
"""How parameters that are no text are shown where their reading is refused."""


class _Arguments(Generic[_Asked]):
    """Reads the arguments of one of the kernel's own calls."""

    def __init__(self, name: str, shape: type[_Asked], *required: str) -> None:
        hints = {each.name: each.type for each in msgspec.structs.fields(shape)}
        properties = {name: _KINDS.get(hint, {"type": "string"}) for name, hint in hints.items()}
        parameters = {"properties": properties, "required": required}
        self._reader = ArgumentParser(name, shape, parameters, from_json, to_json)
        self._decode = msgspec.json.Decoder(shape).decode

    def __call__(self, call: ToolCall) -> _Asked | Invalid:
        """What was asked."""
        canonical = self._reader.read(call.arguments)
        return canonical if isinstance(canonical, Invalid) else self._decode(canonical)


def _text_of(said: _Said) -> str:
    return said if isinstance(said, str) else encode_value(said).decode()


def _invalid(emit: Emit, effect_id: str, found: Invalid) -> None:
    emit(EffectFinished(effect_id, "invalid_arguments", reason=found.text))


# -- call_agent -----------------------------------------------------------------------------------


class _Delegate(Struct, frozen=True, forbid_unknown_fields=True):
    """What a model may say in `call_agent`; see AgentCall."""

    agent_name: str
    message: _Said
    background: bool = False
    handoff: bool = False
    intent: str = ""
    options: tuple[str, ...] = ()
    schema: dict[str, Any] | None = None
    timeout_seconds: float | None = None


_read_delegate = _Arguments(CALL_AGENT, _Delegate, "agent_name", "message")


def _read_call(run: RunState, caller: Activation, call: ToolCall) -> tuple[AgentCall | Invalid, str]:
    """A call, and its canonical text where the call's own says otherwise.

    Users and plans may say everything; a model what its schema offers.
    """
    if not caller.id or caller.turn.planned:
        asked = read_call(call.arguments)
        if len(asked.message) > MAX_CHARACTERS:
            size = len(asked.message)
            return Invalid(f"the text has {size:,} characters; at most {MAX_CHARACTERS:,} are read"), ""
        return asked, ""
    delegate = _read_delegate(call)
    if isinstance(delegate, Invalid):
        return delegate, ""
    told = msgspec.structs.asdict(delegate) | {"message": _text_of(delegate.message)}
    seconds = told.pop("timeout_seconds")
    if seconds is not None:
        if not 0 < seconds < inf:
            return Invalid("timeout_seconds is a number above 0"), ""
        told["deadline"] = run.at + seconds
    asked = msgspec.convert(told, AgentCall)
    if asked.agent_name != USER and (asked.options or asked.schema is not None or seconds is not None):
        return Invalid(f"options, schema and timeout_seconds go with a call of {USER} only"), ""
    try:
        same = read_call(call.arguments) == asked
    except msgspec.DecodeError:
        same = False
    return asked, "" if same else msgspec.json.encode(asked).decode()


def call_agent(
    emit: Emit, run: RunState, team: CompiledTeam, member: CompiledAgent | None, caller: Activation,
    call: ToolCall, effect_id: str,
) -> None:  # fmt: skip
    """Call another agent, or ask the user; `member` is None for the user's own calls."""
    asked, canonical = _read_call(run, caller, call)
    if isinstance(asked, Invalid):
        return _invalid(emit, effect_id, asked)
    refusal = _refusal(run, team, member, caller, asked)
    if refusal is not None:
        emit(EffectFinished(effect_id, refusal[0], reason=refusal[1]))
        return
    name = asked.agent_name
    if name == USER:
        wrong = wrong_form(asked.options, asked.schema, patterns=caller.turn.planned)
        if wrong:
            return _invalid(emit, effect_id, Invalid(wrong))
        return ask_user(
            emit, run, caller, effect_id, asked.message, asked.options, asked.schema, asked.deadline
        )
    keeps = team.members[name].agent.context == "continue"
    # One that begins anew at every call can do this beside the other.
    if caller.turn.planned and keeps:
        occupied = _occupied(run, caller, name, asked.deliver_only)
        if occupied is not None:
            return _deliver_only(emit, run, caller, occupied, asked, effect_id)
    background = caller.id == 0 or (asked.background and run.options.background)
    at_work = conversation_at_work(run, caller, name) if keeps and not caller.id else 0
    detail = call_detail(
        team, name, entry=caller.id == 0, arguments=canonical, background=background,
        limits=within(tightest(team.members[name].agent.limits, asked.limits), asked.deadline, run.at),
        shown=f"Started in the background as {effect_id}" if background and caller.id else "",
        finishes=asked.handoff, stays_dormant=keeps,
        reactivates=at_work or (run.dormant.get((caller.id, name), 0) if keeps else 0), queued=at_work > 0,
    )  # fmt: skip
    emit(EffectStarted(effect_id, detail))
    if caller.turn.planned and keeps and asked.deliver_only:
        # It has not been called before: it is there from now on, dormant, with this in its inbox.
        emit(EffectFinished(effect_id, "skipped", reason=_left_alone(name)))


def call_detail(team: CompiledTeam, name: str, *, entry: bool = False, **fields: Any) -> CallEffect:
    """The call of an agent of the team; `entry`: by the user."""
    member = team.members[name]
    prefix = member.entry_prefix if entry else member.prefix
    return CallEffect(name, prefix.digest, **fields)


def within(limits: Limits | None, deadline: float | None, at: float) -> Limits | None:
    """The limits of a callee that must also be done by then."""
    if deadline is None:
        return limits
    own, left = limits or UNLIMITED, max(deadline - at, 0.0)
    return msgspec.structs.replace(
        own, timeout_seconds=left if own.timeout_seconds is None else min(left, own.timeout_seconds)
    )


def ask_user(
    emit: Emit, run: RunState, caller: Activation, effect_id: str, text: str, options: tuple[str, ...] = (),
    schema: dict[str, Any] | None = None, deadline: float | None = None, cut_off: bool = False,
) -> None:  # fmt: skip
    """Ask the person at the other end; planned calls above do not wait for that."""
    until = deadline_of(run, caller, deadline)
    asked = QuestionEffect(text, planned_above(run, caller), options, schema, until, cut_off=cut_off)
    emit(EffectStarted(effect_id, asked))


def _refusal(
    run: RunState, team: CompiledTeam, member: CompiledAgent | None, caller: Activation, asked: AgentCall
) -> tuple[Outcome, str] | None:
    """Why a call cannot be, if so."""
    if asked.background and caller.id and not run.options.background:
        reason = "background calls are off in this run (background=True allows them); call without background"
        return "denied", reason
    refusal = cannot_call(run, team, member, caller, asked.agent_name)
    if refusal is None and asked.intent == HISTORY and not caller.id:
        try:
            read_history(asked.message)
        except ValueError as error:
            return "invalid_arguments", f"not a conversation: {error}"
    if refusal is None and (asked.request or asked.history):
        wrong = options_refused(run, team, caller, asked)
        return ("invalid_arguments", wrong) if wrong else None
    return refusal


def options_refused(run: RunState, team: CompiledTeam, caller: Activation, asked: AgentCall) -> str:
    """Why a call cannot bring what only a request does, a history or options, if so."""
    if asked.request is not None:
        if caller.id:
            return "only a request of the user has options"
        wrong = asked.request.wrong_for(team.members[asked.agent_name].agent, {*BUILTINS, *READERS})
        if wrong:
            return wrong
    return history_refused(run, team, caller, asked) if asked.history else ""


def cannot_call(
    run: RunState, team: CompiledTeam, member: CompiledAgent | None, caller: Activation, name: str
) -> tuple[Outcome, str] | None:
    """Why the caller may not call an agent of that name, if so."""
    known = team.members.keys() if member is None else member.callable
    if name == USER and member is not None and (USER in known or tuple(member.agent.can_call) == ALL):
        if run.options.interactive:
            return None
        return "not_found", "nobody is there to answer; go on without the user"
    if name not in known or name not in team.members:
        if member is not None and name in member.tools:
            return "not_found", f"{name} is a tool, not an agent; call it directly as {name}(...)"
        others = ", ".join(sorted(each for each in known if each != caller.agent)) or "(none)"
        if name not in team.members and any(name == each for _, each in run.dormant):
            return "not_found", f"the team has no agent {name} any more. Available agents: {others}"
        return "not_found", f"Unknown agent: {name}. Available agents: {others}"
    if run.totals.scopes and not caller.id and (used_up := no_more_calls(run.totals.scopes)):
        return "limit", f"of all requests of the run, {used_up}"
    for scope in caller.scopes:
        limits = scope.limits
        if limits.depth is not None and caller.depth + 1 > limits.depth:
            return (
                "denied",
                f"the depth limit of {limits.depth} nested calls is reached; do the work yourself",
            )
        spent = limits.activations is not None and scope.activations >= limits.activations
        if spent and (caller.id, name) not in run.dormant:
            return (
                "denied",
                f"the limit of {limits.activations:,} agent calls is reached; do the work yourself",
            )
    return None


def _occupied(run: RunState, caller: Activation, name: str, deliver_only: bool) -> Activation | None:
    """The callee of that name that only gets messages now: it asks somebody, or is to be left alone."""
    for opened in caller.open.values():
        detail = opened.detail
        if opened.detached is not None and type(detail) is CallEffect and detail.agent == name:
            return run.activations[opened.child]
    dormant = run.dormant.get((caller.id, name)) if deliver_only else None
    return run.activations[dormant] if dormant is not None else None


def _deliver_only(
    emit: Emit, run: RunState, caller: Activation, callee: Activation, asked: AgentCall, effect_id: str
) -> None:
    """What a callee would be called for goes into its inbox, as far as there is room."""
    told = opening(caller, callee, asked, ())
    if told is not None and (told.content or told.data is not None or told.calls):
        told = labelled(msgspec.structs.replace(told, id=ids.opening_id(effect_id)), caller)
        emit(MessagePosted(told, callee.id, dead_letter=full(callee, run.options.limits)))
    for position in asked.forward:
        refused = full(callee, run.options.limits)
        emit(MessagePosted(caller.turn.messages[position], callee.id, dead_letter=refused, by=caller.id))
    emit(EffectFinished(effect_id, "skipped", reason=_left_alone(callee.agent)))


def _left_alone(name: str) -> str:
    return f"{name} is not called now; it finds this in its inbox"


# -- finish ---------------------------------------------------------------------------------------


class _Finish(Struct, frozen=True, forbid_unknown_fields=True):
    message: _Said = ""


_read_finish = _Arguments(FINISH, _Finish)


def _finish(
    emit: Emit, run: RunState, team: CompiledTeam, member: CompiledAgent | None, caller: Activation,
    call: ToolCall, effect_id: str,
) -> None:  # fmt: skip
    asked = _read_finish(call)
    if isinstance(asked, Invalid):
        return _invalid(emit, effect_id, asked)
    emit(EffectFinished(effect_id, content=_text_of(asked.message), finishes=True))


# -- calls in the background ----------------------------------------------------------------------


class _GetResult(Struct, frozen=True, forbid_unknown_fields=True):
    call_id: str


_read_get_result = _Arguments(GET_RESULT, _GetResult, "call_id")


def _get_result(
    emit: Emit, run: RunState, team: CompiledTeam, member: CompiledAgent | None, caller: Activation,
    call: ToolCall, effect_id: str,
) -> None:  # fmt: skip
    asked = _read_get_result(call)
    if isinstance(asked, Invalid):
        return _invalid(emit, effect_id, asked)
    if asked.call_id in caller.done:
        # Its files were taken in when it ended.
        emit(msgspec.structs.replace(caller.done[asked.call_id].event, id=effect_id, files=()))
    elif asked.call_id in _running(caller):
        emit(EffectStarted(effect_id, ResultEffect(asked.call_id)))
    else:
        emit(EffectFinished(effect_id, "not_found", reason=_no_such_call(caller, asked.call_id)))


class _SendMessage(Struct, frozen=True, forbid_unknown_fields=True):
    call_id: str
    message: _Said


_read_send_message = _Arguments(SEND_MESSAGE, _SendMessage, "call_id", "message")


def _send_message(
    emit: Emit, run: RunState, team: CompiledTeam, member: CompiledAgent | None, caller: Activation,
    call: ToolCall, effect_id: str,
) -> None:  # fmt: skip
    asked = _read_send_message(call)
    if isinstance(asked, Invalid):
        return _invalid(emit, effect_id, asked)
    opened = caller.open.get(asked.call_id)
    if opened is None or not opened.child:
        emit(EffectFinished(effect_id, "not_found", reason=_no_such_call(caller, asked.call_id)))
        return
    callee = run.activations[opened.child]
    sent = ids.opening_id(effect_id)
    text = _text_of(asked.message)
    message = Message("forward", caller.agent, callee.agent, text, callee.call, id=sent)
    refused = full(callee, run.options.limits)
    emit(MessagePosted(labelled(message, caller), callee.id, dead_letter=refused))
    if refused:
        emit(EffectFinished(effect_id, "failed", reason=refused))
    else:
        emit(EffectFinished(effect_id, content=f"Delivered to {callee.agent}"))


def _running(caller: Activation) -> list[str]:
    return [
        each.id for each in caller.open.values() if type(each.detail) is CallEffect and each.detail.background
    ]


def _no_such_call(caller: Activation, call_id: str) -> str:
    known = ", ".join([*caller.done, *_running(caller)]) or "(none)"
    return f"No background call {call_id}. Known: {known}"


# -- all of them ----------------------------------------------------------------------------------

_AGENT_NAME, _MESSAGE = _text("Name of the agent to call"), _text("Message to send to the agent")
_CALL_TEXT = "Call another agent. The agent will process your message and return a result when done."

BUILTINS: Mapping[str, Builtin] = {
    CALL_AGENT: Builtin(
        _spec(CALL_AGENT, _CALL_TEXT, agent_name=_AGENT_NAME, message=_MESSAGE),
        call_agent,
        "Use call_agent to delegate work to other agents.",
    ),
    FINISH: Builtin(
        _spec(
            FINISH,
            "Finish the current task and return a result to the caller. "
            "The caller may be a user or another agent.",
            message=_text("Result message to return"),
        ),
        _finish,
        "Use finish to complete your task and return the result.",
    ),
    GET_RESULT: Builtin(
        _spec(
            GET_RESULT,
            "Wait for a background call to end and get its result.",
            call_id=_text("The call, as call_agent named it"),
        ),
        _get_result,
        background=True,
    ),
    SEND_MESSAGE: Builtin(
        _spec(
            SEND_MESSAGE,
            "Send a message to an agent that works in the background; it reads it before its next step.",
            call_id=_text("The call, as call_agent named it"),
            message=_text("Message to send"),
        ),
        _send_message,
        background=True,
    ),
}

_BACKGROUND = {
    "background": {
        "type": "boolean",
        "description": "Do not wait for the result; get it later with get_result",
    }
}
_FORM = {
    "options": {
        "type": "array",
        "items": {"type": "string"},
        "description": f"Only for {USER}: the answers to choose from",
    },
    "schema": {"type": "object", "description": f"Only for {USER}: JSON Schema of the answer"},
    "timeout_seconds": {"type": "number", "description": f"Only for {USER}: how long to wait for the answer"},
}


@cache
def call_spec(background: bool, forms: bool) -> ToolSpec:
    """How a model is told of `call_agent`.

    background: the run allows calls in the background. forms: it is told what form a question to the user may
    have.
    """
    more: dict[str, Any] = {**(_BACKGROUND if background else {}), **(_FORM if forms else {})}
    return _spec(
        CALL_AGENT, _CALL_TEXT, ("agent_name", "message"), agent_name=_AGENT_NAME, message=_MESSAGE, **more
    )
