"""RunState: a run, folded; and the work lists that the fold keeps beside it.

Everything is a fact that an event stated, but for two work lists: `ready` (activations that the last
events touched) and `freed` (requests in whose budget there may be room again). Losing them costs one
scan.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from math import inf
from typing import Any

from msgspec import Struct, field

from antiphon.kernel.facts.activation import Activation, LoggedMessage, OpenEffect
from antiphon.kernel.facts.ledger import LedgerScope
from antiphon.kernel.facts.options import Options
from antiphon.kernel.facts.toolsets import OfferedToolset
from antiphon.values.message import Message
from antiphon.values.model import Usage
from antiphon.values.policy import Grant, Policy, StandingRule

LOGGED = 10_000
"""Messages of the log; when there are more, the older half is forgotten."""


BUCKETS = 24
"""Spans of time in which a run's records are counted, at most."""


class Activity(Struct):
    """How many records a run had when: in spans of equal length since its first record.

    They become twice as long when there would be more than BUCKETS.
    """

    counts: list[int] = field(default_factory=list)
    """Of each span; the last one is not over."""
    span: float = 1.0
    """Seconds."""
    began: float = 0.0
    """Unix seconds."""
    until: float = -inf
    """The end of the last span."""


class Totals(Struct):
    """What a run has used so far."""

    usage: dict[str, Usage] = field(default_factory=dict)
    """Tokens by model."""
    nano_usd: int = 0
    unpriced: int = 0
    """Model calls of unknown price, which `nano_usd` lacks."""
    overruns: int = 0
    """Model calls that were billed more than was held for them."""
    scopes: tuple[LedgerScope, ...] = ()
    """The ledger scope that all requests stand on, if the run has limits of its own."""
    activity: Activity = field(default_factory=Activity)


class ModelHistory(Struct):
    """What a run has learned of its models, by name."""

    failures: dict[str, tuple[int, float]] = field(default_factory=dict)
    """How many calls failed in a row, and when the last one did."""
    too_long: dict[str, int] = field(default_factory=dict)
    """The smallest request that was found too long, by the tokens held for it: the window, as far as it is
    learned."""


class CutOutputs(Struct):
    """Tool results that a model was not shown whole, for reading by their handle."""

    texts: dict[str, str] = field(default_factory=dict)
    characters: int = 0


class OwnerInfo(Struct, frozen=True):
    """What the present owner opened the run with."""

    manifest: str = ""
    """Of its team, a blob."""
    policy: Policy | None = None
    """Beside the one of the run's options."""
    rules: tuple[StandingRule, ...] = ()
    """Kept beside the runs, in force in this one."""
    imported: bool = False
    """The run came from elsewhere, and has had an owner here."""
    draining: frozenset[str] | None = None
    """It leaves, and nothing new starts until the run is resumed; of effects that have not begun, the ids."""
    toolsets: Mapping[str, OfferedToolset] = {}
    """What the toolsets of its team offer, by name; of earlier owners' too; a new object when it changes."""
    down: Mapping[str, str] = {}
    """Toolsets whose provider cannot be reached, and why."""


class RunState(Struct):
    """A run, folded."""

    run_id: str = ""
    at: float = 0.0
    """The time of the last row, Unix seconds."""
    command: int = 0
    """The number of the last command that was applied."""
    options: Options = Options()
    owner: OwnerInfo = OwnerInfo()
    data: Any = None
    """The user's own JSON."""
    activations: dict[int, Activation] = field(default_factory=dict)
    activation_count: int = 0
    """How many there ever were."""
    dormant: dict[tuple[int, str], int] = field(default_factory=dict)
    """Callees to be called again, by caller and name."""
    open: dict[str, OpenEffect] = field(default_factory=dict)
    """Every effect in flight, by id."""
    grants: dict[str, tuple[Grant, ...]] = field(default_factory=dict)
    """Approvals that are remembered, by the digest of the tool."""
    cancelling: dict[str, str] = field(default_factory=dict)
    """Effects to stop, and why."""
    totals: Totals = field(default_factory=Totals)
    models: ModelHistory = field(default_factory=ModelHistory)
    log: list[LoggedMessage] = field(default_factory=list)
    """Messages between agents, the latest LOGGED."""
    outputs: CutOutputs = field(default_factory=CutOutputs)
    waiting: dict[str, deque[OpenEffect]] = field(default_factory=dict)
    """Waits for room in a budget, by request, in their order."""
    closed: bool = False
    ready: deque[Activation] = field(default_factory=deque)
    freed: dict[str, None] = field(default_factory=dict)


def open_span(activity: Activity, at: float) -> None:
    """Make the span of an instant, past the last one's end, the last one."""
    counts = activity.counts
    if not counts:
        # Records that no start of a run came before.
        activity.began = at
    while (place := (at - activity.began) / activity.span) >= BUCKETS:
        activity.span *= 2
        counts[:] = [sum(counts[first : first + 2]) for first in range(0, len(counts), 2)]
    counts.extend([0] * (int(place) + 1 - len(counts)))
    activity.until = activity.began + activity.span * len(counts)


def mark_ready(run: RunState, activation: Activation) -> None:
    """Let `step` look at the activation."""
    if not activation.queued:
        activation.queued = True
        run.ready.append(activation)


def forget_work(run: RunState) -> None:
    """Empty the work lists: whoever takes the run up looks at everyone."""
    for activation in run.ready:
        activation.queued = False
    run.ready.clear()
    run.freed.clear()


def room_made(run: RunState, activation: Activation) -> None:
    """Note where there may be room now that a hold of the activation was settled, or a limit of it raised."""
    if run.totals.scopes:
        # What is freed there may be anybody's; `admit` takes the last one first.
        run.freed.update(dict.fromkeys(reversed(run.waiting)))
    elif activation.request in run.waiting:
        run.freed[activation.request] = None


def log(run: RunState, request: str, message: Message) -> None:
    """Keep a message between agents."""
    run.log.append(LoggedMessage(request, message))
    if len(run.log) > LOGGED:
        del run.log[: LOGGED // 2]


def keep_outputs(run: RunState, removed: Iterable[tuple[str, str]]) -> None:
    """Keep results for reading by their handles; the oldest go when there are too many."""
    outputs = run.outputs
    for handle, text in removed:
        if handle not in outputs.texts:
            outputs.texts[handle] = text
            outputs.characters += len(text)
    while outputs.characters > run.options.outputs.kept and len(outputs.texts) > 1:
        outputs.characters -= len(outputs.texts.pop(next(iter(outputs.texts))))
