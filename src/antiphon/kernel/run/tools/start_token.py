"""StartToken: the right to begin one acting effect, redeemed once, by the thread that begins it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from antiphon.kernel.facts.activation import OpenEffect


class NotBegun(Exception):
    """The effect was over, or given up, before it began: nothing was done."""


class LeaseStale(Exception):
    """Nobody knows whether the run is still this owner's; nothing was done, and the journal can tell."""


class StartToken:
    """Whether an acting effect may begin is asked where and when it begins, not where it was decided.

    is_fresh: whether the run cannot have got another owner; called in any thread.
    """

    __slots__ = ("_is_fresh", "_opened", "_right", "begun", "revoked")

    def __init__(self, opened: OpenEffect, is_fresh: Callable[[], bool]) -> None:
        self._opened, self._is_fresh = opened, is_fresh
        self._right = [True]
        self.begun = self.revoked = False

    def redeem(self) -> None:
        """Take the right to begin. Raises NotBegun, LeaseStale."""
        if self._opened.ended:
            raise NotBegun
        if not self._is_fresh():
            raise LeaseStale
        try:
            # One thread gets it, whoever else takes or revokes it at the same time.
            self._right.pop()
        except IndexError:
            raise NotBegun from None
        self.begun = True

    def revoke(self) -> None:
        """From now on it cannot begin any more; `revoked` says that it never has."""
        with suppress(IndexError):
            self._right.pop()
            self.revoked = True
