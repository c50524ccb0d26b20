"""Permissions: which agent may use which tool, since when, until when, by whose word."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Final, Literal

from msgspec import Struct

EVERY: Final = "*"
"""Stands for all tools, those that are yet to be registered too."""

Deed = Literal["grant", "revoke", "use", "refuse"]


class AuditEntry(Struct, frozen=True):
    """One line of the audit trail.

    number: from 1, without gaps; what comes before the first that is kept was dropped. at: Unix
    seconds. deed: a permission was given or taken, or a tool was used or refused. by: who gave or
    took it, as the caller said. expires: of a grant, Unix seconds.
    """

    number: int
    at: float
    deed: Deed
    agent: str
    tool: str
    by: str = ""
    expires: float | None = None


class Permissions:
    """Grants and denials by agent. Nothing is permitted unless granted; safe to use from many threads.

    A tool that was revoked by name stays denied until it is granted by name, whatever `*` says.
    now: tells the time, in Unix seconds. keep: how many lines of the audit trail are kept.
    """

    def __init__(self, now: Callable[[], float], keep: int) -> None:
        self._now = now
        self._lock = threading.RLock()
        self._granted: dict[str, dict[str, float | None]] = {}
        self._denied: dict[str, set[str]] = {}
        self._trail: deque[AuditEntry] = deque(maxlen=keep)
        self._written = 0

    def grant(self, agent: str, tool: str, expires: float | None, by: str) -> None:
        """Permit a tool, or all with `*`, until `expires` (excluded)."""
        with self._lock:
            self._denied.get(agent, set()).discard(tool)
            self._granted.setdefault(agent, {})[tool] = expires
            self.note("grant", agent, tool, by, expires)

    def revoke(self, agent: str, tool: str, by: str) -> None:
        """Deny a tool; with `*` all that was granted is taken back, and what was denied stays so."""
        with self._lock:
            if tool == EVERY:
                self._granted.pop(agent, None)
            else:
                self._granted.get(agent, {}).pop(tool, None)
                self._denied.setdefault(agent, set()).add(tool)
            self.note("revoke", agent, tool, by)

    def allow(self, agent: str, tool: str) -> bool:
        """Whether the agent may use the tool now."""
        with self._lock:
            granted = self._granted.get(agent, {})
            if tool in self._denied.get(agent, ()):
                return False
            return any(self._holds(granted[name]) for name in (tool, EVERY) if name in granted)

    def _holds(self, expires: float | None) -> bool:
        return expires is None or self._now() < expires

    def note(self, deed: Deed, agent: str, tool: str, by: str = "", expires: float | None = None) -> None:
        """Write a line of the audit trail."""
        with self._lock:
            self._written += 1
            self._trail.append(AuditEntry(self._written, self._now(), deed, agent, tool, by, expires))

    def trail(self) -> tuple[AuditEntry, ...]:
        """The audit trail as far as it is kept, the oldest line first."""
        with self._lock:
            return tuple(self._trail)
