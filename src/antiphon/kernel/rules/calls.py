"""route: what one call of a turn becomes: a tool, an agent call, a question, the end, an error."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Generic, TypeVar

import msgspec
from msgspec import Struct

from antiphon.kernel.context.compaction import HISTORY
from antiphon.kernel.facts.activation import Activation
from antiphon.kernel.facts.agent_call import (
    CALL_AGENT,
    FINISH,
    GET_RESULT,
    SEND_MESSAGE,
    CallAgent,
    opening,
    read_call,
)
from antiphon.kernel.facts.events import (
    EffectFinished,
    EffectStarted,
    Event,
    MessagePosted,
    PermissionDecided,
)
from antiphon.kernel.facts.inbox import full
from antiphon.kernel.facts.state import State
from antiphon.kernel.facts.transcript_edits import read_history
from antiphon.kernel.rules.cancelling import cancel, results
from antiphon.kernel.rules.team import Member, Team
from antiphon.kernel.rules.turn import changed, instead
from antiphon.schema.arguments import MAX_CHARACTERS, Invalid, Reader
from antiphon.schema.signature import from_json, to_json
from antiphon.values.agent import ALL, Judge
from antiphon.values.codec import encode_value, whole
from antiphon.values.hooks import REPLACED, Answer, Return
from antiphon.values.limits import UNLIMITED, Limits, tightest
from antiphon.values.message import USER, Message, ToolCall
from antiphon.values.policy import Policy, Ruling, covers, rule, strictest
from antiphon.values.result import Outcome
from antiphon.values.tool import Tool


def route(
    state: State,
    team: Team,
    member: Member | None,
    caller: Activation,
    index: int,
    permission: PermissionDecided | None = None,
) -> Iterable[Event]:
    """What taking up call `index` of the caller's turn begins with; `member` is None for the user.

    permission: the ruling on this call, when a person or a rule has already given one.
    """
    call = caller.calls[index]
    effect_id = f"{caller.id}/{caller.turn}.c{index + 1}"
    for scope in caller.scopes:
        limit = scope.limits.calls
        if limit is not None and scope.calls >= limit and not _ends_only(member, call.name):
            why = f"the limit of {limit:,} calls is used up"
            return (EffectFinished(effect_id, "limit", why=why),)
    if caller.only is not None and call.name not in caller.only:
        why = f"{call.name} is not offered in this turn. Offered: {', '.join(caller.only) or '(nothing)'}"
        return (EffectFinished(effect_id, "missing", why=why),)
    tool = member.tools.get(call.name) if member is not None else None
    if tool is not None and member is not None:
        begun = _use_tool(state, team, member, caller, call, effect_id, tool, permission)
        if member.agent.route is not None and isinstance(begun, EffectStarted) and begun.kind == "tool":
            return _by_rule(state, team, member, caller, call, begun)
        return (begun,)
    if member is None or call.name in member.builtins or caller.planned:
        return _BUILTINS[call.name](state, team, member, caller, call, effect_id)
    return (EffectFinished(effect_id, "missing", why=_no_such_tool(member, call.name)),)


def _by_rule(
    state: State, team: Team, member: Member, caller: Activation, call: ToolCall, begun: EffectStarted
) -> Iterable[Event]:
    """What the agent's own rule makes of a tool call: its result at once, a call of an agent, or the tool."""
    found = instead(state, member, caller, call, begun.arguments or call.arguments)
    if found is None:
        return (begun,)
    if isinstance(found, Return):
        return begun, EffectFinished(begun.id, "failed", why=found.why)
    if isinstance(found, Answer):
        content, why = (found.content, "") if found.outcome == "completed" else ("", found.content)
        end = EffectFinished(begun.id, found.outcome, content, why=why, ends=found.ends)
        return (*changed(caller, found), begun, end)
    refusal = cannot_call(state, team, member, caller, found.agent)
    if refusal is not None:
        return (EffectFinished(begun.id, refusal[0], why=refusal[1]),)
    callee = team.members[found.agent]
    asked = CallAgent(found.agent, found.message, task_id=found.task_id, data=found.data, calls=found.calls)
    started = EffectStarted(
        begun.id,
        "call",
        found.agent,
        arguments=encode_value(asked).decode(),
        digest=callee.head.digest,
        limits=_within(callee.agent.limits, found.until, state.at),
        background=found.background,
        text=f"Started in the background as {begun.id}" if found.background else "",
    )
    replaced = _replaced(state, caller, started) if found.replaces else ()
    return chain(replaced, changed(caller, found), (started,))


def _replaced(state: State, caller: Activation, started: EffectStarted) -> Iterator[Event]:
    """End the calls of the same agent that go on in the background."""
    for opened in list(caller.open.values()):
        if opened.effect.background and opened.effect.name == started.name:
            yield from cancel(state, opened, f"{REPLACED} {started.id}")
            yield from results(state, opened.effect.id)


def _ends_only(member: Member | None, name: str) -> bool:
    """Whether a call does nothing but hand back a result, which costs nothing."""
    return name == FINISH and member is not None and FINISH in member.builtins


def _use_tool(
    state: State, team: Team, member: Member, caller: Activation, call: ToolCall,
    effect_id: str, tool: Tool, permission: PermissionDecided | None,
) -> Event:  # fmt: skip
    ruled = permission.arguments if permission is not None else ""
    arguments = tool.reread(ruled) if ruled else tool.prepare(call.arguments)
    if isinstance(arguments, Invalid):
        return EffectFinished(effect_id, "invalid", why=arguments.text)
    if permission is not None:
        ruling, why, stop = "allow", "", False
    else:
        ruling, why, stop = judge(state, team, member, caller, tool, arguments)
    if ruling == "ask" and not state.options.attended:
        ruling, why = "deny", f"{why}, and nobody is there to ask"
    if ruling == "deny":
        return EffectFinished(effect_id, "denied", why=f"permission denied: {why}", ends=stop)
    if ruling == "ask":
        return EffectStarted(
            effect_id + "?",
            "wait",
            tool.name,
            purpose="approval",
            arguments=arguments,
            digest=tool.digest,
            text=why,
        )
    return EffectStarted(
        effect_id,
        name=tool.name,
        arguments="" if arguments == call.arguments else arguments,
        digest=tool.digest,
        allowed=permission is None and tool.acting,
        ends=call.name in member.finishing,
    )


def judge(
    state: State, team: Team, member: Member, caller: Activation, tool: Tool, arguments: str
) -> tuple[Ruling, str, bool]:
    """The ruling on a call: the strictest of the run's rules, the agent's and its callers'.

    The third part says that the turn ends with it. An agent's own `judge` that raises denies.
    """
    granted = _granted(state, caller, tool, arguments) if state.remembered else False
    ruling = rule(state.options.policy, tool, granted)
    if not team.policies:
        return *ruling, False
    rulings = [ruling]
    if member.agent.judge is not None:
        own, why, stop = _ask_judge(member.agent.judge, tool, arguments)
        if stop or own == "deny":
            return "deny", why, stop
        if own is not None and (own != "allow" or ruling[0] != "deny"):
            rulings = [(own, why)]
    activation: Activation | None = caller
    while activation is not None and activation.id:
        policy = (
            team.members[activation.agent].agent.policy
            if activation.agent in team.members
            else Policy("strict")
        )
        if policy is not None:
            rulings.append(rule(policy, tool, granted))
        activation = state.activations.get(activation.caller)
    return *strictest(rulings), False


def _granted(state: State, caller: Activation, tool: Tool, arguments: str) -> bool:
    """Whether an approval that is remembered covers the call."""
    grants = state.remembered.get(tool.digest, ())
    return any(covers(each, caller.agent, arguments, state.at) for each in grants)


def _ask_judge(judge: Judge, tool: Tool, arguments: str) -> tuple[Ruling | None, str, bool]:
    try:
        found = judge(tool, arguments)
        verdict, why = found if isinstance(found, tuple) else (found, "")
        why = whole(why)
    except Exception as error:  # noqa: BLE001 - whatever it is, a check that failed allows nothing
        return "deny", whole(f"the permission check failed: {error}"), False
    if verdict == "stop":
        return "deny", why, True
    if verdict in ("allow", "ask", "deny", None):
        return verdict, why, False
    return "deny", f"the permission check failed: it said {verdict!r}", False


_Asked = TypeVar("_Asked", bound=Struct)


class _Arguments(Generic[_Asked]):
    """Reads the arguments of one of the kernel's own calls."""

    def __init__(self, name: str, shape: type[_Asked], *required: str) -> None:
        properties = {each: {"type": "string"} for each in shape.__struct_fields__}
        parameters = {"properties": properties, "required": required}
        self._reader = Reader(name, shape, parameters, from_json, to_json)
        self._decode = msgspec.json.Decoder(shape).decode

    def __call__(self, call: ToolCall) -> tuple[_Asked | Invalid, str]:
        """What was asked, and its canonical text where the call's own, read strictly, says less."""
        canonical = self._reader.read(call.arguments)
        if isinstance(canonical, Invalid):
            return canonical, ""
        asked = self._decode(canonical)
        try:
            return asked, "" if self._decode(call.arguments) == asked else canonical
        except msgspec.DecodeError:
            return asked, canonical


class _Delegate(Struct, frozen=True):
    """What a model may say in `call_agent`; see CallAgent."""

    agent_name: str
    message: str
    background: bool = False
    hand_over: bool = False
    intent: str = ""


class _Finish(Struct, frozen=True):
    message: str = ""


class _GetResult(Struct, frozen=True):
    call_id: str


class _SendMessage(Struct, frozen=True):
    call_id: str
    message: str


_read_delegate = _Arguments(CALL_AGENT, _Delegate, "agent_name", "message")
_read_finish = _Arguments(FINISH, _Finish)
_read_get_result = _Arguments(GET_RESULT, _GetResult, "call_id")
_read_send_message = _Arguments(SEND_MESSAGE, _SendMessage, "call_id", "message")


def _read_call(call: ToolCall) -> tuple[CallAgent | Invalid, str]:
    """A model's call, without what only users and plans may say; its text where the call says otherwise."""
    delegate, _ = _read_delegate(call)
    if isinstance(delegate, Invalid):
        return delegate, ""
    asked = msgspec.convert(msgspec.structs.asdict(delegate), CallAgent)
    try:
        same = read_call(call.arguments) == asked
    except msgspec.DecodeError:
        same = False
    return asked, "" if same else msgspec.json.encode(asked).decode()


def _call_agent(
    state: State, team: Team, member: Member | None, caller: Activation, call: ToolCall, effect_id: str
) -> Iterable[Event]:
    if caller.id and not caller.planned:
        asked, canonical = _read_call(call)
        if isinstance(asked, Invalid):
            return (EffectFinished(effect_id, "invalid", why=asked.text),)
    else:
        asked, canonical = read_call(call.arguments), ""
        if len(asked.message) > MAX_CHARACTERS:
            why = f"the text has {len(asked.message):,} characters; at most {MAX_CHARACTERS:,} are read"
            return (EffectFinished(effect_id, "invalid", why=why),)
    name = asked.agent_name
    if asked.background and caller.id and not state.options.background:
        why = "background calls are off in this run (background=True allows them); call without background"
        return (EffectFinished(effect_id, "denied", why=why),)
    refusal = cannot_call(state, team, member, caller, name)
    if refusal is not None:
        outcome, why = refusal
        return (EffectFinished(effect_id, outcome, why=why),)
    if name == USER:
        return (EffectStarted(effect_id, "wait", USER, purpose="question", text=asked.message),)
    if asked.intent == HISTORY and not caller.id:
        try:
            read_history(asked.message)
        except ValueError as error:
            return (EffectFinished(effect_id, "invalid", why=f"not a conversation: {error}"),)
    callee = team.members[name]
    keep = callee.agent.context == "continue"
    # One that begins anew at every call can do this beside the other.
    if caller.planned and keep:
        kept = _away(state, caller, name, asked.hold)
        if kept is not None:
            return _hand_on(state, caller, kept, asked, effect_id)
    background = caller.id == 0 or (asked.background and state.options.background)
    head = callee.entry_head if caller.id == 0 else callee.head
    started = EffectStarted(
        effect_id,
        "call",
        name,
        arguments=canonical,
        digest=head.digest,
        limits=_within(tightest(callee.agent.limits, asked.limits), asked.until, state.at),
        background=background,
        ends=asked.hand_over and caller.id > 0,
        text=f"Started in the background as {effect_id}" if background and caller.id else "",
        keep=keep,
        continues=state.resting.get((caller.id, name), 0) if keep else 0,
    )
    return (started,)


def _within(limits: Limits | None, until: float | None, at: float) -> Limits | None:
    """The limits of a callee that must also be done by then."""
    if until is None:
        return limits
    own, left = limits or UNLIMITED, max(until - at, 0.0)
    return msgspec.structs.replace(own, seconds=left if own.seconds is None else min(left, own.seconds))


def _away(state: State, caller: Activation, name: str, hold: bool) -> Activation | None:
    """The callee of that name that only gets its mail now: it asks somebody, or is to be left alone."""
    for opened in caller.open.values():
        if opened.detached is not None and opened.effect.name == name:
            return state.activations[opened.child]
    resting = state.resting.get((caller.id, name)) if hold else None
    return state.activations[resting] if resting is not None else None


def _hand_on(
    state: State, caller: Activation, callee: Activation, asked: CallAgent, effect_id: str
) -> Iterator[Event]:
    """What a callee would be called for goes into its inbox, as far as there is room."""
    told = opening(caller, callee, asked, ())
    if told is not None and (told.content or told.data is not None or told.calls):
        told = msgspec.structs.replace(told, id=effect_id + ">")
        yield MessagePosted(told, callee.id, dead=full(callee, state.options.limits))
    for position in asked.take:
        dead = full(callee, state.options.limits)
        yield MessagePosted(caller.taken[position], callee.id, dead=dead, by=caller.id)
    why = f"{callee.agent} is not called now; it finds this in its inbox"
    yield EffectFinished(effect_id, "skipped", why=why)


def cannot_call(
    state: State, team: Team, member: Member | None, caller: Activation, name: str
) -> tuple[Outcome, str] | None:
    """Why the caller may not call an agent of that name, if so."""
    known = team.members.keys() if member is None else member.callable
    if name == USER and member is not None and (USER in known or tuple(member.agent.can_call) == ALL):
        if state.options.attended:
            return None
        return "missing", "nobody is there to answer; go on without the user"
    if name not in known or name not in team.members:
        if member is not None and name in member.tools:
            return "missing", f"{name} is a tool, not an agent; call it directly as {name}(...)"
        others = sorted(each for each in known if each != caller.agent)
        return "missing", f"Unknown agent: {name}. Available agents: {', '.join(others) or '(none)'}"
    for scope in caller.scopes:
        limits = scope.limits
        if limits.depth is not None and caller.depth + 1 > limits.depth:
            return (
                "denied",
                f"the depth limit of {limits.depth} nested calls is reached; do the work yourself",
            )
        full = limits.activations is not None and scope.activations >= limits.activations
        if full and (caller.id, name) not in state.resting:
            return (
                "denied",
                f"the limit of {limits.activations:,} agent calls is reached; do the work yourself",
            )
    return None


def _finish(
    state: State, team: Team, member: Member | None, caller: Activation, call: ToolCall, effect_id: str
) -> Sequence[Event]:
    asked, _ = _read_finish(call)
    if isinstance(asked, Invalid):
        return (EffectFinished(effect_id, "invalid", why=asked.text),)
    return (EffectFinished(effect_id, content=asked.message, ends=True),)


def _get_result(
    state: State, team: Team, member: Member | None, caller: Activation, call: ToolCall, effect_id: str
) -> Sequence[Event]:
    asked, _ = _read_get_result(call)
    if isinstance(asked, Invalid):
        return (EffectFinished(effect_id, "invalid", why=asked.text),)
    if asked.call_id in caller.done:
        return (msgspec.structs.replace(caller.done[asked.call_id].event, id=effect_id),)
    if asked.call_id in _running(caller):
        return (EffectStarted(effect_id, "wait", asked.call_id, purpose="result"),)
    return (EffectFinished(effect_id, "missing", why=_no_such_call(caller, asked.call_id)),)


def _send_message(
    state: State, team: Team, member: Member | None, caller: Activation, call: ToolCall, effect_id: str
) -> Sequence[Event]:
    asked, _ = _read_send_message(call)
    if isinstance(asked, Invalid):
        return (EffectFinished(effect_id, "invalid", why=asked.text),)
    opened = caller.open.get(asked.call_id)
    if opened is None or not opened.child:
        return (EffectFinished(effect_id, "missing", why=_no_such_call(caller, asked.call_id)),)
    callee = state.activations[opened.child]
    message = Message("forward", caller.agent, callee.agent, asked.message, callee.call, id=effect_id + ">")
    refused = full(callee, state.options.limits)
    if refused:
        return MessagePosted(message, callee.id, dead=refused), EffectFinished(
            effect_id, "failed", why=refused
        )
    delivered = EffectFinished(effect_id, content=f"Delivered to {callee.agent}")
    return MessagePosted(message, callee.id), delivered


_BUILTINS: dict[str, Callable[[State, Team, Member | None, Activation, ToolCall, str], Iterable[Event]]] = {
    CALL_AGENT: _call_agent,
    FINISH: _finish,
    GET_RESULT: _get_result,
    SEND_MESSAGE: _send_message,
}


def _running(caller: Activation) -> list[str]:
    return [effect_id for effect_id, opened in caller.open.items() if opened.effect.background]


def _no_such_call(caller: Activation, call_id: str) -> str:
    known = ", ".join([*caller.done, *_running(caller)]) or "(none)"
    return f"No background call {call_id}. Known: {known}"


def _no_such_tool(member: Member, name: str) -> str:
    if name in member.disabled:
        return f"{name} is disabled in this run"
    if name in member.callable and CALL_AGENT in member.builtins:
        return f'{name} is an agent, not a tool; use call_agent(agent_name="{name}", message="...")'
    known = ", ".join([*member.tools, *(each for each in _BUILTINS if each in member.builtins)])
    return f"Unknown tool: {name}. Available tools: {known or '(none)'}"
