"""The tools that run commands: `shell` for bash, `run_program` for listed programs, and their background
jobs."""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
import time
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from antiphon.errors import ConfigError, ToolError
from antiphon.tools.shell import commands
from antiphon.tools.shell.changes import changes_of
from antiphon.tools.shell.commands import CommandOutput
from antiphon.tools.shell.keeping import place
from antiphon.tools.shell.words import covered, subject_of, subjects_of
from antiphon.tools.shell.workspace import Workspace
from antiphon.values.message import ToolResult
from antiphon.values.tool import Tool, ToolContext, tool

SECONDS = 120
"""How long a command may take unless it is said."""
MAX_SECONDS = 1_800
LONG, LAST = 40_000, 12_000
"""Characters of output, beyond which the end is shown first: of a result that is too long for a model the run
shows its beginning, and the rest by its handle. And how many of the end."""
TOLD_SECONDS = 5
"""From when on it is said how long a command took."""
_TIMEOUT = MAX_SECONDS + 30
"""Seconds after which nobody waits for a keeper any more."""


def shell_tools(folder: str | os.PathLike[str] | Workspace) -> list[Tool]:
    """`shell`, `list_jobs`, `read_job` and `stop_job`: lines for bash, run in a folder.

    What holds them back is `antiphon.tools.shell.confinement`'s; where nothing does, each call is asked for.
    Raises ConfigError.
    """
    workspace = folder if isinstance(folder, Workspace) else Workspace(folder)
    return [_shell(workspace), *_jobs(workspace)]


def program_tools(folder: str | os.PathLike[str] | Workspace, allow: Sequence[str]) -> list[Tool]:
    """`run_program`, `list_jobs`, `read_job` and `stop_job`: programs without a shell, for agents that nobody
    watches.

    allow: what may be run, as in `["pytest *", "git diff*"]`; `*` and `?` match as in file names. A command
    that starts what its arguments say is covered only by its own whole text. Raises ConfigError.
    """
    workspace = folder if isinstance(folder, Workspace) else Workspace(folder)
    if isinstance(allow, str) or not allow:
        raise ConfigError('program_tools(allow=...) is a list of what may be run, such as ["pytest *"]')
    return [_run_program(workspace, tuple(allow)), *_jobs(workspace)]


def _shell(workspace: Workspace) -> Tool:
    described = (
        f"Run a line in bash, in {workspace.folder}. Gives its exit code and what it wrote; there is no "
        f"terminal and no input. It is {workspace.confined}."
    )

    @tool(
        effect="idempotent", kind="execute", title="Run a command", timeout=_TIMEOUT,
        caution=_caution(workspace),
        description=described, requires_approval=workspace.confined.kind == "none",
        subjects={"command": subjects_of},
    )  # fmt: skip
    async def shell(
        ctx: ToolContext, command: str, seconds: int = SECONDS, background: bool = False
    ) -> ToolResult:
        """Run a line in bash.

        Args:
            command: the line, or several.
            seconds: when it is ended, with all that it started.
            background: let it run on, as a server does; the job's name is given at once. What it changes
                cannot be undone.
        """
        if not command.strip():
            raise ToolError("The command is empty")
        return await _run(
            workspace, ctx, ["bash", "--norc", "--noprofile", "-c", command], seconds, background
        )

    return shell


def _run_program(workspace: Workspace, allow: tuple[str, ...]) -> Tool:
    listed = ", ".join(f"`{each}`" for each in allow)

    @tool(
        effect="idempotent", kind="execute", title="Run a program", timeout=_TIMEOUT,
        caution=_caution(workspace),
        description=f"Run a program in {workspace.folder}, without a shell. Allowed are: {listed}.",
        requires_approval=workspace.confined.kind == "none",
        subjects={"argv": lambda argv: [subject_of(argv)]},
    )  # fmt: skip
    async def run_program(
        ctx: ToolContext, argv: list[str], seconds: int = SECONDS, background: bool = False
    ) -> ToolResult:
        """Run a program.

        Args:
            argv: the program and its arguments, each a text of its own.
            seconds: when it is ended, with all that it started.
            background: let it run on, as a server does; the job's name is given at once. What it changes
                cannot be undone.
        """
        if not argv or not argv[0]:
            raise ToolError("argv begins with the name of a program")
        if not covered(subject_of(argv), allow):
            raise ToolError(f"`{shlex.join(argv)}` is not among what may be run: {listed}")
        return await _run(workspace, ctx, argv, seconds, background)

    return run_program


async def _run(
    workspace: Workspace, ctx: ToolContext, words: Sequence[str], seconds: int, background: bool
) -> ToolResult:
    if not 1 <= seconds <= MAX_SECONDS:
        raise ToolError(f"seconds is 1 to {MAX_SECONDS}; for what runs longer say background=true")
    limit = 0 if background else seconds
    folder = await commands.begin(workspace, ctx, words, limit, background=background)
    found = await commands.carry_out(folder, ctx, background=background)
    if background and found.code is None:
        name = _name(folder)
        return ToolResult(
            f"job {name} runs in the background; read_job shows what it writes, stop_job ends it"
        )
    if place.read(folder, "changed") is None:
        return ToolResult(_shown(found, seconds))
    # In a thread: it reads files, and may ask git.
    changes, told = await asyncio.to_thread(changes_of, folder, workspace.folder)
    return ToolResult(_shown(replace(found, told=found.told + told), seconds), changes=changes)


def _jobs(workspace: Workspace) -> list[Tool]:
    @tool(effect="read", kind="read", title="List background jobs")
    def list_jobs() -> str:
        """List the commands that run in the background here, and those that did."""
        return "\n".join(job_lines(workspace)) or "There are no background jobs here"

    @tool(effect="read", kind="read", title="Read a background job")
    def read_job(job: str) -> str:
        """Show what a command in the background has written, and whether it still runs.

        Args:
            job: its name.
        """
        folder = _found(workspace, job)
        found = commands.output_of(folder)
        if found.code is not None:
            return _shown(found, 0)
        state = "runs" if commands.is_kept(folder) else "is gone, nobody knows how it ended"
        return f"{job} {state}\n{found.text}"

    @tool(effect="idempotent", kind="execute", title="Stop a background job")
    def stop_job(ctx: ToolContext, job: str) -> str:
        """End a command in the background, and all that it started.

        Args:
            job: its name.
        """
        folder = _found(workspace, job)
        if commands.is_kept(folder):
            commands.stop(folder)
        while commands.is_kept(folder) and not ctx.is_cancelled():
            time.sleep(commands.LOOK)
        if place.read(folder, "ended") is None:
            commands.end_left(folder)
            return f"{job} had lost its keeper; what was left of it is ended"
        return _shown(commands.output_of(folder), 0)

    return [list_jobs, read_job, stop_job]


def job_lines(workspace: Workspace) -> list[str]:
    """A line for each command in the background of a folder, and for those that did run there."""
    return [_row(each) for each in _places(workspace)]


def _places(workspace: Workspace) -> Iterator[str]:
    for each in workspace.places():
        about = _about(each)
        if about.get("job") and place.read(each, "begun") is not None:
            yield each


def _about(folder: str) -> dict[str, str]:
    try:
        texts = place.unpack(place.read(folder, "asked") or b"")["about"]
    except (ValueError, IndexError, KeyError):
        return {}
    return dict(zip(texts[::2], texts[1::2], strict=True))


def _found(workspace: Workspace, job: str) -> str:
    known = {_name(each): each for each in _places(workspace)}
    if job not in known:
        raise ToolError(f"There is no job {job!r}; there are: {', '.join(known) or 'none'}")
    return known[job]


def _row(folder: str) -> str:
    about, found = _about(folder), commands.output_of(folder)
    state = "runs" if commands.is_kept(folder) else _end(found, 0)
    return f"{_name(folder)}: {state}: {about.get('text', '')[:200]}"


def _name(folder: str) -> str:
    return os.path.basename(folder)[2:]


def _shown(found: CommandOutput, seconds: int) -> str:
    notes = [f"note: {each}" for each in found.told]
    text = found.text
    if len(text) > LONG:
        last = text[-LAST:].partition("\n")[2]
        text = (
            f"[its last lines; all of it, from its beginning, follows]\n{last}\n[from its beginning]\n{text}"
        )
    return "\n".join([_end(found, seconds), *notes, *([text] if text else [])])


def _end(found: CommandOutput, seconds: int) -> str:
    if found.code is None:
        return "is gone, nobody knows how it ended"
    if found.why == "time":
        return f"ended after {seconds} s, which is all it had; give more seconds, or say background=true"
    if found.why == "stopped":
        return "it was stopped"
    ended = f"ended by {_signal(-found.code)}" if found.code < 0 else f"exit code {found.code}"
    return f"{ended} after {found.seconds:.0f} s" if found.seconds >= TOLD_SECONDS else ended


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _caution(workspace: Workspace) -> str:
    """What holds a command back, and what of it cannot be undone, for whoever is asked whether it may run."""
    return f"it is {workspace.confined}{f'; {workspace.lost}' if workspace.lost else ''}"
