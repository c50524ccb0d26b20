"""What the assistant may do without being asked: its mode, and the rules that people wrote."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, get_args

from antiphon import Tool, UserError
from antiphon.values.hooks import Decision
from antiphon.values.policy import StandingRule, rule_for

Mode = Literal["plan", "ask", "edits", "auto", "open"]
"""`plan` only reads; `ask` leaves it to the run's policy, which usually asks for all that acts; `edits`
changes files unasked; `auto` deletes them and runs confined commands too; `open` asks for nothing."""
MODES: tuple[Mode, ...] = get_args(Mode)
TOLD: Mapping[Mode, str] = {
    "plan": "nothing is changed", "ask": "you are asked for what acts", "edits": "files are changed unasked",
    "auto": "files are changed and confined commands run unasked", "open": "you are asked for nothing",
}  # fmt: skip
"""What a mode means, for people."""
EDITS = frozenset({"edit_file", "write_file", "move_file", "apply_patch"})
CONFINED = frozenset({"delete_file", "shell", "stop_job"})


class Permission:
    """Decides on calls of tools before the run's policy does. mode: may be changed at any time; it counts for
    the calls that begin then.

    confined: whether something holds commands back; where nothing does, `auto` leaves them to the policy.
    Raises UserError for a mode that there is not.
    """

    def __init__(self, rules: Sequence[StandingRule], mode: Mode = "ask", *, confined: bool = True) -> None:
        self._rules, self._confined = tuple(rules), confined
        self.mode = mode

    @property
    def mode(self) -> Mode:
        """In which mode it is."""
        return self._mode

    @mode.setter
    def mode(self, mode: Mode) -> None:
        if mode not in MODES:
            raise UserError(f"A mode is one of: {', '.join(MODES)}; got {mode!r}")
        self._mode = mode

    @property
    def modes(self) -> tuple[Mode, ...]:
        """Which there are, from the one that asks most."""
        return MODES

    @property
    def told(self) -> str:
        """What its mode means, for people."""
        return TOLD[self._mode]

    def authorize(self, tool: Tool, arguments: str) -> tuple[Decision, str] | None:
        """Whether a call may be; None leaves it to the run's policy. What denies wins over all."""
        if self.mode == "plan" and tool.has_side_effects:
            return "deny", "the mode is plan, in which nothing is changed; say what you would do instead"
        found = [rule_for(self._rules, tool.name, "", each, 0.0) for each in tool.subjects(arguments)]
        for verdict in ("deny", "ask"):
            for each in found:
                if each is not None and each.verdict == verdict:
                    told = "denies it" if verdict == "deny" else "asks for it"
                    return verdict, f"the rule {each.id} {told}"
        if self._is_free(tool) or all(each is not None for each in found):
            return "allow", ""
        return None

    def _is_free(self, tool: Tool) -> bool:
        """Whether the mode lets a tool be used unasked."""
        if self.mode in ("ask", "plan"):
            return False
        confined = self.mode == "auto" and (self._confined or tool.name == "delete_file")
        return self.mode == "open" or tool.name in EDITS or (confined and tool.name in CONFINED)
