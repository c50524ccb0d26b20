"""A call tree as lines of text: for the live view and for `runs show`."""

from __future__ import annotations

import time
from collections.abc import Iterator

from rich.text import Text

from antiphon.cli.display import terminal_escape
from antiphon.cli.display.tree import ASKING, CallBranch, CallTree, Remark
from antiphon.view.nodes import EffectNode
from antiphon.view.wording import name_of, outcome_of, seconds, short_arguments, spent, text_of

MARKS = {"": "●", "completed": "✓"}
ASCII_MARKS = {"": "*", "completed": "+"}
STYLES = {
    "": "cyan",
    "completed": "green",
    "denied": "yellow",
    "skipped": "dim",
    "unknown": "magenta",
    "cancelled": "yellow",
}
GUIDES = ("├─ ", "└─ ", "│  ", "   ")
ASCII_GUIDES = ("|- ", "`- ", "|  ", "   ")
WORTH_SAYING = 3.0
"""Seconds after which somebody who watches is told that a model is waited for."""
FOLDED = 200
"""A tree of more nodes shows what has ended in one line each."""


def clock(form: str, at: float) -> str:
    """An instant as the local clock shows it; `?` for one that no clock does, as in a run that was forged."""
    try:
        return time.strftime(form, time.localtime(at))
    except (OverflowError, ValueError, OSError):
        return "?"


def tokens(tree: CallTree) -> str:
    """Tokens and cost so far."""
    return spent(tree.run.totals)


def model_wait(branch: CallBranch, now: float) -> str:
    """What an agent is waiting for that has asked its model; empty while that is not worth a word."""
    span = now - branch.asked_at
    if branch.doing != ASKING or (span < WORTH_SAYING and not branch.queue_place):
        return ""
    if branch.queue_place:
        before = branch.queue_place - 1
        return f"waiting for its turn, {before:,} before it" if before else "waiting for its turn, it is next"
    return f"waiting for the model, {seconds(int(span)) if span >= 10 else f'{int(span)} s'}"


def waiting(effect: EffectNode) -> str:
    """What a wait between two attempts of a model call is for: `waits 2.0 s: rate limit (attempt 2 of 3)`."""
    name, due = name_of(effect), effect.wait.due_at if effect.wait is not None else 0.0
    why = f": {terminal_escape.line(name, 40)}" if name else ""
    attempt = f" ({terminal_escape.line(effect.text, 40)})" if effect.text else ""
    word = "waited" if effect.outcome else "waits"
    return f"{word} {seconds(due - effect.began_at)}{why}{attempt}"


def decided(effect: EffectNode) -> str:
    """Who allowed or denied it, where it stands: `allowed by ann` of what a person was asked, `by policy`
    of a call that nobody was asked about."""
    found = effect.decision
    if found is None or not (found.by or found.rule) or (effect.wait is None and not found.rule):
        return ""
    word = "" if effect.outcome == "denied" else "allowed " if found.allowed else "denied "
    who, rule = terminal_escape.line(found.by, 40), terminal_escape.line(found.rule, 60)
    return f"{word}by {who} ({rule})" if who and rule else f"{word}by {who or rule}"


class Drawing:
    """Draws a tree at a given width (0: lines are never cut). `whole`: also what has ended, in full."""

    def __init__(self, tree: CallTree, width: int, *, ascii_only: bool = False, whole: bool = False) -> None:
        self._tree, self._width, self._whole = tree, width, whole
        self._marks = ASCII_MARKS if ascii_only else MARKS
        self._guides = ASCII_GUIDES if ascii_only else GUIDES
        self._wrong = "x" if ascii_only else "✗"
        self._arrow = "->" if ascii_only else "→"
        self._newest = 0
        self._watched = False

    def lines(self, now: float) -> list[Text]:
        """Every line of the tree, requests first to last."""
        fold = not self._whole and len(self._tree.branches) > FOLDED
        found: list[Text] = []
        for row in self._tree.root.rows:
            found.extend(self._under(row, now, fold))
        return found

    def screen(self, now: float, height: int) -> list[Text]:
        """The lines that fit into `height`: ended branches are folded first, then the oldest go."""
        # Of a long turn only its end can be seen: what cannot is not even made.
        self._newest, self._watched = max(height // 2, 3), True
        found = self.lines(now)
        if len(found) > height:
            found = []
            for row in self._tree.root.rows[-height:]:
                found.extend(self._under(row, now, True))
        self._newest, self._watched = 0, False
        if len(found) > height:
            found = [Text(f"{terminal_escape.CUT} more above", "dim"), *found[len(found) - height + 1 :]]
        return found

    def _under(self, request: EffectNode | Remark, now: float, fold: bool) -> Iterator[Text]:
        """The lines of a request and all under it. A branch as a row: what its model is doing."""
        # A stack of its own: calls may be nested deeper than Python's.
        left: list[tuple[EffectNode | Remark | CallBranch, str, str]] = [(request, "", "")]
        while left:
            row, lead, deeper = left.pop()
            if isinstance(row, CallBranch):
                yield self._fit(self._live(row, lead, now))
                continue
            branch = self._tree.called(row) if isinstance(row, EffectNode) else None
            rows: list[EffectNode | Remark | CallBranch]
            if branch is None:
                yield self._fit(self._leaf(row, lead, now))
                rows = [*self._tree.inside.get(row.id, ())] if isinstance(row, EffectNode) else []
                if isinstance(row, EffectNode) and fold and row.outcome:
                    continue
            else:
                yield self._fit(self._head(branch, lead, now))
                ended = branch.node.outcome
                if fold and ended:
                    continue
                rows = [*branch.rows]
                if branch.doing and not ended:
                    rows.append(branch)
            if self._newest and len(rows) > self._newest:
                older, rows = rows[: -self._newest], rows[-self._newest :]
                working = [each for each in older if isinstance(each, EffectNode) and not outcome_of(each)]
                yield Text(f"{deeper}{terminal_escape.CUT} {len(older) - len(working):,} earlier", "dim")
                rows = [*working, *rows]
            for place, each in enumerate(reversed(rows)):
                guide, under = self._guides[0 if place else 1], self._guides[2 if place else 3]
                left.append((each, deeper + guide, deeper + under))

    def _mark(self, outcome: str) -> tuple[str, str]:
        return self._marks.get(outcome, self._wrong) + " ", STYLES.get(outcome, "red")

    def _head(self, branch: CallBranch, lead: str, now: float) -> Text:
        node = branch.node
        text = Text.assemble(
            (lead, "dim"), self._mark(node.outcome), (terminal_escape.line(branch.label, 40), "bold")
        )
        text.append(f"  {self._cut(node.asked, 60)}")
        facts = [seconds((now if node.ended_at is None else node.ended_at) - node.started_at)]
        if node.outcome not in ("", "completed"):
            facts.insert(0, node.outcome)
        if node.own.usage.total:
            facts.append(f"{node.own.usage.total:,} tokens")
        text.append(f"  {', '.join(facts)}", "dim")
        if node.outcome and (node.outcome != "completed" or self._whole):
            said = node.content if node.outcome == "completed" else node.reason
            text.append(f"  {self._arrow} {self._cut(said, 120)}")
        return text

    def _leaf(self, row: EffectNode | Remark, lead: str, now: float) -> Text:
        text = Text.assemble((lead, "dim"))
        if isinstance(row, Remark):
            if not row.sender:
                return text.append(self._cut(row.text, 100), "italic dim")
            return text.append(f"{terminal_escape.line(row.sender, 40)} adds: {self._cut(row.text, 100)}")
        outcome, said = outcome_of(row), text_of(row)
        text.append(*self._mark(outcome))
        name = terminal_escape.line(name_of(row), 40 if row.model is not None else 64)
        if row.wait is not None:
            text.append(self._wait(row, outcome))
        elif row.model is not None:
            text.append(f"{name}: {self._cut(said, 100)}", "red")
            return text
        elif row.what == "step":
            text.append(f"step {name}")
        else:
            text.append(f"{name}({short_arguments(row.arguments, self._room(60))})")
        if not outcome:
            text.append(f"  {seconds(now - row.began_at)}", "dim")
            come = self._tree.progress.get(row.id, "")
            return text.append(f"  {self._cut(come, 100)}", "dim") if come else text
        if outcome != "completed":
            text.append(f"  {outcome}", STYLES.get(outcome, "red"))
        if self._whole and (by := decided(row)):
            text.append(f"  {by}", "dim")
        if said and row.what != "approval":
            text.append(f"  {self._arrow} {self._cut(said, 100)}", "dim")
        return text

    def _wait(self, wait: EffectNode, outcome: str) -> str:
        name = terminal_escape.line(name_of(wait), 64)
        match wait.what:
            case "approval":
                asked = f"{name}({short_arguments(wait.arguments, self._room(60))})"
                return f"asked to allow {asked}" if outcome else f"waits for permission: {asked}"
            case "limit":
                return f"asked for more: {self._cut(text_of(wait), 80)}"
            case "question":
                return "asked you" if outcome else f"asks you: {self._cut(wait.text, 80)}"
            case "retry":
                return waiting(wait)
        return f"waits for {name}" if name else "waits"

    def _live(self, branch: CallBranch, lead: str, now: float) -> Text:
        # Of a run that is looked at later nobody knows who still waits.
        doing = (model_wait(branch, now) if self._watched else "") or f"{branch.doing}{terminal_escape.CUT}"
        text = Text.assemble((lead, "dim"), (doing, "cyan"))
        if branch.tail:
            room = max((self._width or 100) - text.cell_len - 3, 10)
            text.append(" " + terminal_escape.line(branch.tail)[-room:], "dim")
        return text

    def _room(self, wanted: int) -> int:
        """How much of a line one of its parts may take."""
        if not self._width:
            return 400 if self._whole else wanted
        return wanted if self._width >= 80 else max(self._width * wanted // 100, 10)

    def _cut(self, text: str, wanted: int) -> str:
        return terminal_escape.line(text, self._room(wanted))

    def _fit(self, text: Text) -> Text:
        text.no_wrap = True
        if self._width:
            text.truncate(self._width, overflow="ellipsis")
        return text
