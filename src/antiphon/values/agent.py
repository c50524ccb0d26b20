"""Agent: a name, instructions, tools and rules. Data only; the kernel does the rest."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from types import UnionType
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, Never, Protocol, TypeAlias

from msgspec.structs import force_setattr, replace

from antiphon.errors import ToolDefinitionError, UserError
from antiphon.values.codec import encode_shallow, encode_value
from antiphon.values.fields import Checked, CheckedWhenMade, check_at_least, check_fields, shown
from antiphon.values.generic import Deps, Out
from antiphon.values.hooks import Hooks, InstructionsContext
from antiphon.values.limits import Limits
from antiphon.values.message import USER
from antiphon.values.model import Example, Model
from antiphon.values.policy import Policy, Preset
from antiphon.values.tool import Tool, ToolKind, as_tool, tool_from
from antiphon.values.tool.definition import OutsideCall
from antiphon.values.tool.toolset import Toolset

if TYPE_CHECKING:
    from typing_extensions import TypeForm

ALL: Final = ("*",)
"""`can_call` of an agent that may call everyone."""
MAX_TIMEOUT = 86_400
"""Seconds that no timeout of an endpoint exceeds: a day."""


class Compaction(Checked, frozen=True, gc=False, omit_defaults=True):
    """When and how a long conversation is replaced by a summary of it."""

    ratio: float = 0.85
    """Share of the model's context window at which it happens, 0 to 1."""
    last_turns: int = 1
    """Turns that stay word for word, but for their calls."""
    retain: bool = True
    """Also ask the model for the facts that must be kept."""
    directives: tuple[str, ...] = ()
    """Instructions added to what the model is asked."""
    auto: bool = True
    """False compacts on demand only."""
    revise: Callable[[str], str | None] | None = None
    """Given a new summary; the text that it returns replaces the summary. One that raises is ignored."""


class RetryPolicy(Checked, frozen=True, gc=False, omit_defaults=True):
    """When a model request that failed for a passing reason is tried again."""

    max_attempts: int = 3
    """Requests to one model in a turn, the first one included."""
    initial_delay: float = 1.0
    """Seconds before the second attempt. Each further delay is twice as long; all are jittered down by up
    to half. A provider's Retry-After takes the place of the delay."""
    max_delay: float = 60.0
    """Seconds that no computed delay exceeds."""
    max_elapsed: float = 1200.0
    """Seconds after a turn's first request in which another attempt may begin."""
    max_retry_after: float | None = None
    """Longest Retry-After in seconds that is waited for; a longer one ends the retries at once. None:
    `max_delay`."""
    statuses: tuple[int, ...] | None = None
    """HTTP statuses that are tried again. None: by the kind of the failure."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_at_least(self, 1, "max_attempts")
        check_at_least(self, 0, "initial_delay", "max_delay", "max_elapsed", "max_retry_after")


class EndpointOptions(Checked, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """How the endpoint of a model is asked: how much at once, how often, and how long it is waited for.

    What is None is left to whoever says it next, in the end to the defaults. Raises UserError for a number
    that cannot be.
    """

    concurrency: int | None = None
    """Requests at once, of all runs of the process. Default: 100."""
    requests_per_minute: int | None = None
    """Requests that begin in any 60 seconds. Default: no limit."""
    tokens_per_minute: int | None = None
    """Tokens of the requests that begin in any 60 seconds, input and output: estimated before the reply, as
    billed after it. Default: no limit."""
    connect_timeout: float | None = None
    """Seconds until connected. Default: 10; of models at `antiphon.models.providers` their SDK's own."""
    first_timeout: float | None = None
    """Seconds until the first piece of an answer, connecting included. Default: 300."""
    idle_timeout: float | None = None
    """Seconds between two pieces of an answer. Default: 60."""
    total_timeout: float | None = None
    """Seconds for all of an answer. Default: 1,800."""
    retry: RetryPolicy | None = None
    """When a failed request is tried again, for agents whose own `ModelOptions.retry` is the default."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_at_least(self, 1, "concurrency", "requests_per_minute", "tokens_per_minute")
        for name in ("connect_timeout", "first_timeout", "idle_timeout", "total_timeout"):
            held = getattr(self, name)
            if held is not None and not 0 < held <= MAX_TIMEOUT:
                raise UserError(
                    f"EndpointOptions({name}=...) is more than 0 and at most {MAX_TIMEOUT:,} seconds; "
                    f"got {held!r}"
                )

    def over(self, other: EndpointOptions) -> EndpointOptions:
        """These, and what they leave open as `other` has it."""
        left = {name: getattr(other, name) for name in self.__struct_fields__ if getattr(self, name) is None}
        return replace(self, **left) if any(each is not None for each in left.values()) else self


class LoopOptions(Checked, frozen=True, gc=False, omit_defaults=True):
    """How an agent's turns follow one another."""

    max_parallel_calls: int | None = None
    """Calls of one turn that run at once with `tool_execution="parallel"`. None: all of them."""
    max_reminders: int = 3
    """How often an agent that stopped short of its end is told to continue, or may repeat a turn whose calls
    were all refused; then it ends `no_progress`."""
    finish_mode: Literal["wins", "in_order"] = "wins"
    """Of several calls in a reply, one that ends the task `wins` and the others are skipped; or they are
    done `in_order`, and only those after it are skipped."""
    summarize_at_limit: bool = False
    """Ask the model once more, without tools, when the limit of turns is reached. Default: return the best
    text so far."""
    batch: Literal["one", "all"] = "all"
    """How many of the waiting messages a turn takes."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_at_least(self, 1, "max_parallel_calls")
        check_at_least(self, 0, "max_reminders")


class ModelOptions(Checked, frozen=True, kw_only=True):
    """What an agent's model is asked, and what happens when it cannot answer.

    Raises UserError for a field that does not hold what it declares.
    """

    max_output_tokens: int = 4096
    """Tokens of one reply, at most; always sent to the provider as its cap."""
    settings: Mapping[str, Any] = {}
    """Sent to the model as they are: temperature, reasoning_effort and so on."""
    fallback_models: Sequence[str | Model] = ()
    """Models that are asked, in order, when the first one cannot answer."""
    retry: RetryPolicy = RetryPolicy()
    """When a failed request is tried again with the same model. What is the default gives way to the `retry`
    of the model's endpoint (`EndpointOptions`)."""
    compaction: Compaction | None = Compaction()
    """When a long conversation is shortened. None: never."""
    tool_choice: str = "auto"
    """`auto`, `required`, `none`, or the name of the tool that must be called."""
    toolset_tokens: int | None = 10_000
    """Tokens (UTF-8 bytes / 4) of the definitions of toolsets' tools that stand in the prompt. Toolset after
    toolset is listed as a whole while it fits; tools of the others are found by `search_tools` and called by
    `call_tool`. None: all stand there."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_at_least(self, 1, "max_output_tokens")
        check_at_least(self, 0, "toolset_tokens")


class OutsideTool(CheckedWhenMade, frozen=True, omit_defaults=True):
    """A tool that a request brings: whoever runs it does the calls, see `tool_from`."""

    name: str
    """As the model calls it; none of the agent's own tools has it."""
    description: str = ""
    """What the model is told."""
    parameters: Mapping[str, Any] = {}
    """JSON Schema of type object, without regular expressions."""
    result: dict[str, Any] | None = None
    """JSON Schema that an answer must fit, without regular expressions. None: any text is one."""
    title: str = ""
    """What people are shown in place of the name."""
    kind: ToolKind = "other"
    """What it is for, see `Tool.kind`."""

    @classmethod
    def of(cls, tool: Tool) -> OutsideTool:
        """A tool that `tool_from` made without a function. Raises UserError for any other."""
        function = tool.function
        if not isinstance(function, OutsideCall):
            raise UserError(f"{tool.name} has a function; a request brings tools that others do")
        return cls(
            tool.name, tool.description, tool.parameters, function.result, tool._shown.title, tool.kind
        )

    def made(self) -> Tool:
        """The tool. Raises ToolDefinitionError."""
        return tool_from(
            self.name, self.description, self.parameters, result=self.result, title=self.title, kind=self.kind
        )


REQUEST_SETTINGS = frozenset(
    {"temperature", "top_p", "top_k", "min_p", "seed", "stop", "presence_penalty", "frequency_penalty",
     "repetition_penalty", "reasoning_effort", "verbosity"}
)  # fmt: skip
"""Settings of a model that a request may choose: none of them reaches beyond its answer."""
MAX_OPTIONS = 262_144
"""Bytes of what a request may bring, as JSON."""
MAX_OUTSIDE_TOOLS = 128
"""Tools that a request may bring."""


class RequestOptions(CheckedWhenMade, frozen=True, omit_defaults=True):
    """What holds for one request alone, beside what its agent is; nothing of it reaches further than the run
    and the agent do.

    All but `policy` is for the agent that is asked, and not for those that it calls.
    """

    tools: tuple[OutsideTool, ...] = ()
    """Tools beside the agent's own."""
    own_tools: tuple[str, ...] | None = None
    """Which of its own tools the agent has, and of its toolsets: a toolset's name stands for all that it
    offers. None: all."""
    settings: Mapping[str, Any] = {}
    """Settings of the model in place of the agent's; see REQUEST_SETTINGS for those that may be given."""
    max_output_tokens: int | None = None
    """Tokens of one reply, at most; what is above the agent's own counts as that."""
    output: Any = None
    """The JSON Schema of the answer, or a type; in place of the agent's own."""
    instructions: str = ""
    """Added to the agent's instructions."""
    policy: Preset | None = None
    """What tools may do, those of agents below too, where that is stricter than the run's and the agents'
    own."""

    def __post_init__(self) -> None:
        # A text is no type here, whoever wrote it: nothing that comes as data is evaluated.
        if self.output is not None and not isinstance(self.output, (dict, list, str, bool, int, float)):
            from antiphon.values.schema.output_type import answer_of

            found = answer_of(self.output)
            force_setattr(self, "output", None if found is None else found.schema)

    def wrong(self) -> str:
        """Why this cannot be asked of any agent, if so."""
        from antiphon.values.form import wrong_form

        if self.output is not None and not isinstance(self.output, dict):
            return f"output is a JSON Schema, an object; got {shown(self.output)}"
        try:
            size = len(encode_shallow(self))
        except (TypeError, ValueError, RecursionError) as error:
            return f"the options of a request are JSON: {error}"
        if size > MAX_OPTIONS:
            return f"the options of a request are at most {MAX_OPTIONS:,} bytes of JSON; got {size:,}"
        if len(self.tools) > MAX_OUTSIDE_TOOLS:
            return f"a request brings at most {MAX_OUTSIDE_TOOLS} tools; got {len(self.tools)}"
        for name in self.settings:
            if name not in REQUEST_SETTINGS:
                known = ", ".join(sorted(REQUEST_SETTINGS))
                return f"settings: a request cannot choose {shown(name)}; it can choose {known}"
        if self.max_output_tokens is not None and self.max_output_tokens < 1:
            return f"max_output_tokens is at least 1; got {self.max_output_tokens}"
        if self.output is not None and (wrong := wrong_form((), self.output, patterns=False)):
            return f"output: {wrong}"
        seen = set[str]()
        for each in self.tools:
            if each.name in seen:
                return f"tools: two are called {shown(each.name)}"
            seen.add(each.name)
            wrong = wrong_form((), each.parameters, patterns=False)
            wrong = wrong or wrong_form((), each.result, patterns=False)
            try:
                each.made()
            except ToolDefinitionError as error:
                return f"tools: {error}"
            if wrong:
                return f"tools: {each.name}: {wrong}"
        return ""

    def made(self) -> tuple[Tool, ...]:
        """The tools that it brings; without those that cannot be, which no request can begin with."""
        found = []
        for each in self.tools:
            with suppress(ToolDefinitionError):
                found.append(each.made())
        return tuple(found)

    def wrong_for(self, agent: Agent[Any, Any], others: Collection[str] = ()) -> str:
        """Why this cannot be asked of an agent, if so. others: names of calls that it may have beside its
        tools."""
        if wrong := self.wrong():
            return wrong
        more = encode_value(replace(self, policy=None)) != b"{}"
        if more and (agent.hooks.act is not None or agent.hooks.plan_turn is not None):
            return f"{agent.name} works by its own code; of the options a request can give it a policy only"
        own = [each.name for each in own_tools(agent)]
        sets = [each.name for each in agent.toolsets]
        for name in self.own_tools or ():
            # What a toolset offers changes: a name that nothing has now may be one of its tools.
            if name not in own and not sets:
                return f"own_tools: {agent.name} has no tool {shown(name)}; it has {', '.join(own) or 'none'}"
        for each in self.tools:
            if each.name in own or each.name in others:
                return f"tools: {agent.name} has {each.name} itself; give yours another name"
        return ""


class Topics(Checked, frozen=True):
    """What an agent hears and says in an environment, where messages are published."""

    watch: Sequence[str] = ()
    """Topics of published messages that it reacts to."""
    publishes: Sequence[str] = ()
    """Topics of its own messages; for graphs and checks only."""


class Agent(Checked, Generic[Deps, Out], frozen=True, eq=False):
    """One agent as its developer describes it: data only, shared freely between runs.

    Raises UserError for a name that is empty, not printable or `user`, and for a field that does not hold
    what it declares.
    """

    name: str
    """What others call it by; unique in its team."""
    instructions: str | Callable[[InstructionsContext[Deps]], str | Awaitable[str]] = ""
    """The system prompt, or a function that writes it, which may be async: asked once in each call of
    the agent, and recorded. What the team adds (colleagues, built-in calls) follows it."""
    model: str | Model | None = None
    """A model string such as `openai:gpt-5`, or a Model. None: the run's."""
    tools: Sequence[Tool | Toolset | Callable[..., object]] = ()
    """Functions that its model may call, plain or made with `@tool`, and toolsets."""
    description: str = ""
    """What its colleagues are told of it. Default: the instructions that are a text."""
    if TYPE_CHECKING:
        # A union written with `|` is no type to a type checker: annotate the agent, Agent[object, A | B].
        output_type: TypeForm[Out] | UnionType | None = None
    else:
        output_type: Any = None
    """Type of the result, read from JSON: whatever msgspec knows, or a pydantic model. A reply that does not
    fit is shown to the model with the reason, as a reminder. None: text."""
    can_call: Sequence[str] = ALL
    """Names of the agents that it may call. Default: all of the team."""
    limits: Limits | None = None
    """Limits of one activation and all below it, beside those of the run."""
    policy: Policy | Preset | None = None
    """Rules on its tools and those of its callees, beside those of the run; a preset's name is the policy
    that is only that."""
    context: Literal["fresh", "continue"] = "fresh"
    """`fresh` begins anew at every call; `continue` resumes the conversation of the caller's last call."""
    examples: tuple[Example, ...] = ()
    """Past requests and the calls that were right for them; shown by small local models only."""
    completion: Literal["text", "finish"] = "text"
    """`text` ends at a reply without calls, `finish` only at a call that finishes."""
    tool_execution: Literal["parallel", "sequential", "ordered", "single"] = "parallel"
    """How the calls of one reply run: all at once; one after the other; `ordered`, one after the other but
    reading calls that follow each other at once; or `single`, the first one, and the others are skipped."""
    standalone: bool = False
    """Works alone: no colleagues, no `finish`, and its prompt is its instructions, word for word."""
    system_prompt: str | Callable[[InstructionsContext[Deps]], str | Awaitable[str]] = ""
    """Another name for `instructions`."""
    loop: LoopOptions = LoopOptions()
    """How its turns follow one another."""
    asking: ModelOptions = ModelOptions()
    """What its model is asked, and what happens when it cannot answer."""
    hooks: Hooks = Hooks()
    """Its own rules and its own coroutine, see `antiphon.values.hooks`."""
    topics: Topics = Topics()
    """What it hears and says in an environment."""

    def __post_init__(self) -> None:
        check_fields(self)
        if not self.name.strip() or not self.name.isprintable() or self.name == USER:
            raise UserError(f"An agent's name must be printable and not {USER!r}; got {self.name!r}")
        if isinstance(self.policy, str):
            force_setattr(self, "policy", Policy(self.policy))
        if self.tools:
            made = [each if isinstance(each, Toolset) else as_tool(each) for each in self.tools]
            force_setattr(self, "tools", tuple(made))
        if self.system_prompt:
            force_setattr(self, "instructions", self.instructions or self.system_prompt)

    @property
    def about(self) -> str:
        """What others are told of it: its description, or its instructions."""
        return self.description or (self.instructions if isinstance(self.instructions, str) else "")

    @property
    def toolsets(self) -> tuple[Toolset, ...]:
        """The toolsets among its `tools`."""
        return tuple([each for each in self.tools if isinstance(each, Toolset)])


def own_tools(agent: Agent[Any, Any]) -> tuple[Tool, ...]:
    """The tools that an agent always has: those that no toolset offers."""
    return tuple([as_tool(each) for each in agent.tools if not isinstance(each, Toolset)])


class AgentSource(Protocol):
    """Whatever stands for agents, such as a `LoopAgent`."""

    def agents(self) -> Sequence[Agent]:
        """These agents; the one that is asked comes first."""
        ...


AnyAgent: TypeAlias = Agent[Never, object] | AgentSource
"""An agent, whatever deps it works with and whatever it returns; or what stands for agents."""


def agents_of(given: Any) -> tuple[Any, ...]:
    """The agents that a member of a team stands for: an Agent itself; an AgentSource those that it names.

    Anything else comes back as it is.
    """
    named = None if isinstance(given, Agent | type) else getattr(given, "agents", None)
    return tuple(named()) if callable(named) else (given,)


def equip(
    agent: Agent[Deps, Out], extra: Sequence[Tool | Toolset | Callable[..., object]]
) -> Agent[Deps, Out]:
    """The agent with more tools and toolsets after its own; of two of one name its own stays."""
    own: list[Tool | Toolset] = [*own_tools(agent), *agent.toolsets]
    names = {(isinstance(each, Toolset), each.name) for each in own}
    made = [each if isinstance(each, Toolset) else as_tool(each) for each in extra]
    more = tuple([each for each in made if (isinstance(each, Toolset), each.name) not in names])
    return replace(agent, tools=(*agent.tools, *more)) if more else agent
