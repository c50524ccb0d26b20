"""How whatever is in flight ends when its caller does, or somebody cancels it."""

from __future__ import annotations

import msgspec

from antiphon.kernel.facts.activation import Activation, OpenEffect, inside
from antiphon.kernel.facts.events import CallEffect, EffectFinished, MessagePosted, ResultEffect
from antiphon.kernel.facts.ids import activation_of
from antiphon.kernel.facts.state import RunState
from antiphon.kernel.rules.next import Emit

ENDED = "the caller ended"
"""Why what was in flight under an activation is cancelled when that ends."""


def cancel_requested(emit: Emit, run: RunState) -> None:
    """End what somebody asked to stop."""
    for target, reason in list(run.cancelling.items()):
        opened = run.open.get(target)
        if opened is not None:
            cancel(emit, run, opened, reason or "cancelled")
            end_waits(emit, run, target)


def close(emit: Emit, run: RunState, activation: Activation) -> None:
    """Cancel every effect in flight under an activation, innermost first; unread messages are dead letters.

    Messages for an agent that acts or plans, and stays dormant, wait for its next call.
    """
    if not activation.open:
        if activation.mailbox.inbox:
            _dead_letters(emit, run, activation)
        return
    # A stack of its own: calls may be nested deeper than Python's.
    levels: list[tuple[Activation, str, list[OpenEffect]]] = [(activation, "", _in_flight(activation))]
    while levels:
        inner, call, left = levels[-1]
        if left:
            opened = left.pop()
            child = _callee(run, opened)
            if child is not None:
                levels.append((child, opened.id, _in_flight(child)))
            else:
                emit(EffectFinished(opened.id, "cancelled", reason=_told(opened, ENDED)))
            continue
        levels.pop()
        if inner.mailbox.inbox:
            _dead_letters(emit, run, inner)
        if call:
            progress = inner.progress
            emit(EffectFinished(call, "cancelled", progress.best_text, reason=ENDED, files=progress.files))


def cancel(emit: Emit, run: RunState, opened: OpenEffect, reason: str, *, replaced_by: str = "") -> None:
    """End an effect in flight, and everything under it."""
    child = _callee(run, opened)
    if child is not None:
        close(emit, run, child)
    for each in inside(run.activations[opened.activation], opened):
        cancel(emit, run, each, reason)
    best, files = (child.progress.best_text, child.progress.files) if child is not None else ("", ())
    told = _told(opened, reason)
    emit(EffectFinished(opened.id, "cancelled", best, reason=told, replaced_by=replaced_by, files=files))


def _told(opened: OpenEffect, reason: str) -> str:
    """Why it was cancelled; and of an act that had begun, that nobody knows how far it came."""
    return f"{reason}; it may or may not have taken effect" if opened.allowed else reason


def _callee(run: RunState, opened: OpenEffect) -> Activation | None:
    return run.activations.get(opened.child) if opened.child else None


def _in_flight(activation: Activation) -> list[OpenEffect]:
    """The effects of an activation, the one to end first last."""
    effects = list(activation.open.values())
    if activation.phase != "acting":
        # What an action began stands after it, and ends before it; so does what a tool began.
        effects.reverse()
        if any(each.operations is not None for each in effects):
            effects.sort(key=lambda each: ":" in each.id)
    return effects


def _dead_letters(emit: Emit, run: RunState, activation: Activation) -> None:
    call = run.open.get(activation.call)
    own = activation.message_log is not None or activation.turn.planned
    if own and call is not None and type(call.detail) is CallEffect and call.detail.stays_dormant:
        return
    for message in list(activation.mailbox.inbox):
        emit(
            MessagePosted(message, activation.id, dead_letter=f"{activation.agent} ended before it read this")
        )


def end_waits(emit: Emit, run: RunState, call: str) -> None:
    """End the waits for the result of a background call that has ended."""
    caller = run.activations.get(activation_of(call))
    if caller is not None and call in caller.done:
        event = caller.done[call].event
        for opened in list(caller.open.values()):
            if type(opened.detail) is ResultEffect and opened.detail.call_id == call:
                emit(msgspec.structs.replace(event, id=opened.id, files=()))
