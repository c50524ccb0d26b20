"""The call tree of a run, folded from its records and pieces: what the live view and `show` draw."""

from __future__ import annotations

from dataclasses import dataclass, field
from heapq import heappop, heappush

import msgspec
from msgspec import Struct

from antiphon import Piece, Record, ToolCall, Usage
from antiphon.cli.display import terminal_escape
from antiphon.kernel.facts.events import (
    EffectFinished,
    EffectStarted,
    Event,
    MessagePosted,
    PermissionDecided,
    RunClosed,
    RunStarted,
    StateChanged,
    TurnFinished,
    TurnStarted,
    charged,
)

COMPACT = "compact"
"""The intent of a request, and the purpose of a model call, that only shorten a conversation."""
TAIL = 400
"""Characters kept of a text that is being written."""
_WRITING = {"text": "writing", "reasoning": "thinking"}


@dataclass(eq=False)
class Item:
    """One thing an agent did: a tool call, an agent call (`node` is the callee), a wait.

    outcome: empty while it goes on. text: its result, or why there is none. until: when a timer ends.
    Of a wait before another attempt, name: what had failed, note: which attempt follows.
    """

    id: str
    kind: str
    name: str
    arguments: str = ""
    purpose: str = ""
    started: float = 0.0
    ended: float = 0.0
    outcome: str = ""
    text: str = ""
    until: float = 0.0
    note: str = ""
    node: Node | None = None


@dataclass(eq=False)
class Node:
    """One activation: who it is, what it was asked, what it did so far.

    doing: what its model is writing; empty when it is not asked. tail: the end of what it wrote.
    failure: of what kind its last failed model call was. label: what it is called, apart from others of its
    name that are at work too. said: the text of this turn's reply, if it called nothing.
    """

    number: int
    agent: str
    call: str = ""
    asked: str = ""
    items: list[Item] = field(default_factory=list)
    started: float = 0.0
    ended: float = 0.0
    outcome: str = ""
    result: str = ""
    why: str = ""
    usage: Usage = field(default_factory=Usage)
    doing: str = ""
    tail: str = ""
    effect: str = ""
    failure: str = ""
    calls: tuple[ToolCall, ...] = ()
    label: str = ""
    said: str = ""

    def __post_init__(self) -> None:
        self.label = self.label or self.agent


class Bill(Struct, frozen=True):
    """What model calls cost, in nano-USD. unpriced: how many calls have no known cost, and are not in it."""

    spent: int = 0
    unpriced: int = 0

    def __add__(self, other: Bill) -> Bill:
        return Bill(self.spent + other.spent, self.unpriced + other.unpriced)

    @property
    def text(self) -> str:
        """As people read it: `$0.0123`, `$0`, `cost unknown`, or what is known of it."""
        if not self.unpriced:
            return dollars(self.spent)
        if not self.spent:
            return "cost unknown"
        return f"more than {dollars(self.spent)}, {self.unpriced:,} calls of unknown price"


def dollars(nano: int) -> str:
    """Nano-USD in dollars, with as many digits as tell something."""
    if not nano:
        return "$0"
    found = nano / 1_000_000_000
    if found >= 1:
        return f"${found:,.2f}"
    return f"${found:.4f}" if nano >= 100_000 else "under $0.0001"


def _bill(started: EffectStarted, event: EffectFinished, usage: Usage | None) -> Bill:
    """What the kernel's books say of one model call."""
    if event.cost is not None:
        return Bill(event.cost)
    used = usage.total if usage is not None else charged(started, event)
    # A bill that never came is booked at its worst case.
    return Bill(started.cost, int(not started.cost)) if used else Bill()


class CallTree:
    """Take in a run's items in order; `nodes[0]` is the user, whose calls are the requests.

    spoken: who said what at the end of its last turn, once it shows that its task goes on after it; only
    until the next record.
    """

    def __init__(self) -> None:
        self.nodes: dict[int, Node] = {0: Node(0, "user")}
        self.items: dict[str, Item] = {}
        self.models: dict[str, Usage] = {}
        self.usage = Usage()
        self.bill = Bill()
        self.bills: dict[str, Bill] = {}
        self.run_id = ""
        self.seq = 0
        self.started = 0.0
        self.closed = False
        self.dead: list[tuple[str, str]] = []
        self._mail: list[tuple[ToolCall, ...]] = []
        self._model: dict[str, EffectStarted] = {}
        self._born = 0
        self._free: dict[str, list[int]] = {}
        self._ended: Node | None = None
        self.spoken: tuple[Node, str] | None = None

    @property
    def root(self) -> Node:
        """The user."""
        return self.nodes[0]

    def take(self, found: Record | Piece) -> None:
        """Fold one record or piece in."""
        if isinstance(found, Piece):
            self._piece(found)
            return
        self.seq, event = found.seq, found.event
        node = self.nodes.get(found.activation, self.root)
        self._speak(event)
        if isinstance(event, TurnFinished):
            self._ended = node if node.said else None
        elif isinstance(event, EffectStarted):
            self._started(node, event, found.at)
        elif isinstance(event, EffectFinished):
            self._finished(node, event, found.at)
        elif isinstance(event, TurnStarted):
            self._turn(node, event)
        elif isinstance(event, MessagePosted):
            if event.dead:
                self.dead.append((event.message.content, event.dead))
            elif not event.to:
                self._mail.append(event.message.calls)
            elif event.message.sender != node.agent:
                text = event.message.content
                node.items.append(Item("", "message", event.message.sender, text=text, outcome="completed"))
        elif isinstance(event, PermissionDecided):
            self._decided(event)
        elif isinstance(event, RunStarted):
            self.run_id, self.started = event.run_id, found.at
        elif isinstance(event, RunClosed):
            self.closed = True

    def _speak(self, event: Event) -> None:
        """What ended a turn and not the task was said on the way; a task ends in the row of its last turn."""
        self.spoken, node = None, self._ended
        if node is None or isinstance(event, StateChanged):
            return
        closing = isinstance(event, EffectFinished) and event.outcome == "cancelled"
        if isinstance(event, EffectFinished) and event.id == node.call:
            node.said = ""
        elif closing or (isinstance(event, MessagePosted) and event.dead):
            return
        self._ended = None
        if node.said:
            node.items.append(Item("", "text", "", text=node.said, outcome="completed"))
            self.spoken, node.said = (node, node.said), ""

    def _piece(self, piece: Piece) -> None:
        node = self.nodes.get(piece.activation)
        # A piece may be shown after the end of its effect, which holds all of it.
        if node is None or piece.effect_id not in self._model:
            return
        if piece.effect_id != node.effect:
            node.effect, node.tail = piece.effect_id, ""
        if piece.kind == "call_name":
            node.doing, node.tail = "calling", piece.text
        elif piece.kind in _WRITING:
            doing = _WRITING[piece.kind]
            node.tail = ((node.tail if node.doing == doing else "") + piece.text)[-TAIL:]
            node.doing = doing

    def _turn(self, node: Node, event: TurnStarted) -> None:
        if event.calls is not None:
            node.calls = event.calls
        elif not node.number:
            taken, self._mail = self._mail[: event.taken], self._mail[event.taken :]
            node.calls = tuple(call for calls in taken for call in calls)

    def _started(self, node: Node, event: EffectStarted, at: float) -> None:
        if event.kind == "model":
            node.doing, node.tail, node.effect = "asking", "", event.id
            self._model[event.id] = event
            return
        arguments = event.arguments or _written(node, event.id)
        item = Item(event.id, event.kind, event.name, arguments, event.purpose, at, text=event.text)
        if event.purpose == "retry":
            item.name, item.note, item.text = node.failure.replace("_", " "), event.text, ""
        item.until = event.until
        self.items[event.id] = item
        if event.kind != "action" and event.purpose != "deadline":
            # What an action does is shown; that it acts, its agent's own line says.
            node.items.append(item)
        if event.kind == "call":
            asked = message_of(arguments)
            self._born += not event.continues
            number = event.continues or self._born
            item.node = Node(number, event.name, event.id, asked, started=at, label=self._label(event.name))
            self.nodes[number] = item.node

    def _label(self, agent: str) -> str:
        """A name that no agent at work has: of several of one name the second is `name#2`, and so on."""
        free = self._free.setdefault(agent, [1])
        number = heappop(free)
        if not free:
            heappush(free, number + 1)
        return f"{agent}#{number}" if number > 1 else agent

    def _finished(self, node: Node, event: EffectFinished, at: float) -> None:
        model = self._model.pop(event.id, None)
        if model is not None:
            self._replied(node, event, model, at)
            return
        item = self.items.get(event.id)
        if item is None:
            if event.ends and event.outcome == "completed":
                return  # `finish`: the result is shown where the call ends
            item = Item(event.id, "tool", _name(node, event.id), _written(node, event.id), started=at)
            self.items[event.id] = item
            node.items.append(item)
        item.ended, item.outcome = at, event.outcome
        item.text = event.content if event.outcome == "completed" else event.why
        if item.node is not None:
            called = item.node
            heappush(self._free[called.agent], int(called.label[len(called.agent) + 1 :] or 1))
            called.ended, called.outcome, called.doing = at, event.outcome, ""
            called.result, called.why = event.content, event.why

    def _replied(self, node: Node, event: EffectFinished, started: EffectStarted, at: float) -> None:
        node.doing = node.tail = ""
        reply, model = event.reply, started.name
        usage = reply.usage if reply is not None else event.usage
        bill = _bill(started, event, usage)
        self.bill = self.bill + bill
        self.bills[model] = self.bills.get(model, Bill()) + bill
        if usage is not None:
            node.usage = node.usage + usage
            self.usage = self.usage + usage
            self.models[model] = self.models.get(model, Usage()) + usage
        if reply is not None:
            node.calls = reply.calls
            node.said = "" if reply.calls or started.purpose == COMPACT else reply.content.strip()
            if reply.content.strip() and reply.calls:
                node.items.append(Item("", "text", "", text=reply.content, outcome="completed"))
        elif event.outcome != "cancelled":
            failed = Item(event.id, "model", model, "", "", at, at, event.outcome, event.why)
            node.items.append(failed)
            node.failure = event.why.partition(":")[0]

    def _decided(self, event: PermissionDecided) -> None:
        item = self.items.get(event.id + "?")
        if item is not None and not item.outcome:
            item.outcome = "completed" if event.allowed else "denied"


def _index(effect_id: str) -> int:
    """Which call of its turn an effect is, from 0; -1 for what is none."""
    mark = effect_id.rpartition(".")[2].rstrip("?")
    return int(mark[1:]) - 1 if mark[:1] == "c" and mark[1:].isdigit() else -1


def _written(node: Node, effect_id: str) -> str:
    index = _index(effect_id)
    return node.calls[index].arguments if 0 <= index < len(node.calls) else ""


def _name(node: Node, effect_id: str) -> str:
    index = _index(effect_id)
    return node.calls[index].name if 0 <= index < len(node.calls) else "?"


def _decoded(arguments: str) -> object:
    try:
        return msgspec.json.decode(arguments)
    except msgspec.DecodeError:
        return arguments


def message_of(arguments: str) -> str:
    """What a call of an agent says to it."""
    found = _decoded(arguments)
    return str(found.get("message", "")) if isinstance(found, dict) else ""


def short_arguments(arguments: str, width: int = 60) -> str:
    """A call's arguments as one clean line of at most `width` characters: `path="a", count=2`."""
    found = _decoded(arguments)
    if isinstance(found, dict):
        parts = [f"{key}={_short(value)}" for key, value in found.items()]
        return terminal_escape.line(", ".join(parts), width)
    return terminal_escape.line(arguments, width)


def _short(value: object) -> str:
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= 200 else text[:200] + terminal_escape.CUT
