"""allowance: how far an agent may still go, and what it is told of that. Steps, and room in its window."""

from __future__ import annotations

from msgspec import Struct

from antiphon.styles.profiles.turns.inbox import SYSTEM
from antiphon.styles.profiles.world.binding import ProfileBinding
from antiphon.values.hooks import TurnContext

WARNED = 2
"""Steps that are left when an agent is told so."""


class Allowance(Struct, frozen=True):
    """notes: what the agent is told. only: the tools that it is offered, None for all."""

    notes: tuple[str, ...] = ()
    only: tuple[str, ...] | None = None


def allowance(seat: ProfileBinding, context: TurnContext) -> Allowance:
    """What holds in the turn that begins."""
    notes: list[str] = []
    left = None if seat.bounds.steps is None else seat.bounds.steps - context.turn + 1
    if left == WARNED:
        notes.append(
            f"{SYSTEM}{left} remaining: you have {left} steps left, this one included. Come to an end."
        )
    last = left is not None and left < WARNED
    if last:
        notes.append(f"{SYSTEM}This is your last step. {_ending(seat)}")
    part = context.tokens / seat.bounds.window if seat.bounds.window else 0.0
    full = part >= seat.bounds.close
    if part >= seat.bounds.warn:
        notes.append(f"{SYSTEM}Your context is {part:.0%} full. {_advice(seat, part)}")
    return Allowance(tuple(notes), seat.finishing if (last or full) and seat.finishing else None)


def _advice(seat: ProfileBinding, part: float) -> str:
    if part >= seat.bounds.close:
        return _ending(seat)
    return "Finish your task now." if part >= seat.bounds.urge else "Be brief, and read only what you need."


def _ending(seat: ProfileBinding) -> str:
    if seat.finishing:
        return f"Call {' or '.join(seat.finishing)} with what you have."
    return "Answer with what you have."
