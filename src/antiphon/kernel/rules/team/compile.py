"""Compiling a team: agents and options checked against each other, once for all runs that share them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from antiphon.errors import DuplicateName, UnknownName, UserError
from antiphon.kernel.context.prompt import PromptPrefix, make_prefix, write_prompt
from antiphon.kernel.context.tool_search import hidden_of, searching, standing_in
from antiphon.kernel.facts.agent_call import CALL_AGENT, FINISH
from antiphon.kernel.facts.options import Options
from antiphon.kernel.facts.toolsets import OfferedToolset
from antiphon.kernel.rules.builtins import BUILTINS, call_spec
from antiphon.kernel.rules.team.compiled import CompiledAgent, CompiledTeam, ModelOption
from antiphon.kernel.rules.team.manifest import declared
from antiphon.values.agent import ALL, Agent, RequestOptions, own_tools
from antiphon.values.limits import Limits
from antiphon.values.message import USER
from antiphon.values.model import ToolSpec
from antiphon.values.policy import Policy
from antiphon.values.schema.output_type import DeclaredOutput, answer_of
from antiphon.values.tool import Tool
from antiphon.values.tool.offered import tool_of
from antiphon.values.tool.toolset import Toolset

NOTHING_ASKED = RequestOptions()
OFFERS = 256
"""Compositions of one agent's tools that are kept compiled."""


def make_team(
    agents: tuple[Agent, ...], options: Options, models_of: Callable[[Agent], tuple[ModelOption, ...]],
    readers: Callable[[], tuple[Tool, ...]] = tuple,
) -> CompiledTeam:  # fmt: skip
    """Compile agents for a run.

    readers: the tools that read results which were shown only in part; asked for when something was.
    Raises DuplicateName, UnknownName (in `can_call`), UserError (an option that cannot be).
    """
    members = make_members(agents, options, readers)
    models = {name: models_of(member.agent) for name, member in members.items()}
    return CompiledTeam(
        members,
        models,
        any(agent.policy is not None or agent.hooks.authorize is not None for agent in agents),
        toolsets_of(agents),
    )


@functools.lru_cache(maxsize=256)
def make_members(
    agents: tuple[Agent, ...], options: Options, readers: Callable[[], tuple[Tool, ...]] = tuple
) -> Mapping[str, CompiledAgent]:
    """All that agents and options alone decide; remembered, since teams are used again and again."""
    if FINISH in options.disabled:
        raise ValueError("finish cannot be disabled: no agent could return")
    for name in options.disabled:
        if name not in BUILTINS:
            raise UnknownName("built-in call to disable", name, BUILTINS)
    by_name: dict[str, Agent] = {}
    for agent in agents:
        if agent.name in by_name and by_name[agent.name] is not agent:
            raise DuplicateName("agent", agent.name)
        by_name[agent.name] = agent
    if not by_name:
        raise UserError("A team needs at least one agent")
    for limits in (options.limits, *(agent.limits for agent in agents)):
        _check_breach(limits, by_name)
    for name, _ in options.extra_for:
        if name not in by_name:
            raise UnknownName("agent in extra_instructions", name, by_name)
    # Once for all: what a team of n costs shall not grow with its square, but for joining texts.
    introductions = {name: f"- {name}: {agent.about}" for name, agent in by_name.items()}
    everyone = frozenset(by_name)
    members: dict[str, CompiledAgent] = {}
    for name, agent in by_name.items():
        compiled = functools.partial(_member, agent, introductions, _reachable(agent, everyone), options)
        offered = functools.lru_cache(OFFERS)(functools.partial(_offered, agent, compiled, readers))
        member = compiled({}, {})
        members[name] = replace(member, declared=declared(member), offered=offered)
    return members


def _offered(
    agent: Agent, compiled: Callable[[Mapping[str, Tool], Mapping[str, str], RequestOptions], CompiledAgent],
    readers: Callable[[], tuple[Tool, ...]], cut: bool, toolsets: tuple[OfferedToolset, ...], request: bytes,
) -> CompiledAgent:  # fmt: skip
    """See `CompiledAgent.offered`. Of two tools of one name the first one counts: no toolset's takes the
    place of another tool, of one that the request brings or of a call of the kernel."""
    asked = msgspec.json.decode(request, type=RequestOptions) if request else NOTHING_ASKED
    brought = {tool.name: tool for tool in asked.made()}
    taken = {tool.name for tool in own_tools(agent)} | BUILTINS.keys() | brought.keys()
    more: dict[str, Tool] = {}
    sources: dict[str, str] = {}
    only = {each.name: each.only for each in agent.toolsets}
    for toolset in toolsets:
        wanted = only[toolset.name]
        for offer in toolset.tools:
            if offer.name in taken or offer.name in more or (wanted and offer.name not in wanted):
                continue
            if asked.own_tools is None or {offer.name, toolset.name} & set(asked.own_tools):
                more[offer.name], sources[offer.name] = tool_of(offer), toolset.name
    if cut:
        more.update({tool.name: tool for tool in readers() if tool.name not in more})
    return compiled(more | brought, sources, asked)


def toolsets_of(agents: Iterable[Agent]) -> dict[str, Toolset]:
    """The toolsets of a team by name. Raises DuplicateName, UserError: two of one name."""
    found: dict[str, Toolset] = {}
    for agent in agents:
        own: set[str] = set()
        for each in agent.tools:
            if not isinstance(each, Toolset):
                continue
            if each.name in own:
                raise DuplicateName(f"toolset of {agent.name}", each.name)
            own.add(each.name)
            known = found.setdefault(each.name, each)
            if known.provider != each.provider:
                raise UserError(
                    f"{agent.name}: its toolset {each.name!r} is not the one that another agent has under "
                    "that name; give one of them another name, or both the same one"
                )
    return found


def _as_asked(agent: Agent, request: RequestOptions) -> Agent:
    """The agent that a request is for, of whatever team that is by now."""
    asking, most = agent.asking, request.max_output_tokens or agent.asking.max_output_tokens
    choice, tools = asking.tool_choice, agent.tools
    if request.own_tools is not None:
        own = own_tools(agent)
        tools = (*[each for each in own if each.name in request.own_tools], *agent.toolsets)
        lost = {each.name for each in own} - set(request.own_tools)
        choice = "auto" if choice in lost else choice
    asking = replace(
        asking, settings={**asking.settings, **request.settings}, tool_choice=choice,
        max_output_tokens=min(most, asking.max_output_tokens),
    )  # fmt: skip
    return replace(agent, asking=asking, tools=tools)


def _check_breach(limits: Limits | None, agents: Mapping[str, Agent]) -> None:
    if limits is None or limits.on_breach in ("stop", "ask"):
        return
    if not limits.breach_target:
        what = "model to degrade to" if limits.on_breach == "degrade" else "agent to hand over to"
        raise UserError(f"Limits(on_breach={limits.on_breach!r}) needs breach_target: the {what}")
    if limits.on_breach == "handoff" and limits.breach_target not in agents:
        raise UnknownName("agent in Limits.breach_target", limits.breach_target, agents)


def _member(
    agent: Agent, introductions: Mapping[str, str], reachable: frozenset[str], options: Options,
    more: Mapping[str, Tool], sources: Mapping[str, str], request: RequestOptions = NOTHING_ASKED,
) -> CompiledAgent:  # fmt: skip
    """more: tools beside its own, told of after all others, so that what stands before stays as it was.
    request: what the request that it works on wants."""
    agent = agent if request is NOTHING_ASKED else _as_asked(agent, request)
    tools = _tools_of(agent)
    builtins = frozenset(_builtins(agent, reachable, options) - set(tools))
    more = {name: tool for name, tool in more.items() if name not in tools and name not in builtins}
    finishing = {name for name, tool in (tools | more).items() if tool.finishes or name == FINISH}
    offered = builtins | tools.keys()
    rules = [each.prompt for name, each in BUILTINS.items() if name in offered and each.prompt]
    user = options.interactive and (USER in reachable or tuple(agent.can_call) == ALL)
    # Only where the user is named: of who may call everybody no request shall cost more.
    forms = options.interactive and USER in reachable
    hidden, beside, more = _beside(agent, more, sources, (*tools, *builtins))
    own = [tool.spec for tool in tools.values()]
    specs = (*own, *_builtin_specs(builtins, options.background, forms), *beside)
    colleagues = [told for name, told in introductions.items() if name != agent.name and name in reachable]
    examples = tuple(agent.examples) + tuple(each for tool in tools.values() for each in tool.examples)
    answer = answer_of(agent.output_type) if agent.output_type is not None else None
    if request.output is not None:
        answer = DeclaredOutput(Any, request.output)
    schema = answer.schema if answer is not None else None
    after = [text for name, text in options.extra_for if name == agent.name]
    after += [request.instructions] if request.instructions else []

    def prefixes(instructions: str) -> tuple[PromptPrefix, PromptPrefix]:
        prompt = instructions
        if not agent.standalone:
            prompt = write_prompt(agent.name, instructions, colleagues, CALL_AGENT in offered, rules, user)
        prompt = "\n\n".join([prompt, *after])
        entry = f"{prompt}\n\n{options.extra}" if options.extra else prompt
        entry_prefix = make_prefix(entry, specs, agent, examples, schema)
        if not options.extra or options.extra_scope == "all":
            return entry_prefix, entry_prefix
        return make_prefix(prompt, specs, agent, examples, schema), entry_prefix

    fixed = agent.instructions if isinstance(agent.instructions, str) else None
    prefix, entry_prefix = prefixes(fixed or "")
    return CompiledAgent(
        agent,
        tools | more,
        builtins,
        frozenset(options.disabled) - set(tools),
        reachable,
        frozenset(finishing | ({FINISH} & builtins)),
        prefix,
        entry_prefix,
        examples,
        answer,
        any(each is not None for each in (agent.hooks.plan_turn, agent.hooks.act, agent.hooks.prepare_input)),
        Policy(agent.policy) if isinstance(agent.policy, str) else agent.policy,
        # The same text has the same prefix, so that a provider's cache holds from call to call.
        functools.lru_cache(maxsize=256)(prefixes) if fixed is None else None,
        toolsets=tuple([each.name for each in agent.tools if isinstance(each, Toolset)]),
        sources=sources,
        hidden=hidden,
    )


def _beside(
    agent: Agent, more: dict[str, Tool], sources: Mapping[str, str], taken: tuple[str, ...]
) -> tuple[frozenset[str], tuple[ToolSpec, ...], dict[str, Tool]]:
    """Of the tools beside an agent's own those that a search finds, what its prompt has of the others, and
    all of them."""
    asking, found = agent.asking, {name: each for name, each in sources.items() if name in more}
    hidden = frozenset[str]()
    if found:
        hidden = hidden_of(more, found, taken, asking.toolset_tokens, asking.tool_choice)
    specs = tuple([tool.spec for name, tool in more.items() if name not in hidden])
    if not hidden:
        return hidden, specs, more
    search = searching(more, hidden, sources)
    return hidden, specs + standing_in(search), {**more, search.name: search}


def _tools_of(agent: Agent) -> dict[str, Tool]:
    found: dict[str, Tool] = {}
    for tool in agent.tools:
        if isinstance(tool, Toolset):
            continue
        if not isinstance(tool, Tool):
            raise UserError(f"{agent.name}: {tool!r} is not a tool")
        if tool.name in found:
            raise DuplicateName("tool", tool.name)
        found[tool.name] = tool
    return found


def _builtins(agent: Agent, reachable: frozenset[str], options: Options) -> set[str]:
    """The kernel's own calls that an agent has."""
    if agent.standalone:
        return set()
    names = {name for name, each in BUILTINS.items() if options.background or not each.background}
    return (names if reachable else {FINISH}) - set(options.disabled)


def _reachable(agent: Agent, everyone: frozenset[str]) -> frozenset[str]:
    """The names of those that an agent may call."""
    if tuple(agent.can_call) == ALL:
        return everyone
    for name in agent.can_call:
        if name not in everyone and name != USER:
            raise UnknownName(f"agent in can_call of {agent.name}", name, everyone)
    return frozenset(agent.can_call)


@functools.cache
def _builtin_specs(builtins: frozenset[str], background: bool, forms: bool) -> tuple[ToolSpec, ...]:
    return tuple(
        [
            call_spec(background, forms) if name == CALL_AGENT else builtin.spec
            for name, builtin in BUILTINS.items()
            if name in builtins
        ]
    )
