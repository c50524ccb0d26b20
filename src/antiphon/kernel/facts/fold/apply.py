"""The fold: it alone changes a RunState, one event after the other. It records and never decides.

`APPLY` says what each event changes; `STARTED` and `FINISHED` say it for each kind of effect.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from antiphon.errors import JournalCorrupt
from antiphon.kernel.facts.activation import Activation, OpenEffect, only_waits
from antiphon.kernel.facts.events import (
    ActionEffect,
    ApprovalEffect,
    CallEffect,
    CancelRequested,
    DrainStarted,
    EffectFinished,
    EffectStarted,
    Event,
    FilesChanged,
    HumanInput,
    InstructionsEffect,
    LimitEffect,
    MessagePosted,
    ModelEffect,
    PermissionDecided,
    QuestionEffect,
    ResultEffect,
    RoomEffect,
    RunClosed,
    RunResumed,
    RunStarted,
    StateChanged,
    StepEffect,
    TimerEffect,
    ToolEffect,
    ToolsetOffered,
    TranscriptCompacted,
    TurnFinished,
    TurnStarted,
)
from antiphon.kernel.facts.fold import agents, calls, hops, models, turns
from antiphon.kernel.facts.fold.inbox import deliver
from antiphon.kernel.facts.ids import activation_of, index_of, located
from antiphon.kernel.facts.ledger import limit_run, run_scope
from antiphon.kernel.facts.state import OwnerInfo, RunState, log, mark_ready
from antiphon.kernel.facts.toolsets import offered_toolset
from antiphon.values.message import USER
from antiphon.values.policy import Grant


class Folding:
    """A run as it goes on: `emit` applies an event at once, and notes it in `batch`."""

    __slots__ = ("batch", "run")

    def __init__(self, run: RunState) -> None:
        self.run = run
        self.batch: list[Event] = []

    def emit(self, event: Event) -> None:
        """Fold one event in."""
        APPLY[type(event)](self.run, event)
        self.batch.append(event)


def apply(run: RunState, event: Event) -> None:
    """Fold one event in. Raises JournalCorrupt for one that cannot follow what was folded before."""
    try:
        APPLY[type(event)](run, event)
    except (KeyError, IndexError, ValueError, AttributeError) as error:
        raise JournalCorrupt(run.run_id, 0, f"{type(event).__name__} does not follow ({error!r})") from error


def _run_started(run: RunState, event: RunStarted) -> None:
    run.run_id, run.options, run.data = event.run_id, event.options, event.data
    run.owner = OwnerInfo(event.manifest, rules=event.rules)
    run.activations[0] = Activation(0, USER)
    activity = run.totals.activity
    activity.counts, activity.began, activity.until = [0], run.at, run.at + activity.span
    if event.options.run_limits is not None:
        run.totals.scopes = (run_scope(event.options.run_limits),)


def _run_resumed(run: RunState, event: RunResumed) -> None:
    run.options = msgspec.structs.replace(run.options, interactive=event.interactive)
    if event.fork is not None:
        _forked(run, event.run_id, event.fork.shift)
    if event.renamed:
        agents.rename(run, event.renamed)
    if event.dropped:
        agents.drop(run, event.dropped)
    not_begun = run.owner.draining or frozenset()
    for activation in run.activations.values():
        if event.fork is None:
            for opened in activation.open.values():
                opened.waited = only_waits(activation, opened)
                if opened.id in not_begun:
                    opened.carried_over = True
                else:
                    opened.crashes += 1
                opened.manifest = opened.manifest or run.owner.manifest
                opened.foreign = opened.foreign or event.imported
        mark_ready(run, activation)
    if event.run_limits is not None:
        limit_run(run.totals.scopes, event.run_limits)
        run.options = msgspec.structs.replace(run.options, run_limits=event.run_limits)
    if event.imported:
        run.grants.clear()
    run.owner = OwnerInfo(
        event.manifest, event.policy, event.rules, run.owner.imported or event.imported,
        toolsets=run.owner.toolsets, down=run.owner.down,
    )  # fmt: skip
    run.freed.update(dict.fromkeys(run.waiting))


def _forked(run: RunState, run_id: str, shift: float) -> None:
    """A fork has its own id and commands; what is in flight is `shift` seconds younger than it looks."""
    run.run_id, run.command = run_id, 0
    for opened in run.open.values():
        opened.since += shift
        if type(opened.detail) is TimerEffect:
            opened.detail = msgspec.structs.replace(opened.detail, due_at=opened.detail.due_at + shift)
        elif isinstance(opened.detail, HumanInput) and opened.detail.deadline is not None:
            opened.detail = msgspec.structs.replace(opened.detail, deadline=opened.detail.deadline + shift)
    scopes = {id(scope): scope for each in run.activations.values() for scope in each.scopes}
    for scope in scopes.values():
        scope.asked_at += shift
    for each in run.activations.values():
        each.turn.attempts.since += shift
    run.models.failures = {model: (count, at + shift) for model, (count, at) in run.models.failures.items()}


def _message_posted(run: RunState, event: MessagePosted) -> None:
    run.command = event.command or run.command
    if event.begins:
        calls.queued_begins(run, event)
        return
    message = event.message
    publisher = run.activations[event.by] if event.by else None
    if publisher is not None and publisher.message_log is not None:
        publisher.message_log.append(message)
    if event.dead_letter:
        activation = run.activations.get(event.to)
        inbox = activation.mailbox.inbox if activation is not None else []
        if inbox and inbox[0].id == message.id:
            inbox.pop(0)
        return
    receiver = run.activations[event.to]
    deliver(receiver, message)
    if publisher is not None:
        hops.published(publisher, receiver, message)
    if not receiver.call and receiver.id:
        calls.note_unread(run.activations[receiver.caller], receiver)
    if receiver.id:
        log(run, receiver.request, message)
    mark_ready(run, receiver)


def _effect_started(run: RunState, event: EffectStarted) -> None:
    effect_id, detail = event.id, event.detail
    number, turn, index = located(effect_id)
    activation = run.activations[number]
    if effect_id in run.open:
        raise ValueError(f"{effect_id} started twice")
    opened = OpenEffect(effect_id, detail, number, turn, index, run.run_id, run.at)
    run.open[effect_id] = activation.open[effect_id] = opened
    STARTED[type(detail)](run, activation, opened, detail)


def _effect_finished(run: RunState, event: EffectFinished) -> None:
    effect_id = event.id
    run.command = event.command or run.command
    if run.cancelling:
        run.cancelling.pop(effect_id, None)
    opened = run.open.pop(effect_id, None)
    if opened is None:
        calls.never_started(run, event)
        return
    activation = run.activations[opened.activation]
    del activation.open[effect_id]
    opened.ended = True
    FINISHED[type(opened.detail)](run, activation, opened, event)
    if not activation.queued:
        # As `mark_ready` does; this is once for every effect there is.
        activation.queued = True
        run.ready.append(activation)


def _state_changed(run: RunState, event: StateChanged) -> None:
    data = run.activations[event.activation].data
    for key, value in event.set.items():
        data[key] = list(value) if isinstance(value, list) else value
    for key, values in event.append.items():
        data.setdefault(key, []).extend(values)


def _permission_decided(run: RunState, event: PermissionDecided) -> None:
    activation = run.activations[activation_of(event.id)]
    calls.note_pending(activation.turn, index_of(event.id), event)
    if event.remember:
        grants = run.grants.get(event.remember, ())
        run.grants[event.remember] = (*grants, event.grant or Grant())
    mark_ready(run, activation)


def _cancel_requested(run: RunState, event: CancelRequested) -> None:
    run.command = event.command or run.command
    targets = [event.target] if event.target else list(run.activations[0].open)
    for target in targets:
        if target in run.open:
            run.cancelling[target] = event.reason
    mark_ready(run, run.activations[0])


def _drain_started(run: RunState, event: DrainStarted) -> None:
    run.owner = msgspec.structs.replace(run.owner, draining=frozenset(event.not_begun))


def _toolset_offered(run: RunState, event: ToolsetOffered) -> None:
    toolsets, down = run.owner.toolsets, {**run.owner.down}
    if event.tools is not None:
        toolsets = {**toolsets, event.name: offered_toolset(event.name, event.tools)}
    down.pop(event.name, None)
    if event.reason:
        down[event.name] = event.reason
    run.owner = msgspec.structs.replace(run.owner, toolsets=toolsets, down=down)


def _run_closed(run: RunState, event: RunClosed) -> None:
    run.closed = True


APPLY: Mapping[type, Callable[[RunState, Any], None]] = {
    RunStarted: _run_started,
    RunResumed: _run_resumed,
    MessagePosted: _message_posted,
    TurnStarted: turns.turn_started,
    EffectStarted: _effect_started,
    EffectFinished: _effect_finished,
    FilesChanged: lambda *_: None,
    PermissionDecided: _permission_decided,
    StateChanged: _state_changed,
    TranscriptCompacted: models.transcript_compacted,
    TurnFinished: turns.turn_finished,
    CancelRequested: _cancel_requested,
    DrainStarted: _drain_started,
    ToolsetOffered: _toolset_offered,
    RunClosed: _run_closed,
}

STARTED: Mapping[type, Callable[[RunState, Activation, OpenEffect, Any], None]] = {
    ModelEffect: models.model_started,
    ToolEffect: calls.tool_started,
    CallEffect: calls.call_started,
    ApprovalEffect: calls.approval_started,
    QuestionEffect: calls.question_started,
    LimitEffect: models.limit_asked,
    TimerEffect: models.timer_started,
    ResultEffect: calls.result_awaited,
    RoomEffect: models.room_awaited,
    ActionEffect: turns.action_started,
    StepEffect: turns.step_started,
    InstructionsEffect: models.instructions_awaited,
}

FINISHED: Mapping[type, Callable[[RunState, Activation, OpenEffect, EffectFinished], None]] = {
    ModelEffect: models.model_finished,
    ToolEffect: calls.tool_finished,
    CallEffect: calls.call_finished,
    ApprovalEffect: calls.approval_finished,
    QuestionEffect: calls.question_finished,
    LimitEffect: models.limit_answered,
    TimerEffect: models.timer_finished,
    ResultEffect: calls.result_finished,
    RoomEffect: models.room_finished,
    ActionEffect: turns.action_finished,
    StepEffect: calls.operation_finished,
    InstructionsEffect: models.instructions_written,
}
