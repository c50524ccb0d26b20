"""A call tree as lines of text: for the live view and for `runs show`."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from antiphon import Usage
from antiphon.cli.display import terminal_escape
from antiphon.cli.display.tree import CallTree, Item, Node, short_arguments

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
FOLDED = 200
"""A tree of more nodes shows what has ended in one line each."""


def seconds(span: float) -> str:
    """A span of time as people say it."""
    if span < 10:
        return f"{max(span, 0):.1f} s"
    if span < 120:
        return f"{span:.0f} s"
    minutes = int(span // 60)
    return f"{minutes} min {span % 60:.0f} s" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"


def tokens(tree: CallTree) -> str:
    """Tokens and cost so far."""
    usage = tree.usage
    if not usage.total:
        return "0 tokens" if not tree.bill.unpriced else "tokens and cost unknown"
    return f"{usage.total:,} tokens ({parts(usage)}), {tree.bill.text}"


def parts(usage: Usage) -> str:
    """What tokens were spent on: `10 in, 2 out`, and what of it was cached or reasoned, where any was."""
    inner = ((usage.cached, "cached"), (usage.cache_write, "to the cache"), (usage.reasoning, "reasoning"))
    said = [f"{usage.input:,} in", f"{usage.output:,} out"]
    return ", ".join([*said, *(f"{count:,} {word}" for count, word in inner if count)])


def waiting(item: Item) -> str:
    """What a wait between two attempts of a model call is for: `waits 2.0 s: rate limit (attempt 2 of 3)`."""
    why = f": {terminal_escape.line(item.name, 40)}" if item.name else ""
    attempt = f" ({terminal_escape.line(item.note, 40)})" if item.note else ""
    word = "waited" if item.outcome else "waits"
    return f"{word} {seconds(item.until - item.started)}{why}{attempt}"


class Drawing:
    """Draws a tree at a given width (0: lines are never cut). `whole`: also what has ended, in full."""

    def __init__(self, tree: CallTree, width: int, *, ascii_only: bool = False, whole: bool = False) -> None:
        self._tree, self._width, self._whole = tree, width, whole
        self._marks = ASCII_MARKS if ascii_only else MARKS
        self._guides = ASCII_GUIDES if ascii_only else GUIDES
        self._wrong = "x" if ascii_only else "✗"
        self._arrow = "->" if ascii_only else "→"
        self._newest = 0

    def lines(self, now: float) -> list[Text]:
        """Every line of the tree, requests first to last."""
        fold = not self._whole and len(self._tree.nodes) > FOLDED
        found: list[Text] = []
        for item in self._tree.root.items:
            found.extend(self._under(item, now, fold))
        return found

    def screen(self, now: float, height: int) -> list[Text]:
        """The lines that fit into `height`: ended branches are folded first, then the oldest go."""
        # Of a long turn only its end can be seen: what cannot is not even made.
        self._newest = max(height // 2, 3)
        found = self.lines(now)
        if len(found) > height:
            found = []
            for item in self._tree.root.items[-height:]:
                found.extend(self._under(item, now, True))
        self._newest = 0
        if len(found) > height:
            found = [Text(f"{terminal_escape.CUT} more above", "dim"), *found[len(found) - height + 1 :]]
        return found

    def _under(self, request: Item, now: float, fold: bool) -> Iterator[Text]:
        """The lines of a request and all under it. A node on its own stands for what its model is doing."""
        # A stack of its own: calls may be nested deeper than Python's.
        left: list[tuple[Item | Node, str, str]] = [(request, "", "")]
        while left:
            row, lead, deeper = left.pop()
            if isinstance(row, Node):
                yield self._fit(self._live(row, lead))
                continue
            if row.node is None:
                yield self._fit(self._leaf(row, lead, now))
                continue
            node = row.node
            yield self._fit(self._head(node, lead, now))
            if fold and node.outcome:
                continue
            rows: list[Item | Node] = [*node.items]
            if node.doing and not node.outcome:
                rows.append(node)
            if self._newest and len(rows) > self._newest:
                older, rows = rows[: -self._newest], rows[-self._newest :]
                working = [each for each in older if isinstance(each, Item) and not each.outcome]
                yield Text(f"{deeper}{terminal_escape.CUT} {len(older) - len(working):,} earlier", "dim")
                rows = [*working, *rows]
            for place, each in enumerate(reversed(rows)):
                branch, under = self._guides[0 if place else 1], self._guides[2 if place else 3]
                left.append((each, deeper + branch, deeper + under))

    def _mark(self, outcome: str) -> tuple[str, str]:
        return self._marks.get(outcome, self._wrong) + " ", STYLES.get(outcome, "red")

    def _head(self, node: Node, lead: str, now: float) -> Text:
        text = Text.assemble(
            (lead, "dim"), self._mark(node.outcome), (terminal_escape.line(node.label, 40), "bold")
        )
        text.append(f"  {self._cut(node.asked, 60)}")
        facts = [seconds((node.ended or now) - node.started)]
        if node.outcome not in ("", "completed"):
            facts.insert(0, node.outcome)
        if node.usage.total:
            facts.append(f"{node.usage.total:,} tokens")
        text.append(f"  {', '.join(facts)}", "dim")
        if node.outcome and (node.outcome != "completed" or self._whole):
            said = node.result if node.outcome == "completed" else node.why
            text.append(f"  {self._arrow} {self._cut(said, 120)}")
        return text

    def _leaf(self, item: Item, lead: str, now: float) -> Text:
        text = Text.assemble((lead, "dim"))
        if item.kind == "text":
            return text.append(self._cut(item.text, 100), "italic dim")
        if item.kind == "message":
            return text.append(f"{terminal_escape.line(item.name, 40)} adds: {self._cut(item.text, 100)}")
        text.append(*self._mark(item.outcome))
        if item.kind == "wait":
            text.append(self._wait(item))
        elif item.kind == "model":
            text.append(f"{terminal_escape.line(item.name, 40)}: {self._cut(item.text, 100)}", "red")
            return text
        elif item.kind == "step":
            text.append(f"step {terminal_escape.line(item.name, 64)}")
        else:
            text.append(
                f"{terminal_escape.line(item.name, 64)}({short_arguments(item.arguments, self._room(60))})"
            )
        if not item.outcome:
            return text.append(f"  {seconds(now - item.started)}", "dim")
        if item.outcome != "completed":
            text.append(f"  {item.outcome}", STYLES.get(item.outcome, "red"))
        if item.text and item.purpose != "approval":
            text.append(f"  {self._arrow} {self._cut(item.text, 100)}", "dim")
        return text

    def _wait(self, item: Item) -> str:
        name = terminal_escape.line(item.name, 64)
        if item.purpose == "approval":
            asked = f"{name}({short_arguments(item.arguments, self._room(60))})"
            if item.outcome:
                return f"asked to allow {asked}"
            return f"waits for permission: {asked}"
        if item.purpose == "limit":
            return f"asked for more: {self._cut(item.text, 80)}"
        if item.purpose == "question":
            return f"asks you: {self._cut(item.text, 80)}" if not item.outcome else "asked you"
        if item.purpose == "retry":
            return waiting(item)
        return f"waits for {name}" if name else "waits"

    def _live(self, node: Node, lead: str) -> Text:
        text = Text.assemble((lead, "dim"), (f"{node.doing}{terminal_escape.CUT}", "cyan"))
        if node.tail:
            room = max((self._width or 100) - text.cell_len - 3, 10)
            text.append(" " + terminal_escape.line(node.tail)[-room:], "dim")
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
