"""The audit's own view of a fork's first record."""

from __future__ import annotations

from msgspec.structs import replace

from antiphon.kernel.facts.events import (
    ActionEffect,
    EffectStarted,
    Fork,
    HumanInput,
    InstructionsEffect,
    ModelEffect,
    StepEffect,
    ToolEffect,
)
from antiphon.testing.audit.ledger import INSIDE


def branched(fork: Fork, here: tuple[int, str], opened: dict[str, EffectStarted]) -> str:
    """Why a fork should not begin so; empty where it may. Who is asked then has as long as was left.

    here: number and digest of the record before. opened: what is in flight, by id.
    """
    if (fork.seq, fork.digest) != here:
        return f"a fork of {fork.origin} after {fork.seq} ({fork.digest}) stands after {here}"
    busy = [each for each, event in opened.items() if _performed(event, opened)]
    for each, event in opened.items():
        if isinstance(event.detail, HumanInput) and event.detail.deadline is not None:
            later = replace(event.detail, deadline=event.detail.deadline + fork.shift)
            opened[each] = replace(event, detail=later)
    return f"a fork begins while {', '.join(busy)} is performed" if busy else ""


def _performed(event: EffectStarted, opened: dict[str, EffectStarted]) -> bool:
    """Whether somebody performs an effect that is no action or tool waiting for what it began inside."""
    if isinstance(event.detail, ActionEffect | ToolEffect):
        inside = [each.detail for name, each in opened.items() if name.startswith(event.id + INSIDE)]
        return not inside or any(getattr(each, "cut_off", False) for each in inside)
    return isinstance(event.detail, ModelEffect | StepEffect | InstructionsEffect)
