"""The audit's own memory of who was allowed what."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from antiphon.kernel.facts.events import PermissionDecided, QuestionEffect, ToolEffect, ToolsetOffered
from antiphon.testing.audit.ledger import AuditedActivation
from antiphon.values.tool.offered import tool_of

Acts = Callable[[str, str], bool]
"""Whether the tool of this agent (agent, tool) acts on the world."""


class OfferAudit:
    """What toolsets offer. now: of each tool's contract, by its digest, whether it acts; new at changes."""

    def __init__(self) -> None:
        self.now: Mapping[str, bool] = {}
        self._offers: dict[str, dict[str, bool]] = {}

    def offer(self, event: ToolsetOffered) -> None:
        """A toolset offers something else."""
        if event.tools is not None:
            self._offers[event.name] = {tool_of(each).digest: each.effect != "read" for each in event.tools}
            self.now = {digest: acts for each in self._offers.values() for digest, acts in each.items()}


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
        self, effect_id: str, detail: ToolEffect | QuestionEffect, seat: AuditedActivation, arguments: str,
        seq: int,
    ) -> tuple[int, str, str]:  # fmt: skip
        """A tool of `seat` started in record `seq`, or is asked for outside: which record is wrong, perhaps
        an earlier start, which invariant it breaks, and why."""
        acting = None
        if isinstance(detail, ToolEffect) and detail.digest:
            acting = seat.offered.get(detail.digest)
            # Older formats have digests of tools that no toolset offers.
            if acting is None and seat.offered:
                return seq, "offered", f"{effect_id}: nobody offered this {detail.name} when its turn began"
        at, wrong = self._ruled(effect_id, detail, seat.agent, arguments, seq, acting)
        return at, "permission", wrong

    def _ruled(
        self, effect_id: str, detail: ToolEffect | QuestionEffect, agent: str, arguments: str, seq: int,
        acting: bool | None,
    ) -> tuple[int, str]:  # fmt: skip
        """acting: of a toolset's tool, whether it acts."""
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
        if acting is not None:
            unruled = acting and not detail.allowed
            return seq, f"{detail.name} acts; {effect_id} started without a ruling" if unruled else ""
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
