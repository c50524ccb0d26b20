"""A run as a dialogue: what a chat client shows, whatever protocol it speaks.

    async with connect(journal, run_id) as run:
        dialogue = Dialogue(await run.tree())
        async for item in run.events(dialogue.seq):
            for part in dialogue.add(item):
                ...                                   # new, or changed: it is known by its id

It stands on a `RunTree` and what that says of each record, so it has no clock and draws no ids: whoever reads
the same records has the same dialogue, from the beginning or from any record on. Pieces of replies are shown
while they are written; the end of the reply holds all of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from msgspec import Struct, field

from antiphon.kernel.facts import ids
from antiphon.kernel.facts.records import Record, ReplyDelta
from antiphon.values.message import USER, Attachment, Message
from antiphon.values.progress import FileDiff, FileLocation
from antiphon.view.changes import CallQueued, Change, EffectEnd, EffectStart, MessageArrival, TurnStart
from antiphon.view.effects import asked_of
from antiphon.view.nodes import ActivationNode, DeadLetter, EffectNode
from antiphon.view.tree import RunTree


class UserText(Struct, frozen=True, tag="user_text", tag_field="type"):
    """Something that the user told the agent while it worked."""

    id: str
    """The message's."""
    text: str
    """What was said."""
    attachments: tuple[Attachment, ...] = ()
    """Files that came with it."""


class AgentText(Struct, tag="agent_text", tag_field="type"):
    """What an agent's model says: on the way, or as its answer."""

    id: str
    """The model call's; each attempt has its own."""
    agent: str
    """Who says it."""
    at: float
    """When the model was asked, Unix seconds."""
    text: str = ""
    """As far as it is written; empty of an attempt that failed, whose pieces count for nothing."""
    reasoning: str = ""
    """What the model thought before it."""
    outcome: str = ""
    """How the call ended; empty while it goes on."""
    ended_at: float | None = None
    """When it ended."""


class ToolPart(Struct, tag="tool", tag_field="type"):
    """A tool call, also one that was refused; or a durable step of an action or a tool."""

    id: str
    """The effect's."""
    agent: str
    """Who calls it."""
    at: float
    """When it started, Unix seconds; of what never did, when it was refused."""
    name: str
    """Of the tool or the step."""
    arguments: str = ""
    """JSON."""
    progress: str = ""
    """The last that it said of how far it is, while it runs."""
    locations: tuple[FileLocation, ...] = ()
    """Where it last said that it works."""
    diffs: tuple[FileDiff, ...] = ()
    """What it last said that it changes in files."""
    outcome: str = ""
    """How it ended; empty while it runs."""
    content: str = ""
    """Its result."""
    reason: str = ""
    """Why it ended so, when that needs saying."""
    attachments: tuple[Attachment, ...] = ()
    """Files of the result."""
    finishes: bool = False
    """Its result is the agent's own, which the exchange holds too."""
    ended_at: float | None = None
    """When it ended."""


class PersonAsked(Struct, tag="question", tag_field="type"):
    """A question, an approval of a tool call, or a limit to be raised."""

    id: str
    """What `answer` knows it by."""
    agent: str
    """Who asks."""
    at: float
    """When, Unix seconds."""
    asks_for: str
    """`question`, `approval` or `limit`."""
    text: str = ""
    """What is asked, or why approval is needed."""
    about: str = ""
    """Of an approval, the id that the tool call has, or would have; of a question that a tool asks in its
    middle, that tool's."""
    tool: str = ""
    """Of an approval; of a question that is the call of an outside tool, whose result is the answer."""
    arguments: str = ""
    """The tool's, JSON."""
    outcome: str = ""
    """Empty while it is open; `completed` when it was answered."""
    answer: str = ""
    """What was answered."""
    by: str = ""
    """Who answered."""
    ended_at: float | None = None
    """When."""


class Exchange(Struct, tag="exchange", tag_field="type"):
    """A call of an agent and all that came of it: a request of the user, or one agent's call of another."""

    id: str
    """The call's."""
    caller: str
    """`user`, or the agent that calls."""
    agent: str
    """Who is called."""
    at: float
    """When, Unix seconds."""
    text: str = ""
    """What is asked."""
    attachments: tuple[Attachment, ...] = ()
    """Files that came with it."""
    background: bool = False
    """Its caller's turn does not wait for it; always so of a request."""
    waits: bool = False
    """Of a request: it waits for a person and for nothing else, see `RunTree.waits`."""
    parts: list[UserText | AgentText | ToolPart | PersonAsked | Exchange] = field(default_factory=list)
    """What happened in it, in order."""
    unread: list[UserText] = field(default_factory=list)
    """What the user said that the agent has not taken up yet."""
    outcome: str = ""
    """How it ended; empty while it goes on."""
    content: str = ""
    """The answer, or the best partial one."""
    reason: str = ""
    """Why it ended so, when that needs saying."""
    files: tuple[Attachment, ...] = ()
    """Files of the answer."""
    ended_at: float | None = None
    """When it ended."""


Part = UserText | AgentText | ToolPart | PersonAsked | Exchange
"""What a dialogue is made of."""


class Dialogue:
    """The dialogue of a run, from its first record on, or from a tree of those so far.

    tree: what `RunConnection.tree` gives, whole and not `recent`; the dialogue goes on to fill it.
    """

    def __init__(self, tree: RunTree | None = None) -> None:
        self.requests: dict[str, Exchange] = {}
        """The user's requests by the ids of their calls, in order."""
        self._tree = tree if tree is not None else RunTree(recent=True)
        self._open: dict[str, Part] = {}
        self._join(self._tree.user)

    @property
    def seq(self) -> int:
        """The number of the last record that is in it."""
        return self._tree.seq

    @property
    def closed(self) -> bool:
        """The run was closed; nothing follows."""
        return self._tree.closed

    def add(self, item: Record | ReplyDelta) -> tuple[Part, ...]:
        """Take in the next record, or a piece of a reply; the parts that are new or have changed.

        Of what happens at once (`Record.last_of_row`) each record is taken in by itself. Raises
        JournalCorrupt for a record that cannot follow the ones before it.
        """
        if isinstance(item, ReplyDelta):
            return self._heard(item)
        found: list[Part] = []
        for change in self._tree.add(item):
            found.extend(self._follow(change))
        return tuple(found)

    # -- from a tree ----------------------------------------------------------------------------

    def _join(self, user: ActivationNode) -> None:
        """Take in what there is. A list and no recursion: calls may be nested deeper than Python's."""
        left = [user]
        while left:
            node = left.pop()
            for turn in node.turns:
                self._taken(node, turn.messages)
                for effect in turn.effects:
                    self._begun(node, effect)
                    if effect.callee is not None:
                        left.append(effect.callee)
            self._unread(node)
        for effect_id, part in list(self._open.items()):
            if isinstance(part, UserText) or part.ended_at is not None:
                del self._open[effect_id]

    # -- record by record -------------------------------------------------------------------------

    def _follow(self, change: Change) -> list[Part]:
        """What one change of the tree means; a request whose waiting it changed is among it."""
        node: ActivationNode | None = None
        found: list[Part | None] = []
        match change:
            case CallQueued(node, effect) | EffectStart(node, effect):
                found.append(self._begun(node, effect))
            case EffectEnd(node, effect):
                found.append(self._ended(node, effect))
            case TurnStart(node, turn):
                found.extend(self._taken(node, turn.messages))
            case MessageArrival(node):
                pass
            case DeadLetter(activation=number):
                node = self._tree.activations.get(number)
        if node is None:
            return []
        if self._unread(node):
            found.append(self._open.get(node.call))
        request = self.requests.get(node.request)
        if request is not None and request.waits != self._tree.waits(request.id):
            request.waits = not request.waits
            found.append(request)
        return [part for part in found if part is not None]

    def _begun(self, node: ActivationNode, effect: EffectNode) -> Part | None:
        """The part that an effect is, put where it belongs; None for what is not shown."""
        part = self._open.get(effect.id)
        if part is not None:
            # It was there already, and waited for others.
            return part
        part = _part_of(node, effect)
        if part is None:
            return None
        _fill(part, effect)
        self._open[effect.id] = part
        above = self._open.get(node.call)
        if isinstance(above, Exchange):
            above.parts.append(part)
        elif isinstance(part, Exchange) and not node.id:
            self.requests[effect.id] = part
            part.waits = self._tree.waits(effect.id)
        if effect.callee is not None:
            self._unread(effect.callee)
        return part

    def _ended(self, node: ActivationNode, effect: EffectNode) -> Part | None:
        part = self._open.get(effect.id)
        if part is None:
            part = self._begun(node, effect)
        if part is None:
            return None
        _fill(part, effect)
        del self._open[effect.id]
        if isinstance(part, Exchange):
            part.unread, part.waits = [], False
        return part

    def _taken(self, node: ActivationNode, messages: tuple[Message, ...]) -> list[Part]:
        """What the user said and a turn has taken up becomes a part of the exchange."""
        exchange = self._open.get(node.call)
        if not isinstance(exchange, Exchange):
            return []
        said = _said(node, messages)
        exchange.parts.extend(said)
        return list(said)

    def _unread(self, node: ActivationNode) -> bool:
        """Note what the user said that no turn has taken up; whether that changed."""
        exchange = self._open.get(node.call)
        if not isinstance(exchange, Exchange) or not (exchange.unread or node.inbox):
            return False
        before = exchange.unread
        exchange.unread = [] if exchange.ended_at is not None else _said(node, node.inbox)
        return exchange.unread != before

    def _heard(self, delta: ReplyDelta) -> tuple[Part, ...]:
        """A piece belongs to its effect while that goes on; the end says all of it."""
        part = self._open.get(delta.effect_id)
        if delta.kind == "void" and isinstance(part, AgentText):
            part.text = part.reasoning = ""
            return (part,)
        name = _PIECES.get((type(part), delta.kind))
        if part is None or name is None:
            return ()
        # Who comes anew in the middle is told once more what was said before.
        before = "" if name == "progress" else getattr(part, name)[: delta.offset]
        setattr(part, name, before + delta.text)
        if isinstance(part, ToolPart):
            part.locations, part.diffs = delta.locations, delta.diffs
        return (part,)


_PIECES: Mapping[tuple[type, str], str] = {
    (AgentText, "text"): "text",
    (AgentText, "reasoning"): "reasoning",
    (ToolPart, "progress"): "progress",
}
"""Which field a kind of piece is part of."""


def _said(node: ActivationNode, messages: Iterable[Message]) -> list[UserText]:
    """What the user said beside what the call opened with."""
    opening = node.opening.id if node.opening is not None else ""
    return [
        UserText(each.id, each.content, each.attachments)
        for each in messages
        if each.sender == USER and each.id != opening
    ]


def _part_of(node: ActivationNode, effect: EffectNode) -> Part | None:
    """The part that an effect begins as; None for what is not shown: timers, actions, summaries."""
    if not node.id or effect.callee is not None:
        return _exchange(node, effect)
    if effect.asks_person:
        about = ids.parent_of(effect.id) if effect.is_approval else effect.within
        of_tool = effect.is_approval or (effect.wait is not None and effect.wait.tool)
        tool, arguments = (effect.name, effect.arguments) if of_tool else ("", "")
        return PersonAsked(
            effect.id, node.agent, effect.began_at, effect.what, effect.text, about, tool, arguments
        )
    if effect.is_reply:
        return AgentText(effect.id, node.agent, effect.began_at)
    make = _MADE.get(effect.kind)
    return make(node, effect) if make is not None else None


def _exchange(node: ActivationNode, effect: EffectNode) -> Exchange:
    callee = effect.callee
    if callee is not None and callee.opening is not None:
        opening = callee.opening
        return Exchange(
            effect.id, node.agent, callee.agent, effect.began_at, opening.content, opening.attachments,
            effect.background or not node.id,
        )  # fmt: skip
    # A request that came to no call, or has not yet.
    asked, files = asked_of(effect), effect.call.attachments if effect.call is not None else ()
    return Exchange(effect.id, node.agent, asked.agent_name, effect.began_at, asked.message, files, True)


def _tool(node: ActivationNode, effect: EffectNode) -> Part:
    return ToolPart(effect.id, node.agent, effect.began_at, effect.name, effect.arguments)


_MADE: Mapping[str, Callable[[ActivationNode, EffectNode], Part]] = {"tool": _tool, "step": _tool}
"""By kind of effect, what is made of it."""


def _fill(part: Part, effect: EffectNode) -> None:
    """Say of a part how its effect stands."""
    if isinstance(part, UserText):
        return
    part.outcome, part.ended_at = effect.outcome, effect.ended_at
    if isinstance(part, AgentText):
        reply = effect.model.reply if effect.model is not None else None
        if reply is not None:
            part.text, part.reasoning = reply.content, reply.reasoning
        elif effect.outcome:
            part.text = part.reasoning = ""
    elif isinstance(part, PersonAsked):
        part.answer = effect.content
        part.by = effect.wait.by if effect.wait is not None else ""
    elif isinstance(part, ToolPart):
        part.content, part.reason, part.attachments = effect.content, effect.reason, effect.attachments
        part.finishes = effect.finishes
        if effect.outcome:
            part.progress = ""
    else:
        part.content, part.reason, part.files = effect.content, effect.reason, effect.attachments
