"""Events: the closed set of what can happen in a run, and their codec.

The journal is the list of these records; the state is their fold. Nothing in an event is code or
a type name, and history is never rewritten: an event whose fields change gets a new tag, and the
old one an entry in `UPCASTERS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

import msgspec
from msgspec import Struct

from antiphon.errors import NewerFormat
from antiphon.values.limits import DEFAULTS, Limits, OutputLimits
from antiphon.values.message import Attachment, Message, ToolCall
from antiphon.values.model import ChatMessage, Reply, Usage
from antiphon.values.policy import Grant, Policy
from antiphon.values.result import Outcome

Kind = Literal["model", "tool", "call", "wait", "action", "step"]
Purpose = Literal[
    "", "approval", "question", "retry", "result", "deadline", "compact", "final", "ask", "limit",
]  # fmt: skip


ASKING = frozenset({"approval", "question", "limit"})
"""Purposes of waits that a person ends."""
RULED = frozenset({"approval", "limit"})
"""Those of them that are answered `yes`, `no` or `always`."""


class Options(Struct, frozen=True, omit_defaults=True):
    """What a run was started with and keeps when it is resumed.

    attended: somebody can answer questions and approvals.
    extra: instructions added to the prompt of the entry agent, or of `all`. extra_for: the same
    for the agents named.
    """

    limits: Limits = DEFAULTS
    policy: Policy = Policy()
    attended: bool = False
    background: bool = False
    extra: str = ""
    extra_scope: Literal["entry", "all"] = "entry"
    disabled: tuple[str, ...] = ()
    extra_for: tuple[tuple[str, str], ...] = ()
    outputs: OutputLimits = OutputLimits()


class RunStarted(Struct, frozen=True, gc=False, tag=True, omit_defaults=True):
    """The first event of every run. `data` is the user's own JSON."""

    run_id: str
    options: Options = Options()
    data: Any = None


class RunResumed(Struct, frozen=True, gc=False, tag=True, omit_defaults=True):
    """A new owner took the run over: whatever was in flight is now lost or done again."""

    attended: bool = False


class MessagePosted(Struct, frozen=True, gc=False, tag=True, omit_defaults=True):
    """A message entered the inbox of activation `to`, or became a dead letter (`dead` says why).

    mail: the number of the mail it came in by, 0 for none. by: the activation that published it, 0
    for anyone else.
    """

    message: Message
    to: int = 0
    mail: int = 0
    dead: str = ""
    by: int = 0


class TurnStarted(Struct, frozen=True, gc=False, tag=True, omit_defaults=True):
    """An activation took `taken` messages from its inbox and plans its turn.

    calls: what the agent's own plan has the turn do; None: the calls of the taken messages, or else the
    model is asked. act: the agent's own action does the turn. shown: what the model is shown of the taken
    messages, None: as they are. tail: text it is shown in this turn only. only: tools offered in it.
    """

    activation: int
    taken: int = 0
    calls: tuple[ToolCall, ...] | None = None
    act: bool = False
    shown: tuple[ChatMessage, ...] | None = None
    tail: str = ""
    only: tuple[str, ...] | None = None


class EffectStarted(Struct, frozen=True, gc=False, tag=True, omit_defaults=True):
    """An effect began; its id says where: `activation/turn.place`.

    name: of the model, tool or agent. arguments: the canonical JSON that binds, where it differs
    from what the call says. digest: exactly what was asked (of a call: the agent as it was).
    head: a model's system prompt and tools, where they differ from the call's digest.
    hold: tokens held. until: when a timer ends, Unix seconds. allowed: an instant permission.
    ends: its result ends the reaction. background: the turn does not wait for it.
    limits: of a call, the callee's own. text: what a person is asked, why it is the final
    call, or which attempt follows a wait.
    cost: the most a model call may cost, in nano-USD. fallback: which of the agent's models, 0 the first.
    keep: of a call, the callee rests when it returns; continues: the resting activation it goes on with.
    scope: of a question about a limit, whose it is: 0 the innermost books, and so on outwards; of a call
    that hands over, how many of the innermost books the callee is not on.
    """

    id: str
    kind: Kind = "tool"
    name: str = ""
    purpose: Purpose = ""
    arguments: str = ""
    digest: str = ""
    head: str = ""
    hold: int = 0
    until: float = 0.0
    allowed: bool = False
    ends: bool = False
    background: bool = False
    limits: Limits | None = None
    text: str = ""
    cost: int = 0
    fallback: int = 0
    keep: bool = False
    continues: int = 0
    scope: int = 0


class EffectFinished(Struct, frozen=True, gc=False, tag=True, omit_defaults=True):
    """An effect ended, once. What never started (see Outcome) has this event alone.

    content: a tool's or a call's result, or a person's answer. reply: a model's.
    why: the reason of any outcome but `completed`; of a model, `kind: text`.
    retry_after: seconds the provider asked for. usage: tokens billed though there is no reply.
    ends: its result ends the reaction. by: who answered, with which `arguments` if edited.
    cost: of a model call, in nano-USD; None when its price is unknown. status: of a failed one, as in HTTP.
    grant: of an approval that is remembered, how far it reaches.
    """

    id: str
    outcome: Outcome = "completed"
    content: str = ""
    attachments: tuple[Attachment, ...] = ()
    reply: Reply | None = None
    why: str = ""
    retry_after: float | None = None
    usage: Usage | None = None
    ends: bool = False
    by: str = ""
    arguments: str = ""
    mail: int = 0
    cost: int | None = None
    status: int = 0
    grant: Grant | None = None


class PermissionDecided(Struct, frozen=True, gc=False, tag=True, omit_defaults=True):
    """Somebody or something ruled on effect `id`. `arguments` binds: as asked, or as edited.

    remember: digest of the tool that is allowed from now on, as far as `grant` reaches.
    """

    id: str
    allowed: bool
    by: str = ""
    why: str = ""
    arguments: str = ""
    remember: str = ""
    grant: Grant | None = None


class StateChanged(Struct, frozen=True, gc=False, tag=True, omit_defaults=True):
    """The data of an activation changed: `set` replaces values, `append` lengthens lists."""

    activation: int
    set: Mapping[str, Any] = {}
    append: Mapping[str, list[Any]] = {}


class HistoryCompacted(Struct, frozen=True, gc=False, tag=True, omit_defaults=True):
    """What a model is shown from now on; the journal keeps everything.

    retain, summary, next: the memory that stands for what was said; all empty when the model's
    answer was of no use. last_turns: turns that stay word for word. trimmed: how many of the
    oldest tool results are shown as a handle only.
    """

    activation: int
    retain: str = ""
    summary: str = ""
    next: str = ""
    last_turns: int = 0
    trimmed: int = 0


class TurnFinished(Struct, frozen=True, gc=False, tag=True, omit_defaults=True):
    """A turn is over. With `more` another follows at once; `nudge` is said to the model first."""

    activation: int
    more: bool = False
    nudge: str = ""


class CancelRequested(Struct, frozen=True, gc=False, tag=True, omit_defaults=True):
    """Somebody wants the effect `target` and all under it to stop; empty: every request."""

    target: str = ""
    why: str = ""
    mail: int = 0


class RunClosed(Struct, frozen=True, gc=False, tag=True, omit_defaults=True):
    """The last event of a run that was closed; nothing follows."""

    why: str = ""


Event = (
    RunStarted | RunResumed | MessagePosted | TurnStarted | EffectStarted | EffectFinished
    | PermissionDecided | StateChanged | HistoryCompacted | TurnFinished | CancelRequested | RunClosed
)  # fmt: skip

UPCASTERS: Mapping[type, Callable[[Any], Event]] = {}
"""Events of earlier formats: what they are read as today."""

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(list[Event])


def encode(events: list[Event]) -> bytes:
    """The events of one append as JSON."""
    return _encoder.encode(events)


def decode(body: bytes) -> list[Event]:
    """What `encode` wrote. Raises NewerFormat for a tag this version does not know."""
    try:
        events = _decoder.decode(body)
    except msgspec.ValidationError as error:
        raise NewerFormat(
            f"a record holds something this version does not know ({error}); upgrade Antiphon"
        ) from error
    if UPCASTERS:
        return [UPCASTERS[type(event)](event) if type(event) in UPCASTERS else event for event in events]
    return events


class Bill(Struct, frozen=True, gc=False):
    """What one model call is booked with."""

    tokens: int
    """Tokens that were used, or that are taken to have been."""
    cost: int
    """Nano-USD; of a call of known worst case whose bill never came, that worst case."""
    unpriced: bool
    """Tokens were used, and nobody knows what they cost."""


def bill(started: EffectStarted, event: EffectFinished) -> Bill:
    """The bill of a model call: the one rule, for the ledgers and for every reader."""
    usage = usage_of(event)
    tokens = usage.total if usage is not None else charged(started, event)
    if event.cost is not None:
        return Bill(tokens, event.cost, False)
    return Bill(tokens, started.cost if tokens else 0, bool(tokens) and not started.cost)


def usage_of(event: EffectFinished) -> Usage | None:
    """The tokens that a model's provider reported, with a reply or without; None when it did not."""
    return event.reply.usage if event.reply is not None else event.usage


def charged(started: EffectStarted, event: EffectFinished) -> int:
    """Tokens to book for a model call whose bill is unknown: all that was held, or nothing."""
    if event.outcome in ("interrupted", "cancelled") or event.why.startswith(("cut", "timeout")):
        return started.hold
    return 0


def place(effect_id: str) -> int:
    """The activation that an effect belongs to."""
    return int(effect_id[: effect_id.index("/")])
