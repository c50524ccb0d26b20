"""Read-only context passed to hooks, and the results they may return.

A hook is called once and its result recorded, so it need not be deterministic; but it must be free of
side effects.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, Literal

from msgspec import Struct

from antiphon.values.actions import Act
from antiphon.values.fields import Checked, check_fields
from antiphon.values.generic import Held
from antiphon.values.message import Message, ToolCall
from antiphon.values.model import ChatMessage
from antiphon.values.result import Outcome
from antiphon.values.tool import Tool
from antiphon.values.tool.offer import ToolOffer


class CallResult(Struct, frozen=True):
    """How a call ended. A call under which a person is asked is `skipped`: the turn ends without it."""

    agent: str
    """Whom the call was for; of a tool, its name."""
    outcome: Outcome
    content: str
    """The output, or the best partial one."""
    reason: str
    """Why the outcome is not `completed`, or the content of one that is not the whole answer."""
    task_id: str = ""
    """The thread that the call named."""
    replaced: bool = False
    """Its caller put another call in its place, see `PlannedCall.cancel_previous`."""


class TurnContext(Struct, frozen=True):
    """An activation as its hooks see it."""

    run_id: str
    agent: str
    turn: int
    """Of this call, 1 the first."""
    at: float
    """Unix seconds."""
    new_messages: Sequence[Message]
    """The messages of this turn."""
    hops: Sequence[Mapping[str, int]]
    """For each new message, how often each agent has handled the chain of messages that led to it."""
    data: Mapping[str, Any]
    """What the activation's hooks and action have recorded."""
    results: Sequence[CallResult]
    """How the calls of the turn ended, in order."""
    inbox: Sequence[Message]
    """Messages that no turn has taken yet."""
    unread: Mapping[str, int]
    """Dormant callees with messages in their inbox, and how many."""
    background_results: Sequence[CallResult] = ()
    """Calls that a turn went on without, and that have ended since the last turn."""
    reply: str = ""
    """The text of the model's reply in this turn."""
    called_tools: Sequence[str] = ()
    """Names of the calls in that reply, in order."""
    run_data: Mapping[str, Any] = {}
    """What all agents of the run have recorded for one another."""
    messages: Sequence[ChatMessage] = ()
    """The transcript so far."""
    tokens: int = 0
    """Of the last model request, as billed."""
    background_agents: Sequence[str] = ()
    """Agents whose calls run in the background; their ends come as `background_results`."""
    reminders: int = 0
    """How often the agent was told to continue, see `LoopOptions.max_reminders`."""
    toolsets: Mapping[str, Sequence[ToolOffer]] = {}
    """What the toolsets of the team offer from this turn on, by name; of one that was never up nothing."""


class InstructionsContext(Struct, Generic[Held], frozen=True):
    """What a function may know that writes an agent's instructions."""

    run_id: str
    agent: str
    at: float
    """Unix seconds."""
    messages: Sequence[ChatMessage]
    """The transcript so far; what the agent is asked now comes last."""
    deps: Held
    """Whatever the caller of the run passed for its tools."""
    data: Mapping[str, Any] = {}
    """What the activation's hooks and action have recorded."""
    run_data: Mapping[str, Any] = {}
    """What all agents of the run have recorded for one another."""


class PlannedCall(Struct, frozen=True):
    """A call of another agent, in a plan or in place of a tool call."""

    agent: str
    message: str = ""
    """What it is told; no message is sent when there is neither text nor data nor calls."""
    forward: tuple[int, ...] = ()
    """New messages that the callee finds in its inbox, by position. Plans only."""
    task_id: str = ""
    """The message's thread."""
    intent: str = ""
    """The message's intent."""
    calls: tuple[ToolCall, ...] = ()
    """Tool calls that the callee does before it asks its model."""
    data: Any = None
    """The message's data."""
    deadline: float | None = None
    """Unix seconds when it must be done. None: no deadline."""
    deliver_only: bool = False
    """Leave the message in the inbox of a callee that continues, without calling it. Plans only."""
    background: bool = False
    """The turn does not wait for it. In place of a tool call only, as are the three below."""
    cancel_previous: bool = False
    """Cancel first what the caller has of that agent in the background."""
    activation_data: Mapping[str, Any] = {}
    """Data of the activation that changes with it."""
    run_data: Mapping[str, Any] = {}
    """Data of the run that changes with it."""
    options: tuple[str, ...] = ()
    """Of a call of the user: one of these is the answer."""
    schema: dict[str, Any] | None = None
    """Of a call of the user: the JSON Schema that the answer must fit. It is told the answer as JSON."""


class TurnPlan(Struct, frozen=True):
    """A turn that makes these calls instead of asking the model."""

    calls: Sequence[PlannedCall] = ()
    activation_data: Mapping[str, Any] = {}
    """Data of the activation that changes with it."""
    run_data: Mapping[str, Any] = {}
    """Data of the run that changes with it."""
    rules: tuple[str, ...] = ()
    """Which rules of the hook's own led to this, for whoever reads the run: recorded with the turn."""


class ModelInput(Struct, frozen=True):
    """What a model is shown of the messages that a turn took."""

    messages: Sequence[ChatMessage] = ()
    """Added to the transcript."""
    suffix: str = ""
    """Text shown in this turn only, after everything else."""
    offered_tools: tuple[str, ...] | None = None
    """Names of the tools offered in this turn. None: all."""
    activation_data: Mapping[str, Any] = {}
    """Data of the activation that changes with it."""
    run_data: Mapping[str, Any] = {}
    """Data of the run that changes with it."""
    post: Sequence[Message] = ()
    """Messages to the agent's own inbox, for the next turn."""
    rules: tuple[str, ...] = ()
    """Which rules of the hook's own led to this, for whoever reads the run: recorded with the turn."""


class DirectResult(Struct, frozen=True):
    """The result of a tool call whose function is not run."""

    content: str = ""
    outcome: Outcome = "completed"
    finishes: bool = False
    """It ends the agent's task."""
    activation_data: Mapping[str, Any] = {}
    """Data of the activation that changes with it."""
    run_data: Mapping[str, Any] = {}
    """Data of the run that changes with it."""


class Continue(Struct, frozen=True):
    """Another turn follows. Raises UserError for a reminder that is no text."""

    reminder: str = ""
    """Text that the model is shown first; at most `LoopOptions.max_reminders` of them."""
    activation_data: Mapping[str, Any] = {}
    """Data of the activation that changes with it."""
    run_data: Mapping[str, Any] = {}
    """Data of the run that changes with it."""
    post: Sequence[Message] = ()
    """Messages to the agent's own inbox, for the next turn."""
    wait_for_messages: bool = False
    """Not before there is mail, or a call in the background has ended; at once when none is running."""
    rules: tuple[str, ...] = ()
    """Which rules of the hook's own led to this, for whoever reads the run: recorded with the turn."""

    def __post_init__(self) -> None:
        # Bytes would be stored as base64, and read as a text.
        if type(self.reminder) is not str:
            check_fields(self)


class Return(Struct, frozen=True):
    """The end of an activation, and so of the call that it is."""

    outcome: Outcome = "completed"
    output: str = ""
    reason: str = ""
    """Why the outcome is not `completed`."""
    activation_data: Mapping[str, Any] = {}
    """Data of the activation that changes with it."""
    run_data: Mapping[str, Any] = {}
    """Data of the run that changes with it."""
    publish: Sequence[Message] = ()
    """Messages for the caller to distribute, from a planned turn to a caller that plans too; else nobody
    gets them."""
    rules: tuple[str, ...] = ()
    """Which rules of the hook's own led to this, for whoever reads the run: recorded with the turn."""


PlanTurn = Callable[[TurnContext], TurnPlan | None]
"""The calls that a turn does instead of asking the model; None asks the model."""
PrepareInput = Callable[[TurnContext], ModelInput | None]
"""What a model is shown of the messages that a turn takes; None shows them as they are."""
InterceptCall = Callable[[TurnContext, str, str], DirectResult | PlannedCall | None]
"""What a call of the named tool with these arguments (canonical JSON) becomes; None runs the tool."""
EndTurn = Callable[[TurnContext], Continue | Return | None]
"""What follows a turn; None leaves it to the kernel."""
Decision = Literal["allow", "ask", "deny", "stop"]
Authorize = Callable[[Tool, str], Decision | tuple[Decision, str] | None]
"""Decides on a call of the tool with these arguments (canonical JSON), with a reason where there is one."""


class Hooks(Checked, frozen=True, kw_only=True):
    """An agent's own rules, called once and recorded, and its own coroutine.

    All but `act` must be synchronous and free of side effects. One that raises fails its activation, never
    the run; a raising `intercept_call` fails that call only, a raising `authorize` denies it.
    """

    plan_turn: PlanTurn | None = None
    """What a turn does instead of asking the model."""
    prepare_input: PrepareInput | None = None
    """What the model is shown of the messages that a turn takes."""
    intercept_call: InterceptCall | None = None
    """What a tool call becomes instead of running the tool."""
    end_turn: EndTurn | None = None
    """Whether another turn follows, or the activation returns."""
    authorize: Authorize | None = None
    """Decides on a tool call before the policy does: `allow`, `ask`, `deny`, or `stop` (deny, and end the
    turn). None leaves it to the policy."""
    act: Act | None = None
    """A coroutine that does a turn in place of the model, see `antiphon.values.actions`."""
