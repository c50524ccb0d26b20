"""The call tree of a run as it is drawn: the run tree, with what agents say and what they are called."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from heapq import heappop, heappush

from antiphon import Record, ReplyDelta
from antiphon.view import RunTree
from antiphon.view.changes import (
    Change,
    DataChange,
    EffectEnd,
    EffectStart,
    MessageArrival,
    TurnEnd,
)
from antiphon.view.nodes import ActivationNode, DeadLetter, EffectNode, ModelUse
from antiphon.view.wording import told

COMPACT = "compact"
"""The intent of a request, and the purpose of a model call, that only shorten a conversation."""
TAIL = 400
"""Characters kept of a text that is being written."""
_WRITING = {"text": "writing", "reasoning": "thinking"}
ASKING = "asking"
"""What a branch does while nothing has come of its model's reply."""


@dataclass(eq=False)
class Remark:
    """Something that was said: a message from `sender`, or, without one, an agent's own words."""

    text: str
    sender: str = ""


@dataclass(eq=False)
class CallBranch:
    """An activation at work on one call: what it did so far, a row each; a call of an agent has a branch.

    doing: what its model is writing; empty when it is not asked. asked_at: when it was asked, or had its turn
    to be. queue_place: its place in the line before the model, 0 when it is asked. tail: the end of what it
    wrote. label: what it is called, apart from others of its name that are at work too. said: the text of
    this turn's reply, if it called nothing.
    """

    node: ActivationNode
    label: str
    rows: list[EffectNode | Remark] = field(default_factory=list)
    doing: str = ""
    tail: str = ""
    effect: str = ""
    said: str = ""
    asked_at: float = 0.0
    queue_place: int = 0


class CallTree:
    """Take in a run's items in order.

    run: the run's tree. root: the user's branch, whose calls are the requests. branches: by activation.
    progress: how far tools at work say that they have come, by effect. inside: by tool, the rows of what it
    began.
    changes: what the last record changed. spoken: who said what at the end of its last turn, once it shows
    that its task goes on after it; only until the next record.
    """

    def __init__(self) -> None:
        self.run = RunTree()
        self.root = CallBranch(self.run.user, self.run.user.agent)
        self.branches: dict[int, CallBranch] = {0: self.root}
        self.changes: tuple[Change, ...] = ()
        self.spoken: tuple[CallBranch, str] | None = None
        self.progress: dict[str, str] = {}
        self.inside: dict[str, list[EffectNode | Remark]] = {}
        self._calls: dict[str, CallBranch] = {}
        self._free: dict[str, list[int]] = {}
        self._ended: CallBranch | None = None

    @property
    def change(self) -> Change | None:
        """What the last record tells; that a turn ended or began with it goes without saying."""
        return self.changes[-1] if self.changes else None

    @property
    def requests(self) -> list[CallBranch]:
        """The user's requests, first to last."""
        found = [self.called(row) for row in self.root.rows if isinstance(row, EffectNode)]
        return [each for each in found if each is not None]

    def called(self, effect: EffectNode) -> CallBranch | None:
        """The branch of a call of an agent; None of any other effect."""
        return self._calls.get(effect.id) if effect.callee is not None else None

    def take(self, found: Record | ReplyDelta) -> None:
        """Fold one record or piece in."""
        if isinstance(found, ReplyDelta):
            self._piece(found)
            return
        self.spoken, self.changes = None, self.run.add(found)
        for change in self.changes:
            self._speak(change)
            match change:
                case TurnEnd(activation):
                    branch = self._branch(activation)
                    self._ended = branch if branch.said else None
                case EffectStart(activation, effect):
                    self._started(self._branch(activation), effect)
                case EffectEnd(activation, effect):
                    self._finished(self._branch(activation), effect)
                case MessageArrival(activation, message):
                    branch = self._branch(activation)
                    if activation.id and message.sender != branch.node.agent:
                        branch.rows.append(Remark(message.content, message.sender))

    def _branch(self, activation: ActivationNode) -> CallBranch:
        return self.branches.get(activation.id, self.root)

    def _speak(self, change: Change) -> None:
        """What ended a turn and not the task was said on the way; a task ends in the row of its last turn."""
        branch = self._ended
        if branch is None or isinstance(change, DataChange | DeadLetter):
            return
        if isinstance(change, EffectEnd) and change.effect.id == branch.node.call:
            branch.said = ""
        elif isinstance(change, EffectEnd) and change.effect.outcome == "cancelled":
            return
        self._ended = None
        if branch.said:
            branch.rows.append(Remark(branch.said))
            self.spoken, branch.said = (branch, branch.said), ""

    def _piece(self, piece: ReplyDelta) -> None:
        branch, effect = self.branches.get(piece.activation), self.run.effects.get(piece.effect_id)
        if branch is None or effect is None or effect.ended_at is not None:
            return
        if piece.kind == "progress":
            self.progress[effect.id] = told(piece)
            return
        if piece.effect_id != branch.effect:
            branch.effect, branch.tail = piece.effect_id, ""
        if piece.kind == "queued":
            if branch.queue_place and piece.text == "0":
                branch.asked_at = time.time()
            branch.queue_place = int(piece.text)
        elif piece.kind == "call_name":
            branch.doing, branch.tail = "calling", piece.text
        elif piece.kind in _WRITING:
            doing = _WRITING[piece.kind]
            branch.tail = ((branch.tail if branch.doing == doing else "") + piece.text)[-TAIL:]
            branch.doing = doing

    def _started(self, branch: CallBranch, effect: EffectNode) -> None:
        if effect.model is not None:
            branch.doing, branch.tail, branch.effect = ASKING, "", effect.id
            branch.asked_at, branch.queue_place = effect.began_at, 0
        elif effect.has_row:
            # What an action does is shown; that it acts, or prepares, its agent's own line says.
            self._rows(branch, effect).append(effect)
        if effect.callee is not None:
            called = CallBranch(effect.callee, self._label(effect.name))
            self._calls[effect.id] = self.branches[effect.callee.id] = called

    def _rows(self, branch: CallBranch, effect: EffectNode) -> list[EffectNode | Remark]:
        return self.inside.setdefault(effect.within, []) if effect.within else branch.rows

    def _label(self, agent: str) -> str:
        """A name that no agent at work has: of several of one name the second is `name#2`, and so on."""
        free = self._free.setdefault(agent, [1])
        number = heappop(free)
        if not free:
            heappush(free, number + 1)
        return f"{agent}#{number}" if number > 1 else agent

    def _finished(self, branch: CallBranch, effect: EffectNode) -> None:
        called = self.called(effect)
        self.progress.pop(effect.id, None)
        if effect.model is not None:
            self._replied(branch, effect, effect.model)
        elif called is not None:
            agent, called.doing = called.node.agent, ""
            heappush(self._free[agent], int(called.label[len(agent) + 1 :] or 1))
        elif effect.started_at is None and not ends_task(effect):
            self._rows(branch, effect).append(effect)

    def _replied(self, branch: CallBranch, effect: EffectNode, use: ModelUse) -> None:
        branch.doing = branch.tail = ""
        reply = use.reply
        if reply is not None:
            text = reply.content.strip()
            branch.said = "" if reply.calls or effect.purpose == COMPACT else text
            if text and reply.calls:
                branch.rows.append(Remark(reply.content))
        elif effect.outcome != "cancelled":
            branch.rows.append(effect)


def ends_task(effect: EffectNode) -> bool:
    """Whether it is a `finish`: its result is shown where the agent's call ends."""
    return effect.started_at is None and effect.finishes and effect.outcome == "completed"
