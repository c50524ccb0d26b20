"""plan: how a turn begins and ends, by an agent's own rules where it has them."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from typing import TypeVar

import msgspec
from msgspec import Struct

from antiphon.errors import UserError
from antiphon.kernel.facts import hops
from antiphon.kernel.facts.activation import Activation
from antiphon.kernel.facts.agent_call import CALL_AGENT, CallAgent
from antiphon.kernel.facts.events import (
    EffectFinished,
    Event,
    MessagePosted,
    StateChanged,
    TurnFinished,
    TurnStarted,
)
from antiphon.kernel.facts.inbox import full
from antiphon.kernel.facts.state import State
from antiphon.kernel.rules.team import Member
from antiphon.values.agent import Agent
from antiphon.values.codec import encode_value, stored, whole
from antiphon.values.hooks import Answer, Call, Continue, Do, Ended, Moment, Return, Shown
from antiphon.values.message import Message, ToolCall


def to_take(agent: Agent, activation: Activation) -> int:
    """How many of the waiting messages a turn takes."""
    waiting = len(activation.inbox)
    return min(waiting, 1) if agent.consume == "one" else waiting


def begin(state: State, member: Member, activation: Activation) -> Generator[Event, None, Return | None]:
    """Start a turn: by plan, by action, or with a model to be asked. A Return ends the activation."""
    agent = member.agent
    count = to_take(agent, activation)
    if activation.asks or (agent.plan is None and agent.act is None):
        if agent.ingest is not None:
            return (yield from _ingest(state, member, activation))
        yield TurnStarted(activation.id, count)
        return None
    if agent.plan is not None:
        taken, turn, left = activation.inbox[:count], activation.turn + 1, activation.inbox[count:]
        try:
            planned = _answer(agent.plan(_moment(state, activation, taken, turn, left)), Do)
            wanted = planned.calls if planned is not None else ()
            calls = tuple([_call(number, each, count) for number, each in enumerate(wanted, 1)])
        except Exception as error:  # noqa: BLE001 - a hook that raises fails its activation, never the run
            yield TurnStarted(activation.id, 0, ())
            return _raised("plan", activation, error)
        if planned is not None:
            yield from changed(activation, planned)
            yield TurnStarted(activation.id, count, calls)
            return None
    yield TurnStarted(activation.id, count, act=agent.act is not None)
    return None


def _ingest(state: State, member: Member, activation: Activation) -> Generator[Event, None, Return | None]:
    """Start a turn of a model that is shown what its agent's own rule makes of the messages."""
    ingest, inbox = member.agent.ingest, activation.inbox
    count = to_take(member.agent, activation)
    moment = _moment(state, activation, inbox[:count], activation.turn + 1, inbox[count:])
    try:
        shown = _answer(ingest(moment), Shown) if ingest is not None else None
    except Exception as error:  # noqa: BLE001 - as above
        yield TurnStarted(activation.id, 0, ())
        return _raised("ingest", activation, error)
    if shown is None:
        yield TurnStarted(activation.id, count)
        return None
    yield from changed(activation, shown)
    yield TurnStarted(activation.id, count, shown=tuple(shown.messages), tail=shown.tail, only=shown.only)
    for message in shown.post:
        yield MessagePosted(message, activation.id, dead=full(activation, state.options.limits))
    return None


def changed(activation: Activation, found: Do | Shown | Continue | Return | Answer | Call) -> Iterator[Event]:
    """What a hook wants recorded: of the activation, and of the whole run."""
    if found.set:
        yield StateChanged(activation.id, dict(found.set))
    if found.team:
        yield StateChanged(0, dict(found.team))


def _call(number: int, call: Call, taken: int) -> ToolCall:
    wrong = [position for position in call.take if not 0 <= position < taken]
    if wrong:
        raise UserError(f"Call(take={call.take}): this turn took {taken} messages, numbered from 0")
    asked = CallAgent(
        call.agent, call.message, intent=call.intent, task_id=call.task_id, data=call.data, calls=call.calls,
        take=call.take, until=call.until, hold=call.hold,
    )  # fmt: skip
    return ToolCall(f"call_{number}", CALL_AGENT, encode_value(asked).decode())


def rule_of(
    state: State, member: Member, activation: Activation
) -> Generator[Event, None, Return | TurnFinished | None]:
    """What the agent's own rule says follows a turn of its model; None leaves it to the kernel."""
    if member.agent.decide is None:
        return None
    try:
        moment = _moment(state, activation, activation.taken, activation.turn, activation.inbox)
        found = _answer(member.agent.decide(moment), Continue, Return)
    except Exception as error:  # noqa: BLE001 - as above
        return _raised("decide", activation, error)
    if found is None:
        return None
    yield from changed(activation, found)
    return found if isinstance(found, Return) else (yield from _go_on(state, member, activation, found))


def _go_on(
    state: State, member: Member, activation: Activation, found: Continue
) -> Generator[Event, None, Return | TurnFinished]:
    if found.nudge and activation.nudges >= member.agent.nudges:
        return Return("no_progress", activation.said, f"{member.agent.nudges} nudges were not followed")
    for message in found.post:
        yield MessagePosted(message, activation.id, dead=full(activation, state.options.limits))
    return TurnFinished(activation.id, more=not (found.wait and _running(activation)), nudge=found.nudge)


def _running(activation: Activation) -> list[str]:
    """The agents whose calls go on in the background."""
    return [each.effect.name for each in activation.open.values() if each.effect.background]


def instead(
    state: State, member: Member, caller: Activation, call: ToolCall, arguments: str
) -> Answer | Call | Return | None:
    """What the agent's own rule makes of a tool call that may start: a Return says that it failed."""
    if member.agent.route is None:
        return None
    try:
        moment = _moment(state, caller, caller.taken, caller.turn, caller.inbox)
        return _answer(member.agent.route(moment, call.name, arguments), Answer, Call)
    except Exception as error:  # noqa: BLE001 - as above, but only this call is lost
        return _raised("route", caller, error)


def decide(
    state: State, member: Member, activation: Activation
) -> Generator[Event, None, Return | TurnFinished]:
    """What follows a turn of an agent's own: another one, a wait for those who ask people, or the return."""
    agent = member.agent
    if activation.acted is not None and not activation.planned:
        acted = activation.acted
        return Return(acted.outcome, acted.content, acted.why)
    away = any(opened.detached is not None for opened in activation.open.values())
    found: Continue | Return | None = None
    if agent.decide is not None:
        try:
            moment = _moment(state, activation, activation.taken, activation.turn, activation.inbox)
            found = _answer(agent.decide(moment), Continue, Return)
        except Exception as error:  # noqa: BLE001 - as above
            return _raised("decide", activation, error)
    if found is not None:
        yield from changed(activation, found)
    if isinstance(found, Continue):
        return (yield from _go_on(state, member, activation, found))
    if away:
        return TurnFinished(activation.id, more=bool(activation.inbox))
    if found is not None:
        return found
    if agent.plan is None:
        # Another agent was to take over, and could not.
        last = activation.ends[0]
        return Return(last.outcome, last.content or activation.said, last.why)
    return TurnFinished(activation.id, more=True) if activation.inbox else Return()


_Answer = TypeVar("_Answer")


def _answer(found: _Answer, *kinds: type) -> _Answer:
    """What a hook answered, as it will be read back."""
    if found is None:
        return found
    if not isinstance(found, kinds):
        names = " or ".join([*(kind.__name__ for kind in kinds), "None"])
        raise UserError(f"{names} is expected, not {type(found).__name__}")
    return stored(found)


def _moment(
    state: State, activation: Activation, taken: Sequence[Message], turn: int, left: Sequence[Message]
) -> Moment:
    return Moment(
        state.run_id,
        activation.agent,
        turn - activation.before,
        state.at,
        taken,
        [hops.of(activation, each) for each in taken],
        activation.data,
        _ends(activation),
        left,
        activation.unread,
        [_ended(call, event) for call, event in activation.returned],
        activation.reply,
        [call.name for call in activation.calls],
        state.activations[0].data,
        activation.transcript.messages,
        activation.window_used,
        _running(activation),
    )


class _Whom(Struct):
    """Whom a planned call was for, and in which thread."""

    agent_name: str
    task_id: str = ""


_whom = msgspec.json.Decoder(_Whom).decode
_AWAY = EffectFinished("", "skipped", why="somebody is asked; it goes on meanwhile")


def _ends(activation: Activation) -> list[Ended]:
    """How the calls of the turn ended, as far as they have."""
    if activation.planned:
        ends = activation.ends
        return [_ended(call, ends.get(index, _AWAY)) for index, call in enumerate(activation.calls)]
    return [
        Ended(call.name, "failed" if found.is_error else "completed", found.content, "")
        for call, found in zip(activation.calls, activation.results, strict=True)
        if found is not None
    ]


def _ended(call: ToolCall, event: EffectFinished) -> Ended:
    asked = _whom(call.arguments)
    return Ended(asked.agent_name, event.outcome, event.content, event.why, asked.task_id)


def _raised(hook: str, activation: Activation, error: Exception) -> Return:
    why = f"the hook {hook} of {activation.agent} failed: {type(error).__name__}: {error}"
    return Return("failed", activation.said, whole(why))
