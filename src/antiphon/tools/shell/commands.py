"""Commands under keepers: begun once, waited for, found again after the agent has died.

Which command it is, is known by the idempotency key of the call. That it may have begun is on record before
its keeper is started; whether it has, its folder says. So a call that a crash cut off goes on waiting for the
same command; one that had not begun is begun; one whose keeper is gone ends `unknown`.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence

from msgspec import Struct

if sys.platform != "win32":
    import fcntl

from antiphon.errors import EffectFailed, ToolError
from antiphon.tools.shell.keeping import place, processes
from antiphon.tools.shell.workspace import MARK, Workspace, boot
from antiphon.values.tool import ToolContext

LOOK = 0.05
"""Seconds between two looks at a command that another process's child keeps."""
TOLD_EVERY = 0.5
"""Seconds between two reports of what a command has written."""
NOT_RUN = 126
"""The exit code of what was not run."""
TOLD = 4_000
"""Characters of a report."""
_PROGRAM = """
import os, sys
if os.fork():
    os._exit(0)
os.setsid()
for name in ("antiphon", "antiphon.tools", "antiphon.tools.shell"):
    made = sys.modules[name] = type(sys)(name)
    made.__path__ = [os.path.join(sys.argv[2], *name.split(".")[1:])]
from antiphon.tools.shell.keeping.keeper import main
main(sys.argv[1])
"""
"""What a keeper's process does first: leave its parent, and import what it needs without the package that
surrounds it, which would take longer than most commands."""
_PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class CommandOutput(Struct, frozen=True):
    """What a command has written, or how it ended. code: None while it runs; below 0 a signal."""

    text: str
    code: int | None = None
    why: str = ""
    """`time`, `stopped` or `refused`, where it did not end by itself."""
    seconds: float = 0.0
    told: tuple[str, ...] = ()
    """What was put back behind it, or is to be known of it otherwise."""


async def begin(
    workspace: Workspace, ctx: ToolContext, words: Sequence[str], seconds: float, *, background: bool
) -> str:  # fmt: skip
    """The folder of the command of a call, on record. seconds: 0 for no limit. Raises ToolError."""
    key = ctx.idempotency_key or os.urandom(16).hex()
    about = {"run": ctx.run_id, "agent": ctx.agent, "job": "yes" if background else "", "text": words[-1]}

    def prepared() -> dict[str, str]:
        try:
            return {"folder": workspace.prepare(key, words, seconds, about)}
        except ToolError as error:
            return {"refused": str(error)}
        except OSError as error:
            return {"refused": f"Nothing was run: {error}"}

    if not ctx.run_id:
        found = prepared()
    else:
        try:
            found = await ctx.step("prepare", prepared)
        except EffectFailed as error:
            raise ToolError(f"nothing was run: {error}") from error
    if "refused" in found:
        raise ToolError(found["refused"])
    return str(found["folder"])


async def carry_out(folder: str, ctx: ToolContext, *, background: bool) -> CommandOutput:
    """Start the command of a folder, unless it has begun, and wait for its end; in the background for its
    beginning.

    Whoever gives up the call ends the command; whoever merely dies, or leaves the run, does not. Raises
    TimeoutError when nobody knows what became of it, which ends the call `unknown`; ToolError.
    """
    asked = place.read(folder, "asked")
    if asked is None:
        raise TimeoutError("what was kept of it is gone, or lies on another machine")
    if await _has_not_begun(folder):
        if place.unpack(asked)["boot"] != [boot()]:
            raise TimeoutError("the machine was started anew, and may have lost that it had begun")
        await _start(folder, ctx, background=background)
    if not background:
        await _ended(folder, ctx)
    found = output_of(folder)
    if found.why == "refused":
        raise ToolError(f"Nothing was run: {' '.join(found.told)}")
    return found


async def _start(folder: str, ctx: ToolContext, *, background: bool) -> None:
    """Start a keeper; until the command has ended, in the background until it has begun."""
    with _keeper(folder) as keeper:
        if keeper.stdin is None or keeper.stdout is None:
            raise RuntimeError("a process was started without its pipes")
        try:
            await _told(keeper.stdout.fileno(), folder, ctx, b"begun" if background else b"ended")
        except asyncio.CancelledError:
            if _given_up(ctx):
                with contextlib.suppress(BrokenPipeError):
                    keeper.stdin.write(b"x")
            raise
    if await _has_not_begun(folder) and place.begin(folder, place.pack({"command": []})):
        # From here on no keeper begins it any more.
        text = (place.read(folder, "fault") or b"").decode(errors="replace").strip()
        end = [str(NOT_RUN), "refused", "0", "0", str(time.time())]
        told = [f"its keeper could not be started: {text[-500:]}"]
        place.write(folder, "ended", place.pack({"ended": end, "told": told}))


async def _has_not_begun(folder: str) -> bool:
    """Once no keeper is about to begin it, of an agent that was killed meanwhile."""
    while place.read(folder, "begun") is None:
        if not is_kept(folder):
            return place.read(folder, "begun") is None
        await asyncio.sleep(LOOK)
    return False


def _keeper(folder: str) -> subprocess.Popen[bytes]:
    cached = ("-X", f"pycache_prefix={sys.pycache_prefix}") if sys.pycache_prefix else ()
    with open(os.path.join(folder, "fault"), "wb") as fault:
        return subprocess.Popen(
            [sys.executable, "-I", "-S", *cached, "-c", _PROGRAM, folder, _PACKAGE],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=fault, start_new_session=True, cwd="/",
            env={"PATH": os.defpath}, bufsize=0,
        )  # fmt: skip


async def _told(handle: int, folder: str, ctx: ToolContext, word: bytes) -> None:
    """Until the keeper has said a word, or says nothing any more; meanwhile what the command writes is
    shown."""
    loop, heard, said = asyncio.get_running_loop(), asyncio.Event(), b""
    os.set_blocking(handle, False)
    loop.add_reader(handle, heard.set)
    try:
        while word not in said:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(TOLD_EVERY):
                    await heard.wait()
            if not heard.is_set():
                _report(ctx, folder)
                continue
            heard.clear()
            try:
                data = os.read(handle, 100)
            except BlockingIOError:
                continue
            if not data:
                return
            said += data
    finally:
        loop.remove_reader(handle)


async def _ended(folder: str, ctx: ToolContext) -> None:
    """Until the command has ended, whoever has started it. Raises TimeoutError when its keeper is gone."""
    try:
        while place.read(folder, "ended") is None and is_kept(folder):
            _report(ctx, folder)
            await asyncio.sleep(LOOK)
    except asyncio.CancelledError:
        if _given_up(ctx):
            stop(folder)
        raise
    if place.read(folder, "ended") is None:
        end_left(folder)
        raise TimeoutError("the command had begun, and its keeper was ended before it was")


def output_of(folder: str) -> CommandOutput:
    """What a command has written so far, and how it ended. Raises TimeoutError for a record that is torn."""
    head, last = place.read(folder, "head") or b"", place.read(folder, "tail") or b""
    ended = place.read(folder, "ended")
    counted, _, tail = last.partition(b"\n")
    total = int(counted) if counted.isdigit() else len(head)
    between = total - len(head) - len(tail)
    if between > 0:
        note = f"\n[… {between:,} bytes left out; write them into a file to see all of it …]\n"
        head += note.encode()
    text = (head + tail).decode("utf-8", "replace")
    if ended is None:
        return CommandOutput(text)
    try:
        fields = place.unpack(ended)
        code, why, _, seconds, _ = fields["ended"]
        return CommandOutput(text, int(code), why, float(seconds), tuple(fields["told"]))
    except (ValueError, IndexError, KeyError) as error:
        raise TimeoutError("what was kept of its end is torn") from error


def is_kept(folder: str) -> bool:
    """Whether the keeper of a command lives."""
    try:
        handle = os.open(os.path.join(folder, "lock"), os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False


def stop(folder: str) -> None:
    """Have the keeper of a command end it."""
    place.write(folder, "stop", b"")


def end_left(folder: str) -> None:
    """End what a command has left that has no keeper any more."""
    for each in processes.marked(f"{MARK}={os.path.basename(folder)}"):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(each, signal.SIGKILL)


def _given_up(ctx: ToolContext) -> bool:
    """Whether nobody wants the command any more, rather than that its run was left."""
    return ctx.is_cancelled() or not ctx.run_id


def _report(ctx: ToolContext, folder: str) -> None:
    with contextlib.suppress(TimeoutError, ValueError):
        if text := output_of(folder).text:
            ctx.report_progress(text[-TOLD:])
