"""The audit's own memory of who was allowed what."""

from __future__ import annotations

from collections.abc import Callable

from antiphon.kernel.facts.events import PermissionDecided, QuestionEffect, ToolEffect
from antiphon.testing.audit.ledger import AuditedActivation

Acts = Callable[[str, str], bool]
"""Whether the tool of this agent (agent, tool) acts on the world."""


class PermissionAudit:
    """Whether every acting tool was allowed before it started; each method says what is wrong, or nothing.

    acts: which tools act. None derives it from the journal: a tool that was once started with an instant
    permission acts, so every other start of it needs one too.
    """

    def __init__(self, acts: Acts | None) -> None:
        self._acts = acts
        self._decided: dict[str, PermissionDecided] = {}
        self._acting: set[tuple[str, str]] = set()
        self._unruled: dict[tuple[str, str], int] = {}

    def decided(self, event: PermissionDecided, is_call: bool) -> str:
        """Somebody, or a rule, decided on a call."""
        if not is_call:
            return f"a ruling on {event.id}, which is no call of the turn"
        if event.id in self._decided:
            return f"{event.id} was ruled on twice"
        self._decided[event.id] = event
        return ""

    def exposed(self, effect_id: str, detail: ToolEffect | QuestionEffect, seat: AuditedActivation) -> str:
        """Why a tool of an agent should not start yet: what it was shown, and nobody allowed the call."""
        if not seat.labels >= {"untrusted", "private"}:
            return ""
        ruled = self._decided.get(effect_id)
        asked = ruled is not None and not ruled.rule
        instant = isinstance(detail, ToolEffect) and detail.allowed
        name = detail.name if isinstance(detail, ToolEffect) else detail.tool
        acts = instant or (self._acts is not None and self._acts(seat.agent, name))
        exposed = acts and not asked
        return f"{effect_id} acts for an agent that was shown both; no person allowed it" if exposed else ""

    def started(
        self, effect_id: str, detail: ToolEffect | QuestionEffect, agent: str, arguments: str, seq: int
    ) -> tuple[int, str]:
        """A tool started in record `seq`, or is asked for outside: which record is wrong, perhaps an earlier
        start, and why."""
        ruled = self._decided.get(effect_id)
        if ruled is not None:
            if not ruled.allowed:
                return seq, f"{effect_id} started although {ruled.decided_by or 'somebody'} denied it"
            if ruled.arguments != arguments:
                return seq, f"{effect_id} runs {arguments}, allowed was {ruled.arguments}"
            return seq, ""
        if isinstance(detail, QuestionEffect):
            # Who does it is whom an instant permission would have asked for.
            return seq, ""
        tool = agent, detail.name
        if self._acts is not None:
            unruled = not detail.allowed and self._acts(*tool)
            return seq, f"{detail.name} acts; {effect_id} started without a ruling" if unruled else ""
        if detail.allowed:
            self._acting.add(tool)
            if tool in self._unruled:
                return self._unruled[tool], f"{detail.name} acts and started without a ruling"
        elif tool in self._acting:
            return seq, f"{detail.name} acts; {effect_id} started without a ruling"
        else:
            self._unruled.setdefault(tool, seq)
        return seq, ""
