"""Policy: may this effect start? Explicit deny, then explicit allow, then ask, then the preset.

Presets: `open` allows what the developer handed over in code and asks for the rest; `guarded`
allows reading and asks before acting; `strict` denies what was not granted by name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import islice, product
from math import prod
from typing import Any, Literal, Protocol

import msgspec
from msgspec import Struct

from antiphon.errors import UserError
from antiphon.values.codec import encode_value
from antiphon.values.fields import Checked

Ruling = Literal["allow", "deny", "ask"]
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
    part of its path, a list and an object (their JSON) match themselves only. Where a tool says what a call
    does (`Tool.subjects`), each thing must be covered, by this grant or another. agent: whose calls, empty
    for everyone's. until: Unix seconds, 0 for ever. also: further `arguments`, any of which will do as well.
    """

    arguments: tuple[tuple[str, str], ...] = ()
    agent: str = ""
    until: float = 0.0
    also: tuple[tuple[tuple[str, str], ...], ...] = ()

    @property
    def reaches(self) -> list[tuple[tuple[str, str], ...]]:
        """All arguments of which one must match; none: every call."""
        return [each for each in (self.arguments, *self.also) if each]


class Verbatim(Checked, frozen=True, gc=False):
    """A text of which nobody can say what it does: a pattern covers it only if it is the same text."""

    text: str


SubjectsOf = Callable[[Any], Iterable[str | Verbatim]]
"""What a value of one argument of a tool does, one by one. It is given JSON's own types, and looks at nothing
else."""


class CallSubject(Struct, frozen=True, gc=False):
    """One thing that a call does, as rules and grants judge it."""

    arguments: str
    """Canonical JSON of the call's arguments, as if it did this alone."""
    verbatim: frozenset[str] = frozenset()
    """Names of the arguments that are `Verbatim`."""


MAX_SUBJECTS = 100
"""Of one call; one that does more is judged as a whole, verbatim."""


def subjects_of(found_in: Mapping[str, SubjectsOf], arguments: str) -> tuple[CallSubject, ...]:
    """What a call does, thing by thing: `found_in` says it of some of its arguments (canonical JSON).

    A function that fails, or finds nothing, leaves its argument as it is, verbatim.
    """
    values: dict[str, Any] = msgspec.json.decode(arguments)
    named = [name for name in found_in if name in values]
    options = [_said_of(found_in[name], values[name]) for name in named]
    if prod(map(len, options)) > MAX_SUBJECTS:
        return (CallSubject(arguments, frozenset(named)),)
    return tuple(
        CallSubject(
            encode_value(
                values | {name: _plain(each) for name, each in zip(named, chosen, strict=True)}
            ).decode(),
            frozenset(name for name, each in zip(named, chosen, strict=True) if type(each) is not str),
        )
        for chosen in product(*options)
    )


def _said_of(subjects: SubjectsOf, value: Any) -> Sequence[Any]:
    try:
        # One more than is judged one by one, of a function that may never end.
        found = list(islice(subjects(value), MAX_SUBJECTS + 1))
        for each in found:
            # Half of a surrogate pair is no text that could be compared.
            (each.text if isinstance(each, Verbatim) else each).encode()
    except Exception:  # noqa: BLE001 - whatever it is, nobody knows what the call does
        return [_Whole(value)]
    known = found and all(type(each) in (str, Verbatim) for each in found)
    return found if known else [_Whole(value)]


class _Whole(Struct, frozen=True):
    """An argument that could not be taken apart."""

    value: Any


def _plain(subject: str | Verbatim | _Whole) -> Any:
    return (
        subject
        if isinstance(subject, str)
        else subject.text
        if isinstance(subject, Verbatim)
        else subject.value
    )


Scope = Literal["run", "project", "owner"]


class StandingRule(Checked, frozen=True, omit_defaults=True):
    """A decision on calls of tools that is kept beside the runs, and holds in all that its scope covers.

    An explicit deny beats an explicit allow, which beats what asks, which beats a preset: of a policy and of
    a rule alike. Raises UserError for one that says nothing.
    """

    id: str
    """What the record of a decision names it by."""
    scope: Scope
    """What it holds for: one run, the runs of a project, or those of an owner."""
    key: str
    """The run's id, or the name of the project or owner."""
    tool: str
    """Name of the tool; `*` and `?` match as in file names."""
    verdict: Ruling
    grant: Grant = Grant()
    """How far it reaches: arguments, agent, until when."""
    author: str = ""
    """Who made it."""
    created_at: float = 0.0
    """Unix seconds."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("id", "key", "tool"):
            if not getattr(self, name).strip():
                raise UserError(
                    f"StandingRule({name}=...) is a text that is not empty; a rule holds for something"
                )


def rule_for(
    rules: Iterable[StandingRule], tool: str, agent: str, subject: CallSubject, at: float
) -> StandingRule | None:
    """The rule that decides on one thing that a call does at `at`: what denies before what allows before what
    asks."""
    found = None
    for each in rules:
        strict = each.verdict == "allow"
        if not fnmatchcase(tool, each.tool) or not covers(each.grant, agent, subject, at, strict=strict):
            continue
        if found is None or _PRECEDENCE[each.verdict] > _PRECEDENCE[found.verdict]:
            found = each
    return found


_PRECEDENCE: dict[Ruling, int] = {"ask": 0, "allow": 1, "deny": 2}


def covers(grant: Grant, agent: str, subject: CallSubject, at: float, *, strict: bool = True) -> bool:
    """Whether a remembered approval covers one thing that a call does at `at`.

    strict: what could mean more than it says is covered by its own text only; not so where that denies.
    """
    if (grant.until and at >= grant.until) or (grant.agent and grant.agent != agent):
        return False
    if not (reaches := grant.reaches):
        return True
    values = msgspec.json.decode(subject.arguments)
    return isinstance(values, dict) and any(
        all(
            name in values and _like(values[name], pattern, strict, name in subject.verbatim)
            for name, pattern in each
        )
        for each in reaches
    )


_ESCAPED = re.compile(r"\[([*?[])\]")
"""How a pattern says a sign that would stand for others."""


def _like(value: Any, pattern: str, strict: bool, verbatim: bool) -> bool:
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    if text in (pattern, _ESCAPED.sub(r"\1", pattern)):
        return True
    # A wild card would reach over from one part of a list to the next.
    if strict and (verbatim or isinstance(value, dict | list) or ".." in text.replace("\\", "/").split("/")):
        return False
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


def rule(policy: Policy, tool: Ruled, granted: bool = False, asked: str = "") -> tuple[Ruling, str]:
    """The ruling on one call of `tool`, and why.

    granted: a remembered approval, or a rule, allows it. asked: why it must be asked for, unless it is
    allowed.
    """
    name = tool.name
    if policy.deny and _matches(policy.deny, name):
        return "deny", f"the policy denies {name}"
    if granted or (policy.allow and _matches(policy.allow, name)):
        return "allow", ""
    if asked:
        return "ask", asked
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
