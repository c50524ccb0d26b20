"""Events: the closed set of what can happen in a run, and their codec.

The journal is the list of these records; the state is their fold. Nothing in an event is code or a type
name. History is never rewritten: events of an earlier format are read as today's by `format2`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, get_args

import msgspec
from msgspec import Struct

from antiphon.errors import JournalTooNew
from antiphon.kernel.facts import format2
from antiphon.kernel.facts.options import Options
from antiphon.values.codec import encode_value
from antiphon.values.limits import Limits, RunLimits
from antiphon.values.message import Attachment, FileChange, Message, ToolCall
from antiphon.values.model import ChatMessage, Reply, Usage
from antiphon.values.policy import Grant, Policy, StandingRule
from antiphon.values.result import Failure, Incomplete, Outcome
from antiphon.values.tool.offer import ToolOffer

FORMAT = 3
"""The number of the format that these events are."""

# -- what an effect is --------------------------------------------------------------------------


WHOLE: Final = 1.0
"""All of a token. What is stored leaves a default out by its identity, and so this object, no other 1.0."""


class ModelEffect(Struct, frozen=True, gc=False, tag="model", tag_field="kind", omit_defaults=True):
    """A model is asked."""

    model: str
    """The name that the journal and the prices know it by."""
    digest: str
    """Exactly what is asked: 22 base64 characters of BLAKE2b over the prefix, the conversation and what
    is asked beside it."""
    held_tokens: int
    """The most that the call may use."""
    purpose: Literal["reply", "compact", "final"] = "reply"
    """`compact` asks for a summary of the conversation, `final` for a last word at a limit."""
    prefix: str = ""
    """Digest of the prompt prefix, a blob, where it differs from the activation's last one."""
    held_nano_usd: int = 0
    """The most that the call may cost, in nano-USD; 0 when the price is unknown."""
    fallback: int = 0
    """Which of the agent's models it is, 0 the first."""
    question: str = ""
    """What is asked beside the conversation."""
    reason: str = ""
    """Why this is the final call, or a cheaper model is asked."""
    oldest: int = 0
    """Of a compaction, how many of the oldest messages it is about; 0: all that can be summed up."""
    cached_share: float = WHOLE
    """What part of a token one counts for limits that is read from the provider's cache."""


class ToolEffect(Struct, frozen=True, gc=False, tag="tool", tag_field="kind", omit_defaults=True):
    """A tool runs."""

    name: str
    digest: str = ""
    """The tool's contract as it was; empty where it is the one of the run's manifest."""
    arguments: str = ""
    """The canonical JSON that binds; empty where the call says the same."""
    allowed: bool = False
    """An instant permission, for a tool with side effects."""
    finishes: bool = False
    """Its result ends the activation."""
    repaired: bool = False
    """What the model wrote was no JSON: `arguments` is what it was read as."""
    labels: tuple[str, ...] = ()
    """What its result carries, however it ends."""


class CallEffect(Struct, frozen=True, gc=False, tag="call", tag_field="kind", omit_defaults=True):
    """An agent is called: the effect is the callee's activation."""

    agent: str
    digest: str
    """The prompt prefix of the callee, a blob."""
    arguments: str = ""
    """AgentCall as JSON; empty where the call says the same."""
    limits: Limits | None = None
    """The callee's own."""
    background: bool = False
    """Its turn does not wait for it."""
    shown: str = ""
    """What the caller is shown at once of a call in the background."""
    finishes: bool = False
    """A handoff: the callee's result is the caller's own."""
    stays_dormant: bool = False
    """When it has returned, the callee keeps its conversation for the next call."""
    reactivates: int = 0
    """The dormant activation that goes on, 0 for a new one."""
    queued: bool = False
    """Of a request: that activation works on an earlier one, so this begins with a message that says so."""
    own_model: bool = False
    """An action or a tool asks the model of its own agent: the callee only talks to that; for a tool it has
    no tools."""
    outside: int = 0
    """Of a handoff, how many of the innermost ledger scopes the callee does not stand on."""
    breach: str = ""
    """Of a handoff, the limit that the caller has reached."""
    by: str = ""
    """The hook that put it in the place of a tool call."""
    cut_off: bool = False
    """A tool waits for it that is not run again: who lets go of the run meanwhile cuts that off."""


class ApprovalEffect(Struct, frozen=True, gc=False, tag="approval", tag_field="kind", omit_defaults=True):
    """A person is asked whether a tool may run."""

    name: str
    arguments: str
    digest: str
    text: str = ""
    """Why it needs approval."""
    detaches: tuple[str, ...] | None = ()
    """Planned calls above that go on in the background meanwhile; None in format 2: the fold derived it."""
    deadline: float | None = None
    """Unix seconds when it ends without an answer; None: it waits for ever."""
    by: str = ""
    """The hook or the policy that wants a person asked."""


class QuestionEffect(Struct, frozen=True, gc=False, tag="question", tag_field="kind", omit_defaults=True):
    """A person is asked something."""

    text: str
    detaches: tuple[str, ...] | None = ()
    """See ApprovalEffect."""
    options: tuple[str, ...] = ()
    """One of these is the answer; empty for no such choice."""
    schema: dict[str, Any] | None = None
    """The JSON Schema that an answer must fit, as JSON; None: any text is one."""
    deadline: float | None = None
    """See ApprovalEffect."""
    tool: str = ""
    """The outside tool whose call this is: the answer is its result."""
    arguments: str = ""
    """Of such a call, canonical JSON."""
    call_id: str = ""
    """Of such a call, as the model numbered it."""
    finishes: bool = False
    """The answer ends the activation."""
    labels: tuple[str, ...] = ()
    """Of such a call, what its result carries."""
    cut_off: bool = False
    """See CallEffect."""


class LimitEffect(Struct, frozen=True, gc=False, tag="limit", tag_field="kind", omit_defaults=True):
    """A person is asked to allow as much again."""

    text: str
    scope: int = 0
    """Whose limit it is: 0 the innermost ledger scope, and so on outwards."""
    detaches: tuple[str, ...] | None = ()
    """See ApprovalEffect."""
    deadline: float | None = None
    """See ApprovalEffect."""
    joins: str = ""
    """The open question about the same limit whose answer is this one's too; nobody is asked again."""


class TimerEffect(Struct, frozen=True, gc=False, tag="timer", tag_field="kind", omit_defaults=True):
    """An instant is waited for."""

    purpose: Literal["retry", "deadline"]
    due_at: float
    """Unix time in seconds."""
    text: str = ""
    """Which attempt follows."""


class ResultEffect(Struct, frozen=True, gc=False, tag="result", tag_field="kind", omit_defaults=True):
    """The end of a call in the background is waited for."""

    call_id: str


class RoomEffect(Struct, frozen=True, gc=False, tag="room", tag_field="kind", omit_defaults=True):
    """Room in a budget is waited for: what other calls hold must be settled first."""

    tokens: int
    nano_usd: int = 0
    after_failure: bool = False
    """Another model is to be asked after one that failed."""


class ActionEffect(Struct, frozen=True, gc=False, tag="action", tag_field="kind", omit_defaults=True):
    """The agent's own coroutine does the turn."""

    agent: str


class InstructionsEffect(
    Struct, frozen=True, gc=False, tag="instructions", tag_field="kind", omit_defaults=True
):
    """The agent's own function writes its instructions; they hold until the call has returned."""

    agent: str


class StepEffect(Struct, frozen=True, gc=False, tag="step", tag_field="kind", omit_defaults=True):
    """A durable step of an action or a tool."""

    name: str


Detail = (
    ModelEffect | ToolEffect | CallEffect | ApprovalEffect | QuestionEffect | LimitEffect | TimerEffect
    | ResultEffect | RoomEffect | ActionEffect | StepEffect | InstructionsEffect
)  # fmt: skip
HumanInput = ApprovalEffect | QuestionEffect | LimitEffect
"""What a person ends."""
HUMAN_INPUTS = frozenset(get_args(HumanInput))
Ruling = ApprovalEffect | LimitEffect
"""What a person answers with one of VERDICTS."""
VERDICTS = ("yes", "no", "always")

# -- events -------------------------------------------------------------------------------------


class Fork(Struct, frozen=True, gc=False, omit_defaults=True):
    """Where a forked run comes from."""

    origin: str
    """The run that it branched off."""
    seq: int
    """The last record taken over from there."""
    digest: str
    """The chain's digest at that record, hex."""
    edits: str = ""
    """What was changed on the way, as JSON of whoever forked."""
    shift: float = 0.0
    """Seconds to add to the instants of the origin: the time between its last record and the fork."""


class RunStarted(Struct, frozen=True, gc=False, tag="run_started", omit_defaults=True):
    """The first event of every run."""

    run_id: str
    options: Options = Options()
    data: Any = None
    """The user's own JSON."""
    manifest: str = ""
    """The blob that says what the team was made of."""
    rules: tuple[StandingRule, ...] = ()
    """Kept beside the runs, and in force in this one until it is resumed."""


class RunResumed(Struct, frozen=True, gc=False, tag="run_resumed", omit_defaults=True):
    """A new owner took the run over: whatever was in flight is now lost or done again."""

    interactive: bool = False
    manifest: str = ""
    """As of RunStarted."""
    run_id: str = ""
    """Of a fork, its own id."""
    fork: Fork | None = None
    """The run is a fork and begins here: what is in flight was not lost."""
    policy: Policy | None = None
    """Beside the one that the run was started with, until it is resumed again."""
    imported: bool = False
    """The run came from elsewhere, and this is its first owner here: nothing it was allowed there holds."""
    renamed: Mapping[str, str] = {}
    """Agents of the run that go on under another name."""
    dropped: tuple[str, ...] = ()
    """Agents whose conversations at rest are forgotten."""
    run_limits: RunLimits | None = None
    """What all requests together may use from now on, where that is no longer what it was."""
    rules: tuple[StandingRule, ...] = ()
    """As of RunStarted: those that hold now."""


class MessagePosted(Struct, frozen=True, gc=False, tag="message", omit_defaults=True):
    """A message entered an inbox, or became a dead letter."""

    message: Message
    to: int = 0
    """The activation."""
    command: int = 0
    """The number of the command it came by, 0 for none."""
    dead_letter: str = ""
    """Why it could not be delivered."""
    by: int = 0
    """The activation that published it, 0 for anyone else."""
    hook: str = ""
    """The receiver's own hook that posted it."""
    begins: str = ""
    """The queued call that its receiver, which is dormant, takes up; what it is asked stands in that."""
    traceparent: str = ""
    """Of a request, the span of whoever asked, as in the HTTP header (W3C Trace Context)."""


class TurnStarted(Struct, frozen=True, gc=False, tag="turn_started", omit_defaults=True):
    """An activation took messages from its inbox and plans its turn.

    A turn that takes none, after one that only had calls, has no such event: the next ModelEffect, whose
    id names the turn, says that it began.
    """

    activation: int
    messages: int = 0
    """How many were taken."""
    calls: tuple[ToolCall, ...] | None = None
    """What the agent's own plan has the turn do; None: the calls of the messages, or else the model is
    asked."""
    act: bool = False
    """The agent's own action does the turn."""
    input: tuple[ChatMessage, ...] | None = None
    """What the model is shown of the messages; None: as they are."""
    suffix: str = ""
    """Text shown in this turn only, after everything else."""
    offered_tools: tuple[str, ...] | None = None
    """The tools offered in this turn, None for all."""
    by: str = ""
    """The hook that decided."""
    rules: tuple[str, ...] = ()
    """Which of its own rules that hook followed, in order, each by its name and place."""


class EffectStarted(Struct, frozen=True, gc=False, tag="started", omit_defaults=True):
    """An effect began; its id says where, `detail` says what."""

    id: str
    detail: Detail


class EffectFinished(Struct, frozen=True, gc=False, tag="finished", omit_defaults=True):
    """An effect ended, once. What never started (see Outcome) has this event alone."""

    id: str
    outcome: Outcome = "completed"
    content: str = ""
    """A tool's or a call's result, a person's answer, or the instructions."""
    attachments: tuple[Attachment, ...] = ()
    reply: Reply | None = None
    """A model's."""
    reason: str = ""
    """Of any outcome but `completed`."""
    failure: Failure | None = None
    """Of a model call that failed; of an agent's call, the failure of its model that ended it."""
    usage: Usage | None = None
    """Tokens billed though there is no reply."""
    cost_nano_usd: int | None = None
    """Of a model call; None when its price is unknown."""
    finishes: bool = False
    """Its result ends the activation."""
    decided_by: str = ""
    """Who answered, or the hook or the policy that decided."""
    source: str = ""
    """Where an end comes from that nobody here performed: a run, a system."""
    arguments: str = ""
    """Of an approval, as edited."""
    command: int = 0
    """The number of the command it came by, 0 for none."""
    grant: Grant | None = None
    """Of an approval that is remembered, how far it reaches."""
    replaced_by: str = ""
    """The call that took the place of this one."""
    incomplete: Incomplete = ""
    """Of an agent's call that completed: why the content is not the whole answer."""
    trace: str = ""
    """The exception behind a failure: its type, and where in the user's code it came from."""
    files: tuple[Attachment, ...] = ()
    """Never shown to models: what a tool attached; of an agent's call, what was attached in it."""
    labels: tuple[str, ...] = ()
    """Of a tool: what its result carries beside the labels of the tool."""


class FilesChanged(Struct, frozen=True, gc=False, tag="files_changed", omit_defaults=True):
    """What a tool made of files, in the same append as the end of its call, before it."""

    id: str
    changes: tuple[FileChange, ...]


class PermissionDecided(Struct, frozen=True, gc=False, tag="permission_decided", omit_defaults=True):
    """Somebody or something decided on effect `id`."""

    id: str
    allowed: bool
    decided_by: str = ""
    reason: str = ""
    arguments: str = ""
    """What binds: as asked, or as edited."""
    remember: str = ""
    """Digest of the tool that is allowed from now on, as far as `grant` reaches."""
    grant: Grant | None = None
    rule: str = ""
    """The id of the rule that decided; `decided_by` made it."""


class StateChanged(Struct, frozen=True, gc=False, tag="state_changed", omit_defaults=True):
    """The data of an activation changed."""

    activation: int
    set: Mapping[str, Any] = {}
    """Values that are replaced."""
    append: Mapping[str, list[Any]] = {}
    """What lists are lengthened by."""
    by: str = ""
    """The hook that decided; empty for an action."""


class TranscriptCompacted(Struct, frozen=True, gc=False, tag="transcript_compacted", omit_defaults=True):
    """What a model is shown from now on; the journal keeps everything."""

    activation: int
    retain: str = ""
    summary: str = ""
    next: str = ""
    """With `retain` and `summary` what stands for what was said; all empty when the reply was of no use."""
    last_turns: int = 0
    """Turns that stay word for word."""
    trimmed: int = 0
    """How many of the oldest tool results are shown as a handle only."""
    effect: str = ""
    """The model call that wrote the summary."""
    oldest: int = 0
    """How many of the oldest messages the summary stands for; 0: see `last_turns`."""


class TurnFinished(Struct, frozen=True, gc=False, tag="turn_finished", omit_defaults=True):
    """A turn is over."""

    activation: int
    another_turn: bool = False
    """Another one follows at once."""
    reminder: str = ""
    """Said to the model first."""
    by: str = ""
    """The hook that decided."""
    rules: tuple[str, ...] = ()
    """Which of its own rules that hook followed, in order, each by its name and place."""


class CancelRequested(Struct, frozen=True, gc=False, tag="cancel_requested", omit_defaults=True):
    """Somebody wants the effect `target` and all under it to stop; empty: every request."""

    target: str = ""
    reason: str = ""
    command: int = 0


class DrainStarted(Struct, frozen=True, gc=False, tag="drain_started", omit_defaults=True):
    """The owner leaves in good order: until the run is resumed nothing new starts in it."""

    not_begun: tuple[str, ...] = ()
    """Tools with side effects that had started on record and did not begin, nor will under this owner."""


class ToolsetOffered(Struct, frozen=True, gc=False, tag="toolset", omit_defaults=True):
    """What a toolset offers from now on: agents that have it see that from their next turn on."""

    name: str
    tools: tuple[ToolOffer, ...] | None = None
    """None: as before; nothing, if there was no offer yet."""
    reason: str = ""
    """Why its provider cannot be reached now; its tools stay listed. Empty: it can."""


class RunClosed(Struct, frozen=True, gc=False, tag="run_closed", omit_defaults=True):
    """The last event of a run that was closed; nothing follows."""

    reason: str = ""


Event = (
    RunStarted | RunResumed | MessagePosted | TurnStarted | EffectStarted | EffectFinished | FilesChanged
    | PermissionDecided | StateChanged | TranscriptCompacted | TurnFinished | CancelRequested | DrainStarted
    | ToolsetOffered | RunClosed
)  # fmt: skip

_decoder = msgspec.json.Decoder(list[Event])


encode = encode_value
"""The events of one append as JSON."""


def decode(body: bytes) -> list[Event]:
    """What `encode` wrote, now or in format 2. Raises JournalTooNew for a tag this version does not know."""
    try:
        if format2.is_format2(body):
            return msgspec.convert(format2.upcast(body), list[Event])
        return _decoder.decode(body)
    except (msgspec.ValidationError, KeyError) as error:
        raise JournalTooNew(
            f"a record holds something this version does not know ({error}); upgrade Antiphon"
        ) from error
