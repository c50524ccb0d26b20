"""What a person sees of a run at a glance while they talk with it: who is at work, what it costs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Protocol

from rich.text import Text

from antiphon import Usage
from antiphon.cli.display import terminal_escape
from antiphon.cli.display.draw import model_wait
from antiphon.cli.display.reply_printer import Screen
from antiphon.cli.display.tree import CallBranch, CallTree
from antiphon.config.dotenv import environment
from antiphon.models.catalog import load_catalog
from antiphon.models.usage import context_left
from antiphon.view.nodes import ActivationNode, EffectNode
from antiphon.view.wording import cost_text, name_of, short_arguments

WIDTH = 200
"""Characters of a line."""


class TalkTarget(Protocol):
    """Who is talked with: a Target, or a team of a server."""

    @property
    def entry(self) -> str: ...

    @property
    def agents(self) -> Sequence[Any]: ...


def working(tree: CallTree) -> list[str]:
    """A line for each agent at work: what it does."""
    now = time.time()
    lines = [(each, _doing(each, now)) for each in tree.branches.values() if each.node.id]
    return [terminal_escape.line(f"{each.label}: {doing}", WIDTH) for each, doing in lines if doing]


def _doing(branch: CallBranch, now: float) -> str:
    if branch.doing:
        return model_wait(branch, now) or f"{branch.doing}{terminal_escape.CUT}"
    for row in reversed(branch.rows):
        if isinstance(row, EffectNode) and row.ended_at is None and row.callee is None and row.model is None:
            return (
                ""
                if row.is_timer or row.asks_person
                else f"{name_of(row)} {short_arguments(row.arguments)}".strip()
            )
    return ""


def gives_output(effect: EffectNode) -> bool:
    """Whether what an effect gave back is worth more than a line: a tool's, and more than one."""
    plain = effect.what == "tool" and effect.callee is None and effect.outcome == "completed"
    return plain and not effect.finishes and "\n" in effect.content.strip("\n")


def output_title(effect: EffectNode, branch: CallBranch | None) -> str:
    """What is said above an output."""
    whose = terminal_escape.line(branch.label, 40) if branch is not None else ""
    return f"{whose} gets {terminal_escape.line(name_of(effect), 64)}:".lstrip()


def context_of(model: str, usage: Usage) -> int | None:
    """What is left of a model's context after a call, in percent; None where its window is not known."""
    return context_left(usage, load_catalog(env=environment()).find(model))


def facts(tree: CallTree, name: str, model: str, left: int | None) -> str:
    """Who is talked with, what is left of the context, what it cost so far."""
    totals = tree.run.totals
    found = [name, terminal_escape.line(model, 60)]
    found.append(f"{left} % of the context left" if left is not None else "")
    found.append(cost_text(totals.cost) if totals.usage.total else "")
    return " · ".join(each for each in found if each)


def exchange(screen: Screen, node: ActivationNode, *, whole: bool, answered: bool = True) -> None:
    """What was asked and, unless it is not `answered` yet, said; `whole`: all of it."""
    if not (node.asked or node.content):
        return
    said = node.content if node.outcome == "completed" else f"({node.outcome or 'at work'}: {node.reason})"
    screen.end_line()
    for mark, text in (("> ", node.asked), ("", said))[: 2 if answered else 1]:
        shown = text if whole else terminal_escape.line(text, 400)
        screen.console.print(Text(mark + shown, "bold" if mark else ""), soft_wrap=True)


def less(whole: Usage, part: Usage) -> Usage:
    """The tokens of `whole` without those of `part`."""
    return Usage(*(getattr(whole, name) - getattr(part, name) for name in Usage.__struct_fields__))


def title_of(target: TalkTarget) -> str:
    """Whom one talks to, fit for the screen."""
    return terminal_escape.line(target.entry, 60)
