"""Agent: a name, instructions, tools and rules. Data only; the kernel does the rest."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal

from msgspec import Struct
from msgspec.structs import force_setattr, replace

from antiphon.errors import UserError
from antiphon.values.actions import Act
from antiphon.values.codec import exact
from antiphon.values.hooks import Answer, Call, Continue, Do, Moment, Return, Shown
from antiphon.values.limits import Limits
from antiphon.values.message import USER
from antiphon.values.model import ChatMessage, Example, Model
from antiphon.values.policy import Policy
from antiphon.values.tool import Tool, as_tool

ALL: Final = ("*",)
"""`can_call` of an agent that may call everyone."""


class Compaction(Struct, frozen=True, gc=False, omit_defaults=True):
    """When and how a long conversation is compacted.

    ratio: share of the model's window at which it happens. last_turns: turns kept word for word,
    but for their calls. retain: ask for facts to keep. directives: added to what the model is asked.
    auto: False compacts on demand only.
    """

    ratio: float = 0.85
    last_turns: int = 1
    retain: bool = True
    directives: tuple[str, ...] = ()
    auto: bool = True
    revise: Callable[[str], str | None] | None = None
    """Given a new summary; what it returns stands in its place. One that raises is ignored."""


class Retry(Struct, frozen=True, gc=False, omit_defaults=True):
    """When a model call that failed for a passing reason is tried again. Times in seconds.

    attempts: calls in all. The n-th wait is `base * 2**(n-1)`, jittered down by up to half, at
    most `ceiling`. A provider's Retry-After is taken instead; one above `longest` (None: the
    ceiling) ends the retries at once. window: after the first call of a turn, how late another may
    begin. statuses: HTTP statuses to try again after; None goes by the kind of the failure.
    """

    attempts: int = 3
    base: float = 1.0
    ceiling: float = 60.0
    window: float = 1200.0
    longest: float | None = None
    statuses: tuple[int, ...] | None = None


Plan = Callable[[Moment], Do | None]
"""What a turn does: these calls; None asks the model."""
Ingest = Callable[[Moment], Shown | None]
"""What a model is shown of what a turn took; None shows the messages as they are."""
Route = Callable[[Moment, str, str], Answer | Call | None]
"""What a tool call with these arguments (canonical JSON) becomes; None runs the tool."""
Decide = Callable[[Moment], Continue | Return | None]
"""What follows a turn; None leaves it to the kernel."""
Verdict = Literal["allow", "ask", "deny", "stop"]
Judge = Callable[[Tool, str], Verdict | tuple[Verdict, str] | None]
"""Rules on one call of a tool: it is given the tool and the canonical JSON of the arguments."""


class Agent(Struct, frozen=True, eq=False):
    """One agent as its developer describes it.

    system_prompt: another name for `instructions`. description: what colleagues are told instead
    of the instructions. model: a model string, a Model, or None for the run's. tools: functions
    or Tools. can_call: names of agents it may call. max_output: tokens of one reply, at most.
    settings: sent to the model as they are (temperature, …).

    finishing: of several calls in a reply one that ends the task `wins`, and the others are skipped; or
    they are done `in_order`, and only those after it are skipped.
    tool_choice: `auto`, `required`, `none` or the name of the tool that must be called.
    output_type: what its result is, as JSON: anything msgspec knows, or a pydantic model. A reply that
    does not fit is shown to the model with the reason (`nudges` times at most).

    context: `fresh` begins anew at every call; `continue` goes on where the same caller's last call of
    this agent ended. compaction: of a long conversation, None for never. fallback: models to ask when
    the first cannot answer. last_word: at the limit of turns the model is asked once more, without
    tools, for a summary.

    completion: `text` ends at a reply without calls, `finish` only at a finishing tool.
    nudges: how often an agent that stopped short of `finish` is told to go on.
    tool_execution: how the calls of one turn run; at_once: how many of parallel ones, None for all.
    solo: works alone: no colleagues, no `finish`, and its prompt is its instructions, word for word.
    limits: of one activation and all below it. policy: rules on its tools and those of its callees.

    Hooks, called once and recorded; they must be free of side effects. judge: rules on a tool before
    the policy does: `allow`, `ask`, `deny` or `stop` (deny, and end the turn), with a reason; None
    leaves it to the policy. incomplete: asked before the agent returns its text; what it gives back
    is said to the model, which goes on (`nudges` times at most). plan:
    what a turn does instead of asking the model; decide: whether another turn follows it. ingest: what
    the model is shown of what a turn takes; route: what a call of a tool becomes instead of running it.

    act: the agent's own coroutine, which does a turn in place of the model; `ask` in it asks the model.
    consume: how many of the waiting messages a turn takes. watch: topics of published messages that it
    reacts to in an environment; publishes: those of its own, for pictures and checks only.

    Raises UserError for an empty name, or one that is not printable or is `user`; for a max_output that
    is no whole number.
    """

    name: str
    instructions: str = ""
    model: str | Model | None = None
    tools: Sequence[Tool | Callable[..., Any]] = ()
    description: str = ""
    can_call: Sequence[str] = ALL
    completion: Literal["text", "finish"] = "text"
    tool_execution: Literal["parallel", "sequential", "single"] = "parallel"
    at_once: int | None = None
    nudges: int = 3
    max_output: int = 4096
    settings: Mapping[str, Any] = {}
    examples: tuple[Example, ...] = ()
    limits: Limits | None = None
    policy: Policy | None = None
    retry: Retry = Retry()
    system_prompt: str = ""
    context: Literal["fresh", "continue"] = "fresh"
    compaction: Compaction | None = Compaction()
    fallback: Sequence[str | Model] = ()
    last_word: bool = False
    finishing: Literal["wins", "in_order"] = "wins"
    solo: bool = False
    tool_choice: str = "auto"
    output_type: Any = None
    judge: Judge | None = None
    incomplete: Callable[[Sequence[ChatMessage]], str | None] | None = None
    plan: Plan | None = None
    decide: Decide | None = None
    ingest: Ingest | None = None
    route: Route | None = None
    act: Act | None = None
    consume: Literal["one", "all"] = "all"
    watch: Sequence[str] = ()
    publishes: Sequence[str] = ()

    def __post_init__(self) -> None:
        if not self.name.strip() or not self.name.isprintable() or self.name == USER:
            raise UserError(f"An agent's name must be printable and not {USER!r}; got {self.name!r}")
        if self.tools:
            force_setattr(self, "tools", tuple([as_tool(each) for each in self.tools]))
        if self.system_prompt:
            force_setattr(self, "instructions", self.instructions or self.system_prompt)
        if type(self.max_output) is not int:
            force_setattr(self, "max_output", exact(int, self.max_output, "Agent(max_output=...)"))


def equip(agent: Agent, extra: Sequence[Tool | Callable[..., Any]]) -> Agent:
    """The agent with more tools after its own; of two of one name its own stays."""
    own = tuple(as_tool(each) for each in agent.tools)
    names = {each.name for each in own}
    more = tuple(each for each in map(as_tool, extra) if each.name not in names)
    return replace(agent, tools=(*own, *more)) if more else agent
