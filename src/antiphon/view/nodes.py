"""The nodes of a run tree: activations, their turns, the effects of these, and what they add up to.

Readers only look at them: the run tree alone changes a node. Times are Unix seconds.
"""

from __future__ import annotations

from bisect import insort
from operator import attrgetter
from typing import Any, Literal

from msgspec import Struct, field

from antiphon.kernel.facts import ids
from antiphon.kernel.facts.ledger import NANO
from antiphon.values.message import Attachment, Message, ToolCall
from antiphon.values.model import ChatMessage, Reply, Usage
from antiphon.values.result import Failure

EffectKind = Literal["model", "tool", "call", "wait", "action", "step", "instructions"]
HUMAN_INPUT = frozenset({"approval", "question", "limit"})
"""Purposes of waits that a person ends."""


class Cost(Struct, frozen=True, gc=False):
    """Money for model calls."""

    nano_usd: int = 0
    """What is known of it, in billionths of a US dollar."""
    unpriced: int = 0
    """Model calls of unknown price; they are not in `nano_usd`."""

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.nano_usd + other.nano_usd, self.unpriced + other.unpriced)

    def __sub__(self, other: Cost) -> Cost:
        return Cost(self.nano_usd - other.nano_usd, self.unpriced - other.unpriced)

    @property
    def usd(self) -> float:
        """What is known of it, in US dollars."""
        return self.nano_usd / NANO


class UsageTotals(Struct, eq=False):
    """What several model calls add up to."""

    calls: int = 0
    """Model calls that ended."""
    reported: int = 0
    """Those of them whose tokens the provider reported."""
    usage: Usage = Usage()
    """Tokens as reported."""
    cost: Cost = Cost()
    """Money, by the kernel's own rule: a bill that never came counts at its worst case."""

    def add(self, other: UsageTotals) -> None:
        """Count everything of `other` too."""
        self.calls += other.calls
        self.reported += other.reported
        self.usage = self.usage + other.usage
        self.cost = self.cost + other.cost


class Decision(Struct, frozen=True, gc=False):
    """Whether a call may be done, and who said so."""

    allowed: bool
    """Allowed, or denied."""
    by: str = ""
    """The person who decided, or who made the rule that did; empty for a policy."""
    reason: str = ""
    """Why, in words."""
    remembered: bool = False
    """Later calls of the same tool are allowed too, as far as the grant reaches."""
    rule: str = ""
    """What decided: `authorize`, `policy`, `policy of NAME`, `rule ID`; `intercept_call`, which said what
    becomes of a call. Empty for a person, and for a tool that its policy lets run."""


class ModelUse(Struct, eq=False):
    """What only model calls have."""

    digest: str = ""
    """Of exactly what was asked."""
    prefix: str = ""
    """Digest of the system prompt and the tools that were part of it."""
    held_tokens: int = 0
    """Tokens held while it ran."""
    reply: Reply | None = None
    """What the model answered; None while it runs, and when it did not."""
    usage: Usage | None = None
    """Tokens as the provider reported them; None when it did not."""
    cost: Cost = Cost()
    """What it cost."""


class WaitDetail(Struct, eq=False):
    """What only waits have: timers and human input."""

    due_at: float = 0.0
    """When a timer ends, or a person's time to answer; 0 for never."""
    by: str = ""
    """The person who answered."""
    command: int = 0
    """The number of the command that the answer came in by; 0 for one given in the owner's process."""
    refused: int = 0
    """Posted answers that did not fit: what was asked stayed open."""
    options: tuple[str, ...] = ()
    """Of a question: one of these is the answer."""
    schema: dict[str, Any] | None = None
    """Of a question: the JSON Schema that the answer must fit."""
    rule: str = ""
    """Of an approval: the hook or the policy that wants a person asked, see `Decision.rule`."""
    joins: str = ""
    """Of `joined`: the open question about the same limit whose answer is this one's too."""
    tool: str = ""
    """Of a question: the outside tool whose call it is; the answer is its result."""


class EffectNode(Struct, eq=False):
    """One effect: it starts once and ends once. What was refused, or done at once, ends without a start."""

    id: str
    """Where it stands: `activation/turn.place`. `ActivationNode.path_of` has the name that is the same in
    every replay."""
    kind: EffectKind
    """`model`, `tool`, `call`, `wait`, `action` or `step`. A call that never started is a `tool`."""
    name: str
    """Of the model, tool, agent or step; of a wait for a person the tool that it is about."""
    purpose: str = ""
    """Of a model call: `compact`, `final`, or empty for a reply. Of a wait: `approval`, `question`, `limit`,
    `joined` (an earlier question about the same limit), `retry`, `result`, `deadline`. Of a call: `ask` of an
    action to its own model, `limit` of a handoff at a limit."""
    call: ToolCall | None = None
    """The call of the turn that it does, as the model or the plan wrote it."""
    arguments: str = ""
    """The arguments that bind, as JSON: validated, with defaults, as edited by a person."""
    text: str = ""
    """What a person is asked; of a retry, which attempt follows."""
    started_at: float | None = None
    """When it started; None when it never did."""
    ended_at: float | None = None
    """When it ended; None while it runs."""
    outcome: str = ""
    """How it ended; empty while it runs."""
    reason: str = ""
    """Why it ended so, when that needs saying."""
    content: str = ""
    """Its result, or the best partial one; of human input, the answer."""
    attachments: tuple[Attachment, ...] = ()
    """Files of the result."""
    failure: Failure | None = None
    """Why a model call gave no reply; of a retry, why the attempt before it gave none."""
    decision: Decision | None = None
    """Whether it was allowed, where that was asked; of an approval, what came of it."""
    model: ModelUse | None = None
    """Of a model call: the reply, tokens, cost."""
    wait: WaitDetail | None = None
    """Of a wait: its timer, who answered."""
    callee: ActivationNode | None = None
    """Of a call: the activation that it is."""
    background: bool = False
    """Its turn does not wait for it."""
    finishes: bool = False
    """Its result is the result of its agent, whose work it ends."""

    @property
    def began_at(self) -> float:
        """When it started; of what never did, when it was refused."""
        return self.started_at if self.started_at is not None else self.ended_at or 0.0

    @property
    def is_call(self) -> bool:
        """Whether it does one of the calls of its turn, and is neither its approval nor anything else."""
        return ids.is_call(self.id)

    @property
    def within(self) -> str:
        """The id of the tool that began it; empty for what none did."""
        return ids.parent_of(self.id) if ":" in self.id and ids.mark_of(self.id) == "c" else ""

    @property
    def what(self) -> str:
        """Its purpose, where it has one, else its kind: one word to tell effects apart by."""
        return self.purpose or self.kind

    @property
    def is_timer(self) -> bool:
        """Whether it is about time alone: when it has run out nothing happened, time went by."""
        return self.what in ("retry", "deadline")

    @property
    def has_row(self) -> bool:
        """Whether it stands under its agent where a run is shown. That an agent acts, or has its instructions
        written, its own line says; a deadline only says how long something may take."""
        return self.kind not in ("action", "instructions") and self.purpose != "deadline"

    @property
    def asks_person(self) -> bool:
        """Whether it is human input: an approval, a question or a limit to be raised."""
        return self.kind == "wait" and self.purpose in HUMAN_INPUT

    @property
    def is_approval(self) -> bool:
        """Whether a person is asked to allow a tool."""
        return self.purpose == "approval"

    @property
    def is_retry(self) -> bool:
        """Whether a model is asked again in a while."""
        return self.purpose == "retry"

    @property
    def is_tool(self) -> bool:
        """Whether a tool is called, or what is no call of anything."""
        return self.kind == "tool"

    @property
    def is_question(self) -> bool:
        """Whether an agent asks a person something."""
        return self.purpose == "question"

    @property
    def is_reply(self) -> bool:
        """Whether a model is asked for a reply, and neither for a summary nor for a last word."""
        return self.model is not None and not self.purpose

    @property
    def attempt(self) -> int:
        """Which model attempt of its turn it is, from 1; 0 for any other effect."""
        return int(ids.place_of(self.id)[1:]) if self.kind == "model" else 0


class TurnNode(Struct, eq=False):
    """One turn: messages taken, one reply or plan, its calls."""

    number: int
    """Which turn of its activation, from 1."""
    started_at: float
    """When it began."""
    ended_at: float | None = None
    """When it ended; None while it goes on."""
    taken: int = 0
    """How many messages it took from the inbox."""
    messages: tuple[Message, ...] = ()
    """These messages."""
    planned: bool = False
    """The agent's plan gave the calls; no model was asked."""
    acts: bool = False
    """The agent's action did the turn."""
    calls: tuple[ToolCall, ...] = ()
    """The calls of the reply, of the plan or of the messages."""
    shown: tuple[ChatMessage, ...] | None = None
    """What the model was shown of the messages; None: as they are."""
    suffix: str = ""
    """Text that it was shown in this turn only."""
    effects: list[EffectNode] = field(default_factory=list)
    """Its effects, in the order they began."""
    another_turn: bool = False
    """Another turn followed at once."""
    reminder: str = ""
    """What the model was told before that, to make it continue."""
    begun_by: str = ""
    """The hook that said how it begins: `plan_turn` or `prepare_input`."""
    ended_by: str = ""
    """The hook that said what follows: `end_turn`."""
    rules: tuple[str, ...] = ()
    """Which of their own rules these hooks followed, in order: of a profile, observers and rules of the flow
    decider, each as `id (file:line)`."""

    def call_of(self, effect_id: str) -> ToolCall | None:
        """Its call that an effect does, or approves."""
        index = ids.index_of(effect_id)
        return self.calls[index] if 0 <= index < len(self.calls) else None


class ActivationNode(Struct, eq=False):
    """One activation at work on one call. One that is reactivated has a node for each call, with one `id`."""

    id: int
    """The number of the activation; 0 is the user. Numbers follow timing, `path` does not."""
    agent: str
    """The name of its agent."""
    caller: int = 0
    """The activation that called it."""
    call: str = ""
    """The id of the call that it is; empty for the user."""
    path: str = ""
    """The places of the calls that led to it: `1.c1/2.c3`. The same in every replay; empty for the user."""
    task_id: str = ""
    """The thread that it works in."""
    opening: Message | None = None
    """What the call asks of it; None for the user."""
    started_at: float = 0.0
    """When the call started."""
    ended_at: float | None = None
    """When it returned; None while it works."""
    outcome: str = ""
    """How the call ended; empty while it works."""
    reason: str = ""
    """Why it ended so, when that needs saying."""
    content: str = ""
    """What it returned."""
    turn: int = 0
    """The number of its latest turn; of one that was reactivated they go on."""
    turns: list[TurnNode] = field(default_factory=list)
    """Its turns on this call."""
    inbox: list[Message] = field(default_factory=list)
    """Messages that it has not taken."""
    data: dict[str, Any] = field(default_factory=dict)
    """What its hooks and its action recorded."""
    own: UsageTotals = field(default_factory=UsageTotals)
    """Its own model calls."""
    total: UsageTotals = field(default_factory=UsageTotals)
    """These, and those of every activation below it that has returned."""
    prefix: str = ""
    """Digest of the system prompt and the tools that its model was told last."""
    reactivated: bool = False
    """It was dormant before, and goes on with its transcript."""

    @property
    def current(self) -> TurnNode | None:
        """Its latest turn on this call."""
        return self.turns[-1] if self.turns else None

    @property
    def asked(self) -> str:
        """The text of what the call asks of it."""
        return self.opening.content if self.opening is not None else ""

    @property
    def request(self) -> str:
        """The id of the user's request that it works for."""
        return f"0/{self.path.partition('/')[0]}" if self.path else ""

    def path_of(self, effect_id: str) -> str:
        """The path of one of its effects."""
        place = effect_id.partition("/")[2]
        return f"{self.path}/{place}" if self.path else place


def deliver(activation: ActivationNode, message: Message) -> None:
    """Put a message into an inbox: behind those of its priority, before those that can wait longer."""
    inbox = activation.inbox
    if not inbox or inbox[-1].priority <= message.priority:
        inbox.append(message)
    else:
        insort(inbox, message, key=attrgetter("priority"))


class LogEntry(Struct, frozen=True):
    """A message between agents."""

    request: str
    """The id of the user's request that it belongs to."""
    message: Message
    """The message."""


LOGGED = 10_000
"""Messages of a log; when there are more, the older half is forgotten."""


def log_message(log: list[LogEntry], request: str, message: Message) -> None:
    """Note what an agent said to another."""
    log.append(LogEntry(request, message))
    if len(log) > LOGGED:
        del log[: LOGGED // 2]


class DeadLetter(Struct, frozen=True):
    """A message that could not be delivered."""

    activation: int
    """Whom it was for; 0 when there is none of that number."""
    message: Message
    """The message."""
    reason: str
    """Why."""


class ToolsetNode(Struct, frozen=True):
    """A toolset, as its provider was last known."""

    name: str
    """Its name."""
    tools: tuple[str, ...] = ()
    """The names of what it offers; while it cannot be reached, of what it offered last."""
    reason: str = ""
    """Why its provider cannot be reached; empty: it can."""
