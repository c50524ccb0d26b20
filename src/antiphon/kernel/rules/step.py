"""step: what happens next. The heart of Antiphon, and pure.

`step(state, team)` yields events, and the caller applies each one before it asks for the next. It
takes the activations that the last events touched, one by one, and leads each through its turn:

    rest ── mail ──> TurnStarted ──> plan ── EffectStarted model ──> model
    model ── reply with calls ──> calls ── all ended ──> settled
    model ── reply without ──────────────────────────> settled
    settled ── TurnFinished ──> another turn, or EffectFinished of the call the activation is

No clock, no I/O, no randomness: everything it knows is in the state and the team.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator

from antiphon.kernel.facts.activation import Activation
from antiphon.kernel.facts.events import (
    EffectFinished,
    EffectStarted,
    Event,
    HistoryCompacted,
    PermissionDecided,
    TurnFinished,
    TurnStarted,
)
from antiphon.kernel.facts.state import State
from antiphon.kernel.rules.calls import route
from antiphon.kernel.rules.cancelling import cancel, close, results
from antiphon.kernel.rules.models import ask, deadline, make_room, retry
from antiphon.kernel.rules.team import Member, Team, nudge
from antiphon.kernel.rules.turn import begin, decide, rule_of, to_take
from antiphon.values.agent import Agent
from antiphon.values.codec import whole
from antiphon.values.hooks import Return
from antiphon.values.message import ToolCall

COMPACTED = "The conversation was compacted."
STOPPED = {"length": "the text was cut at the agent's max_output", "refusal": "the model refused"}
"""What is said of a text that the model did not end by itself."""


def step(state: State, team: Team) -> Iterator[Event]:
    """What happens next, event by event, until everyone waits for the world."""
    if state.cancelling:
        yield from _cancel(state)
    ready = state.ready
    while ready:
        activation = ready.popleft()
        activation.queued = False
        if not activation.id:
            yield from _serve_user(state, team, activation)
        elif state.activations.get(activation.id) is activation:
            yield from _advance(state, team, activation)


def _serve_user(state: State, team: Team, user: Activation) -> Iterator[Event]:
    """The user's turns only do the calls that came with the mail, and wait for none of them."""
    while True:
        if user.phase == "rest":
            if not user.inbox:
                return
            yield TurnStarted(user.id, 1)
        elif user.phase == "calls":
            while user.cursor < len(user.calls):
                yield from route(state, team, None, user, user.cursor)
        else:
            yield TurnFinished(user.id)


def _advance(state: State, team: Team, activation: Activation) -> Iterator[Event]:
    member = team.members.get(activation.agent)
    if member is None:
        yield from close(state, activation)
        why = f"the team has no agent {activation.agent} any more"
        yield EffectFinished(activation.call, "failed", activation.said, why=why)
        return
    if activation.overdue:
        late = yield from deadline(state, activation)
        if late is not None:
            yield from _break_off(state, activation, late)
            return
    while True:
        phase = activation.phase
        if phase == "calls":
            yield from _do_calls(state, team, member, activation)
            if activation.phase == "calls":
                return
        elif phase == "settled":
            if activation.planned or activation.acted is not None:
                ending = yield from _decide_own(state, member, activation)
            elif member.agent.decide is not None:
                ending = (yield from _rule_of(state, member, activation)) or _decide(member, activation)
            else:
                ending = _decide(member, activation)
            if isinstance(ending, Return):
                yield from _return(state, activation, ending)
                return
            yield ending
        elif phase == "plan":
            found = _plan(state, team, member, activation)
            if isinstance(found, HistoryCompacted):
                yield found
                continue
            if isinstance(found, EffectStarted):
                yield found
            else:
                yield from _follow(state, activation, found)
            return
        elif phase == "rest":
            if not activation.call or (not activation.more and not activation.inbox):
                return
            over = yield from _begin_turn(state, member, activation)
            if over:
                return
        elif phase == "failed":
            yield from _follow(state, activation, retry(state, team, member, activation))
            return
        else:
            lost = _lost_model_call(activation)
            if not lost:
                return
            yield EffectFinished(lost, "interrupted", why="the process stopped during the call")


def _lost_model_call(activation: Activation) -> str:
    """The model call that a crash cut off; timers and calls in the background may be open beside it."""
    for opened in activation.open.values():
        if opened.lost and opened.effect.kind == "model":
            return opened.effect.id
    return ""


def _begin_turn(state: State, member: Member, activation: Activation) -> Generator[Event, None, bool]:
    """Start a turn; whether it is over at once, by a rule that raised or a deadline that is past."""
    first = activation.turn == activation.before
    if member.begins:
        broken = yield from begin(state, member, activation)
        if broken is not None:
            yield from _return(state, activation, broken)
            return True
    else:
        yield TurnStarted(activation.id, to_take(member.agent, activation))
    late = (yield from deadline(state, activation)) if first else None
    if late is not None:
        yield from _break_off(state, activation, late)
    return late is not None


def _plan(
    state: State, team: Team, member: Member, activation: Activation
) -> HistoryCompacted | EffectStarted | Return | tuple[Event, ...] | None:
    """Act, or ask the model; a conversation that has grown too long is shortened first."""
    if member.agent.act is not None and not activation.asks:
        return EffectStarted(f"{activation.id}/{activation.turn}.x", "action", activation.agent)
    room = make_room(state, team, member, activation)
    if activation.forced and room is None:
        return Return("completed", COMPACTED)
    return room or ask(state, team, member, activation)


def _follow(
    state: State, activation: Activation, found: EffectStarted | Return | tuple[Event, ...] | None
) -> Iterator[Event]:
    """What asking a model came to: an effect, the end, others that take over, or (None) to wait for room."""
    if isinstance(found, tuple):
        yield from found
    elif isinstance(found, Return):
        yield from _return(state, activation, found)
    elif found is not None:
        yield found


def _do_calls(state: State, team: Team, member: Member, activation: Activation) -> Iterator[Event]:
    """Start as many of the turn's calls as its agent lets run at once."""
    calls, mode = activation.calls, member.agent.tool_execution
    most = member.agent.at_once if mode == "parallel" else 1
    if activation.pending:
        yield from _rule(state, team, member, activation)
    in_order = member.agent.finishing == "in_order"
    if not activation.cursor and len(calls) > 1 and not in_order:
        finishing = _first_finishing(member, calls)
        if finishing >= 0:
            yield from _finish_alone(state, team, member, activation, finishing)
            return
    while activation.cursor < len(calls):
        if most is not None and activation.waiting + len(activation.pending) >= most:
            return
        index = activation.cursor
        alone = in_order and not member.finishing.isdisjoint(
            (calls[index].name, calls[index - 1].name if index else "")
        )
        if alone and (activation.waiting or activation.pending):
            return
        if activation.finish is not None:
            why = f"{calls[index].name} was skipped: the turn was over before it"
            yield EffectFinished(_call_id(activation, index), "skipped", why=why)
        elif mode == "single" and index:
            why = "only one call per reply is done; this one was skipped"
            yield EffectFinished(_call_id(activation, index), "skipped", why=why)
        else:
            yield from route(state, team, member, activation, index)


def _first_finishing(member: Member, calls: tuple[ToolCall, ...]) -> int:
    return next((index for index, call in enumerate(calls) if call.name in member.finishing), -1)


def _finish_alone(
    state: State, team: Team, member: Member, activation: Activation, finishing: int
) -> Iterator[Event]:
    """A finishing call is exclusive: the first one counts, every other call is skipped."""
    for index, call in enumerate(activation.calls):
        if index == finishing:
            yield from route(state, team, member, activation, index)
        else:
            why = (
                f"{call.name} was skipped: {activation.calls[finishing].name} ends the task in the same reply"
            )
            yield EffectFinished(_call_id(activation, index), "skipped", why=why)


def _rule(state: State, team: Team, member: Member, activation: Activation) -> Iterator[Event]:
    """Take up approvals that were answered: decide, then start or refuse the call."""
    for index, event in list(activation.pending.items()):
        effect_id = _call_id(activation, index)
        if isinstance(event, EffectFinished):
            allowed = event.outcome == "completed" and event.content in ("yes", "always")
            why = "" if allowed else event.why or "refused"
            tool = member.tools.get(activation.calls[index].name)
            bound = tool.reread(event.arguments) if tool is not None else event.arguments
            arguments = bound if isinstance(bound, str) else event.arguments
            always = tool.digest if tool is not None and event.content == "always" else ""
            event = PermissionDecided(effect_id, allowed, event.by, why, arguments, always, event.grant)
            yield event
        if event.allowed:
            yield from route(state, team, member, activation, index, event)
        else:
            by = f" by {event.by}" if event.by else ""
            yield EffectFinished(effect_id, "denied", why=f"permission denied{by}: {event.why}")


def _decide_own(
    state: State, member: Member, activation: Activation
) -> Generator[Event, None, Return | TurnFinished]:
    """What follows a turn that a plan or an action did."""
    finish = activation.finish
    if finish is not None:
        return Return("completed", finish.content, finish.why)
    if activation.exhausted:
        return Return("limit", activation.said, activation.exhausted)
    return (yield from decide(state, member, activation))


def _rule_of(
    state: State, member: Member, activation: Activation
) -> Generator[Event, None, Return | TurnFinished | None]:
    """The word of the agent's own rule, unless the turn has already ended the task."""
    if activation.finish is not None or activation.exhausted:
        return None
    return (yield from rule_of(state, member, activation))


def _decide(member: Member, activation: Activation) -> Return | TurnFinished:
    """What follows a settled turn: another one, or the return."""
    finish, agent = activation.finish, member.agent
    if finish is not None and finish.outcome == "denied":
        return Return("completed", f"The turn was stopped: {finish.why}")
    if finish is not None:
        return _typed(member, activation, finish.content, finish.why)
    if activation.exhausted:
        return Return("limit", activation.said, activation.exhausted)
    if activation.calls or activation.inbox:
        return TurnFinished(activation.id, more=True)
    if agent.completion == "text":
        more = _incomplete(agent, activation)
        if isinstance(more, Return):
            return more
        if more:
            return TurnFinished(activation.id, more=True, nudge=more)
        text = activation.transcript.messages[-1].content
        return _typed(member, activation, text, STOPPED.get(activation.stop, ""))
    if activation.nudges < agent.nudges:
        return TurnFinished(activation.id, more=True, nudge=nudge(member))
    return Return("no_progress", activation.said, f"{agent.nudges} nudges to finish were not followed")


def _typed(member: Member, activation: Activation, text: str, why: str) -> Return | TurnFinished:
    """The return of a result, or, when it is not of the agent's type, another turn to correct it."""
    wrong = member.answer.wrong(text) if member.answer is not None else ""
    if not wrong:
        return Return("completed", text, why)
    if activation.nudges < member.agent.nudges:
        return TurnFinished(activation.id, more=True, nudge=wrong)
    return Return("no_progress", text, f"the answer does not fit its type: {wrong}")


def _incomplete(agent: Agent, activation: Activation) -> str | Return:
    """What the agent's own rule says is left to do; empty when it may return."""
    if agent.incomplete is None or activation.nudges >= agent.nudges:
        return ""
    try:
        return whole(agent.incomplete(activation.transcript.messages) or "")
    except Exception as error:  # noqa: BLE001 - a hook that raises fails its activation, never the run
        why = f"the hook incomplete of {agent.name} failed: {type(error).__name__}: {error}"
        return Return("failed", activation.said, whole(why))


def _return(state: State, activation: Activation, ending: Return) -> Iterator[Event]:
    """End the turn and the call that the activation is; everything under it is closed first."""
    yield TurnFinished(activation.id)
    yield from close(state, activation)
    finish, call = activation.finish, activation.call
    attachments = finish.attachments if finish is not None else ()
    yield EffectFinished(call, ending.outcome, ending.value, attachments, why=ending.why)
    yield from results(state, call)


def _break_off(state: State, activation: Activation, ending: Return) -> Iterator[Event]:
    """Return in the middle of a turn: what runs is cancelled, what has not begun will not."""
    yield from close(state, activation)
    for index, found in enumerate(activation.results):
        if found is None:
            yield EffectFinished(_call_id(activation, index), "cancelled", why=ending.why)
    yield from _return(state, activation, ending)


def _cancel(state: State) -> Iterator[Event]:
    for target, why in list(state.cancelling.items()):
        opened = state.find(target)
        if opened is not None:
            yield from cancel(state, opened, why or "cancelled")
            yield from results(state, target)


def _call_id(activation: Activation, index: int) -> str:
    return f"{activation.id}/{activation.turn}.c{index + 1}"
