"""How long an answer is waited for, where nobody says it."""

from __future__ import annotations

from msgspec import Struct


class Timeouts(Struct, frozen=True):
    """Seconds until connected; until the first piece of an answer, connecting included; between two pieces;
    and for all of it.
    """

    connect: float = 10.0
    first: float = 300.0
    idle: float = 60.0
    total: float = 1800.0


DEFAULT = Timeouts()


def lateness(where: str, begun: bool, timeouts: Timeouts) -> str:
    """What is said of an answer that did not come in time."""
    if not begun and timeouts.total < timeouts.first:
        return f"{where} has sent nothing for {timeouts.total:g} s (total_timeout)"
    if not begun:
        return f"{where} has sent nothing for {timeouts.first:g} s (first_timeout)"
    return (
        f"{where} stopped in the middle of its answer: nothing for {timeouts.idle:g} s (idle_timeout), "
        f"or {timeouts.total:g} s in all (total_timeout)"
    )
