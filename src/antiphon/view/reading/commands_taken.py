"""CommandsTaken: what became of what was posted in a run."""

from __future__ import annotations

from collections.abc import Iterable

from antiphon.errors import UserError
from antiphon.kernel.facts.records import Record
from antiphon.view.changes import CallQueued, CancelRequest, Change, EffectEnd, EffectStart, MessageArrival
from antiphon.view.nodes import DeadLetter

REMEMBERED = 10_000
"""Commands whose end is known; of more the oldest are forgotten."""


class CommandsTaken:
    """What became of commands, from the records of their run."""

    def __init__(self) -> None:
        self._taken: dict[int, str | UserError] = {}
        self._request = 0

    @property
    def awaits_call(self) -> bool:
        """Whether a request was taken in whose call has not begun."""
        return bool(self._request)

    def of(self, command: int) -> str | None:
        """See `RunConnection.taken`; None for one that was not taken in yet, or too long ago."""
        found = self._taken.get(command)
        if isinstance(found, UserError):
            raise found
        return found

    def note(self, record: Record, changes: Iterable[Change]) -> None:
        """Take in the next record, and what it changed in a tree."""
        number = getattr(record.event, "command", 0)
        for change in changes:
            match change:
                case (
                    CallQueued(activation, effect)
                    | EffectStart(activation, effect)
                    | EffectEnd(activation, effect)
                ) if self._request and not activation.id:
                    # The user's turn does the call of a request as soon as that is there.
                    self._keep(self._request, effect.id)
                    self._request = 0
                case EffectEnd(_, effect) if number:
                    self._keep(number, effect.id)
                case DeadLetter(reason=reason) if number:
                    self._keep(number, UserError(f"Command {number} was not taken in: {reason}"))
                case MessageArrival(activation) if number and not activation.id:
                    self._request = number
                case MessageArrival() | CancelRequest() if number:
                    self._keep(number, "")

    def _keep(self, number: int, became: str | UserError) -> None:
        self._taken[number] = became
        if len(self._taken) > REMEMBERED:
            del self._taken[next(iter(self._taken))]
