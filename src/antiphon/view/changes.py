"""What one record changes in a run tree: a reader of these needs to know nothing of events."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from antiphon.kernel.facts.events import EffectFinished, FilesChanged, Fork, ToolsetOffered
from antiphon.values.message import FileChange, Message
from antiphon.view.nodes import ActivationNode, DeadLetter, Decision, EffectNode, ToolsetNode, TurnNode


class RunStart(Struct, frozen=True):
    """The run began."""

    run_id: str
    """Its id."""


class RunResume(Struct, frozen=True):
    """A new owner took the run over; or a fork begins here, in which nothing was cut off."""

    run_id: str = ""
    """Of a fork, its own id."""
    fork: Fork | None = None
    """Of a fork, where it branched off."""


class RunClose(Struct, frozen=True):
    """The run was closed; nothing follows."""

    reason: str
    """Why, when that was said."""


class MessageArrival(Struct, frozen=True):
    """A message entered an inbox, other than the one that a call opens with."""

    activation: ActivationNode
    """Whose inbox."""
    message: Message
    """The message."""
    by: str = ""
    """The receiver's own hook that posted it."""


class TurnStart(Struct, frozen=True):
    """A turn began."""

    activation: ActivationNode
    """Whose turn."""
    turn: TurnNode
    """The turn."""


class TurnEnd(Struct, frozen=True):
    """A turn ended."""

    activation: ActivationNode
    """Whose turn."""
    turn: TurnNode
    """The turn."""


class EffectStart(Struct, frozen=True):
    """An effect started."""

    activation: ActivationNode
    """Whose effect; of a call, the caller."""
    effect: EffectNode
    """The effect."""


class CallQueued(Struct, frozen=True):
    """A request of the user waits for those before it; `EffectStart` says that it begins."""

    activation: ActivationNode
    """The user."""
    effect: EffectNode
    """The request, which has no `callee` yet."""


class EffectEnd(Struct, frozen=True):
    """An effect ended, also one that never started."""

    activation: ActivationNode
    """Whose effect; of a call, the caller."""
    effect: EffectNode
    """The effect."""
    labels: tuple[str, ...] = ()
    """What its result carries, such as `untrusted` and `private`, sorted."""


class DecisionMade(Struct, frozen=True):
    """Somebody decided whether a call may be done, or a rule did after it was asked for."""

    activation: ActivationNode
    """Whose call."""
    effect_id: str
    """The effect that the call is, or would be."""
    decision: Decision
    """The decision."""


class DataChange(Struct, frozen=True):
    """The data of an activation changed; of activation 0 it is the whole run's."""

    activation: ActivationNode
    """Whose data; `activation.data` holds the new values already."""
    set: Mapping[str, Any]
    """Values that were replaced."""
    append: Mapping[str, list[Any]]
    """Lists that became longer, and by what."""
    by: str = ""
    """The hook that changed them; empty for an action."""


class TranscriptChange(Struct, frozen=True):
    """What a model is shown was shortened: old tool results were removed, or a summary replaced messages."""

    activation: ActivationNode
    """Whose transcript."""
    trimmed: int
    """How many old tool results were removed; 0 for a compaction."""
    compacted: bool
    """A summary replaced messages. Neither: the model's summary was of no use."""


class CancelRequest(Struct, frozen=True):
    """Somebody wants an effect and all below it to stop."""

    target: str
    """The effect; empty for every request."""
    reason: str
    """Why, when that was said."""


class RunDrain(Struct, frozen=True):
    """The owner of the run leaves in good order: nothing new starts until the run is resumed."""

    not_begun: tuple[str, ...] = ()
    """Tools with side effects that are left to the next owner, since they had not begun."""


class FilesChange(Struct, frozen=True):
    """A tool has made others of some files; the end of its call follows."""

    effect: EffectNode
    """The call."""
    changes: tuple[FileChange, ...]
    """The files, as they were and as they are."""


class ToolsetChange(Struct, frozen=True):
    """A toolset offers other tools, or its provider has come up or gone."""

    toolset: ToolsetNode
    """As it is now."""
    before: str | None = None
    """Why it could not be reached before; empty: it could. None: this is the first word of it."""


def ended_labels(labels: dict[str, tuple[str, ...]], event: EffectFinished, forget: bool) -> tuple[str, ...]:
    """What the result of an effect that ended carries: what its start said, which `labels` holds, and what
    its end adds. Notes it there; forget: takes it out."""
    found = labels.pop(event.id, ())
    if event.labels:
        found = tuple(sorted({*found, *event.labels}))
    if found and not forget:
        labels[event.id] = found
    return found


def toolset_change(toolsets: dict[str, ToolsetNode], event: ToolsetOffered) -> ToolsetChange:
    """What an event of a toolset tells, and notes it in `toolsets`."""
    known = toolsets.get(event.name)
    names = known.tools if known is not None else ()
    if event.tools is not None:
        names = tuple([each.name for each in event.tools])
    node = toolsets[event.name] = ToolsetNode(event.name, names, event.reason)
    return ToolsetChange(node, None if known is None else known.reason)


def files_change(
    files: dict[str, tuple[FileChange, ...]], effects: Mapping[str, EffectNode], event: FilesChanged
) -> FilesChange:
    """What an event of changed files tells, and notes it in `files`."""
    files[event.id] = event.changes
    return FilesChange(effects[event.id], event.changes)


Change = (
    RunStart | RunResume | RunDrain | RunClose | MessageArrival | DeadLetter | TurnStart | TurnEnd
    | FilesChange | ToolsetChange
    | CallQueued | EffectStart | EffectEnd | DecisionMade | DataChange | TranscriptChange | CancelRequest
)  # fmt: skip
"""What a record tells, in terms of the tree."""
Changes = tuple[Change, ...]
