"""The fold of model calls, and of what stands between them: instructions, retries, deadlines, limits, room,
compaction."""

from __future__ import annotations

from collections import deque
from typing import Any

from antiphon.kernel.facts.activation import Activation, OpenEffect
from antiphon.kernel.facts.events import (
    EffectFinished,
    InstructionsEffect,
    LimitEffect,
    ModelEffect,
    RoomEffect,
    TimerEffect,
    TranscriptCompacted,
)
from antiphon.kernel.facts.fold.calls import people_answered, people_asked
from antiphon.kernel.facts.fold.transcript_edits import compact
from antiphon.kernel.facts.fold.turns import end_turn, next_turn, take_up
from antiphon.kernel.facts.ledger import Charge, hold, raise_limits, settle
from antiphon.kernel.facts.state import RunState, Totals, keep_outputs, mark_ready, room_made
from antiphon.values.model import ChatMessage

UNBOUNDED = 1 << 62
BLAMELESS = frozenset({"validation", "context_length", "refusal"})
"""Failures that say something of the request, and nothing of the model's health."""


def instructions_awaited(
    run: RunState, activation: Activation, opened: OpenEffect, detail: InstructionsEffect
) -> None:
    """The model is asked once its instructions are there."""
    activation.phase = "waiting"


def instructions_written(
    run: RunState, activation: Activation, opened: OpenEffect, event: EffectFinished
) -> None:
    """The model may be asked now; without instructions the turn is over."""
    if event.outcome == "completed":
        activation.progress.instructions, activation.phase = event.content, "asking"
    else:
        activation.turn.action_end, activation.phase = event, "settled"


def model_started(run: RunState, activation: Activation, opened: OpenEffect, detail: ModelEffect) -> None:
    """The worst case is held. An id of the next turn says that the last one is over."""
    if opened.turn != activation.turn.number:
        # Only a turn with calls ends so, and doing those was progress.
        activation.progress.reminders = 0
        end_turn(activation)
        next_turn(run, activation)
    attempts, conversation = activation.turn.attempts, activation.conversation
    attempts.count += 1
    activation.phase = "waiting"
    if detail.purpose == "compact":
        activation.turn.compactions += 1
        conversation.compaction = "tried" if conversation.compaction else ""
    else:
        attempts.tries = attempts.tries + 1 if detail.fallback == attempts.fallback else 1
        attempts.fallback = detail.fallback
        attempts.since = attempts.since or run.at
    if detail.prefix:
        conversation.prefix = detail.prefix
    hold(activation.scopes, detail.held_tokens, detail.held_nano_usd)


def model_finished(run: RunState, activation: Activation, opened: OpenEffect, event: EffectFinished) -> None:
    """The hold is settled; a reply goes into the conversation, and its calls are next."""
    detail: Any = opened.detail
    charged = settle(activation.scopes, detail, event)
    if charged.tokens or charged.usage.input_tokens:
        _book(run.totals, detail.model, charged)
    if charged.exceeds_hold:
        run.totals.overruns += 1
    if run.waiting:
        room_made(run, activation)
    reply, failure = event.reply, event.failure
    if reply is not None:
        if run.models.failures:
            run.models.failures.pop(detail.model, None)
    elif event.outcome == "failed" and (failure is None or failure.kind not in BLAMELESS):
        run.models.failures[detail.model] = run.models.failures.get(detail.model, (0, 0.0))[0] + 1, run.at
    if failure is not None or run.models.too_long:
        _learn_window(run, detail, event)
    turn, conversation = activation.turn, activation.conversation
    if event.outcome == "interrupted":
        activation.phase, turn.attempts.since = "asking", 0.0
    elif detail.purpose == "compact":
        activation.phase, conversation.window_tokens = "asking", 0
        conversation.summary = reply.content if reply is not None else ""
        conversation.summary_effect, conversation.summary_oldest = event.id, detail.oldest
    elif detail.purpose == "final":
        take_up(activation, ())
        turn.breached_limit = detail.reason
        if reply is not None:
            activation.progress.best_text = reply.content
    elif reply is not None:
        turn.attempts.failure, turn.reply, turn.stop = None, reply.content, reply.stop
        activation.progress.best_text = reply.content or activation.progress.best_text
        conversation.window_tokens = charged.usage.input_tokens + charged.usage.output_tokens
        said = ChatMessage(
            "assistant", reply.content, reply.calls, reasoning=reply.reasoning, opaque=reply.opaque
        )
        conversation.transcript.append(said, event.id)
        take_up(activation, reply.calls)
    else:
        turn.attempts.failure = event
        activation.phase = "failed"


def _learn_window(run: RunState, detail: ModelEffect, event: EffectFinished) -> None:
    """What a model found too long bounds its window from above, until something as long is answered."""
    if event.failure is not None and event.failure.kind == "context_length":
        known = run.models.too_long.get(detail.model)
        run.models.too_long[detail.model] = (
            detail.held_tokens if known is None else min(known, detail.held_tokens)
        )
    elif event.reply is not None and run.models.too_long.get(detail.model, UNBOUNDED) <= detail.held_tokens:
        del run.models.too_long[detail.model]


def _book(totals: Totals, model: str, charged: Charge) -> None:
    """Add a call to what the whole run has used."""
    totals.nano_usd += charged.nano_usd
    totals.unpriced += not charged.priced
    used = totals.usage.get(model)
    totals.usage[model] = charged.usage if used is None else used + charged.usage


def transcript_compacted(run: RunState, event: TranscriptCompacted) -> None:
    """What a model is shown from now on."""
    activation = run.activations[event.activation]
    conversation = activation.conversation
    conversation.summary = None
    if conversation.compaction == "tried" and (event.retain or event.summary):
        conversation.compaction = "compacted"
    keep_outputs(run, compact(activation, event))
    mark_ready(run, activation)


# -- waits ----------------------------------------------------------------------------------------


def timer_started(run: RunState, activation: Activation, opened: OpenEffect, detail: TimerEffect) -> None:
    """A retry is waited for, or a deadline set."""
    if detail.purpose == "deadline":
        activation.progress.overdue = False
        activation.progress.deadlines += 1
    else:
        activation.phase = "waiting"


def timer_finished(run: RunState, activation: Activation, opened: OpenEffect, event: EffectFinished) -> None:
    """It is time to try again, or too late."""
    if type(opened.detail) is TimerEffect and opened.detail.purpose == "deadline":
        activation.progress.overdue = event.outcome == "completed"
    else:
        activation.phase = "asking"


def limit_asked(run: RunState, activation: Activation, opened: OpenEffect, detail: LimitEffect) -> None:
    """Somebody is asked to allow as much again."""
    activation.phase = "waiting"
    activation.progress.raises += 1
    people_asked(run, activation, detail.detaches)


def limit_answered(run: RunState, activation: Activation, opened: OpenEffect, event: EffectFinished) -> None:
    """As much again is allowed, or not; for those who joined the question too."""
    people_answered(run, activation)
    joins = type(opened.detail) is LimitEffect and opened.detail.joins
    if event.outcome == "completed" and event.content in ("yes", "always"):
        if type(opened.detail) is LimitEffect and not joins:
            raise_limits(activation.scopes[opened.detail.scope])
        room_made(run, activation)
    elif not joins or event.outcome != "cancelled":
        # Who joined a question that was taken back asks one of their own.
        activation.progress.raise_declined = True
    activation.phase = "asking"
    for each in run.open.values() if not joins else ():
        if type(each.detail) is LimitEffect and each.detail.joins == opened.id:
            each.answer = event
            mark_ready(run, run.activations[each.activation])


def room_awaited(run: RunState, activation: Activation, opened: OpenEffect, detail: RoomEffect) -> None:
    """The activation stands in line for its request's budget."""
    activation.phase = "waiting"
    activation.turn.attempts.room += 1
    run.waiting.setdefault(activation.request, deque()).append(opened)


def room_finished(run: RunState, activation: Activation, opened: OpenEffect, event: EffectFinished) -> None:
    """There may be room now: the activation asks again, and so may the next in line."""
    line = run.waiting[activation.request]
    line.remove(opened)
    if line:
        run.freed[activation.request] = None
    else:
        del run.waiting[activation.request]
    after_failure = type(opened.detail) is RoomEffect and opened.detail.after_failure
    activation.phase = "failed" if after_failure else "asking"
