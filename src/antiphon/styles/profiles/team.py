"""team: profiles as agents. What YAML describes becomes the same values that code would make.

team = ProfileTeam("agent_profiles", tools={"documents": [search]})
result = await run(team.entry, "What do they say about tides?", agents=team.agents())
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from functools import partial
from typing import Any

from msgspec.structs import replace

from antiphon import UNLIMITED, Agent, Hooks, Limits, Model, ModelOptions, Tool, UserError
from antiphon.errors import ConfigError, DuplicateName, UnknownName
from antiphon.styles.profiles.files.diagnostics import Diagnostic
from antiphon.styles.profiles.files.loader import Library, load_profiles
from antiphon.styles.profiles.files.profile import Profile
from antiphon.styles.profiles.files.protocol import Protocol
from antiphon.styles.profiles.files.vocabulary import TOOLSETS
from antiphon.styles.profiles.limits import ProfileLimits
from antiphon.styles.profiles.model_config import Thinking, thinking
from antiphon.styles.profiles.turns.flow import decide
from antiphon.styles.profiles.turns.ingestors import INGESTORS, Ingestor
from antiphon.styles.profiles.turns.prompt import instructions, is_dynamic, tool_lines
from antiphon.styles.profiles.turns.routing import route
from antiphon.styles.profiles.turns.turn_input import START, take
from antiphon.styles.profiles.work.admission import Delegation, staff
from antiphon.styles.profiles.work.dispatch import broker, broker_name
from antiphon.styles.profiles.work.toolset import MANAGE, TOOLS, with_protocol
from antiphon.styles.profiles.world.binding import ProfileBinding, hands_over_messages, reads
from antiphon.styles.profiles.world.shape import config_of
from antiphon.values.agent import own_tools
from antiphon.values.tool import as_tool
from antiphon.values.tool.toolset import Toolset

HANDOVERS: Mapping[str, str] = {
    "LaunchPrincipalExecutionTool": "partner_to_principal_initial_briefing",
    "dispatch_submodules": "principal_to_associate_briefing",
}
"""The handover protocols of tools, where a library has them."""
_ROLES = ("partner", "principal", "associate")
_LEADING = ("partner", "principal")
"""Roles whose profiles nothing stands in for."""


class ProfileTeam:
    """A team that profiles describe.

    source: a folder, see `load_profiles`, or a Library. tools: your toolsets by name, beside those of this
    style: tools, or a Toolset, of which a file names all as its toolset, and one as that tool where its name
    begins with the toolset's and `_`. ingestors: your formatting functions, see `ingestor`. models: instead
    of what an LLM config says, by profile. entry: the profile that the user talks to. bounds: of every agent.
    delegation: whom an agent may give work to, by profile; without a word of it, every associate that is
    `available_for_staffing`. tags: of profiles, for that. handovers: the protocols of tools. env: where LLM
    configs read variables.

    Of several partners or principals the first by name counts. What is wrong with files is in
    `library.findings`; profiles with errors are no part of the team. Nothing stands in for a partner or a
    principal with errors: ConfigError, with these errors first, unless `entry` names another profile. Raises
    ConfigError, DuplicateName for two tools or ingestors of one name, UnknownName for an entry that is no
    agent, UserError without any profile that could be an agent.
    """

    def __init__(
        self,
        source: str | os.PathLike[str] | Library,
        *,
        tools: Mapping[str, Sequence[Tool | Callable[..., Any]] | Toolset] | None = None,
        ingestors: Iterable[Ingestor] = (),
        models: Mapping[str, str | Model] | None = None,
        entry: str | None = None,
        bounds: ProfileLimits | None = None,
        delegation: Mapping[str, Delegation] | None = None,
        tags: Mapping[str, tuple[str, ...]] | None = None,
        handovers: Mapping[str, str] = HANDOVERS,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self._ingestors = _named(ingestors)
        self._toolsets = _toolsets(tools or {})
        self._provided = {name: each for name, each in (tools or {}).items() if isinstance(each, Toolset)}
        names: dict[str, Sequence[str] | None] = {
            name: tuple(each.name for each in given) for name, given in self._toolsets.items()
        }
        names |= {name: each.only or None for name, each in self._provided.items()}
        loaded = source if isinstance(source, Library) else None
        self.library = loaded or load_profiles(source, toolsets=names, ingestors=tuple(self._ingestors))  # type: ignore[arg-type]
        self._models, self._bounds = models or {}, bounds or ProfileLimits()
        self._delegation, self._tags, self._handovers = delegation or {}, tags or {}, handovers
        self._env = os.environ if env is None else env
        _check_entry(self.library, entry)
        self._roles = _by_role(self.library)
        self._staff: dict[str, tuple[str, ...]] = {}
        self._agents = self._compiled()
        if entry is not None:
            self._agents.sort(key=lambda each: each.name != entry)

    @property
    def findings(self) -> tuple[Diagnostic, ...]:
        """What is wrong with the files; profiles with errors are no part of the team."""
        return self.library.findings

    @property
    def entry(self) -> Agent:
        """The agent that the user talks to: the partner, or else the principal, or else an associate."""
        return self._agents[0]

    def agents(self) -> list[Agent]:
        """All agents, the entry first."""
        return list(self._agents)

    def _compiled(self) -> list[Agent]:
        found: list[Agent] = []
        for profile in (each for role in _ROLES for each in self._roles[role]):
            seat = self._seat(profile)
            self._staff[profile.name] = tuple(each.profile_id for each in seat.associates.values())
            found.append(self._agent(seat))
            if seat.broker:
                found.append(broker(profile.name, tuple(seat.associates), seat.bounds))
        if not found:
            said = "".join(f"\n  {each}" for each in self.library.findings)
            raise UserError(
                f"No profile could be an agent: there is no partner, principal or associate{said}"
            )
        return found

    def _seat(self, profile: Profile) -> ProfileBinding:
        own, provided = self._tools_of(profile), tuple(self._provided_for(profile))
        set_of = {each.name: name for name, given in self._toolsets.items() for each in given}
        protocols = self._protocols()
        told = [with_protocol(each, protocols.get(each.name)) for each in own]
        leads = profile.type in ("partner", "principal")
        dispatches = any(each.name == "dispatch_submodules" for each in own)
        policy = self._delegation.get(profile.name)
        associates = staff(self.library.profiles, policy, self._tags) if leads else {}
        principals = self._roles["principal"]
        launches = profile.type == "partner" and principals
        return ProfileBinding(
            profile,
            tuple([
                each for each in profile.segments
                if is_dynamic(each, profile) or (provided and each.type == "tool_description")
            ]),
            {each.source: each for each in profile.inbox_handling_strategies},
            self._ingestors,
            self._bounds,
            tuple(each.name for each in own if each.finishes),
            associates,
            config_of(associates.values()),
            principals[0].name if launches else "",
            broker_name(profile.name) if associates and dispatches else "",
            profile.type == "principal" and bool(self._roles["partner"]),
            profile.type in _LEADING and self._is_read(profile),
            protocols,
            reads(profile, "messages") or any(map(hands_over_messages, protocols.values())),
            reads(profile, START),
            tools=tool_lines(told, set_of),
            provided=provided,
        )  # fmt: skip

    def _is_read(self, profile: Profile) -> bool:
        """Whether a rule or a text of another profile looks at the state of one with this role."""
        others = [each for role in _ROLES for each in self._roles[role] if each is not profile]
        return any(reads(each, f"{profile.type}.") for each in others)

    def staff_of(self, name: str) -> tuple[str, ...]:
        """Ids of the profiles that the agent of this name may give work to."""
        return self._staff.get(name, ())

    @property
    def planner(self) -> str:
        """The agent whose work modules are the team's plan: the principal, or else the first that may manage
        them; empty when nobody may."""
        found = [each.name for each in self._agents if any(one.name == MANAGE for one in own_tools(each))]
        principals = [each.name for each in self._roles["principal"]]
        return next((each for each in principals if each in found), found[0] if found else "")

    def _agent(self, seat: ProfileBinding) -> Agent:
        profile = seat.profile
        tools = [with_protocol(each, seat.protocols.get(each.name)) for each in self._tools_of(profile)]
        config = profile.llm_config_ref
        found = thinking(self.library.llm_config(config), self._env) if config else Thinking()
        return Agent(
            profile.name,
            instructions(profile, seat.tools),
            model=self._models.get(profile.name, found.model),
            tools=(*tools, *seat.provided),
            description=profile.description_for_human,
            can_call=tuple(name for name in (seat.principal, seat.broker) if name),
            tool_execution="sequential",
            asking=ModelOptions(
                max_output_tokens=found.max_output, settings=found.settings, retry=found.retry
            ),
            limits=_limits(self._bounds),
            context="continue" if profile.type == "partner" else "fresh",
            standalone=True,
            hooks=Hooks(
                prepare_input=partial(take, seat),
                intercept_call=partial(route, seat),
                end_turn=partial(decide, seat),
            ),
        )

    def _tools_of(self, profile: Profile) -> list[Tool]:
        """The tools that a profile's policy allows and that are installed, each once."""
        policy = profile.tool_access_policy
        every = {each.name: each for given in self._toolsets.values() for each in given}
        allowed = [each for name in policy.allowed_toolsets for each in self._toolsets.get(name, ())]
        allowed += [every[name] for name in policy.allowed_individual_tools if name in every]
        return list({each.name: each for each in allowed}.values())

    def _provided_for(self, profile: Profile) -> list[Toolset]:
        """The toolsets with a provider that a profile's policy allows, whole or some of their tools."""
        policy, found = profile.tool_access_policy, []
        for name, each in self._provided.items():
            single = [tool for tool in policy.allowed_individual_tools if _is_of(tool, name, each.only)]
            if name in policy.allowed_toolsets:
                found.append(each)
            elif single:
                found.append(replace(each, only=tuple(single)))
        return found

    def _protocols(self) -> dict[str, Protocol]:
        known = self.library.protocols
        given = {
            tool: name
            for tool, name in self._handovers.items()
            if name in known or self._handovers is not HANDOVERS
        }
        return {tool: self.library.protocol(name) for tool, name in given.items()}


def _check_entry(library: Library, entry: str | None) -> None:
    """Refuse to begin with anybody else than who the files or the user say. Raises as `ProfileTeam`."""
    if entry is not None:
        if library.profile(entry).type not in _ROLES:
            raise UnknownName(
                "entry", entry, [n for n, each in library.profiles.items() if each.type in _ROLES]
            )
        return
    alone = not any(each.type in _ROLES for each in library.profiles.values())
    missing = [name for name, role in sorted(library.refused_roles.items()) if alone or _leads(name, role)]
    if not missing:
        return
    errors = [each for name in missing for each in library.refused["profile", name]]
    told = "\n".join(each.labelled for each in dict.fromkeys(errors))
    named = ", ".join(map(repr, missing))
    known = ", ".join(name for name, each in sorted(library.profiles.items()) if each.type in _ROLES)
    raise ConfigError(
        f"{told}\nThe team cannot start without {named}: nobody stands in. Correct the errors, or name "
        f"another entry. Known: {known or '(none)'}"
    )


def _leads(name: str, role: str) -> bool:
    """Whether a refused profile was to lead; one whose role cannot be read is known by its name."""
    if role in (*_ROLES, "base"):
        return role in _LEADING
    return bool(get_close_matches(role, _LEADING)) or any(each in name.lower() for each in _LEADING)


def _named(ingestors: Iterable[Ingestor]) -> dict[str, Ingestor]:
    found = dict(INGESTORS)
    for each in ingestors:
        if each.name in found:
            raise DuplicateName("ingestor", each.name)
        found[each.name] = each
    return found


def _is_of(tool: str, toolset: str, only: Sequence[str]) -> bool:
    """Whether a tool is one of a toolset with a provider, as far as names say it."""
    return tool in only if only else tool.startswith(f"{toolset}_")


def _toolsets(
    given: Mapping[str, Sequence[Tool | Callable[..., Any]] | Toolset],
) -> dict[str, tuple[Tool, ...]]:
    """Every toolset that has no provider, with its tools; a tool of one's own may stand in several."""
    found = {name: tuple(TOOLS[each] for each in names) for name, names in TOOLSETS.items()}
    for name, tools in given.items():
        if name in found:
            raise DuplicateName("toolset", name)
        if isinstance(tools, Toolset):
            continue
        own = tuple(as_tool(each) for each in tools)
        for each in own:
            if each.name in TOOLS:
                raise DuplicateName("tool", each.name)
        found[name] = own
    return found


def _by_role(library: Library) -> dict[str, list[Profile]]:
    found: dict[str, list[Profile]] = {role: [] for role in _ROLES}
    for _, profile in sorted(library.profiles.items()):
        if profile.type in found:
            found[profile.type].append(profile)
    return found


def _limits(bounds: ProfileLimits) -> Limits | None:
    return replace(UNLIMITED, depth=bounds.depth) if bounds.depth is not None else None
