"""What a frame says: one record of a run, as flat JSON whose parts name each other by number and id."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from antiphon.values.limits import Limits, RunLimits
from antiphon.values.model import Usage
from antiphon.values.result import Failure
from antiphon.view.nodes import Decision


class CutText(Struct, frozen=True, gc=False, omit_defaults=True):
    """A text, or its beginning."""

    text: str = ""
    length: int = 0
    """Characters of all of it, where it was cut; else 0."""


class FileFrame(Struct, frozen=True, gc=False, omit_defaults=True):
    """A file beside a text."""

    media_type: str
    name: str = ""
    url: str = ""
    bytes: int = 0
    data: str = ""
    """What it holds as base64, where the reader was to have that and it is not too long; else empty."""


class CallFrame(Struct, frozen=True, gc=False, omit_defaults=True):
    """A call that a model or a plan wrote."""

    id: str
    name: str
    arguments: CutText


class MessageFrame(Struct, frozen=True, omit_defaults=True):
    """A message between agents, or from the user."""

    id: str
    kind: str
    """`forward` or `return`."""
    sender: str
    receiver: str
    content: CutText
    call_id: str = ""
    task_id: str = ""
    intent: str = ""
    topic: str = ""
    source: str = ""
    files: tuple[FileFrame, ...] = ()
    labels: tuple[str, ...] = ()
    """What it carries, such as `untrusted`."""


class CalleeFrame(Struct, frozen=True, omit_defaults=True):
    """The activation that a call is."""

    number: int
    agent: str
    path: str
    """The places of the calls that led to it; the same in every replay."""
    opening: MessageFrame
    task_id: str = ""
    reactivated: bool = False
    """It was dormant before, and goes on with its transcript and its data."""


class ReplyFrame(Struct, frozen=True, omit_defaults=True):
    """What a model answered."""

    content: CutText
    reasoning: CutText = CutText()
    calls: tuple[CallFrame, ...] = ()
    stop: str = ""
    model: str = ""
    """As the provider names it."""


class RunStartFrame(Struct, frozen=True, tag="run_started", omit_defaults=True):
    """The run began."""

    run_id: str
    limits: Limits
    """Of each request."""
    run_limits: RunLimits | None = None
    policy: str = "open"
    """The preset that rules on tools."""


class RunResumeFrame(Struct, frozen=True, tag="run_resumed", omit_defaults=True):
    """A new owner took the run over; or a fork begins here."""

    run_id: str = ""
    """Of a fork, its own id: what came before was taken over from `origin`, up to the record `seq`."""
    origin: str = ""
    seq: int = 0


class RunDrainFrame(Struct, frozen=True, tag="run_drained"):
    """The owner leaves in good order: nothing new starts until the run is resumed."""


class RunCloseFrame(Struct, frozen=True, tag="run_closed", omit_defaults=True):
    """The run was closed; nothing follows."""

    reason: str = ""


class ArrivalFrame(Struct, frozen=True, tag="message_arrived"):
    """A message entered an inbox, other than the one that a call opens with."""

    activation: int
    message: MessageFrame


class DeadLetterFrame(Struct, frozen=True, tag="dead_letter"):
    """A message could not be delivered."""

    activation: int
    message: MessageFrame
    reason: str


class TurnStartFrame(Struct, frozen=True, tag="turn_started", omit_defaults=True):
    """A turn began."""

    activation: int
    turn: int
    messages: tuple[MessageFrame, ...] = ()
    """Those that it took from the inbox."""
    planned: bool = False
    acts: bool = False
    suffix: CutText = CutText()
    """Text that the model is shown in this turn only."""
    begun_by: str = ""
    """The hook that said how it begins: `plan_turn` or `prepare_input`."""
    rules: tuple[str, ...] = ()
    """Which of its own rules that hook followed, each as `id (file:line)`."""


class TurnEndFrame(Struct, frozen=True, tag="turn_ended", omit_defaults=True):
    """A turn ended."""

    activation: int
    turn: int
    another_turn: bool = False
    reminder: str = ""
    """What the model was told, to make it continue."""
    ended_by: str = ""
    """The hook that said what follows: `end_turn`."""
    rules: tuple[str, ...] = ()
    """Which rules its hooks followed, those of its beginning first."""


class OutsideCallFrame(Struct, frozen=True, gc=False, omit_defaults=True):
    """The call of an outside tool: whoever runs the request does it, and answers with its result."""

    tool: str
    call_id: str = ""
    """As the model numbered it."""
    finishes: bool = False
    """Its result ends the agent's task."""


class EffectStartFrame(Struct, frozen=True, tag="effect_started", omit_defaults=True):
    """An effect started. A request that waits for those before it has no `callee`; it comes once more, with
    one, when it begins."""

    activation: int
    turn: int
    id: str
    kind: str
    name: str = ""
    purpose: str = ""
    text: CutText = CutText()
    """What a person is asked; of a retry, which attempt follows."""
    arguments: CutText = CutText()
    callee: CalleeFrame | None = None
    background: bool = False
    held_tokens: int = 0
    prefix: str = ""
    """Of a model call: the digest of its system prompt and tools, a blob of the run."""
    due_at: float = 0.0
    """When a timer ends, or a person's time to answer, Unix seconds; 0 for never."""
    options: tuple[str, ...] = ()
    """Of a question: one of these is the answer."""
    schema: dict[str, Any] | None = None
    """Of a question: the JSON Schema that the answer must fit."""
    decision: Decision | None = None
    failure: Failure | None = None
    """Of a retry, why the attempt before it gave no reply."""
    rule: str = ""
    """Of an approval: the hook or the policy that wants a person asked."""
    joins: str = ""
    """Of a limit: the open question whose answer is this one's too."""
    outside: OutsideCallFrame | None = None
    """Of a question that is the call of an outside tool, with its `arguments`; the answer is its result."""


class EffectEndFrame(Struct, frozen=True, tag="effect_ended", omit_defaults=True):
    """An effect ended; one that never started says here what it was."""

    activation: int
    turn: int
    id: str
    kind: str
    name: str = ""
    purpose: str = ""
    outcome: str = ""
    reason: str = ""
    content: CutText = CutText()
    arguments: CutText = CutText()
    """Of a call that never started."""
    files: tuple[FileFrame, ...] = ()
    failure: Failure | None = None
    decision: Decision | None = None
    reply: ReplyFrame | None = None
    usage: Usage | None = None
    """As the provider reported it; None when it did not."""
    nano_usd: int = 0
    unpriced: bool = False
    """Its price is not known."""
    by: str = ""
    """The person who answered."""
    finishes: bool = False
    labels: tuple[str, ...] = ()
    """What its result carries, such as `untrusted` and `private`."""


class DecisionFrame(Struct, frozen=True, tag="decided"):
    """Somebody decided whether a call may be done, or a rule did after it was asked for."""

    activation: int
    id: str
    """The effect that the call is, or would be."""
    decision: Decision


class DataFrame(Struct, frozen=True, tag="data_changed", omit_defaults=True):
    """The data of an activation changed; of activation 0 it is the whole run's."""

    activation: int
    set: Mapping[str, Any] = {}
    append: Mapping[str, list[Any]] = {}
    left_out: Mapping[str, int] = {}
    """Values that are too large for a frame, and their size in bytes of JSON."""
    by: str = ""
    """The hook that changed them; empty for an action."""


class TranscriptFrame(Struct, frozen=True, tag="transcript_changed", omit_defaults=True):
    """What a model is shown was shortened."""

    activation: int
    trimmed: int = 0
    compacted: bool = False


class ToolsetFrame(Struct, frozen=True, tag="toolset_changed", omit_defaults=True):
    """A toolset offers other tools, or its provider has come up or gone."""

    name: str
    tools: tuple[str, ...] = ()
    """What it offers; while it cannot be reached, what it offered last."""
    reason: str = ""
    """Why it cannot be reached; empty: it can."""


class ChangedFileFrame(Struct, frozen=True, gc=False, omit_defaults=True):
    """A file that a call made, changed or removed."""

    path: str
    """In its folder, with `/` between names."""
    folder: str
    change: str
    """`created`, `changed` or `deleted`."""
    line: int = 1
    """Of `before` and `after`, which line of the file their first one is."""
    before: CutText | None = None
    """The lines that differ, with a few around them. None: there was no file, or it is no text."""
    after: CutText | None = None
    """The same as they became. None: there is no file any more, or it is no text."""
    bytes: int = 0
    """Of the file as it is now, where that is on record."""
    mode: int = 0
    """Its permission bits, where they are others than before; else 0."""


class FilesFrame(Struct, frozen=True, tag="files_changed", omit_defaults=True):
    """A call changed files; its end follows."""

    activation: int
    id: str
    files: tuple[ChangedFileFrame, ...] = ()
    left_out: int = 0
    """How many more there were."""


class CancelFrame(Struct, frozen=True, tag="cancel_requested", omit_defaults=True):
    """Somebody wants an effect and all below it to stop; without a target, every request."""

    target: str = ""
    reason: str = ""


ChangeFrame = (
    RunStartFrame | RunResumeFrame | RunDrainFrame | RunCloseFrame | ArrivalFrame | DeadLetterFrame
    | TurnStartFrame | TurnEndFrame | EffectStartFrame | EffectEndFrame | DecisionFrame | DataFrame
    | TranscriptFrame | CancelFrame | ToolsetFrame | FilesFrame
)  # fmt: skip
"""What a record changed; `type` says which."""


class Frame(Struct, frozen=True):
    """One record."""

    seq: int
    at: float
    """Unix seconds."""
    changes: tuple[ChangeFrame, ...]
