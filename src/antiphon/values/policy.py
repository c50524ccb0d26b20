"""Policy: may this effect start? Explicit deny, then explicit allow, then ask, then the preset.

Presets: `open` allows what the developer handed over in code and asks for the rest; `guarded`
allows reading and asks before acting; `strict` denies what was not granted by name.
"""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Any, Literal, Protocol

import msgspec

from antiphon.values.fields import Checked

Ruling = Literal["allow", "ask", "deny"]
Preset = Literal["open", "guarded", "strict"]


class Policy(Checked, frozen=True, omit_defaults=True):
    """Rules by tool name; `*` and `?` match as in file names. Deny beats allow beats ask.

    Wherever a policy is taken, the name of a preset is the policy that is only that. Raises UserError.
    """

    preset: Preset = "open"
    deny: tuple[str, ...] = ()
    allow: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()


OPEN = Policy()


class Grant(Checked, frozen=True, gc=False, omit_defaults=True):
    """How far an approval that is remembered reaches; by default to every call of that tool in the run.

    arguments: name and pattern of each argument that must match, as in file names; a text with `..` as a
    part of its path, a list and an object (their JSON) match themselves only. agent: whose calls, empty
    for everyone's. until: Unix seconds, 0 for ever.
    """

    arguments: tuple[tuple[str, str], ...] = ()
    agent: str = ""
    until: float = 0.0


def covers(grant: Grant, agent: str, arguments: str, at: float) -> bool:
    """Whether a remembered approval allows a call with these arguments (canonical JSON) at `at`."""
    if (grant.until and at >= grant.until) or (grant.agent and grant.agent != agent):
        return False
    if not grant.arguments:
        return True
    values = msgspec.json.decode(arguments)
    return isinstance(values, dict) and all(
        name in values and _like(values[name], pattern) for name, pattern in grant.arguments
    )


def _like(value: Any, pattern: str) -> bool:
    if isinstance(value, dict | list):
        # A wild card would reach over from one part of it to the next.
        return msgspec.json.encode(value).decode() == pattern
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    if ".." in text.replace("\\", "/").split("/"):
        return text == pattern
    return fnmatchcase(text, pattern)


class Ruled(Protocol):
    """What a policy looks at in a tool."""

    @property
    def name(self) -> str: ...
    @property
    def requires_approval(self) -> bool: ...
    @property
    def trusted(self) -> bool: ...
    @property
    def has_side_effects(self) -> bool: ...


def rule(policy: Policy, tool: Ruled, granted: bool = False) -> tuple[Ruling, str]:
    """The ruling on one call of `tool`, and why. `granted`: a remembered approval covers it."""
    name = tool.name
    if policy.deny and _matches(policy.deny, name):
        return "deny", f"the policy denies {name}"
    if granted or (policy.allow and _matches(policy.allow, name)):
        return "allow", ""
    if tool.requires_approval or (policy.ask and _matches(policy.ask, name)):
        return "ask", f"{name} needs approval"
    if policy.preset == "open":
        return ("allow", "") if tool.trusted else ("ask", f"{name} was not handed over in code")
    if policy.preset == "guarded":
        return ("ask", f"{name} acts on the world") if tool.has_side_effects else ("allow", "")
    return "deny", f"{name} was not granted"


def strictest(rulings: Iterable[tuple[Ruling, str, str]]) -> tuple[Ruling, str, str]:
    """Of several rulings on one call, each with why and whose it is, the one that allows least."""
    return max(rulings, key=lambda found: _SEVERITY[found[0]])


_SEVERITY: dict[Ruling, int] = {"allow": 0, "ask": 1, "deny": 2}


def _matches(patterns: tuple[str, ...], name: str) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)
