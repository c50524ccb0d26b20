"""The spans of a run, made from its records: while it goes on, or afterwards.

Each request of the user is a trace: a run may live for months. Its root is the request, below it the agents'
calls, their turns, and what these did: model calls (each attempt), tools, waits. A wait before another
attempt, and a call that was refused, is an event of its turn. A turn that read a message links to the turn
that sent it, a request to the one before it.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator

from msgspec import Struct, field
from msgspec.structs import replace

from antiphon.kernel.facts import ids
from antiphon.kernel.facts.events import MessagePosted
from antiphon.kernel.facts.records import Record
from antiphon.values.message import Message
from antiphon.view.changes import CallQueued, EffectEnd, EffectStart, TurnEnd, TurnStart
from antiphon.view.nodes import ActivationNode, EffectNode, TurnNode
from antiphon.view.traces import gen_ai
from antiphon.view.traces.span import Attribute, RunSpan, SpanContext, SpanEvent, context_of, remote
from antiphon.view.tree import RunTree

REMEMBERED = 10_000
"""Messages whose sender's span is known; of more, the oldest are forgotten."""
MAX_LINKS = 128
"""Links and events of a span, as most collectors take."""


class _OpenTurn(Struct, eq=False):
    """A turn that goes on, and what happened in it."""

    activation: ActivationNode
    turn: TurnNode
    links: list[SpanContext] = field(default_factory=list)
    events: list[SpanEvent] = field(default_factory=list)


class RunTrace:
    """The spans of a run, from its first record on.

    content: what was asked, answered and called stands in them too, cut at 32,768 characters each; without
    it, names, kinds, times, numbers and outcomes only.
    """

    def __init__(self, *, content: bool = False) -> None:
        self._tree, self._content = RunTree(recent=True), content
        self._turns: dict[int, _OpenTurn] = {}
        self._effects: dict[str, tuple[ActivationNode, EffectNode]] = {}
        self._senders: OrderedDict[str, SpanContext] = OrderedDict()
        # Of the user's messages that no turn has taken, and of requests, the span that asked for them.
        self._posted: deque[str] = deque()
        self._taken: tuple[str, ...] = ()
        self._parents: dict[str, SpanContext] = {}
        self._last_request: SpanContext | None = None
        self._before: dict[str, SpanContext] = {}

    @property
    def seq(self) -> int:
        """The number of the last record that is in it."""
        return self._tree.seq

    def add(self, record: Record) -> list[RunSpan]:
        """Fold the next record in; the spans that ended with it, mostly one or none.

        Raises JournalCorrupt for a record that cannot follow the ones before it.
        """
        found: list[RunSpan] = []
        changes = self._tree.add(record)
        if isinstance(record.event, MessagePosted):
            self._sent(record.event)
        for change in changes:
            match change:
                case TurnStart(activation, turn):
                    self._turn_began(activation, turn)
                case TurnEnd(activation, _):
                    found.extend(self._turn_ended(activation.id))
                case CallQueued(activation, effect) | EffectStart(activation, effect):
                    self._began(activation, effect)
                case EffectEnd(activation, effect):
                    found.extend(self._ended(activation, effect))
        return found

    def open(self) -> list[RunSpan]:
        """The spans of what still goes on, up to the last record; their attribute `antiphon.open` says so."""
        found = [each for node, effect in self._effects.values() for each in self._spans(node, effect)]
        found += [self._turn(each) for each in self._turns.values() if each.activation.id]
        return [_still_open(each) for each in found]

    # -- messages -----------------------------------------------------------------------------

    def _sent(self, event: MessagePosted) -> None:
        if event.dead_letter:
            # A request that ended before a turn took it.
            while len(self._posted) > len(self._tree.user.inbox):
                self._posted.popleft()
            return
        if not event.to:
            self._posted.append(event.traceparent)
        sender = self._turns.get(event.by) if event.by else None
        if sender is not None and event.message.id:
            self._remember(event.message.id, self._of_turn(sender.activation, sender.turn.number))

    def _remember(self, message: str, sender: SpanContext) -> None:
        self._senders[message] = sender
        if len(self._senders) > REMEMBERED:
            self._senders.popitem(last=False)

    def _read(self, messages: Iterable[Message]) -> list[SpanContext]:
        """The spans that messages of a turn come from."""
        found = [self._senders[each.id] for each in messages if each.id in self._senders]
        return list(dict.fromkeys(found))[:MAX_LINKS]

    # -- turns --------------------------------------------------------------------------------

    def _turn_began(self, node: ActivationNode, turn: TurnNode) -> None:
        if not node.id:
            taken = min(turn.taken, len(self._posted))
            self._taken = tuple(self._posted.popleft() for _ in range(taken))
        self._turns[node.id] = _OpenTurn(node, turn, self._read(turn.messages))

    def _turn_ended(self, activation: int) -> Iterator[RunSpan]:
        ended = self._turns.pop(activation, None)
        if ended is not None and activation:
            yield self._turn(ended)

    def _turn(self, open_turn: _OpenTurn) -> RunSpan:
        node, turn = open_turn.activation, open_turn.turn
        name, attributes = gen_ai.turn(self._tree.run_id, node, turn.number)
        return RunSpan(
            self._of_turn(node, turn.number), name, "internal", turn.started_at,
            turn.ended_at if turn.ended_at is not None else self._tree.at,
            self._placed(node.request, context_of(self._tree.run_id, node.request, "call", node.call)), False,
            attributes,
            tuple(open_turn.events), tuple(open_turn.links),
        )  # fmt: skip

    def _note(self, node: ActivationNode, name: str, at: float, attributes: dict[str, Attribute]) -> None:
        turn = self._turns.get(node.id)
        if turn is not None and len(turn.events) < MAX_LINKS:
            turn.events.append(SpanEvent(name, at, attributes))

    # -- effects ------------------------------------------------------------------------------

    def _began(self, node: ActivationNode, effect: EffectNode) -> None:
        if effect.id in self._effects:
            # It waited for others, and its span began then.
            return
        if not node.id:
            self._asked(effect)
        if effect.is_timer:
            self._retried(node, effect)
        elif effect.has_row:
            self._effects[effect.id] = node, effect

    def _asked(self, effect: EffectNode) -> None:
        """A request of the user begins."""
        index = ids.index_of(effect.id)
        parent = remote(self._taken[index]) if 0 <= index < len(self._taken) else None
        if parent is not None:
            self._parents[effect.id] = parent
        if self._last_request is not None:
            self._before[effect.id] = self._last_request
        self._last_request = self._root(effect.id)

    def _retried(self, node: ActivationNode, effect: EffectNode) -> None:
        if not effect.has_row:
            # A deadline, and no wait before another attempt.
            return
        due = effect.wait.due_at if effect.wait is not None else effect.began_at
        seconds = round(max(due - effect.began_at, 0.0), 6)
        kind = effect.failure.kind if effect.failure is not None else ""
        self._note(
            node, gen_ai.RETRY_EVENT, effect.began_at, {"error.type": kind, "antiphon.retry.seconds": seconds}
        )

    def _ended(self, node: ActivationNode, effect: EffectNode) -> Iterator[RunSpan]:
        begun = self._effects.pop(effect.id, None)
        if begun is None:
            if effect.started_at is None and gen_ai.failure_of(effect):
                refused: dict[str, Attribute] = {"antiphon.effect.id": effect.id}
                self._note(
                    node, gen_ai.REFUSED_EVENT, effect.began_at, refused | {"error.type": effect.outcome}
                )
            return
        callee = effect.callee
        if callee is not None:
            # The last turn of a call has no end of its own where nothing is to be said of it.
            yield from self._turn_ended(callee.id)
            if effect.background and node.id:
                self._remember(ids.return_id(effect.id), self._of_call(node, effect))
        yield from self._spans(node, effect)
        if not node.id:
            self._parents.pop(effect.id, None)
            self._before.pop(effect.id, None)

    def _spans(self, node: ActivationNode, effect: EffectNode) -> Iterator[RunSpan]:
        """An effect is a span; a request of the user is two: itself, and the agent's work on it."""
        run_id, content, callee = self._tree.run_id, self._content, effect.callee
        if not node.id:
            parent, before = self._parents.get(effect.id), self._before.get(effect.id)
            name, found = gen_ai.workflow(run_id, effect, content=content)
            links = (before,) if before is not None else ()
            yield self._span(effect, self._root(effect.id), parent, name, found, links, remote_parent=True)
        if callee is not None:
            name, found = gen_ai.agent(run_id, effect, callee, content=content)
        elif effect.model is not None:
            name, found = gen_ai.chat(run_id, node, effect, content=content)
        elif effect.wait is not None:
            name, found = gen_ai.wait(run_id, node, effect, content=content)
        elif node.id:
            name, found = gen_ai.tool(run_id, node, effect, content=content)
        else:
            return
        tool = self._effects.get(effect.within)
        if tool is not None:
            above = self._of_call(*tool)
        else:
            above = self._of_turn(node, ids.turn_of(effect.id)) if node.id else self._root(effect.id)
        yield self._span(effect, self._of_call(node, effect), above, name, found)

    def _span(
        self, effect: EffectNode, context: SpanContext, parent: SpanContext | None, name: str,
        attributes: dict[str, Attribute], links: tuple[SpanContext, ...] = (), *, remote_parent: bool = False,
    ) -> RunSpan:  # fmt: skip
        error = gen_ai.failure_of(effect)
        return RunSpan(
            context, name, "client" if effect.model is not None else "internal", effect.began_at,
            effect.ended_at if effect.ended_at is not None else self._tree.at, parent,
            remote_parent and parent is not None, attributes, (), links, bool(error),
            effect.reason if error and self._content else "",
        )  # fmt: skip

    # -- who is who ---------------------------------------------------------------------------

    def _root(self, request: str) -> SpanContext:
        return self._placed(request, context_of(self._tree.run_id, request, "request", request))

    def _of_turn(self, node: ActivationNode, number: int) -> SpanContext:
        turn = ids.turn_id(node.id, number)
        return self._placed(node.request, context_of(self._tree.run_id, node.request, "turn", turn))

    def _of_call(self, node: ActivationNode, effect: EffectNode) -> SpanContext:
        request = node.request if node.id else effect.id
        kind = "call" if effect.callee is not None else "effect"
        return self._placed(request, context_of(self._tree.run_id, request, kind, effect.id))

    def _placed(self, request: str, context: SpanContext) -> SpanContext:
        """In the trace of whoever asked for the request, where that had one."""
        parent = self._parents.get(request)
        if parent is None:
            return context
        return SpanContext(parent.trace_id, context.span_id, parent.sampled)


def _still_open(span: RunSpan) -> RunSpan:
    return replace(span, attributes={**span.attributes, "antiphon.open": True})


def spans_of(records: Iterable[Record], *, content: bool = False) -> list[RunSpan]:
    """The spans of a run, of whole or of its beginning: those that ended in order, then those still open.

    Raises JournalCorrupt for a record that cannot follow the ones before it.
    """
    trace, found = RunTrace(content=content), list[RunSpan]()
    for record in records:
        found += trace.add(record)
    return found + trace.open()
