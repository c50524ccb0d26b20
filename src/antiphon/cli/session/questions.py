"""Questions of a run to the person at the terminal: permissions, and what agents ask the user."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import msgspec
from msgspec import Struct
from rich.console import Console
from rich.text import Text

from antiphon import Agent
from antiphon.cli.display import terminal_escape
from antiphon.cli.display.draw import clock
from antiphon.cli.screen.changes import change_rows
from antiphon.kernel.facts import ids
from antiphon.values.agent import own_tools
from antiphon.values.form import fitted
from antiphon.values.policy import CallSubject
from antiphon.view import RunTree
from antiphon.view.nodes import EffectNode, WaitDetail

LINES = 24
"""Lines of arguments shown at once; the rest on request, and never is anything left out silently."""
ANSWERS = {"y": "yes", "yes": "yes", "n": "no", "no": "no", "a": "always", "always": "always"}


MORE = "more of its limit"
"""What an agent asks to use that has reached a limit."""


class Question(Struct, frozen=True):
    """One open question. `tool` is empty for a question of an agent to the user. `outside`: the tool whose
    call it is, and whose result is the answer."""

    id: str
    agent: str
    text: str
    tool: str = ""
    arguments: str = ""
    options: tuple[str, ...] = ()
    schema: dict[str, Any] | None = None
    deadline: float | None = None
    """Unix seconds."""
    outside: str = ""


def ruled(effect: EffectNode) -> str:
    """What permission an effect asks for: the tool, or more of a limit; empty for a plain question."""
    if effect.is_question:
        return ""
    return effect.name if effect.is_approval else MORE


class Questions:
    """The open questions of a run, in the order they were asked, and what was allowed for all of it."""

    def __init__(self, run: RunTree) -> None:
        self.always: set[str] = set()
        self._run = run
        self._answered: set[str] = set()

    def next(self) -> Question | None:
        """The oldest open question."""
        for effect in self._run.human_inputs.values():
            if effect.id not in self._answered:
                agent, tool = self._run.activations[ids.activation_of(effect.id)].agent, ruled(effect)
                wait = effect.wait or WaitDetail()
                arguments = effect.arguments if tool or wait.tool else ""
                return Question(
                    effect.id, agent, effect.text, tool, arguments, wait.options, wait.schema,
                    wait.due_at or None, wait.tool,
                )  # fmt: skip
        return None

    def is_open(self, question: Question) -> bool:
        """Whether it still waits for an answer."""
        return question.id in self._run.human_inputs and question.id not in self._answered

    def answered(self, question: Question, answer: str) -> None:
        """It needs no further attention."""
        self._answered.add(question.id)
        if question.tool and question.tool != MORE and answer == "always":
            self.always.add(question.tool)


def does(agents: Iterable[Any], question: Question) -> tuple[CallSubject, ...]:
    """What the call does that is asked for, where its tool is here and says so; else nothing is known."""
    for agent in agents:
        if isinstance(agent, Agent) and agent.name == question.agent:
            for each in own_tools(agent):
                if each.name == question.tool:
                    with suppress(msgspec.DecodeError):
                        found = each.subjects(question.arguments)
                        return found if found != (CallSubject(question.arguments),) else ()
    return ()


def show(console: Console, question: Question, whole: bool = False, *, prompt: bool = True) -> None:
    """Put a question on the terminal; what came from a model is cleaned. prompt: with what may be typed."""
    agent = terminal_escape.line(question.agent, 60)
    console.print()
    if not question.tool:
        console.print(Text.assemble((agent, "bold"), " asks you:"))
        console.print(Text(terminal_escape.clean(question.text)))
        for line in laid_out(question.arguments, max(console.width - 2, 20)) if question.outside else ():
            console.print(Text("  " + line), soft_wrap=True)
        for line in form_lines(question.options, question.schema, question.deadline):
            console.print(Text("  " + line), soft_wrap=True)
        if prompt:
            console.print(Text("your answer: ", "bold"), end="")
        return
    console.print(
        Text.assemble(
            (agent, "bold"), " asks to use ", (terminal_escape.line(question.tool, 64), "bold yellow")
        )
    )
    lines = argument_rows(question.arguments, max(console.width - 2, 20))
    shown = lines if whole else lines[:LINES]
    for each in shown:
        console.print(each, soft_wrap=True)
    hidden = len(lines) - len(shown)
    if hidden and prompt:
        console.print(Text(f"  {terminal_escape.CUT} {hidden:,} more lines: v shows them", "yellow"))
    if question.text:
        console.print(Text(f"({terminal_escape.line(question.text, 600)})", "dim"))
    for line in form_lines((), None, question.deadline):
        console.print(Text(line, "dim"))
    if prompt:
        console.print(Text("allow? [y]es, [n]o, [a]lways for this run: ", "bold"), end="")


def answer_to(question: Question, line: str) -> str | None:
    """What a typed line says to a question; None when it says nothing clear. Raises ValueError: why it does
    not fit."""
    if question.tool:
        return verdict(line)
    return answer_in_form(line.strip(), question.options, question.schema) if line.strip() else None


def verdict(text: str) -> str | None:
    """What a typed line says to a permission: yes, no, always; None when it says nothing clear."""
    return ANSWERS.get(text.strip().lower())


def form_lines(options: Sequence[str], schema: Mapping[str, Any] | None, deadline: float | None) -> list[str]:
    """What an answer must be, a line each; whatever came from a model is cleaned."""
    lines = [f"{number}  {terminal_escape.line(each, 200)}" for number, each in enumerate(options, 1)]
    if options:
        lines.append("(one of these, or its number)")
    if schema is not None:
        shown = msgspec.json.encode(schema).decode()
        lines.append(f"(JSON that fits {terminal_escape.line(shown, 1_000)})")
    if deadline is not None:
        lines.append(f"(until {clock('%Y-%m-%d %H:%M:%S', deadline)})")
    return lines


def answer_in_form(text: str, options: Sequence[str], schema: Mapping[str, Any] | None) -> str:
    """What a person typed as the answer: of options also the number, or other capitals.

    Raises ValueError saying where it does not fit, what is expected and what was given.
    """
    said = text.strip()
    if options and said not in options:
        alike = [each for each in options if each.casefold() == said.casefold()]
        if len(alike) == 1:
            return alike[0]
        if said.isdecimal() and 0 < int(said) <= len(options):
            return options[int(said) - 1]
    try:
        return fitted(text, options, schema)
    except ValueError as error:
        raise ValueError(terminal_escape.line(str(error), 500)) from error


def argument_rows(arguments: str, width: int) -> list[Text]:
    """Arguments as `laid_out` has them; where an `old` text is to become a `new` one, what differs between
    them, every line of both."""
    try:
        found = msgspec.json.decode(arguments or "{}")
    except msgspec.DecodeError:
        found = None
    edits = [found, *_more_edits(found)] if isinstance(found, dict) else []
    changes = [(each["old"], each["new"]) for each in edits if _is_change(each)]
    if not changes or len(changes) < len(edits):
        return [Text("  " + each) for each in laid_out(arguments, width)]
    rest = {name: value for name, value in found.items() if name not in ("old", "new", "more")}
    rows = [Text("  " + each) for each in laid_out(msgspec.json.encode(rest).decode(), width)]
    for number, (old, new) in enumerate(changes, 1):
        rows += [Text(f"  edit {number} of {len(changes)}:", "dim")] if len(changes) > 1 else []
        rows += [Text("  ").append_text(each) for each in change_rows(old, new)]
    return rows


def _more_edits(found: dict[str, Any]) -> list[Any]:
    more = found.get("more")
    return more if isinstance(more, list) else [] if more is None else [more]


def _is_change(found: Any) -> bool:
    if not isinstance(found, dict) or not found.keys() >= {"old", "new"}:
        return False
    known = found.keys() <= {"old", "new"} or "path" in found
    return known and isinstance(found["old"], str) and isinstance(found["new"], str)


def laid_out(arguments: str, width: int = 10_000) -> list[str]:
    """Arguments, one per line, long texts broken; every character of them is there to be read."""
    try:
        found = msgspec.json.decode(arguments or "{}")
    except msgspec.DecodeError:
        found = arguments
    rows = found.items() if isinstance(found, dict) else [("arguments", found)]
    lines: list[str] = []
    for name, value in rows:
        text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
        parts = terminal_escape.clean(text).split("\n")
        first = f"{terminal_escape.line(str(name), 60)}: {parts[0]}"
        for part in [first, *(f"    {each}" for each in parts[1:])]:
            lines.extend(part[at : at + width] for at in range(0, max(len(part), 1), width))
    return lines


class Keyboard:
    """Lines typed at the terminal, without a thread: the event loop says when one is there.

    `typed` is called with each line, and with None when the input has ended.
    """

    def __init__(self, typed: Callable[[str | None], None]) -> None:
        self._typed, self._fd = typed, sys.stdin.fileno()
        self._rest = b""
        self._listening = False

    def listen(self, forget: bool = True) -> None:
        """From now on; what was typed before is forgotten, so that nothing is allowed by accident."""
        if forget:
            self._rest = b""
            if os.name == "posix":
                import termios

                with suppress(termios.error):
                    termios.tcflush(self._fd, termios.TCIFLUSH)
        if self._listening:
            return
        try:
            asyncio.get_running_loop().add_reader(self._fd, self._read)
            self._listening = True
        except (PermissionError, NotImplementedError):
            # A plain file is always ready, so the event loop does not watch it: all of it is there.
            self._listening = True
            while self._listening:
                self._read()

    def close(self) -> None:
        """Listen no more."""
        if self._listening:
            with suppress(NotImplementedError):
                asyncio.get_running_loop().remove_reader(self._fd)
            self._listening = False

    def _read(self) -> None:
        try:
            data = os.read(self._fd, 65536)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            data = b""
        if not data:
            self.close()
            # Of a person only what was sent counts; a file's last line may lack its end.
            if self._rest and not os.isatty(self._fd):
                self._typed(self._rest.decode("utf-8", "replace"))
                self._rest = b""
            self._typed(None)
            return
        *lines, self._rest = (self._rest + data).split(b"\n")
        for each in lines:
            self._typed(each.decode("utf-8", "replace"))
