"""How a turn begins and ends. The one place that says what follows a turn."""

from __future__ import annotations

from collections.abc import Sequence

from antiphon.kernel.facts import ids
from antiphon.kernel.facts.activation import Activation, Turn
from antiphon.kernel.facts.agent_call import CALL_AGENT, INCOMPLETE
from antiphon.kernel.facts.events import EffectFinished, MessagePosted, TurnFinished, TurnStarted
from antiphon.kernel.facts.fold.inbox import full, labelled
from antiphon.kernel.facts.ledger import overspent
from antiphon.kernel.facts.state import RunState
from antiphon.kernel.rules import builtins, cancelling, hooks, models, retries
from antiphon.kernel.rules.next import AGAIN, WAIT, Emit, Next
from antiphon.kernel.rules.team.compiled import CompiledAgent, CompiledTeam, reminder
from antiphon.kernel.rules.user import conversations
from antiphon.kernel.rules.user.tool_calls import of_person
from antiphon.values.agent import Agent
from antiphon.values.hooks import Continue, ModelInput, Return, TurnContext, TurnPlan
from antiphon.values.message import Message
from antiphon.values.result import Failure, Incomplete

STOPPED_SHORT = frozenset({"limit", "budget", "no_progress"})
"""Outcomes of an activation that was stopped before it had done its task."""

# -- the beginning --------------------------------------------------------------------------------


def begin(
    emit: Emit, run: RunState, team: CompiledTeam, member: CompiledAgent, activation: Activation
) -> Next:
    """Start a turn when there is something to do: by plan, by action, or with a model to be asked."""
    if not activation.call or (not activation.another_turn and not activation.mailbox.inbox):
        return WAIT
    first = activation.turn.number == activation.progress.earlier_turns
    following: Next = AGAIN
    if member.begins or activation.own_model:
        following = _by_hooks(emit, run, member.agent, activation)
    else:
        emit(TurnStarted(activation.id, to_take(member.agent, activation)))
    if following is AGAIN and first:
        late = retries.deadline(emit, run, activation)
        if late is not WAIT:
            break_off(emit, run, activation, late)
            return WAIT
    return following


def to_take(agent: Agent, activation: Activation) -> int:
    """How many of the waiting messages a turn takes."""
    waiting = len(activation.mailbox.inbox)
    return min(waiting, 1) if agent.loop.batch == "one" else waiting


def without_tools(activation: Activation) -> bool:
    """Whether it only answers a tool that asks its agent's model: with a text, no tools and no hooks."""
    return activation.own_model and ids.mark_of(activation.call) == "c"


def _by_hooks(emit: Emit, run: RunState, agent: Agent, activation: Activation) -> Next:
    """Start a turn as the agent's own hooks say."""
    if activation.own_model and without_tools(activation):
        # Whoever wrote the question is not whoever made the agent: nothing is done on its word.
        emit(TurnStarted(activation.id, to_take(agent, activation), offered_tools=()))
        return AGAIN
    if not activation.own_model:
        if agent.hooks.plan_turn is not None:
            return _plan(emit, run, agent, activation)
        if agent.hooks.act is not None:
            emit(TurnStarted(activation.id, to_take(agent, activation), act=True))
            return AGAIN
    if agent.hooks.prepare_input is not None:
        return _prepare(emit, run, agent, activation)
    emit(TurnStarted(activation.id, to_take(agent, activation)))
    return AGAIN


def _plan(emit: Emit, run: RunState, agent: Agent, activation: Activation) -> Next:
    inbox, count = activation.mailbox.inbox, to_take(agent, activation)
    try:
        context = hooks.context(run, activation, inbox[:count], activation.turn.number + 1, inbox[count:])
        planned = (
            hooks.checked(agent.hooks.plan_turn(context), TurnPlan)
            if agent.hooks.plan_turn is not None
            else None
        )
        wanted = planned.calls if planned is not None else ()
        calls = tuple([hooks.planned_call(number, each, count) for number, each in enumerate(wanted, 1)])
    except Exception as error:  # noqa: BLE001 - a hook that raises fails its activation, never the run
        emit(TurnStarted(activation.id, 0, (), by="plan_turn"))
        return hooks.raised("plan_turn", activation, error)
    if planned is None:
        emit(TurnStarted(activation.id, count, act=agent.hooks.act is not None, by="plan_turn"))
        return AGAIN
    hooks.record_changes(emit, activation, planned, "plan_turn")
    emit(TurnStarted(activation.id, count, calls, by="plan_turn", rules=planned.rules))
    return AGAIN


def _prepare(emit: Emit, run: RunState, agent: Agent, activation: Activation) -> Next:
    """Start a turn of a model that is shown what its agent's own hook makes of the messages."""
    inbox, count = activation.mailbox.inbox, to_take(agent, activation)
    try:
        context = hooks.context(run, activation, inbox[:count], activation.turn.number + 1, inbox[count:])
        shown = (
            hooks.checked(agent.hooks.prepare_input(context), ModelInput)
            if agent.hooks.prepare_input is not None
            else None
        )
    except Exception as error:  # noqa: BLE001 - as above
        emit(TurnStarted(activation.id, 0, (), by="prepare_input"))
        return hooks.raised("prepare_input", activation, error)
    if shown is None:
        emit(TurnStarted(activation.id, count, by="prepare_input"))
        return AGAIN
    hooks.record_changes(emit, activation, shown, "prepare_input")
    emit(
        TurnStarted(
            activation.id, count, input=tuple(shown.messages), suffix=shown.suffix,
            offered_tools=shown.offered_tools, by="prepare_input", rules=shown.rules,
        )
    )  # fmt: skip
    hooks.post(emit, run, activation, shown.post, "prepare_input")
    return AGAIN


def serve_user(emit: Emit, run: RunState, team: CompiledTeam, user: Activation) -> None:
    """The user's turns only do the calls that came with the messages, and wait for none of them.

    They are requests, and calls of tools that an agent's own hook answers at once.
    """
    if user.mailbox.requests:
        conversations.begin_queued(emit, run, team, user)
    while True:
        if user.phase == "idle":
            if not user.mailbox.inbox:
                return
            emit(TurnStarted(user.id, 1))
        elif user.phase == "calling":
            turn = user.turn
            while turn.cursor < len(turn.calls):
                effect_id, call = ids.call_id(user.id, turn.number, turn.cursor), turn.calls[turn.cursor]
                if call.name == CALL_AGENT:
                    builtins.call_agent(emit, run, team, None, user, call, effect_id)
                else:
                    of_person(emit, run, team, user, call, effect_id)
        else:
            emit(TurnFinished(user.id))


def wait(
    emit: Emit, run: RunState, team: CompiledTeam, member: CompiledAgent, activation: Activation
) -> Next:
    """An action runs; its end comes from outside."""
    return WAIT


# -- the end --------------------------------------------------------------------------------------


def end(emit: Emit, run: RunState, team: CompiledTeam, member: CompiledAgent, activation: Activation) -> Next:
    """What follows a settled turn: another one, or the return."""
    turn = activation.turn
    if run.totals.overruns and (reason := overspent(activation.scopes)):
        ended = turn.finish or turn.action_end
        text = ended.content if ended is not None else ""
        return Return("budget", text or activation.progress.best_text, reason)
    if turn.finish is not None or turn.breached_limit:
        return _finished(emit, member, activation)
    if turn.planned or turn.action_end is not None:
        return _after_own(emit, run, team, member, activation)
    if member.agent.hooks.end_turn is not None and not without_tools(activation):
        following = _decided(emit, run, member, activation)
        if following is not None:
            return following
    return _after_model(emit, run, team, member, activation)


def _finished(emit: Emit, member: CompiledAgent, activation: Activation) -> Next:
    """A call has ended the task, or a limit refused one."""
    turn = activation.turn
    finish = turn.finish
    if finish is None:
        return Return("limit", activation.progress.best_text, turn.breached_limit)
    own = turn.planned or turn.action_end is not None
    if finish.outcome == "denied" and not own:
        return Return("completed", f"The turn was stopped: {finish.reason}")
    text, reason = finish.content, finish.reason
    if not text and finish.finishes and turn.calls[ids.index_of(finish.id)].name in member.tools:
        # A tool that finishes and says nothing leaves the agent's own last word.
        text = activation.progress.best_text
    if turn.handoff:
        reason = f"handed over to {turn.handoff}"
    return Return("completed", text, reason) if own else _typed(emit, member, activation, text, reason)


def _after_own(
    emit: Emit, run: RunState, team: CompiledTeam, member: CompiledAgent, activation: Activation
) -> Next:
    """What follows a turn of an agent's own: another one, a wait for those who ask people, or the return."""
    agent, turn = member.agent, activation.turn
    if turn.action_end is not None:
        acted = turn.action_end
        return Return(acted.outcome, acted.content, acted.reason)
    found: Continue | Return | None = None
    if agent.hooks.end_turn is not None:
        try:
            found = hooks.checked(agent.hooks.end_turn(_context(run, activation)), Continue, Return)
        except Exception as error:  # noqa: BLE001 - as above
            return hooks.raised("end_turn", activation, error)
    if found is not None:
        hooks.record_changes(emit, activation, found, "end_turn")
    if isinstance(found, Continue):
        return _go_on(emit, run, member, activation, found)
    inbox = activation.mailbox.inbox
    if any(opened.detached is not None for opened in activation.open.values()):
        return _another(emit, activation, another_turn=bool(inbox))
    if found is not None:
        _publish(emit, run, team, activation, found.publish)
        return _given_back(emit, activation, found)
    if agent.hooks.plan_turn is None:
        # Another agent was to take over, and could not.
        last = (turn.ends or {})[0]
        return Return(last.outcome, last.content or activation.progress.best_text, last.reason)
    return _another(emit, activation) if inbox else Return()


def _publish(
    emit: Emit, run: RunState, team: CompiledTeam, activation: Activation, messages: Sequence[Message]
) -> None:
    """Give messages to a caller that plans, as an action does with what it publishes."""
    caller = run.activations[activation.caller]
    member = team.members.get(caller.agent)
    if member is None or member.agent.hooks.plan_turn is None:
        return
    for message in messages:
        refused = full(caller, run.options.limits)
        told = labelled(message, activation)
        emit(MessagePosted(told, caller.id, dead_letter=refused, by=activation.id))


def _decided(emit: Emit, run: RunState, member: CompiledAgent, activation: Activation) -> Next | None:
    """What the agent's own hook says follows a turn of its model; None leaves it to the kernel."""
    decide = member.agent.hooks.end_turn
    try:
        found = hooks.checked(decide(_context(run, activation)), Continue, Return) if decide else None
    except Exception as error:  # noqa: BLE001 - as above
        return hooks.raised("end_turn", activation, error)
    if found is None:
        return None
    hooks.record_changes(emit, activation, found, "end_turn")
    if isinstance(found, Return):
        return _given_back(emit, activation, found)
    return _go_on(emit, run, member, activation, found)


def _given_back(emit: Emit, activation: Activation, found: Return) -> Return:
    """The turn ends with what the agent's own hook returns."""
    emit(TurnFinished(activation.id, by="end_turn", rules=found.rules))
    return found


def _context(run: RunState, activation: Activation) -> TurnContext:
    turn = activation.turn
    return hooks.context(run, activation, turn.messages, turn.number, activation.mailbox.inbox)


def _go_on(emit: Emit, run: RunState, member: CompiledAgent, activation: Activation, found: Continue) -> Next:
    """Another turn, as the agent's own hook says."""
    progress, turn, most = activation.progress, activation.turn, member.agent.loop.max_reminders
    if found.reminder and progress.reminders >= most:
        return Return("no_progress", progress.best_text, f"{most} reminders were not followed")
    hooks.post(emit, run, activation, found.post, "end_turn")
    away = found.wait_for_messages and any(
        each.detached is not None or getattr(each.detail, "background", False)
        for each in activation.open.values()
    )
    empty = turn.planned and not turn.calls and not turn.messages and not activation.mailbox.inbox
    if empty and not away and progress.empty_turns >= most:
        reason = f"{most + 1} planned turns in a row had no message and made no call"
        return Return("no_progress", progress.best_text, reason)
    emit(TurnFinished(activation.id, not away, found.reminder, "end_turn", found.rules))
    return AGAIN


def _after_model(
    emit: Emit, run: RunState, team: CompiledTeam, member: CompiledAgent, activation: Activation
) -> Next:
    """What follows a turn of a model: its results are shown to it, or its text is the result."""
    agent, turn, progress = member.agent, activation.turn, activation.progress
    repeats = turn.calls and progress.repeats and not activation.mailbox.inbox
    if repeats and progress.repeats >= agent.loop.max_reminders:
        return Return("no_progress", progress.best_text, _repeated(turn, progress.repeats))
    bare = activation.own_model and without_tools(activation)
    if turn.calls or activation.mailbox.inbox:
        if not (activation.mailbox.inbox or member.begins or bare) and run.owner.draining is None:
            asked = models.next_turn(run, team, member, activation)
            if asked is not None:
                # The id of this call says that a turn is over, and that the next has begun.
                emit(asked)
                return WAIT
        return _another(emit, activation)
    if agent.completion == "text" or bare:
        text = activation.conversation.transcript.messages[-1].content
        return Return("completed", text) if bare else _typed(emit, member, activation, text, "")
    if progress.reminders < agent.loop.max_reminders:
        return _another(emit, activation, reminder(member))
    return Return(
        "no_progress", progress.best_text, f"{agent.loop.max_reminders} reminders to finish were not followed"
    )


def _repeated(turn: Turn, repeats: int) -> str:
    """What a model called again and again, and what it was told each time."""
    result = turn.results[0]
    error = result.content.removeprefix("Error: ") if result is not None else ""
    return (
        f"{turn.calls[0].name} was called {repeats + 1} times in a row in the same way, and refused: {error}"
    )


def _typed(emit: Emit, member: CompiledAgent, activation: Activation, text: str, reason: str) -> Next:
    """The return of a result, or, when it is not of the agent's type, another turn to correct it."""
    wrong = member.answer.wrong(text) if member.answer is not None else ""
    if not wrong:
        return Return("completed", text, reason)
    if activation.progress.reminders < member.agent.loop.max_reminders:
        return _another(emit, activation, wrong)
    return Return("no_progress", text, f"the answer does not fit its type: {wrong}")


def _another(emit: Emit, activation: Activation, reminder: str = "", *, another_turn: bool = True) -> Next:
    emit(TurnFinished(activation.id, another_turn, reminder))
    return AGAIN


# -- the return -----------------------------------------------------------------------------------


def give_back(emit: Emit, run: RunState, activation: Activation, ending: Return) -> None:
    """End the turn and the call that the activation is; everything under it is closed first."""
    if activation.phase != "idle":
        emit(TurnFinished(activation.id))
    cancelling.close(emit, run, activation)
    finish, call, incomplete = activation.turn.finish, activation.call, _incomplete(activation, ending)
    attachments = finish.attachments if finish is not None else ()
    output = ending.output or (_so_far(activation, ending) if ending.outcome in STOPPED_SHORT else "")
    reason = ending.reason
    if incomplete:
        reason = "; ".join([reason, INCOMPLETE[incomplete]] if reason else [INCOMPLETE[incomplete]])
    failure = _failure(activation) if ending.outcome == "failed" and activation.caller else None
    emit(
        EffectFinished(
            call, ending.outcome, output, attachments, reason=reason, failure=failure, incomplete=incomplete,
            files=activation.progress.files,
        )
    )  # fmt: skip
    _end_waits(emit, run, call)


def _failure(activation: Activation) -> Failure | None:
    """The failed model call that an activation ended with: its own, or that of whoever was to take over."""
    turn = activation.turn
    if turn.attempts.failure is not None:
        return turn.attempts.failure.failure
    taken_over = (turn.ends or {}).get(0) if turn.planned else None
    return taken_over.failure if taken_over is not None else None


def _incomplete(activation: Activation, ending: Return) -> Incomplete:
    """Why what is returned is not the whole answer: it is, or holds, a text that its model did not end."""
    turn = activation.turn
    if ending.outcome != "completed":
        return ""
    if turn.finish is not None:
        return turn.finish.incomplete
    if turn.stop == "length" or turn.stop == "refusal":
        return turn.stop if turn.reply in ending.output else ""
    return ""


def _so_far(activation: Activation, ending: Return) -> str:
    """What there is of a task that was stopped and has no text: the last result of a call; else, for the
    user, that there is none and why. A plan has nobody who would answer."""
    for message in reversed(activation.conversation.transcript.messages):
        if message.role == "tool" and message.content and not message.is_error:
            return message.content
    return "" if activation.caller or activation.turn.planned else f"There is no answer yet: {ending.reason}."


def break_off(emit: Emit, run: RunState, activation: Activation, ending: Next) -> None:
    """Return in the middle of a turn: what runs is cancelled, what has not begun will not."""
    if not isinstance(ending, Return):
        return
    cancelling.close(emit, run, activation)
    for index, found in enumerate(activation.turn.results):
        if found is None:
            skipped = ids.call_id(activation.id, activation.turn.number, index)
            emit(EffectFinished(skipped, "cancelled", reason=ending.reason))
    give_back(emit, run, activation, ending)


def leave(emit: Emit, run: RunState, activation: Activation) -> None:
    """The team has lost the agent: its call fails."""
    cancelling.close(emit, run, activation)
    reason, call = f"the team has no agent {activation.agent} any more", activation.call
    progress = activation.progress
    emit(EffectFinished(call, "failed", progress.best_text, reason=reason, files=progress.files))
    _end_waits(emit, run, call)


def _end_waits(emit: Emit, run: RunState, call: str) -> None:
    caller = run.activations.get(ids.activation_of(call))
    if caller is not None and call in caller.done:
        cancelling.end_waits(emit, run, call)
