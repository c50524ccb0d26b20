"""A request from the command line: ask or resume, show, end, and say how to go on."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Literal

import msgspec
from msgspec import Struct

from antiphon import Limits, Policy, Result, Run, open_run
from antiphon.cli import exit_codes
from antiphon.cli.display import output, terminal_escape
from antiphon.cli.display.draw import tokens
from antiphon.cli.display.tree import CallTree
from antiphon.cli.display.watch import interactive, watcher
from antiphon.cli.session.asked import list_questions, plain_questions
from antiphon.cli.session.drive import Drive, Driver, Stop, WakeSignal, drain
from antiphon.cli.session.project_rules import run_rules
from antiphon.cli.store import SHORT, RunSource, command, short_id
from antiphon.cli.target import Target
from antiphon.errors import RunSuspended
from antiphon.journal import Journal
from antiphon.journal.listing import Labels
from antiphon.kernel.facts.state import RunState
from antiphon.values.policy import Preset
from antiphon.view import RunTree
from antiphon.view.connection import open_questions
from antiphon.view.wording import seconds

COMMAND_LINE = "command_line"
"""The key in a run's data that says it was started by this program, and how."""


CHAT = "chat"
"""The same for a conversation, which stays open when the program ends."""


Missing = Literal["rest", "drop", "refuse"]
"""What becomes of a run's agents that a team lacks; see open_run."""


class DisplayOptions(Struct, frozen=True):
    """How a person wants a run shown, and the options that a resume command must repeat.

    target: empty for a chat without a team. chat: it goes on with `antiphon chat`. endpoints: as they are
    given, see `antiphon.models.endpoints.text`. projects: the folder of projects. project: that of the
    assistant's runs in a folder, in all of which a pattern holds that a person allows for good; empty for
    every other target.
    """

    target: str
    source: RunSource = RunSource()
    folder: str | None = None
    model: str | None = None
    as_json: bool = False
    quiet: bool = False
    chat: bool = False
    endpoints: tuple[str, ...] = ()
    projects: str | None = None
    project: str = ""

    @property
    def data(self) -> dict[str, Any]:
        """What a run keeps of it: who asked, and what a resume command must repeat."""
        kept: dict[str, Any] = {"target": self.target, "folder": self.folder, "model": self.model}
        if self.endpoints:
            kept["endpoints"] = self.endpoints
        if self.projects is not None:
            kept["projects"] = self.projects
        if self.project:
            kept["project"] = self.project
        return {CHAT if self.chat else COMMAND_LINE: kept}

    def resume(self, run_id: str) -> str:
        """The command that goes on with the run."""
        if self.source.is_server:
            words = ["chat", "--resume"] if self.chat else ["runs", "resume"]
            return command(*words, run_id[:SHORT], source=self.source)
        words = ["chat", "--resume"] if self.chat else ["runs", "resume"]
        words += [run_id[:SHORT], self.target] if self.target else [run_id[:SHORT]]
        if self.project:
            # The assistant is opened without the name of a command.
            words = ["--resume", run_id[:SHORT]]
        words += ["--folder", self.folder] if self.folder is not None else []
        words += ["--model", self.model] if self.model is not None else []
        for each in self.endpoints:
            words += ["--endpoint", each]
        words += ["--projects", self.projects] if self.projects is not None else []
        return command(*words, source=self.source)


def manner_of(data: Any, source: RunSource) -> DisplayOptions | None:
    """How a run was started from the command line, if it was; `data` is what it keeps of its own. A server
    needs none of it."""
    for key in (COMMAND_LINE, CHAT):
        with suppress(LookupError, TypeError, msgspec.ValidationError):
            found = msgspec.convert({**data[key], "chat": key == CHAT}, _Kept)
            return DisplayOptions(
                found.target, source, found.folder, found.model, chat=found.chat,
                endpoints=found.endpoints, projects=found.projects, project=found.project,
            )  # fmt: skip
    return DisplayOptions("", source) if source.is_server else None


class _Kept(Struct, frozen=True):
    """What a run keeps of the options that it was started with."""

    target: str
    folder: str | None = None
    model: str | None = None
    chat: bool = False
    endpoints: tuple[str, ...] = ()
    projects: str | None = None
    project: str = ""


class Request(Struct, frozen=True):
    """What to do: say `message` to the target, or go on with `run_id` from record `after`.

    calls: the requests that a resumed run waits for. ends: the run is closed once it is answered;
    a conversation that a program has started goes on. renamed, missing: see open_run. project: a new run's.
    """

    message: str = ""
    run_id: str | None = None
    after: int = 0
    calls: tuple[str, ...] = ()
    ends: bool = True
    policy: Policy | Preset | None = None
    limits: Limits | None = None
    renamed: Mapping[str, str] | None = None
    missing: Missing = "rest"
    project: str = ""


async def perform(request: Request, target: Target, manner: DisplayOptions, journal: Journal) -> int:
    """Do it and show it; the exit code. The journal stays open."""
    bell = WakeSignal()
    stop = Stop(bell)
    stop.install()
    tree = CallTree()
    view = watcher(tree, as_json=manner.as_json, quiet=manner.quiet)
    results: list[Result] | None = None
    people = interactive() and not manner.as_json
    options: dict[str, Any] = {
        "limits": request.limits, "policy": request.policy, "run_id": request.run_id, "data": manner.data,
        "renamed": request.renamed, "missing": request.missing,
    }  # fmt: skip
    project = request.project or manner.project
    if request.run_id or project:
        labels = Labels(project)
        options["rules"], said = await run_rules(
            journal, manner.projects, request.run_id or "", labels, declared=not manner.project
        )
        if project:
            options["labels"] = labels
        if said and not manner.quiet:
            exit_codes.remark(said)
    if manner.endpoints or target.endpoints:
        options["endpoints"] = target.with_endpoints(manner.endpoints, manner.model)
    run_id = request.run_id or ""
    started = time.monotonic()
    announce: Announcement | None = None
    if not (manner.quiet or manner.as_json):
        _warn_of_tiny_models(target, manner)
    try:
        async with open_run(
            target.agents, journal=journal, model=manner.model, interactive=people, **options
        ) as run:
            run_id = run.run_id
            stop.farewell = _how_to_resume(manner, run_id)
            calls = request.calls or (await run.post(target.entry, request.message),)
            announce = Announcement(manner, run_id, journal.durability)
            leave = partial(drain, run, tree, output.tell)
            drive = Drive(
                run, calls, request.after, tree, view, people, announce, leave,
                partial(has_unread, journal, run, tree.run), request.after + 1,
            )  # fmt: skip
            driver = Driver(drive, bell, stop)
            results = await driver.until_end()
            if results is not None and request.ends and not await run.open_requests():
                await run.close()
    except RunSuspended as suspended:
        exit_codes.complain(str(suspended))
        if announce is not None and announce.made:
            _say(_how_to_resume(manner, run_id))
        else:
            _say("The request was not recorded; once the journal can be written, ask again.")
        return exit_codes.code_of(suspended)
    if results is None and driver.unattended:
        return tell_unattended(tree.run, manner, run_id, _how_to_resume(manner, run_id))
    if results is None:
        return _suspended(manner, run_id, stop.code(journal))
    return finish(results, manner, run_id, tree, time.monotonic() - started)


async def has_unread(journal: Journal, run: Run, tree: RunTree) -> bool:
    """Whether something was posted that the run has not taken in, or that `tree` has not read."""
    return bool(await journal.commands(run.run_id, run.command)) or run.seq > tree.seq


class Announcement:
    """Says how to resume the run, as soon as it can be. `made`: that is so."""

    def __init__(self, manner: DisplayOptions, run_id: str, durability: str) -> None:
        self.made = False
        self._manner, self._run_id, self._durability = manner, run_id, durability

    def __call__(self) -> None:
        self.made = True
        if self._manner.quiet or self._manner.as_json:
            return
        if self._durability == "none":
            _say(f"run {short_id(self._run_id)} (kept in memory only)")
        else:
            _say(f"run {short_id(self._run_id)}; to resume it: {self._manner.resume(self._run_id)}")


def _warn_of_tiny_models(target: Target, manner: DisplayOptions) -> None:
    """Who sees a small model at work should know that it is one."""
    for spec in dict.fromkeys(manner.model or each.model for each in target.agents):
        if isinstance(spec, str) and spec.startswith("local:"):
            _say(
                f"{spec} is a tiny model in this process: it chooses and copies, it does not reason or write"
            )


def _suspended(manner: DisplayOptions, run_id: str, code: int) -> int:
    if manner.as_json:
        output.say(
            terminal_escape.json_line(
                {"type": "RunSuspended", "run_id": run_id, "resume": manner.resume(run_id)}
            )
        )
    else:
        _say(_how_to_resume(manner, run_id))
    return code


def tell_unattended(tree: RunTree, manner: DisplayOptions, run_id: str, how_on: str) -> int:
    """Say that a run waits for people and that none is here, what it asks, and how it goes on; the exit code.

    how_on: lines that say it, for people; empty where it is said anyway.
    """
    asked = open_questions(tree)
    if manner.as_json:
        told = {"run_id": run_id, "resume": manner.resume(run_id), "asked": plain_questions(asked, run_id)}
        output.say(terminal_escape.json_line({"type": "RunSuspended", **told}))
    else:
        output.tell(f"run {short_id(run_id)} waits for an answer, and nobody is here to give one:")
        list_questions(asked, run_id, manner.source, output.tell)
        if how_on:
            output.tell(how_on)
    return exit_codes.SUSPENDED


def _how_to_resume(manner: DisplayOptions, run_id: str) -> str:
    command_line = manner.resume(run_id)
    return f"run {short_id(run_id)} is suspended; nothing is lost. To resume it:\n  {command_line}"


def finish(results: list[Result], manner: DisplayOptions, run_id: str, tree: CallTree, spent: float) -> int:
    """Print the answer, then what became of the run; the exit code."""
    worst = next((each for each in results if each.outcome != "completed"), None)
    worst = worst or next((each for each in results if each.incomplete), results[-1])
    code = exit_codes.LIMIT if worst.incomplete else exit_codes.OUTCOMES[worst.outcome]
    if manner.as_json:
        for each in results:
            output.say(terminal_escape.json_line({"type": "Result", **_plain(each)}))
        return code
    if not manner.quiet and sys.stderr.isatty():
        _say("")
    for each in results:
        if each.output:
            output.say(each.output.rstrip("\n"))
    if worst.incomplete:
        exit_codes.complain(f"this is not the whole answer: {worst.reason}")
    elif worst.outcome == "completed" and worst.reason:
        exit_codes.remark(worst.reason)
    if worst.outcome != "completed":
        exit_codes.complain(f"the request ended {worst.outcome}: {worst.reason}")
        if worst.outcome == "failed" and any(mark in worst.reason for mark in ("network:", "auth:")):
            _say("`antiphon doctor` checks the model's settings and endpoint.")
    for file in [each for result in results for each in result.attachments]:
        exit_codes.remark(f"a file came with the answer: {file.name or file.media_type} (--json holds it)")
    if not manner.quiet:
        _say(f"\nrun {short_id(run_id)}: {worst.outcome}, {seconds(spent)}, {tokens(tree)}")
        for line in commands(manner, run_id):
            _say(f"  {line}")
    return code


def result_of(state: RunState, run_id: str, call: str) -> Result:
    """How a request of a run ended. Raises LookupError for one that has not."""
    end = state.activations[0].done[call]
    event = end.event
    messages = tuple(logged.message for logged in state.log if logged.request == call)
    return Result(
        event.content, event.outcome, event.reason, run_id, call, end.usage, messages,
        event.attachments + event.files, incomplete=event.incomplete,
    )  # fmt: skip


def commands(manner: DisplayOptions, run_id: str) -> list[str]:
    """The commands that show, tail and resume a run, to be pasted."""
    if manner.source.journal == "memory":
        return []
    short = run_id[:SHORT]
    return [
        command("runs", "show", short, source=manner.source),
        command("runs", "tail", short, source=manner.source),
        manner.resume(run_id),
    ]


def _plain(result: Result) -> dict[str, Any]:
    return {
        "run_id": result.run_id,
        "call_id": result.call_id,
        "outcome": result.outcome,
        "output": result.output,
        "reason": result.reason,
        "incomplete": result.incomplete,
        "usage": result.usage,
        "messages": result.messages,
        "attachments": result.attachments,
    }


def _say(text: str) -> None:
    output.tell(text)
