"""One line of plain text per record: progress when nobody draws a tree, and `runs tail`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from antiphon import Record
from antiphon.cli.display import terminal_escape
from antiphon.cli.display.draw import clock, waiting
from antiphon.cli.display.tree import CallTree, ends_task
from antiphon.kernel.facts.events import Fork
from antiphon.values.message import FileChange, Message
from antiphon.view.changes import (
    CallQueued,
    CancelRequest,
    DataChange,
    DecisionMade,
    EffectEnd,
    EffectStart,
    FilesChange,
    MessageArrival,
    RunClose,
    RunDrain,
    RunResume,
    RunStart,
    ToolsetChange,
    TranscriptChange,
    TurnEnd,
    TurnStart,
)
from antiphon.view.nodes import DeadLetter, EffectNode
from antiphon.view.wording import name_of, short_arguments

WIDTH = 160
SHOWN_FILES = 5
"""Files that are named of those that a call changed."""


def told(record: Record, tree: CallTree) -> str:
    """The record in words, clean and on one line; `tree` has taken it in already."""
    branch = tree.branches.get(record.activation)
    agent = terminal_escape.line(branch.label if branch is not None else record.agent, 40)
    match tree.change:
        case CallQueued(_, effect):
            return f"{agent} asks {terminal_escape.line(effect.name, 64)}, which answers those before first"
        case EffectStart(_, effect):
            return f"{agent} {_started(effect, tree)}"
        case EffectEnd(_, effect):
            return f"{agent} {_ended(effect, tree)}"
        case MessageArrival(_, message):
            return _posted(message)
        case DeadLetter(_, message, reason):
            receiver = terminal_escape.line(message.receiver, 40)
            return f"not delivered to {receiver}: {terminal_escape.line(reason, WIDTH)}"
        case DecisionMade(_, effect_id, decision):
            word = "allowed" if decision.allowed else "not allowed"
            by = f" by {terminal_escape.line(decision.by, 40)}" if decision.by else ""
            rule = f" (rule {terminal_escape.line(decision.rule, 40)})" if decision.rule else ""
            return f"{agent} is {word} {effect_id}{by}{rule}{' from now on' if decision.remembered else ''}"
        case TurnStart():
            return f"{agent} takes a turn"
        case TurnEnd(_, turn):
            return f"{agent} ends the turn{', another follows' if turn.another_turn else ''}"
        case DataChange() as change:
            return f"{agent} notes {', '.join([*change.set, *change.append])}"
        case TranscriptChange(_, trimmed):
            return f"{agent}: {f'{trimmed} old results removed' if trimmed else 'conversation compacted'}"
        case CancelRequest(target, reason):
            return f"cancel {target or 'every request'}{_why(reason)}"
        case RunResume(_, fork):
            return "run resumed" if fork is None else _forked(fork)
        case FilesChange(effect, changed):
            return f"{terminal_escape.line(effect.name, 64)} changes {_paths(changed)}"
        case ToolsetChange() as change:
            return _toolset(change)
        case RunDrain():
            return "run is drained: nothing new starts"
        case RunStart(run_id):
            return f"run started: {terminal_escape.line(run_id)}"
        case RunClose(reason):
            return f"run closed{_why(reason)}"
        case None:
            return ""


def _forked(fork: Fork) -> str:
    return f"run forked from {terminal_escape.line(fork.origin)} after record {fork.seq:,}"


def spoken(tree: CallTree) -> str:
    """The line for what an agent has said on the way, when that shows with the last record; else empty."""
    if tree.spoken is None:
        return ""
    branch, text = tree.spoken
    return f"{terminal_escape.line(branch.label, 40)} says: {terminal_escape.line(text, WIDTH)}"


def progress(record: Record, tree: CallTree) -> str:
    """The line for people who follow a run, or an empty text for what is routine."""
    match tree.change:
        case EffectStart(_, effect):
            routine = effect.model is not None or effect.what in ("deadline", "instructions")
        case EffectEnd(_, effect):
            replied = effect.model is not None and effect.model.reply is not None
            ends_work = effect.finishes and effect.callee is None
            said = effect.is_timer or effect.what == "instructions"
            done = effect.outcome == "completed" and (ends_work or said)
            routine = replied or done or effect.what == "deadline"
        case MessageArrival(activation, _):
            routine = not activation.id
        case ToolsetChange(toolset, before):
            routine = not toolset.reason and not before
        case CallQueued() | DeadLetter() | CancelRequest() | RunResume():
            routine = False
        case _:
            routine = True
    return "" if routine else told(record, tree)


def _started(effect: EffectNode, tree: CallTree) -> str:
    name, called = terminal_escape.line(effect.name, 64), tree.called(effect)
    if effect.model is not None:
        return f"asks {name}"
    if called is not None:
        label, asked = terminal_escape.line(called.label, 64), terminal_escape.line(called.node.asked, WIDTH)
        return f"calls {label}: {asked}".rstrip(": ")
    words = _STARTS.get(effect.what)
    return words(effect) if words is not None else f"waits ({effect.what})"


def _paths(changed: Sequence[FileChange]) -> str:
    shown = [terminal_escape.line(each.path, 64) for each in changed[:SHOWN_FILES]]
    more = len(changed) - len(shown)
    return ", ".join([*shown, f"{more} more"] if more else shown)


def _toolset(change: ToolsetChange) -> str:
    toolset = change.toolset
    name = f"toolset {terminal_escape.line(toolset.name, 64)}"
    if toolset.reason:
        return f"{name} is down: {terminal_escape.line(toolset.reason, WIDTH)}"
    return f"{name} {'is up again' if change.before else 'is up'}, tools: {len(toolset.tools)}"


def _due(effect: EffectNode) -> str:
    due = effect.wait.due_at if effect.wait is not None else 0.0
    return f"has until {clock('%H:%M:%S', due)}"


def _used(effect: EffectNode) -> str:
    return f"{terminal_escape.line(effect.name, 64)}({short_arguments(effect.arguments, WIDTH)})"


_STARTS: Mapping[str, Callable[[EffectNode], str]] = {
    "action": lambda effect: "acts",
    "instructions": lambda effect: "writes its instructions",
    "step": lambda effect: f"takes the step {terminal_escape.line(effect.name, 64)}",
    "tool": lambda effect: f"uses {_used(effect)}",
    "approval": lambda effect: f"asks to allow {_used(effect)}",
    "limit": lambda effect: f"asks for more: {terminal_escape.line(effect.text, WIDTH)}",
    "joined": lambda effect: f"waits for more: {terminal_escape.line(effect.text, WIDTH)}",
    "question": lambda effect: f"asks the user: {terminal_escape.line(effect.text, WIDTH)}",
    "deadline": _due,
    "retry": waiting,
}
"""What is said of the start of each kind of effect."""


def _ended(effect: EffectNode, tree: CallTree) -> str:
    if effect.model is not None and effect.model.reply is not None:
        reply = effect.model.reply
        calls = ", ".join(terminal_escape.line(call.name, 64) for call in reply.calls)
        said = f"calls {calls}" if calls else terminal_escape.line(reply.content, WIDTH)
        tokens = f"{reply.usage.total:,} tokens" if reply.usage is not None else "tokens not reported"
        return f"gets a reply ({tokens}): {said}"
    if effect.is_timer and effect.outcome == "completed":
        return "has waited"
    if effect.what == "deadline":
        return "needs its deadline no more"
    if ends_task(effect):
        return f"finishes: {terminal_escape.line(effect.content, WIDTH)}"
    name = _result_name(effect, tree)
    done = {"action": "has acted", "step": f"has taken the step {name}"}.get(effect.what)
    if done is not None:
        return f"{done}{_why(effect.reason)}"
    if effect.outcome == "completed":
        return f"gets {name}: {terminal_escape.line(effect.content, WIDTH)}".rstrip(": ")
    return f"gets {name}: {effect.outcome}{_why(effect.reason)}"


def _result_name(effect: EffectNode, tree: CallTree) -> str:
    """What the result of an effect is called."""
    called = tree.called(effect)
    if effect.model is not None:
        return "no reply"
    if effect.asks_person:
        return effect.what
    if called is not None:
        return terminal_escape.line(called.label, 64)
    return terminal_escape.line(name_of(effect), 64) or effect.id


def _posted(message: Message) -> str:
    if message.calls:
        return f"{terminal_escape.line(message.sender, 40)} asks"
    pair = f"{terminal_escape.line(message.sender, 40)} tells {terminal_escape.line(message.receiver, 40)}"
    return f"{pair}: {terminal_escape.line(message.content, WIDTH)}"


def _why(reason: str) -> str:
    return f" ({terminal_escape.line(reason, WIDTH)})" if reason else ""
