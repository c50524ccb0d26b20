"""Activation: one live instance of an agent, and what is in flight for it. Data only.

One struct a lifetime: `Turn` and `Attempts` are made anew with each turn, `Progress` with each call of the
activation; `Conversation` and `Mailbox` last as long as the activation does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct, field

from antiphon.kernel.context.transcript import Transcript
from antiphon.kernel.facts.events import Detail, EffectFinished, PermissionDecided, StepEffect
from antiphon.kernel.facts.ledger import LedgerScope
from antiphon.kernel.facts.toolsets import OfferedToolset
from antiphon.values.message import Attachment, Message, ToolCall, ToolResult
from antiphon.values.model import Stop, Usage
from antiphon.values.policy import Preset

Phase = Literal["idle", "asking", "waiting", "failed", "calling", "acting", "settled"]
"""Where an activation is in its turn: between turns; about to ask its model, or to act; waiting for its
model, a retry, room or a higher limit; its model call failed; doing calls; its action runs; all done."""


REFUSED = frozenset({"invalid_arguments", "not_found", "denied"})
"""Outcomes of a call that will be the same when the same is called again."""


class OpenEffect(Struct):
    """An effect in flight."""

    id: str
    detail: Detail
    activation: int
    turn: int
    index: int
    """Which call of the turn it is, or approves; -1 for none."""
    run_id: str = ""
    """The run in which it began: of a fork's older effects the origin. Idempotency keys name it."""
    since: float = 0.0
    """When it started, Unix seconds."""
    child: int = 0
    """The activation that a call is."""
    crashes: int = 0
    """How many processes died while it ran."""
    carried_over: bool = False
    """An earlier owner drained the run before it began: whoever follows performs it."""
    foreign: bool = False
    """It began elsewhere, before its run was taken in here."""
    manifest: str = ""
    """Of the team in which it began, a blob, once the process of that time has died."""
    ended: bool = False
    """It is over, whatever still runs."""
    allowed: bool = False
    """Of a tool: its start rests on a permission, since it may change the world."""
    detached: ToolCall | None = None
    """The planned call that its turn no longer waits for, since a person is asked."""
    queued: ToolCall | None = None
    """Of a request that waits for those before it: what it asks."""
    answer: EffectFinished | None = None
    """Of a limit that joins an earlier question: how that ended."""
    operations: dict[str, EffectFinished] | None = None
    """Of an action or a tool, how what it began inside has ended; None before it began anything."""
    waited: bool = False
    """Of a tool: when the last process died it waited for what it had begun inside, and for no step."""


class FinishedCall(Struct, frozen=True):
    """How a call in the background ended. A request of the user is one."""

    event: EffectFinished
    usage: Usage
    """Tokens of its whole tree."""
    agent: str = ""
    """Who was called; empty when it came to no call."""
    task_id: str = ""
    """The thread of the call."""
    messages: tuple[Message, ...] = ()
    """Between agents, of a request that was found in the journal again."""
    request: bytes = b""
    """Of a request, its RequestOptions as JSON; empty without."""


class LoggedMessage(Struct, frozen=True):
    """A message between agents, with the user's request that it belongs to."""

    request: str
    message: Message


class AnsweredCall(Struct, frozen=True):
    """A call whose approval was answered or decided."""

    event: EffectFinished | PermissionDecided
    digest: str
    """Of the tool that was asked for; empty when nobody was asked."""


class Attempts(Struct):
    """Asking the model in one turn."""

    count: int = 0
    """Model calls of the turn, whatever for."""
    tries: int = 0
    """Calls of the model now in use."""
    fallback: int = 0
    """Which of the agent's models that is."""
    since: float = 0.0
    """When the first of them began, Unix seconds."""
    room: int = 0
    """How often room in a budget was waited for."""
    failure: EffectFinished | None = None
    """The one that failed last."""


class Turn(Struct):
    """One turn. A new one is a new object."""

    number: int = 0
    """Grows over the whole life of the activation."""
    messages: tuple[Message, ...] = ()
    """What it took from the inbox, where hooks or an action are to see it."""
    calls: tuple[ToolCall, ...] = ()
    results: list[ToolResult | None] = []
    """Of the calls."""
    cursor: int = 0
    """The first call not taken up yet."""
    waiting: int = 0
    """How many effects it waits for."""
    pending: dict[int, AnsweredCall] | None = None
    """Calls whose approval was answered or decided, by index; None for none so far."""
    planned: bool = False
    """The agent's own plan has it do its calls."""
    ends: dict[int, EffectFinished] | None = None
    """Of a planned turn, how calls ended, by index."""
    finish: EffectFinished | None = None
    """The end of a call that finishes the activation, or stops the turn."""
    handoff: str = ""
    """The agent whose result `finish` is."""
    breached_limit: str = ""
    """The limit that refused a call."""
    reply: str = ""
    """What the model answered."""
    stop: Stop = "stop"
    """Why it stopped there."""
    suffix: str = ""
    offered_tools: tuple[str, ...] | None = None
    """See TurnStarted."""
    compactions: int = 0
    """How often a compaction was asked for."""
    attempts: Attempts = field(default_factory=Attempts)
    action_end: EffectFinished | None = None
    """The end of the agent's own code that ends the turn: its action, or instructions that failed."""


class Progress(Struct):
    """What one call of the activation has come to."""

    instructions: str | None = None
    """What the agent's own function wrote; None before it did, and where no function writes them."""
    best_text: str = ""
    """The last text of its model: the best output yet."""
    reminders: int = 0
    """How often in a row it was told to go on."""
    refused: int = 0
    """Calls of this turn of its model that were refused before they ran, see REFUSED."""
    refused_calls: tuple[tuple[str, str], ...] = ()
    """Names and arguments of the calls of its model's last turn that had any, if all were refused."""
    repeats: int = 0
    """How often in a row its model repeated those."""
    empty_turns: int = 0
    """Planned turns in a row that had no message and made no call."""
    earlier_turns: int = 0
    """Turns of earlier calls, of an activation that was dormant."""
    deadlines: int = 0
    """Timers set for its deadline."""
    overdue: bool = False
    """A timer went off."""
    raises: int = 0
    """How often somebody was asked to raise a limit."""
    raise_declined: bool = False
    """Nobody is asked again."""
    request: bytes = b""
    """Of a request of the user, its RequestOptions as JSON; empty without."""
    policy: Preset | None = None
    """Of the request that all of this is for."""
    files: tuple[Attachment, ...] = ()
    """What its tools, and the agents that it called, attached for whoever asked the run."""


class Conversation(Struct):
    """What an activation's model is shown."""

    transcript: Transcript = field(default_factory=Transcript)
    prefix: str = ""
    """Digest of the prompt prefix that its last model call had."""
    shown_tokens: int = 0
    """Of tool results in the transcript."""
    cut: bool = False
    """A result was shown in part only, or removed: its agent is offered what reads the rest."""
    toolsets: Mapping[str, OfferedToolset] = {}
    """What toolsets offered when its last turn began."""
    window_tokens: int = 0
    """Of the last model call, as billed; 0 when nobody said."""
    compaction: Literal["", "asked", "tried", "compacted", "replaced"] = ""
    """Somebody asked to compact or replace it, and nothing else: what came of that."""
    summary: str | None = None
    """What the model wrote when asked to compact."""
    summary_effect: str = ""
    """The call in which it did."""
    summary_oldest: int = 0
    """How many of the oldest messages that was about, 0 for all."""
    labels: tuple[str, ...] = ()
    """Of all that was ever in it, sorted: what was removed may have been repeated."""


class Mailbox(Struct):
    """What reaches an activation from outside its turn."""

    inbox: list[Message] = field(default_factory=list)
    unread: dict[str, int] | None = None
    """Dormant callees in whose inbox messages wait, and how many."""
    background_results: tuple[tuple[ToolCall, EffectFinished], ...] = ()
    """Calls that a turn went on without, and that have ended since the last turn."""
    requests: dict[str, list[str]] | None = None
    """Of the user, by agent that goes on with its conversation: its open calls, the first one at work."""
    hops: dict[str, Mapping[str, int]] | None = None
    """Of messages in the inbox or taken, by id, how often each agent handled the chain that led to them."""


class Activation(Struct):
    """One live instance of an agent: a call that has not returned. Activation 0 is the user."""

    id: int
    agent: str
    call: str = ""
    """The effect that it is; empty for the user, and while it is dormant."""
    caller: int = 0
    """The activation that called, 0 the user."""
    request: str = ""
    """The user's call that all of this is for."""
    depth: int = 0
    scopes: tuple[LedgerScope, ...] = ()
    """Innermost first."""
    task_id: str = ""
    """The thread that it works in."""
    own_model: bool = False
    """It only asks the model, for an action of its caller."""
    phase: Phase = "idle"
    another_turn: bool = False
    """Another turn follows at once, mail or not."""
    turn: Turn = field(default_factory=Turn)
    progress: Progress = field(default_factory=Progress)
    conversation: Conversation = field(default_factory=Conversation)
    mailbox: Mailbox = field(default_factory=Mailbox)
    open: dict[str, OpenEffect] = field(default_factory=dict)
    """Its effects in flight, by id."""
    done: dict[str, FinishedCall] = field(default_factory=dict)
    """Its background calls that ended, by id."""
    data: dict[str, Any] = field(default_factory=dict)
    """What hooks and actions recorded."""
    message_log: list[Message] | None = None
    """Of an acting agent, what it took and published."""
    queued: bool = False
    """It is in the run's work list."""


def inside(activation: Activation, opened: OpenEffect) -> list[OpenEffect]:
    """What is in flight inside an action or a tool, the last begun first."""
    if opened.operations is None:
        return []
    within = f"{opened.id}:"
    return [each for each in reversed(activation.open.values()) if each.id.startswith(within)]


def only_waits(activation: Activation, opened: OpenEffect) -> bool:
    """Whether an action or a tool waits for what it began inside, none of that a step of its own, and will do
    so again when it is run again."""
    begun = inside(activation, opened)
    return bool(begun) and not any(
        type(each.detail) is StepEffect or getattr(each.detail, "cut_off", False) for each in begun
    )
