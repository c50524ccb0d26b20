"""closing: how whatever is in flight ends when its caller does, or somebody cancels it."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from antiphon.kernel.facts.activation import Activation, Open
from antiphon.kernel.facts.events import EffectFinished, Event, MessagePosted
from antiphon.kernel.facts.state import State

ENDED = "the caller ended"
"""Why what was in flight under an activation is cancelled when that ends."""


def close(state: State, activation: Activation) -> Iterator[Event]:
    """Cancel every effect in flight under an activation, innermost first; unread mail is dead.

    Mail of an agent that acts or plans, and is to be continued, waits for that.
    """
    # A stack of its own: calls may be nested deeper than Python's.
    levels: list[tuple[Activation, str, list[Open]]] = [(activation, "", _in_flight(activation))]
    while levels:
        inner, call, left = levels[-1]
        if left:
            opened = left.pop()
            child = _callee(state, opened)
            if child is not None:
                levels.append((child, opened.effect.id, _in_flight(child)))
            else:
                yield EffectFinished(opened.effect.id, "cancelled", why=ENDED)
            continue
        levels.pop()
        if inner.inbox:
            yield from _dead_letters(state, inner)
        if call:
            yield EffectFinished(call, "cancelled", inner.said, why=ENDED)


def cancel(state: State, opened: Open, why: str) -> Iterator[Event]:
    """End an effect in flight, and everything under it."""
    child = _callee(state, opened)
    if child is not None:
        yield from close(state, child)
    yield EffectFinished(opened.effect.id, "cancelled", child.said if child is not None else "", why=why)


def _callee(state: State, opened: Open) -> Activation | None:
    return state.activations.get(opened.child) if opened.child else None


def _in_flight(activation: Activation) -> list[Open]:
    """The effects of an activation, the one to end first last."""
    effects = list(activation.open.values())
    if activation.phase != "act":
        # What an action began stands after it, and ends before it.
        effects.reverse()
    return effects


def _dead_letters(state: State, activation: Activation) -> Iterator[Event]:
    call = state.open.get(activation.call)
    own = activation.past is not None or activation.planned
    if own and call is not None and call.effect.keep:
        return
    for message in list(activation.inbox):
        yield MessagePosted(message, activation.id, dead=f"{activation.agent} ended before it read this")


def results(state: State, call: str) -> Iterator[Event]:
    """End the waits for the result of a background call."""
    caller = state.activations.get(int(call[: call.index("/")]))
    if caller is not None and call in caller.done:
        event = caller.done[call].event
        for opened in list(caller.open.values()):
            if opened.effect.purpose == "result" and opened.effect.name == call:
                yield msgspec.structs.replace(event, id=opened.effect.id)
