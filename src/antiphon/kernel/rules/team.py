"""Team: the agents of one run, with names resolved, prompts written and schemas made once."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Collection, Iterable, Mapping
from hashlib import blake2b
from typing import Any

import msgspec
from msgspec import Struct

from antiphon.errors import DuplicateName, UnknownName, UserError
from antiphon.kernel.facts.agent_call import CALL_AGENT, FINISH, GET_RESULT, SEND_MESSAGE
from antiphon.kernel.facts.events import Options
from antiphon.schema.output_type import Answer, answer_of
from antiphon.values.agent import ALL, Agent
from antiphon.values.limits import Limits
from antiphon.values.message import USER
from antiphon.values.model import Example, Model, ToolSpec, Usage
from antiphon.values.tool import Tool

NUDGE = "[system] You did not finish. Continue the task; call finish with the result when it is done."


def _spec(
    name: str, description: str, required: tuple[str, ...] = (), **properties: dict[str, Any]
) -> ToolSpec:
    needed = required or tuple(properties)
    return ToolSpec(name, description, {"type": "object", "properties": properties, "required": list(needed)})


def _text(description: str) -> dict[str, Any]:
    return {"type": "string", "description": description}


_AGENT_NAME, _MESSAGE = _text("Name of the agent to call"), _text("Message to send to the agent")
_CALL_TEXT = "Call another agent. The agent will process your message and return a result when done."
SPECS: Mapping[str, ToolSpec] = {
    CALL_AGENT: _spec(CALL_AGENT, _CALL_TEXT, agent_name=_AGENT_NAME, message=_MESSAGE),
    FINISH: _spec(
        FINISH,
        "Finish the current task and return a result to the caller. "
        "The caller may be a user or another agent.",
        message=_text("Result message to return"),
    ),
    GET_RESULT: _spec(
        GET_RESULT,
        "Wait for a background call to end and get its result.",
        call_id=_text("The call, as call_agent named it"),
    ),
    SEND_MESSAGE: _spec(
        SEND_MESSAGE,
        "Send a message to an agent that works in the background; it reads it before its next step.",
        call_id=_text("The call, as call_agent named it"),
        message=_text("Message to send"),
    ),
}
_BACKGROUND_CALL = _spec(
    CALL_AGENT,
    _CALL_TEXT,
    ("agent_name", "message"),
    agent_name=_AGENT_NAME,
    message=_MESSAGE,
    background={"type": "boolean", "description": "Do not wait for the result; get it later with get_result"},
)


class Head(Struct, frozen=True):
    """What a model is told before the conversation.

    data: its canonical JSON, the blob of `digest`, whose bytes are `seed`. size: bytes, an upper
    bound of its tokens.
    """

    system: str
    specs: tuple[ToolSpec, ...]
    digest: str
    data: bytes
    seed: bytes
    size: int


class Member(Struct, frozen=True, eq=False):
    """One agent in its team. `builtins`: of the kernel's own calls, those it has.

    head: what its model is told; entry_head: the same when the user called it.
    begins: it has rules of its own for how a turn begins.
    finishing: names that end its reaction. callable: whom it may call. answer: of what type its result is.
    """

    agent: Agent
    tools: Mapping[str, Tool]
    builtins: frozenset[str]
    disabled: frozenset[str]
    callable: frozenset[str]
    finishing: frozenset[str]
    head: Head
    entry_head: Head
    examples: tuple[Example, ...]
    answer: Answer | None = None
    begins: bool = False


class Choice(Struct, frozen=True, eq=False):
    """A model an agent may ask, and what is known of it.

    spare: only asked in place of another that a limit has no room for, and by which name it was asked for.
    window: tokens of one call, None when unknown. dear_input, dear_output: the most one token costs,
    in nano-USD; bill: what some usage costs. None when the price is unknown.
    """

    model: Model
    window: int | None = None
    dear_input: float | None = None
    dear_output: float | None = None
    bill: Callable[[Usage], int | None] | None = None
    spare: str = ""

    def most(self, tokens_in: int, tokens_out: int) -> int | None:
        """The most a call may cost, in nano-USD; None when the price is unknown."""
        if self.dear_input is None or self.dear_output is None:
            return None
        return math.ceil(tokens_in * self.dear_input + tokens_out * self.dear_output)


class Team(Struct, frozen=True, eq=False):
    """All members by name, and the models each may ask, the first one first.

    policies: whether any agent brings rules of its own.
    """

    members: Mapping[str, Member]
    models: Mapping[str, tuple[Choice, ...]]
    policies: bool


def make_team(
    agents: tuple[Agent, ...], options: Options, models_of: Callable[[Agent], tuple[Choice, ...]]
) -> Team:
    """Compile agents for a run.

    Raises DuplicateName, UnknownName (in `can_call`), UserError (an option that cannot be).
    """
    members = make_members(agents, options)
    models = {name: models_of(member.agent) for name, member in members.items()}
    return Team(members, models, any(agent.policy is not None or agent.judge is not None for agent in agents))


@functools.lru_cache(maxsize=256)
def make_members(agents: tuple[Agent, ...], options: Options) -> Mapping[str, Member]:
    """All that agents and options alone decide; remembered, since teams are used again and again."""
    if FINISH in options.disabled:
        raise ValueError("finish cannot be disabled: no agent could return")
    for name in options.disabled:
        if name not in SPECS:
            raise UnknownName("built-in call to disable", name, SPECS)
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
    return {name: _member(agent, by_name, options) for name, agent in by_name.items()}


def _check_breach(limits: Limits | None, agents: Mapping[str, Agent]) -> None:
    if limits is None or limits.breach in ("stop", "ask"):
        return
    if limits.breach not in ("degrade", "hand_over"):
        raise UserError(f"Limits.breach is stop, ask, degrade or hand_over; got {limits.breach!r}")
    if not limits.to:
        what = "model to degrade to" if limits.breach == "degrade" else "agent to hand over to"
        raise UserError(f"Limits(breach={limits.breach!r}) needs `to`: the {what}")
    if limits.breach == "hand_over" and limits.to not in agents:
        raise UnknownName("agent in Limits.to", limits.to, agents)


def _member(agent: Agent, agents: Mapping[str, Agent], options: Options) -> Member:
    tools: dict[str, Tool] = {}
    for tool in agent.tools:
        if not isinstance(tool, Tool):
            raise UserError(f"{agent.name}: {tool!r} is not a tool")
        if tool.name in tools:
            raise DuplicateName("tool", tool.name)
        tools[tool.name] = tool
    names = set(SPECS) if options.background else {CALL_AGENT, FINISH}
    reachable = _reachable(agent, agents)
    if agent.solo or not reachable:
        names = set() if agent.solo else {FINISH}
    builtins = frozenset(names - set(options.disabled) - set(tools))
    finishing = {name for name, tool in tools.items() if tool.ends or name == FINISH}
    specs = (*(tool.spec for tool in tools.values()), *_builtin_specs(builtins, options.background))
    prompt = agent.instructions
    if not agent.solo:
        prompt = write_prompt(
            agent, [agents[name] for name in agents if name in reachable], builtins | set(tools)
        )
    prompt = "\n\n".join([prompt, *(text for name, text in options.extra_for if name == agent.name)])
    extra = f"{prompt}\n\n{options.extra}" if options.extra else prompt
    entry_head = _head(extra, specs, agent)
    return Member(
        agent,
        tools,
        builtins,
        frozenset(options.disabled) - set(tools),
        reachable,
        frozenset(finishing | ({FINISH} & builtins)),
        entry_head if options.extra_scope == "all" or not options.extra else _head(prompt, specs, agent),
        entry_head,
        tuple(agent.examples) + tuple(example for tool in tools.values() for example in tool.examples),
        answer_of(agent.output_type),
        any(each is not None for each in (agent.plan, agent.act, agent.ingest)),
    )


def _reachable(agent: Agent, agents: Mapping[str, Agent]) -> frozenset[str]:
    if tuple(agent.can_call) == ALL:
        return frozenset(agents)
    for name in agent.can_call:
        if name not in agents and name != USER:
            raise UnknownName(f"agent in can_call of {agent.name}", name, agents)
    return frozenset(agent.can_call)


def _builtin_specs(builtins: frozenset[str], background: bool) -> Iterable[ToolSpec]:
    for name, spec in SPECS.items():
        if name in builtins:
            yield _BACKGROUND_CALL if background and name == CALL_AGENT else spec


def _head(system: str, specs: tuple[ToolSpec, ...], agent: Agent) -> Head:
    told: dict[str, Any] = {
        "system": system, "tools": specs, "max_output": agent.max_output, "settings": dict(agent.settings)
    }  # fmt: skip
    if agent.tool_choice != "auto":
        told["tool_choice"] = agent.tool_choice
    answer = answer_of(agent.output_type)
    if answer is not None:
        told["output_schema"] = answer.schema
    data = msgspec.json.encode(told)
    digest = blake2b(data, digest_size=32)
    return Head(system, specs, digest.hexdigest(), data, digest.digest(), len(data))


def nudge(member: Member) -> str:
    """What an agent is told that stopped before it finished."""
    if FINISH in member.finishing or not member.agent.solo:
        return NUDGE
    ways = " or ".join(sorted(member.finishing)) or "the tool that ends it"
    return f"[system] You did not finish. Continue the task; call {ways} when it is done."


def write_prompt(agent: Agent, colleagues: Iterable[Agent], offered: Collection[str]) -> str:
    """The system prompt: who the agent is, whom it may call, and how it ends (seed 000, section 7)."""
    others = [
        f"- {other.name}: {other.description or other.instructions}"
        for other in colleagues
        if other is not agent
    ]
    listed = ["Available agents:\n" + "\n".join(others)] if others and CALL_AGENT in offered else []
    rules = "\n".join(text for name, text in _RULES.items() if name in offered)
    return "\n\n".join([f'You are "{agent.name}". {agent.instructions}'.rstrip(), *listed, rules]).rstrip()


_RULES = {
    CALL_AGENT: "Use call_agent to delegate work to other agents.",
    FINISH: "Use finish to complete your task and return the result.",
}
