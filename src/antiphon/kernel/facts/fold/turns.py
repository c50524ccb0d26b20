"""The fold of turns: how one begins and ends, and what an agent's own action makes of it."""

from __future__ import annotations

from antiphon.kernel.context.compaction import COMPACT, HISTORY
from antiphon.kernel.facts.activation import Activation, OpenEffect, Turn
from antiphon.kernel.facts.events import (
    ActionEffect,
    CallEffect,
    EffectFinished,
    StepEffect,
    TurnFinished,
    TurnStarted,
)
from antiphon.kernel.facts.fold import hops
from antiphon.kernel.facts.fold.inbox import carry
from antiphon.kernel.facts.fold.transcript_edits import append_results, read_history, replace_transcript
from antiphon.kernel.facts.ids import parent_of
from antiphon.kernel.facts.state import RunState, keep_outputs, mark_ready
from antiphon.values.message import USER, Message, ToolCall
from antiphon.values.model import ChatMessage


def turn_started(run: RunState, event: TurnStarted) -> None:
    """A turn begins; see TurnStarted."""
    activation = run.activations[event.activation]
    inbox = activation.mailbox.inbox
    taken = tuple(inbox[: event.messages])
    del inbox[: event.messages]
    for message in taken:
        if message.labels:
            carry(activation, message.labels)
    turn = next_turn(run, activation)
    turn.suffix, turn.offered_tools = event.suffix, event.offered_tools
    if event.calls is not None:
        turn.messages, turn.planned, turn.ends = taken, True, {}
        take_up(activation, event.calls)
        return
    if event.act:
        turn.messages = taken
        if activation.message_log is None:
            activation.message_log = []
        activation.message_log.extend(taken)
        activation.phase = "asking"
        return
    calls = tuple([call for message in taken for call in message.calls])
    if event.input is not None or not activation.id:
        turn.messages = taken
    if activation.id:
        _show(activation, taken, event.input)
        if calls:
            given = ChatMessage("assistant", "", calls, given=True)
            activation.conversation.transcript.append(given, taken[0].id)
    if calls or not activation.id:
        take_up(activation, calls)
    else:
        activation.phase = "asking"


def next_turn(run: RunState, activation: Activation) -> Turn:
    """The turn after the last one, a new object; nothing of the last one stays."""
    if activation.mailbox.hops:
        hops.forget(activation)
    activation.another_turn = False
    activation.conversation.toolsets = run.owner.toolsets
    turn = activation.turn = Turn(activation.turn.number + 1)
    return turn


def _show(activation: Activation, taken: tuple[Message, ...], shown: tuple[ChatMessage, ...] | None) -> None:
    """Add what a turn took to the conversation: as it is, or as the agent's own hook shows it."""
    conversation = activation.conversation
    for message in taken:
        if message.intent == COMPACT and message.sender == USER:
            conversation.compaction = "asked"
        elif message.intent == HISTORY and message.sender == USER:
            conversation.compaction = "replaced"
            messages = read_history(message.content)
            replace_transcript(activation, messages, [message.id] * len(messages))
        elif shown is None and (message.content or message.attachments or not message.calls):
            told = ChatMessage("user", message.content, attachments=message.attachments)
            conversation.transcript.append(told, message.id)
    for each in shown or ():
        conversation.transcript.append(each, taken[0].id if taken else "")


def take_up(activation: Activation, calls: tuple[ToolCall, ...]) -> None:
    """Begin the calls of a turn."""
    turn = activation.turn
    turn.calls, turn.cursor = calls, 0
    turn.results = [None] * len(calls)
    activation.phase = "calling" if calls else "settled"


def settle_turn(run: RunState, activation: Activation) -> None:
    """When every call of the turn has its result, add them to the conversation in call order."""
    turn = activation.turn
    if turn.waiting or turn.pending or turn.cursor < len(turn.calls):
        return
    activation.phase = "settled"
    if not activation.id or turn.planned:
        return
    if activation.progress.refused or activation.progress.refused_calls:
        _count_repeats(activation)
    removed = append_results(activation, run.options.outputs.message)
    if removed:
        keep_outputs(run, removed)


def _count_repeats(activation: Activation) -> None:
    """Note that every call of a turn was refused, and whether the turn before was the same."""
    turn, progress = activation.turn, activation.progress
    calls: tuple[tuple[str, str], ...] = ()
    if progress.refused == len(turn.calls):
        calls = tuple([(each.name, each.arguments) for each in turn.calls])
    same = bool(calls) and calls == progress.refused_calls
    progress.refused, progress.refused_calls = 0, calls
    progress.repeats = progress.repeats + 1 if same else 0


def turn_finished(run: RunState, event: TurnFinished) -> None:
    """A turn is over; see TurnFinished."""
    activation = run.activations[event.activation]
    turn = activation.turn
    if event.reminder:
        activation.progress.reminders += 1
        activation.conversation.transcript.append(ChatMessage("user", event.reminder))
    elif turn.calls:
        activation.progress.reminders = 0
    if turn.planned:
        empty = not turn.calls and not turn.messages
        activation.progress.empty_turns = activation.progress.empty_turns + 1 if empty else 0
    end_turn(activation)
    activation.another_turn = event.another_turn
    mark_ready(run, activation)


def end_turn(activation: Activation) -> None:
    """Between two turns: the calls are done, and what came back meanwhile has been seen."""
    activation.phase = "idle"
    activation.turn.calls, activation.turn.results = (), []
    activation.mailbox.background_results = ()


# -- actions ------------------------------------------------------------------------------------


def action_started(run: RunState, activation: Activation, opened: OpenEffect, detail: ActionEffect) -> None:
    """The agent's own coroutine runs."""
    activation.phase = "acting"


def step_started(run: RunState, activation: Activation, opened: OpenEffect, detail: StepEffect) -> None:
    """A durable step changes nothing until it has ended; a tool's counts as a call."""
    operation_begun(activation, opened)


def operation_begun(activation: Activation, opened: OpenEffect) -> None:
    """Something begins inside an action or a tool. A call of an agent counts itself, and of an action nothing
    else does."""
    within = activation.open.get(parent_of(opened.id))
    if within is None:
        raise ValueError(f"{opened.id} began outside of an action or a tool")
    within.operations = {} if within.operations is None else within.operations
    if type(within.detail) is not ActionEffect and type(opened.detail) is not CallEffect:
        for scope in activation.scopes:
            scope.calls += 1


def action_finished(run: RunState, activation: Activation, opened: OpenEffect, event: EffectFinished) -> None:
    """An action is over; what it was for is unread again unless it completed."""
    turn = activation.turn
    turn.action_end, activation.phase = event, "settled"
    if event.outcome != "completed":
        activation.mailbox.inbox[:0] = turn.messages
        turn.messages = ()
