"""Picture: a run as lines under lines, kept small while it goes on, for notebooks and plain output.

It is fed with what `stream` hands out and never holds more than a screenful of what has ended: its memory
and its size do not grow with the run.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from html import escape
from typing import Literal

from msgspec import Struct, field

from antiphon.kernel.facts.records import Record, ReplyDelta
from antiphon.values.codec import visible
from antiphon.view.changes import DecisionMade, EffectEnd, EffectStart, MessageArrival, TurnStart
from antiphon.view.nodes import ActivationNode, EffectNode
from antiphon.view.tree import RunTree
from antiphon.view.wording import CUT, line, name_of, outcome_of, short_arguments, spent, text_of, told

ROWS = 20
"""Rows of one agent that are kept; the oldest that have ended go first."""
ENDED = 50
"""Agents that have ended and whose rows are kept."""
LINES = 100
"""Lines of a picture."""
INDENTED = 20
"""Levels that are indented; what is deeper stands as far out."""
WIDTH = 120
"""Characters of a line's text."""
WRITTEN = 400
"""Characters shown of a text that is being written: its end."""
WRITERS = 4
"""Agents whose text is shown while they write."""
_WRITING = {"text": "writing", "reasoning": "thinking"}
_MARKS = {"": "●", "completed": "✓"}
_COLORS = {"": "#0891b2", "completed": "#16a34a"}

Kind = Literal["agent", "call", "said"]


class ShownRow(Struct, eq=False):
    """What an agent did, or is doing."""

    text: str
    said: str = ""
    """How far it has come; once it has ended, what came of it."""
    outcome: str = ""
    """Empty while it goes on."""
    kind: Kind = "call"


class ShownAgent(Struct, eq=False):
    """An agent at work on one call; as a row of its caller it holds rows of its own."""

    node: ActivationNode | None
    """None once it has ended: what it was told and said is not kept."""
    row: ShownRow
    rows: deque[ShownRow | ShownAgent] = field(default_factory=deque)
    left_out: int = 0
    """Rows that were forgotten."""
    doing: str = ""
    """What its model does: `asking`, `writing`, `thinking`, `calling`; empty while it is not asked."""
    written: str = ""
    turns: int = 0
    tokens: int = 0
    """Of its own calls and of everything below it, once it has ended."""
    effect: str = ""
    """The model call that is being written."""


class Picture:
    """Take in a run's items in order; `html`, `lines` and `status` say how it stands."""

    def __init__(self) -> None:
        self.tree = RunTree(recent=True)
        self.news: list[str] = []
        """Lines on what began and ended since somebody emptied it, for output that cannot be redrawn."""
        self._root = ShownAgent(self.tree.user, ShownRow(self.tree.user.agent, kind="agent"))
        self._branches = {0: self._root}
        self._rows: dict[str, ShownRow] = {}
        self._calls: dict[str, ShownAgent] = {}
        self._ended: deque[ShownAgent] = deque()

    def take(self, item: Record | ReplyDelta) -> None:
        """Fold one record or piece of a reply in."""
        if isinstance(item, ReplyDelta):
            self._piece(item)
            return
        for change in self.tree.add(item):
            match change:
                case EffectStart(activation, effect):
                    self._started(self._branch(activation), effect)
                case EffectEnd(activation, effect):
                    self._finished(self._branch(activation), effect)
                case DecisionMade(_, effect_id, decision):
                    if (row := self._rows.get(effect_id)) is not None and not decision.allowed:
                        row.said = line(decision.reason, WIDTH)
                case MessageArrival(activation, message):
                    if activation.id and message.sender != activation.agent:
                        self._say(self._branch(activation), f"{message.sender}: {message.content}")
                case TurnStart(activation):
                    self._branch(activation).doing = ""

    def status(self) -> str:
        """Tokens and cost so far."""
        return spent(self.tree.totals)

    # -- what happens -------------------------------------------------------------------------

    def _branch(self, activation: ActivationNode) -> ShownAgent:
        return self._branches.get(activation.id, self._root)

    def _piece(self, piece: ReplyDelta) -> None:
        if piece.kind == "progress":
            if (row := self._rows.get(piece.effect_id)) is not None:
                row.said = line(told(piece), WIDTH)
            return
        branch = self._branches.get(piece.activation)
        # A piece may be shown after the end of its effect, which holds all of it.
        if branch is None or piece.effect_id != branch.effect:
            return
        if piece.kind == "call_name":
            branch.doing, branch.written = "calling", piece.text[:WRITTEN]
        elif piece.kind in _WRITING:
            doing = _WRITING[piece.kind]
            before = branch.written if branch.doing == doing else ""
            branch.doing, branch.written = doing, (before + piece.text)[-WRITTEN:]

    def _started(self, branch: ShownAgent, effect: EffectNode) -> None:
        if effect.callee is not None:
            asked = ShownAgent(effect.callee, ShownRow(line(effect.name, WIDTH), kind="agent"))
            self._calls[effect.id] = self._branches[effect.callee.id] = asked
            self._add(branch, asked)
            self._tell(asked.row, effect.callee.asked)
        elif effect.model is not None:
            branch.doing, branch.written, branch.effect = "asking", "", effect.id
        elif effect.has_row:
            row = ShownRow(_called(effect), line(text_of(effect), WIDTH))
            self._rows[effect.id] = row
            self._add(branch, row)
            self._tell(row, row.said)

    def _finished(self, branch: ShownAgent, effect: EffectNode) -> None:
        asked, row = self._calls.pop(effect.id, None), self._rows.pop(effect.id, None)
        if effect.model is not None:
            self._replied(branch, effect)
        elif asked is not None:
            self._end(asked.row, effect)
            self._keep(asked)
        elif row is not None:
            self._end(row, effect)
        elif effect.has_row and not effect.finishes:
            # Refused, or done at once.
            row = ShownRow(_called(effect))
            self._add(branch, row)
            self._end(row, effect)

    def _replied(self, branch: ShownAgent, effect: EffectNode) -> None:
        branch.doing = branch.written = branch.effect = ""
        reply = effect.model.reply if effect.model is not None else None
        if reply is not None and reply.calls and reply.content.strip():
            self._say(branch, reply.content)
        elif reply is None and effect.outcome != "cancelled":
            row = ShownRow(f"model {line(effect.name, WIDTH)}")
            self._add(branch, row)
            self._end(row, effect)

    def _say(self, branch: ShownAgent, text: str) -> None:
        self._add(branch, ShownRow("", line(text, WIDTH), "completed", "said"))

    def _end(self, row: ShownRow, effect: EffectNode) -> None:
        row.outcome, row.said = outcome_of(effect) or "unknown", line(text_of(effect), WIDTH)
        self._tell(row, row.said)

    def _add(self, branch: ShownAgent, row: ShownRow | ShownAgent) -> None:
        branch.rows.append(row)
        if len(branch.rows) > ROWS:
            gone = next((each for each in branch.rows if _row(each).outcome), None)
            if gone is not None:
                branch.rows.remove(gone)
                branch.left_out += 1

    def _keep(self, branch: ShownAgent) -> None:
        """Keep what is shown of an agent that has ended; only the latest of them keep their rows."""
        if (node := branch.node) is not None:
            self._branches.pop(node.id, None)
            branch.turns, branch.tokens, branch.node = *_counted(node), None
        branch.doing = branch.written = ""
        self._ended.append(branch)
        if len(self._ended) > ENDED:
            oldest = self._ended.popleft()
            oldest.left_out += len(oldest.rows)
            oldest.rows.clear()

    def _tell(self, row: ShownRow, said: str) -> None:
        if len(self.news) < LINES:
            how = "" if row.outcome in ("", "completed") else f" {row.outcome}"
            self.news.append(f"{_mark(row)} {row.text}{how}{': ' if said else ''}{line(said, WIDTH)}")

    # -- how it stands ------------------------------------------------------------------------

    def html(self) -> str:
        """The picture as HTML, of bounded size; every text of the run is escaped."""
        found = [_html(depth, row, branch) for depth, row, branch in self._chosen()]
        writing = [each for each in self._branches.values() if each.doing in _WRITING.values()]
        found += [_written(each) for each in writing[-WRITERS:]]
        return "".join(found)

    def lines(self) -> list[str]:
        """The picture as lines of plain text."""
        return [
            f"{'  ' * min(depth, INDENTED)}{_plain(row, branch)}" for depth, row, branch in self._chosen()
        ]

    def _chosen(self) -> list[tuple[int, ShownRow, ShownAgent | None]]:
        """The rows that fit, each with its depth: what has ended under others goes first, then the oldest."""
        found = list(self._walk(whole=True))
        if len(found) > LINES:
            found = list(self._walk(whole=False))
        if len(found) > LINES:
            more = ShownRow("", f"{len(found) - LINES + 1:,} more", "completed", "said")
            found = [(0, more, None), *found[1 - LINES :]]
        return found

    def _walk(self, *, whole: bool) -> Iterator[tuple[int, ShownRow, ShownAgent | None]]:
        # A stack of its own: calls may be nested deeper than Python's.
        stack: list[Iterator[ShownRow | ShownAgent]] = [iter(self._root.rows)]
        while stack:
            each = next(stack[-1], None)
            if each is None:
                stack.pop()
                continue
            depth, row = len(stack) - 1, _row(each)
            if isinstance(each, ShownRow):
                if whole or not row.outcome:
                    yield depth, row, None
                continue
            yield depth, row, each
            if whole or not row.outcome:
                if whole and each.left_out:
                    yield depth + 1, ShownRow("", f"{each.left_out:,} earlier", "completed", "said"), None
                stack.append(iter(each.rows))


def _row(each: ShownRow | ShownAgent) -> ShownRow:
    return each if isinstance(each, ShownRow) else each.row


def _counted(node: ActivationNode) -> tuple[int, int]:
    return node.turn, node.total.usage.total


def _called(effect: EffectNode) -> str:
    """What an effect is, as it is called: `look(page=3)`, `approval of send(to="x")`."""
    name = line(name_of(effect), WIDTH)
    if effect.is_question:
        return f"question: {name}" if effect.wait is not None and effect.wait.tool else "question"
    if effect.wait is not None and not effect.is_approval:
        return f"{effect.purpose} {name}".strip()
    given = f"{name}({short_arguments(effect.arguments)})"
    return f"approval of {given}" if effect.is_approval else given


def _mark(row: ShownRow) -> str:
    return _MARKS.get(row.outcome, "✗") if row.kind != "said" else "“"


def _facts(row: ShownRow, branch: ShownAgent | None) -> list[str]:
    """What stands behind a row's name."""
    found = [row.outcome] if row.outcome not in ("", "completed") else []
    if branch is not None:
        turns, tokens = _counted(branch.node) if branch.node is not None else (branch.turns, branch.tokens)
        found += [f"{turns} turns"] if turns > 1 else []
        found += [f"{tokens:,} tokens"] if tokens else []
        if branch.doing:
            name = f" {line(branch.written, 40)}" if branch.doing == "calling" else f" {CUT}"
            found.append(f"{branch.doing}{name}")
    return found + ([row.said] if row.said else [])


def _plain(row: ShownRow, branch: ShownAgent | None) -> str:
    return " · ".join([f"{_mark(row)} {row.text}".rstrip(), *_facts(row, branch)])


def _html(depth: int, row: ShownRow, branch: ShownAgent | None) -> str:
    color = _COLORS.get(row.outcome, "#dc2626") if row.kind != "said" else "inherit"
    name = f"<b>{escape(row.text)}</b>" if row.kind == "agent" else escape(row.text)
    rest = "".join(f' <span style="opacity:.7">· {escape(each)}</span>' for each in _facts(row, branch))
    return (
        f'<div style="padding-left:{min(depth, INDENTED) * 1.5:g}em">'
        f'<span style="color:{color}">{_mark(row)}</span> {name}{rest}</div>'
    )


def _written(branch: ShownAgent) -> str:
    """The end of what an agent's model is writing."""
    cut = CUT if len(branch.written) >= WRITTEN else ""
    return (
        f'<div style="border-left:2px solid #0891b2;padding-left:.7em;margin:.3em 0;white-space:pre-wrap">'
        f"<b>{escape(branch.row.text)}</b>: {cut}{escape(visible(branch.written))}</div>"
    )
