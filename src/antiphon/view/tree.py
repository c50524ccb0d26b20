"""RunTree: a run as activations, turns and effects, with outcomes and costs, folded from its records.

    tree = RunTree.of(await conversation.records())
    for activation in tree.activations.values():
        print(activation.path, activation.agent, activation.outcome, activation.total.cost.usd)

Every reader that needs to know which activation, which call of which turn, or what it cost stands on this
tree. It is a projection of records alone, and the only one that knows what an event looks like: a live
reader adds one record at a time and is told what changed.

    for change in tree.add(record):
        match change:
            case EffectEnd(_, effect): print(effect.name, effect.outcome)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, Self

from msgspec.structs import replace

from antiphon.errors import JournalCorrupt
from antiphon.kernel.facts import ids
from antiphon.kernel.facts.agent_call import CALL_AGENT, returned
from antiphon.kernel.facts.events import (
    CallEffect,
    CancelRequested,
    DrainStarted,
    EffectFinished,
    EffectStarted,
    FilesChanged,
    Fork,
    MessagePosted,
    ModelEffect,
    PermissionDecided,
    RunClosed,
    RunResumed,
    RunStarted,
    StateChanged,
    TimerEffect,
    ToolEffect,
    ToolsetOffered,
    TranscriptCompacted,
    TurnFinished,
    TurnStarted,
)
from antiphon.kernel.facts.fold.calls import result_of
from antiphon.kernel.facts.ledger import charge_of
from antiphon.kernel.facts.records import Record
from antiphon.values.message import USER, FileChange, Message
from antiphon.values.model import Usage
from antiphon.view.changes import (
    CallQueued,
    CancelRequest,
    Changes,
    DataChange,
    DecisionMade,
    EffectEnd,
    EffectStart,
    MessageArrival,
    RunClose,
    RunDrain,
    RunResume,
    RunStart,
    TranscriptChange,
    TurnEnd,
    TurnStart,
    ended_labels,
    files_change,
    toolset_change,
)
from antiphon.view.effects import asked_of, callee_of, hand_over, node_of
from antiphon.view.nodes import (
    ActivationNode,
    Cost,
    DeadLetter,
    Decision,
    EffectNode,
    LogEntry,
    ModelUse,
    ToolsetNode,
    TurnNode,
    UsageTotals,
    deliver,
    log_message,
)
from antiphon.view.waiting import OpenCounts, count


class RunTree:
    """A run, folded from its records, the first one first.

    With `recent` it keeps only what still goes on, and the latest turn of every activation at work: enough
    for a reader that looks at changes as they come, in memory that does not grow with the run.
    """

    def __init__(self, *, recent: bool = False) -> None:
        self.run_id = ""
        """The run's id."""
        self.fork: Fork | None = None
        """Of a fork, where it branched off, the last time if its origin is one too."""
        self.data: Any = None
        """The user's own JSON that the run was started with."""
        self.started_at = 0.0
        """When the run began."""
        self.seq = 0
        """The number of the last record."""
        self.at = 0.0
        """The time of the last record."""
        self.closed = False
        """The run was closed."""
        self.reason = ""
        """Why it was closed, when that was said."""
        self.outcome = ""
        """Of the request that ended last; empty while none has."""
        self.activations: dict[int, ActivationNode] = {0: ActivationNode(0, USER)}
        """The activations by number, each at its latest call; 0 is the user, whose calls are the requests."""
        self.effects: dict[str, EffectNode] = {}
        """The effects by id; with `recent` only those that run."""
        self.requests: dict[str, EffectNode] = {}
        """The user's calls that are open."""
        self.human_inputs: dict[str, EffectNode] = {}
        """What people are asked now, oldest first."""
        self.models: dict[str, UsageTotals] = {}
        """Tokens and costs by the name of the model that was asked."""
        self.log: list[LogEntry] = []
        """Every forward and return between agents, in order; none with `recent`."""
        self.dead_letters: list[DeadLetter] = []
        """Messages that could not be delivered; none with `recent`."""
        self.traces: dict[str, str] = {}
        """By effect, the exception behind its failure, and where in the user's code; none with `recent`."""
        self.files: dict[str, tuple[FileChange, ...]] = {}
        """By effect, in order, the files that it changed; with `recent` only of those that run."""
        self.labels: dict[str, tuple[str, ...]] = {}
        """By effect, what its result carries, such as `untrusted`; with `recent` only of what still runs."""
        self.toolsets: dict[str, ToolsetNode] = {}
        """The toolsets of its agents by name: what they offer, and which cannot be reached."""
        self._recent = recent
        self._counts: dict[str, OpenCounts] = {}
        self._created = 0
        self._models: dict[str, ModelEffect] = {}
        self._dormant: dict[int, dict[str, int]] = {}
        self._keeps: set[str] = set()
        self._queued: dict[str, CallEffect] = {}
        self._decisions: dict[str, Decision] = {}

    @classmethod
    def of(cls, records: Iterable[Record]) -> Self:
        """The tree of these records, of the whole run or of its beginning.

        Raises JournalCorrupt for a record that cannot follow the ones before it.
        """
        tree = cls()
        for record in records:
            tree.add(record)
        return tree

    def add(self, record: Record) -> Changes:
        """Fold the next record in; what it changed, mostly one thing. The cost does not grow with the run.

        Raises JournalCorrupt for a record that cannot follow the ones before it.
        """
        self.seq, self.at = record.seq, record.at
        event = record.event
        try:
            return _FOLD[type(event)](self, record, event)
        except (LookupError, ValueError, TypeError, AttributeError) as error:
            what = f"{record.type} does not follow ({error!r})"
            raise JournalCorrupt(record.run_id, record.seq, what) from error

    @property
    def user(self) -> ActivationNode:
        """The user, whose calls are the requests."""
        return self.activations[0]

    @property
    def totals(self) -> UsageTotals:
        """What all model calls of the run add up to."""
        found = UsageTotals()
        for each in self.models.values():
            found.add(each)
        return found

    @property
    def state(self) -> Literal["idle", "open", "waiting", "closed"]:
        """`open` while a request is, `waiting` when a person must answer before it ends, else `idle`."""
        if self.closed:
            return "closed"
        if not self.requests:
            return "idle"
        return "waiting" if self.human_inputs else "open"

    def waits(self, request: str) -> bool:
        """Whether an open request of the user waits for a person and for nothing else: somebody is asked, and
        no model, tool or timer under it goes on. A deadline does not count, nor does a wait for a call.
        """
        return request in self._counts and self._counts[request].wait

    def _run_started(self, record: Record, event: RunStarted) -> Changes:
        self.run_id, self.data, self.started_at = event.run_id, event.data, record.at
        return (RunStart(event.run_id),)

    def _run_resumed(self, record: Record, event: RunResumed) -> Changes:
        if event.fork is not None:
            self.run_id, self.fork = event.run_id, event.fork
        return (RunResume(event.run_id, event.fork),)

    def _run_closed(self, record: Record, event: RunClosed) -> Changes:
        self.closed, self.reason = True, event.reason
        return (RunClose(event.reason),)

    # -- activations --------------------------------------------------------------------------

    def _whose(self, record: Record) -> ActivationNode:
        """The activation that a record belongs to; one whose start was not seen is made up."""
        found = self.activations.get(record.activation)
        if found is None:
            found = ActivationNode(record.activation, record.agent, record.parent, started_at=record.at)
            self.activations[record.activation] = found
        return found

    def _queued_begins(self, call_id: str, receiver: int) -> Changes:
        """A request begins that waited for those before it."""
        effect, detail = self.effects[call_id], replace(self._queued.pop(call_id), reactivates=receiver)
        self._called(self.user, TurnNode(ids.turn_of(call_id), self.at), effect, detail)
        return (EffectStart(self.user, effect),)

    def _message_posted(self, record: Record, event: MessagePosted) -> Changes:
        if event.begins:
            return self._queued_begins(event.begins, event.to)
        message, activation = event.message, self._whose(record)
        if event.dead_letter:
            if activation.inbox and activation.inbox[0].id == message.id:
                activation.inbox.pop(0)
            asked = self.human_inputs.get(message.receiver)
            if asked is not None and asked.wait is not None:
                asked.wait.refused += 1
            dead = DeadLetter(event.to, message, event.dead_letter)
            if not self._recent:
                self.dead_letters.append(dead)
            return (dead,)
        deliver(activation, message)
        if activation.id:
            self._log(activation.request, message)
        return (MessageArrival(activation, message, event.hook),)

    def _state_changed(self, record: Record, event: StateChanged) -> Changes:
        activation = self._whose(record)
        for key, value in event.set.items():
            activation.data[key] = list(value) if isinstance(value, list) else value
        for key, values in event.append.items():
            activation.data.setdefault(key, []).extend(values)
        return (DataChange(activation, event.set, event.append, event.by),)

    def _transcript_compacted(self, record: Record, event: TranscriptCompacted) -> Changes:
        return (TranscriptChange(self._whose(record), event.trimmed, bool(event.retain or event.summary)),)

    def _permission_decided(self, record: Record, event: PermissionDecided) -> Changes:
        by, rule = event.decided_by, f"rule {event.rule}" if event.rule else ""
        decision = Decision(event.allowed, by, event.reason, bool(event.remember), rule)
        self._decisions[event.id] = decision
        approval = self.effects.get(ids.approval_id(event.id))
        if approval is not None:
            approval.decision = decision
        return (DecisionMade(self._whose(record), event.id, decision),)

    # -- turns --------------------------------------------------------------------------------

    def _turn_started(self, record: Record, event: TurnStarted) -> Changes:
        activation = self._whose(record)
        messages = tuple(activation.inbox[: event.messages])
        del activation.inbox[: event.messages]
        turn = TurnNode(
            activation.turn + 1, record.at, taken=event.messages, messages=messages,
            planned=event.calls is not None, acts=event.act, shown=event.input, suffix=event.suffix,
            begun_by=event.by, rules=event.rules,
        )  # fmt: skip
        if event.calls is not None:
            turn.calls = event.calls
        elif messages and not event.act:
            turn.calls = tuple([call for each in messages for call in each.calls])
        return self._begin(activation, turn)

    def _turn_finished(self, record: Record, event: TurnFinished) -> Changes:
        activation = self._whose(record)
        turn = activation.current or TurnNode(activation.turn, record.at)
        turn.ended_at, turn.another_turn, turn.reminder = record.at, event.another_turn, event.reminder
        turn.ended_by, turn.rules = event.by, turn.rules + event.rules
        return (TurnEnd(activation, turn),)

    def _begin(self, activation: ActivationNode, turn: TurnNode) -> Changes:
        """A turn begins; one that nobody said has ended ends with that."""
        before = activation.current
        activation.turn = turn.number
        if self._recent:
            activation.turns.clear()
        activation.turns.append(turn)
        if before is None or before.ended_at is not None:
            return (TurnStart(activation, turn),)
        before.ended_at, before.another_turn = turn.started_at, True
        return TurnEnd(activation, before), TurnStart(activation, turn)

    def _enter(self, activation: ActivationNode, effect_id: str) -> tuple[TurnNode, Changes]:
        """The turn that an effect belongs to. One that was not seen to begin begins with it."""
        number, current = ids.turn_of(effect_id), activation.current
        if current is not None and number <= current.number:
            if number == current.number:
                return current, ()
            return next((each for each in activation.turns if each.number == number), current), ()
        turn = TurnNode(number, self.at)
        return turn, self._begin(activation, turn)

    # -- effects ------------------------------------------------------------------------------

    def _effect_started(self, record: Record, event: EffectStarted) -> Changes:
        activation, effect_id, detail = self._whose(record), event.id, event.detail
        turn, begun = self._enter(activation, effect_id)
        effect = node_of(effect_id, detail, turn.call_of(effect_id))
        effect.started_at = record.at
        allowed = type(detail) is ToolEffect and detail.allowed
        if self._decisions or allowed:
            effect.decision = self._decisions.pop(effect_id, Decision(True) if allowed else None)
        turn.effects.append(effect)
        self.effects[effect_id] = effect
        if labels := getattr(detail, "labels", ()):
            self.labels[effect_id] = labels
        if type(detail) is ModelEffect:
            activation.prefix = detail.prefix or activation.prefix
            effect.model = ModelUse(detail.digest, activation.prefix, detail.held_tokens)
            self._models[effect_id] = detail
        elif type(detail) is CallEffect and detail.queued:
            self._queued[effect_id] = detail
            self.requests[effect_id] = effect
            return (*begun, CallQueued(activation, effect))
        elif type(detail) is CallEffect:
            self._called(activation, turn, effect, detail)
        elif type(detail) is TimerEffect and detail.purpose == "retry":
            effect.failure = next((each.failure for each in reversed(turn.effects) if each.failure), None)
        elif effect.asks_person:
            self._asked(activation, effect)
        if activation.id:
            count(self._counts, activation.request, effect, 1, getattr(detail, "cut_off", False))
        else:
            self.requests[effect_id] = effect
        return (*begun, EffectStart(activation, effect))

    def _asked(self, activation: ActivationNode, effect: EffectNode) -> None:
        self.human_inputs[effect.id] = effect
        if effect.is_question:
            question = Message(
                "forward", activation.agent, USER, effect.text, effect.id, effect.id + ">", activation.task_id
            )
            self._log(activation.request, question)

    def _called(self, caller: ActivationNode, turn: TurnNode, effect: EffectNode, detail: CallEffect) -> None:
        """An activation begins to work on a call, or a dormant one does so again."""
        if not detail.reactivates:
            self._created += 1
        number, asked = detail.reactivates or self._created, asked_of(effect)
        callee = callee_of(caller, effect, asked, number, self.at, detail.digest)
        before = self.activations.get(detail.reactivates) if detail.reactivates else None
        if before is not None:
            callee.reactivated, callee.turn = True, before.turn
            callee.inbox, callee.data, callee.prefix = before.inbox, before.data, before.prefix
        if (opening := hand_over(callee, asked, turn.messages)) is not None:
            self._log(callee.request, opening)
        effect.callee = self.activations[number] = callee
        if detail.stays_dormant:
            self._keeps.add(effect.id)
        if detail.by:
            effect.decision = Decision(True, rule=detail.by)

    def _effect_finished(self, record: Record, event: EffectFinished) -> Changes:
        activation, effect_id = self._whose(record), event.id
        begun: Changes = ()
        effect = self.effects.get(effect_id)
        if effect is None or effect.ended_at is not None:
            effect, begun = self._never_started(activation, effect_id)
        if self._recent:
            self.effects.pop(effect_id, None)
            self.files.pop(effect_id, None)
        effect.ended_at, effect.outcome, effect.reason = record.at, event.outcome, event.reason
        if event.trace and not self._recent:
            self.traces[effect_id] = event.trace
        effect.content, effect.attachments = event.content, event.attachments + event.files
        effect.finishes = effect.finishes or event.finishes
        if effect.model is not None:
            self._replied(activation, effect, effect.model, event)
        elif effect.wait is not None:
            effect.wait.by, effect.wait.command = event.decided_by, event.command
            self.human_inputs.pop(effect_id, None)
            if effect.is_question:
                self._log_return(activation, USER, event, activation.task_id)
        elif effect.callee is not None:
            self._returned(activation, effect.callee, event)
        elif effect.kind == "action" and event.outcome != "completed" and activation.current is not None:
            # What the action was for is unread again.
            activation.inbox[:0] = activation.current.messages
        elif event.decided_by and not event.command:
            decided = effect.decision or Decision(event.outcome != "denied", reason=event.reason)
            effect.decision = replace(decided, rule=decided.rule or event.decided_by)
        if not activation.id:
            self._queued.pop(effect_id, None)
            self.requests.pop(effect_id, None)
            self._counts.pop(effect_id, None)
            if effect.call is None or effect.call.name == CALL_AGENT:
                self.outcome = event.outcome
        elif effect.started_at is not None:
            count(self._counts, activation.request, effect, -1)
        return (*begun, EffectEnd(activation, effect, ended_labels(self.labels, event, self._recent)))

    def _never_started(self, activation: ActivationNode, effect_id: str) -> tuple[EffectNode, Changes]:
        """A call that was refused, or that the kernel did itself."""
        turn, begun = self._enter(activation, effect_id)
        call = turn.call_of(effect_id)
        name, arguments = (call.name, call.arguments) if call is not None else ("", "")
        effect = EffectNode(effect_id, "tool", name, call=call, arguments=arguments)
        effect.decision = self._decisions.pop(effect_id, None) if self._decisions else None
        turn.effects.append(effect)
        self.effects[effect_id] = effect
        return effect, begun

    def _replied(
        self, activation: ActivationNode, effect: EffectNode, use: ModelUse, event: EffectFinished
    ) -> None:
        """A model has answered, or has not: what it called, what it cost."""
        booked = charge_of(self._models.pop(effect.id), event)
        use.reply = event.reply
        use.usage = event.reply.usage if event.reply is not None else event.usage
        use.cost = Cost(booked.nano_usd, int(not booked.priced))
        totals = UsageTotals(1, int(use.usage is not None), use.usage or Usage(), use.cost)
        activation.own.add(totals)
        activation.total.add(totals)
        self.models.setdefault(effect.name, UsageTotals()).add(totals)
        if event.failure is not None:
            effect.failure, effect.reason = event.failure, str(event.failure)
        elif event.reply is not None and effect.is_reply and activation.current is not None:
            activation.current.calls = event.reply.calls

    def _returned(self, caller: ActivationNode, callee: ActivationNode, event: EffectFinished) -> None:
        """An activation has returned, and everything below it has ended."""
        self._log_return(caller, callee.agent, event, callee.task_id, callee.request)
        callee.ended_at, callee.outcome, callee.reason = self.at, event.outcome, event.reason
        callee.content = event.content
        if callee.current is not None and callee.current.ended_at is None:
            callee.current.ended_at = self.at
        caller.total.add(callee.total)
        dormant = callee.call in self._keeps
        if dormant:
            self._keeps.discard(callee.call)
        if not self._recent:
            return
        if dormant:
            resting = self._dormant.setdefault(caller.id, {})
            before = resting.get(callee.agent, callee.id)
            resting[callee.agent] = callee.id
            if before != callee.id:
                self._forget(before)
        else:
            self._forget(callee.id)

    def _forget(self, number: int) -> None:
        """Drop an activation that nobody can call again, and those that were dormant for it."""
        gone = [number]
        while gone:
            last = gone.pop()
            self.activations.pop(last, None)
            gone.extend(self._dormant.pop(last, {}).values())

    def _log_return(
        self, receiver: ActivationNode, sender: str, event: EffectFinished, task_id: str, request: str = ""
    ) -> None:
        content = result_of(event).content
        self._log(request or receiver.request, returned(sender, receiver.agent, event.id, content, task_id))

    def _log(self, request: str, message: Message) -> None:
        if not self._recent:
            log_message(self.log, request, message)


_FOLD: Mapping[type, Callable[[RunTree, Record, Any], Changes]] = {
    RunStarted: RunTree._run_started,
    RunResumed: RunTree._run_resumed,
    MessagePosted: RunTree._message_posted,
    TurnStarted: RunTree._turn_started,
    EffectStarted: RunTree._effect_started,
    EffectFinished: RunTree._effect_finished,
    FilesChanged: lambda tree, _, told: (files_change(tree.files, tree.effects, told),),
    PermissionDecided: RunTree._permission_decided,
    StateChanged: RunTree._state_changed,
    TranscriptCompacted: RunTree._transcript_compacted,
    TurnFinished: RunTree._turn_finished,
    CancelRequested: lambda tree, _, told: (CancelRequest(told.target, told.reason),),
    DrainStarted: lambda tree, _, told: (RunDrain(told.not_begun),),
    ToolsetOffered: lambda tree, record, event: (toolset_change(tree.toolsets, event),),
    RunClosed: RunTree._run_closed,
}
