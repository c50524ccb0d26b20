"""One line of plain text per record: progress when nobody draws a tree, and `runs tail`."""

from __future__ import annotations

import time

from antiphon import Record
from antiphon.cli.display import terminal_escape
from antiphon.cli.display.draw import waiting
from antiphon.cli.display.tree import CallTree, short_arguments
from antiphon.kernel.facts.events import (
    ASKING,
    CancelRequested,
    EffectFinished,
    EffectStarted,
    HistoryCompacted,
    MessagePosted,
    PermissionDecided,
    RunResumed,
    RunStarted,
    StateChanged,
    TurnFinished,
    TurnStarted,
)

WIDTH = 160


def told(record: Record, tree: CallTree) -> str:
    """The record in words, clean and on one line; `tree` has taken it in already."""
    node = tree.nodes.get(record.activation)
    event, agent = record.event, terminal_escape.line(node.label if node is not None else record.agent, 40)
    if isinstance(event, EffectStarted):
        return f"{agent} {_started(event, tree)}"
    if isinstance(event, EffectFinished):
        return f"{agent} {_finished(event, tree)}"
    if isinstance(event, MessagePosted):
        return _posted(event)
    if isinstance(event, PermissionDecided):
        word = "allowed" if event.allowed else "not allowed"
        by = f" by {terminal_escape.line(event.by, 40)}" if event.by else ""
        return f"{agent} is {word} {event.id}{by}{' from now on' if event.remember else ''}"
    if isinstance(event, TurnStarted):
        return f"{agent} takes a turn"
    if isinstance(event, TurnFinished):
        return f"{agent} ends the turn{', another follows' if event.more else ''}"
    if isinstance(event, StateChanged):
        return f"{agent} notes {', '.join([*event.set, *event.append])}"
    if isinstance(event, HistoryCompacted):
        what = f"{event.trimmed} old results removed" if event.trimmed else "conversation compacted"
        return f"{agent}: {what}"
    if isinstance(event, CancelRequested):
        return f"cancel {event.target or 'every request'}{_why(event.why)}"
    if isinstance(event, RunResumed):
        return "run resumed"
    if isinstance(event, RunStarted):
        return f"run started: {event.run_id}"
    return f"run closed{_why(event.why)}"


def spoken(tree: CallTree) -> str:
    """The line for what an agent has said on the way, when that shows with the last record; else empty."""
    if tree.spoken is None:
        return ""
    node, text = tree.spoken
    return f"{terminal_escape.line(node.label, 40)} says: {terminal_escape.line(text, WIDTH)}"


def progress(record: Record, tree: CallTree) -> str:
    """The line for people who follow a run, or an empty text for what is routine."""
    event = record.event
    if _is_deadline(event, tree):
        return ""
    if isinstance(event, EffectStarted) and event.kind != "model":
        return told(record, tree)
    if isinstance(event, EffectFinished):
        reply = event.reply
        if reply is not None or (event.ends and event.outcome == "completed") or _waited(event, tree):
            return ""
        return told(record, tree)
    if isinstance(event, MessagePosted):
        return told(record, tree) if event.dead or event.to else ""
    if isinstance(event, CancelRequested | RunResumed):
        return told(record, tree)
    return ""


def _started(event: EffectStarted, tree: CallTree) -> str:
    name = terminal_escape.line(event.name, 64)
    item = tree.items.get(event.id)
    if event.kind == "model":
        return f"asks {name}"
    if item is None:
        return f"starts {event.kind} {name}"
    if event.kind == "call" and item.node is not None:
        label, asked = terminal_escape.line(item.node.label, 64), terminal_escape.line(item.node.asked, WIDTH)
        return f"calls {label}: {asked}".rstrip(": ")
    if event.kind in ("action", "step"):
        return "acts" if event.kind == "action" else f"takes the step {name}"
    if event.kind == "tool":
        return f"uses {name}({short_arguments(item.arguments, WIDTH)})"
    if event.purpose == "approval":
        return f"asks to allow {name}({short_arguments(item.arguments, WIDTH)})"
    if event.purpose == "limit":
        return f"asks for more: {terminal_escape.line(event.text, WIDTH)}"
    if event.purpose == "question":
        return f"asks the user: {terminal_escape.line(event.text, WIDTH)}"
    if event.purpose == "deadline":
        return f"has until {time.strftime('%H:%M:%S', time.localtime(event.until))}"
    return waiting(item) if event.purpose == "retry" else f"waits ({event.purpose or 'timer'})"


def _finished(event: EffectFinished, tree: CallTree) -> str:
    if event.reply is not None:
        usage, calls = (
            event.reply.usage,
            ", ".join(terminal_escape.line(call.name, 64) for call in event.reply.calls),
        )
        said = f"calls {calls}" if calls else terminal_escape.line(event.reply.content, WIDTH)
        return f"gets a reply ({usage.total:,} tokens): {said}"
    if _waited(event, tree):
        return "has waited"
    item = tree.items.get(event.id)
    if item is not None and item.purpose == "deadline":
        return "needs its deadline no more"
    if item is None and event.ends:
        return f"finishes: {terminal_escape.line(event.content, WIDTH)}"
    name = terminal_escape.line(item.name, 64) if item is not None and item.name else event.id
    if item is not None and item.node is not None:
        name = terminal_escape.line(item.node.label, 64)
    if ".m" in event.id:
        name = "no reply"
    if item is not None and item.purpose in ASKING:
        name = item.purpose
    if item is not None and item.kind in ("action", "step"):
        done = "has acted" if item.kind == "action" else f"has taken the step {name}"
        return f"{done}{_why(event.why)}"
    if event.outcome == "completed":
        return f"gets {name}: {terminal_escape.line(event.content, WIDTH)}".rstrip(": ")
    return f"gets {name}: {event.outcome}{_why(event.why)}"


def _is_deadline(event: object, tree: CallTree) -> bool:
    """Whether it is about the time that an agent has: a bound, and nothing that happens."""
    item = tree.items.get(event.id) if isinstance(event, EffectStarted | EffectFinished) else None
    return item is not None and item.purpose == "deadline"


def _waited(event: EffectFinished, tree: CallTree) -> bool:
    """Whether a timer ran out: nothing happened, time went by."""
    item = tree.items.get(event.id)
    timer = item is not None and item.kind == "wait" and item.purpose in ("retry", "deadline")
    return timer and event.outcome == "completed"


def _posted(event: MessagePosted) -> str:
    message = event.message
    if event.dead:
        receiver = terminal_escape.line(message.receiver, 40)
        return f"not delivered to {receiver}: {terminal_escape.line(event.dead, WIDTH)}"
    if message.calls:
        return f"{terminal_escape.line(message.sender, 40)} asks"
    pair = f"{terminal_escape.line(message.sender, 40)} tells {terminal_escape.line(message.receiver, 40)}"
    return f"{pair}: {terminal_escape.line(message.content, WIDTH)}"


def _why(why: str) -> str:
    return f" ({terminal_escape.line(why, WIDTH)})" if why else ""
