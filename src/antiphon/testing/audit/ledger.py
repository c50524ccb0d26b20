"""The audit's own ledger: what a scope may use, has used, and may still have to pay."""

from __future__ import annotations

from collections.abc import Container, Mapping
from math import inf

from msgspec import Struct, field
from msgspec.structs import replace

from antiphon.kernel.facts.events import (
    ActionEffect,
    CallEffect,
    Detail,
    EffectFinished,
    EffectStarted,
    Event,
    HumanInput,
    LimitEffect,
    MessagePosted,
    ModelEffect,
    QuestionEffect,
    RunResumed,
    StateChanged,
    ToolEffect,
    TurnFinished,
    TurnStarted,
)
from antiphon.kernel.facts.ledger import NANO, raised
from antiphon.values.form import fitted
from antiphon.values.limits import Limits
from antiphon.values.message import Message, ToolCall


class AuditLedger(Struct):
    """overrun, overpaid: what of `spent` tokens and `paid` nano-USD was billed beyond what was held."""

    limits: Limits
    parent: int = 0
    spent: int = 0
    overrun: int = 0
    held: int = 0
    paid: int = 0
    overpaid: int = 0
    reserved: int = 0
    calls: int = 0
    activations: int = 0
    first: Limits | None = None

    def hold(self, started: ModelEffect) -> None:
        """A model call began."""
        self.held += started.held_tokens
        self.reserved += started.held_nano_usd

    def settle(self, started: ModelEffect, event: EffectFinished) -> None:
        """A model call ended."""
        used = _used(started, event)
        self.held -= started.held_tokens
        self.spent += used
        self.overrun += max(used - started.held_tokens, 0)
        paid = _paid(started, event, used)
        self.reserved -= started.held_nano_usd
        self.paid += paid
        self.overpaid += max(paid - started.held_nano_usd, 0)

    def raised(self) -> None:
        """Somebody allowed as much again."""
        self.first = self.first or self.limits
        self.limits = raised(self.limits, self.first)

    def limited(self, limits: Limits) -> None:
        """Other limits hold from now on; what is spent and held already is not beyond them."""
        usd = None if limits.usd is None else max(limits.usd, (self.paid + self.reserved) / NANO)
        self.first, self.limits = None, replace(
            limits, usd=usd,
            tokens=_at_least(limits.tokens, self.spent + self.held),
            calls=_at_least(limits.calls, self.calls),
            activations=_at_least(limits.activations, self.activations),
        )  # fmt: skip

    def excess(self, started: type | None = None) -> str:
        """What is beyond the limits, if anything. started: the effect that has just begun.

        A model call begins only where all that is spent and held has room; any other call only where a scope
        that stops at its limits is within them. At other times what exceeded a hold may be beyond.
        """
        usd = None if self.limits.usd is None else round(self.limits.usd * NANO)
        money, tokens = self.paid + self.reserved, self.spent + self.held
        if started is not ModelEffect:
            money, tokens = money - self.overpaid, tokens - self.overrun
        if started is not None and self.limits.on_breach == "stop":
            money, tokens = max(money, self.paid), max(tokens, self.spent)
        for what, used, limit in (
            ("nano-USD", money, usd),
            ("tokens", tokens, self.limits.tokens),
            ("calls", self.calls, self.limits.calls),
            ("activations", self.activations, self.limits.activations),
        ):
            if limit is not None and used > limit:
                return f"{used:,} {what} spent and held, {limit:,} allowed"
        if self.held < 0 or self.reserved < 0:
            return f"{self.held:,} tokens and {self.reserved:,} nano-USD held"
        return ""


def _at_least(limit: int | None, used: int) -> int | None:
    return None if limit is None else max(limit, used)


def _paid(started: ModelEffect, event: EffectFinished, used: int) -> int:
    """Nano-USD of a model call."""
    if event.cost_nano_usd is not None:
        return event.cost_nano_usd
    return started.held_nano_usd if used else 0


def _used(started: ModelEffect, event: EffectFinished) -> int:
    """Tokens of a model call: as billed, those from a cache at their share; else what was held, if it ran."""
    usage = event.reply.usage if event.reply is not None else event.usage
    if usage is not None:
        cached = min(usage.cache_read_tokens, usage.input_tokens)
        return usage.total - cached + round(cached * started.cached_share)
    if event.reply is not None:
        return started.held_tokens
    cut = event.failure is not None and event.failure.kind in ("disconnected", "timeout")
    return started.held_tokens if cut or event.outcome in ("interrupted", "cancelled") else 0


KERNEL_CALLS = frozenset({"finish", "get_result", "send_message"})
"""Calls that may complete without having started: the kernel does them itself."""

DONE_BY_RUNNING = frozenset({"completed", "failed", "unknown", "interrupted"})
"""Outcomes that only what has started can have."""


class AuditedActivation(Struct):
    """An activation as the audit knows it. results: how many each call of the turn has. action: its id.
    instructed: its instructions were written in this call. offered: see `OfferAudit`, when its turn began.
    labels: of all that it was ever shown."""

    agent: str
    call: str = ""
    scope: int = 0
    turn: int = 0
    busy: bool = False
    attempt: int = 0
    inbox: list[Message] = field(default_factory=list)
    taken: list[Message] = field(default_factory=list)
    acts: bool = False
    planned: bool = False
    action: str = ""
    instructed: bool = False
    calls: tuple[ToolCall, ...] = ()
    results: list[int] = field(default_factory=list)
    open: set[str] = field(default_factory=set)
    offered: Mapping[str, bool] = {}
    labels: set[str] = field(default_factory=set)

    def deliver(self, message: Message) -> None:
        """A message comes, before those that can wait longer."""
        self.inbox.append(message)
        self.inbox.sort(key=lambda each: each.priority)

    def take(self, count: int) -> list[Message]:
        """A turn takes the first messages."""
        taken = self.inbox[:count]
        del self.inbox[:count]
        self.labels.update(label for each in taken for label in each.labels)
        return taken

    def plan(self, calls: tuple[ToolCall, ...]) -> None:
        """The calls of its turn from now on."""
        self.calls, self.results = calls, [0] * len(calls)

    def unanswered(self) -> str:
        """Which call has not one result; empty where each has."""
        counted = zip(self.calls, self.results, strict=True)
        return next((f"{call.name} ({call.id}) has {n} results" for call, n in counted if n != 1), "")

    def shown(self, detail: Detail, end: EffectFinished) -> None:
        """The result of a tool, here or outside, is shown to it."""
        if isinstance(detail, ToolEffect | QuestionEffect):
            self.labels.update(detail.labels, end.labels)

    def outlived(self, detail: Detail, effect_id: str) -> str:
        """Why an action or a tool should not have ended yet; empty where it may."""
        if not isinstance(detail, ActionEffect | ToolEffect):
            return ""
        # The timer of a deadline is older than the action, and may outlast it.
        within = sorted(each for each in self.open if each.startswith(effect_id + INSIDE))
        return f"{effect_id} ended before {', '.join(within)}" if within else ""

    def misfit(self, detail: Detail, end: EffectFinished, at: float, open_now: Container[str]) -> str:
        """Why something that people were asked should not have ended so at that time; empty where it may."""
        if not isinstance(detail, HumanInput):
            return ""
        if type(detail) is LimitEffect and detail.joins:
            early = detail.joins in open_now and end.outcome != "cancelled"
            return f"{end.id} ended before {detail.joins}, whose answer it waits for" if early else ""
        nobody = not (end.decided_by or end.source or end.command)
        if end.outcome == "limit" and nobody and at < (inf if detail.deadline is None else detail.deadline):
            return f"{end.id} ended for want of an answer while there was time for one"
        if type(detail) is QuestionEffect and end.outcome == "completed":
            try:
                if fitted(end.content, detail.options, detail.schema) != end.content:
                    return f"{end.id} is answered in another form than it is read in"
            except ValueError as error:
                return f"{end.id} is answered by what does not fit: {error}"
        return ""


INVARIANTS = {
    "gapless": "rows are numbered without a gap, count their events, and their epochs never fall",
    "chain": "a row's digest covers it and everything before it",
    "started": "RunStarted comes first, once",
    "drained": "from DrainStarted to RunResumed no effect starts",
    "forked": "a fork begins after the record it names, where nothing is performed, and counts commands anew",
    "closed": "RunClosed comes last, once, and nothing is in flight then",
    "ends": "an effect starts once and ends once; what ends without a start is a call that never ran",
    "parents": "what happens, happens to a live activation; a call ends after everything under it",
    "turns": "turns of an activation follow one another, and ids name the turn and attempt they are in",
    "results": "when a turn ends, every call of it has exactly one result",
    "inbox": "a delivered message is taken, or waits while its receiver rests, or becomes a dead letter",
    "action": "an action and what it began stand in its own turn, what a tool began stands in that tool, and "
    "ends before it; what an action published came before its end",
    "decided": "what a hook decided names a hook that decides such things, and its rules stand with it alone",
    "instructions": "instructions are written once in a call, before its model is first asked in that turn",
    "offered": "a tool of a toolset that starts was on offer when its turn began",
    "command": "a command is applied once, in order",
    "view": "only a living activation's view of its conversation is shortened",
    "permission": "no acting tool starts unless allowed, with the arguments that were allowed",
    "labels": "what an agent publishes has the labels of what it was shown; for one that was shown something "
    "untrusted and something private no tool acts unless a person allowed that call",
    "answers": "an answer fits the form that was asked for, and comes before it counts for those who joined; "
    "who has time to answer has all of it",
    "limits": "whenever something starts, tokens and money spent and held, calls and activations are within "
    "every scope's limits; only what a provider billed beyond its hold may exceed them",
}
"""What is checked, by name."""


class InvariantBroken(AssertionError):
    """A journal tells of something that must not be; `invariant` is a key of INVARIANTS."""

    def __init__(self, run_id: str, seq: int, invariant: str, text: str) -> None:
        super().__init__(f"Run {run_id}, record {seq}, {invariant}: {text} ({INVARIANTS[invariant]})")
        self.run_id, self.seq, self.invariant = run_id, seq, invariant


INSIDE = ":"
"""The kind letter of what began inside an action or a tool."""


def place(effect_id: str) -> tuple[int, int, str, int] | None:
    """Activation, turn, kind letter and number of an effect id; None for what is none."""
    try:
        activation, rest = effect_id.split("/")
        turn, _, where = rest.partition(".")
        if ":" in where:
            return int(activation), int(turn), INSIDE, 0
        if where in ("x", "i"):
            return int(activation), int(turn), where, 0
        return int(activation), int(turn), where[0], int(where[1:].removesuffix("?"))
    except (ValueError, IndexError):
        return None


HOOKS: dict[type, frozenset[str]] = {
    TurnStarted: frozenset({"plan_turn", "prepare_input"}),
    TurnFinished: frozenset({"end_turn"}),
    StateChanged: frozenset({"plan_turn", "prepare_input", "intercept_call", "end_turn"}),
    CallEffect: frozenset({"intercept_call"}),
}
"""By event or detail, the hooks that may have decided it."""


def misattributed(event: Event) -> str:
    """What an event says of who decided and cannot be; empty for nothing."""
    what = event.detail if isinstance(event, EffectStarted) else event
    by, known = getattr(what, "by", ""), HOOKS.get(type(what))
    if known is not None and by and by not in known:
        return f"{type(what).__name__} by {by!r}"
    if isinstance(event, TurnStarted | TurnFinished) and event.rules and not by:
        return f"{type(event).__name__} with rules and no hook"
    hook = event.hook if isinstance(event, MessagePosted) else ""
    return f"a message of the hook {hook!r}" if hook and hook not in ("prepare_input", "end_turn") else ""


def ran(outcome: str, called: str = "") -> bool:
    """Whether an outcome says that something ran: `called`, where it is a call."""
    return outcome in DONE_BY_RUNNING and called not in KERNEL_CALLS


def another_team(
    event: RunResumed, seats: dict[int, AuditedActivation],
    resting: dict[tuple[int, str], tuple[int, AuditedActivation]], keeping: dict[str, tuple[int, str]],
    opened: dict[str, EffectStarted],
) -> None:  # fmt: skip
    """Agents go on under the names that an event gives them, or are forgotten."""
    new = event.renamed
    for seat in (*seats.values(), *(each for _, each in resting.values())):
        seat.agent = new.get(seat.agent, seat.agent)
    kept = {(caller, new.get(name, name)): each for (caller, name), each in resting.items()
            if name not in event.dropped}  # fmt: skip
    resting.clear()
    resting.update(kept)
    for call, (caller, name) in keeping.items():
        keeping[call] = caller, new.get(name, name)
    for effect_id, each in opened.items():
        if type(each.detail) is CallEffect:
            detail = replace(each.detail, agent=new.get(each.detail.agent, each.detail.agent))
            opened[effect_id] = replace(each, detail=detail)
