"""One call of an isolated tool: a process is started for it, and can be killed.

Arguments and result travel as JSON over two pipes. The process is told by name which function to call, and
that name comes from the developer's own `Tool` alone; it refuses code that is not what this process has.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from typing import Any, Literal

import msgspec
from msgspec import Struct

from antiphon.errors import ToolError
from antiphon.kernel.rules.team.manifest import code_digest
from antiphon.kernel.run.tools.threads import NoResult
from antiphon.values.message import Attachment, ToolResult
from antiphon.values.tool import Done, Tool, ToolContext

MAX_ANSWER = 64 * 2**20
"""Bytes of a result, as JSON, that are read."""
SECONDS_TO_END = 1.0
"""What a process gets that has answered."""

PLAIN = ("run_id", "effect_id", "agent", "idempotency_key", "attempt")
"""The fields of a ToolContext that an isolated tool is given."""

_PROGRAM = (
    "import json, sys; sys.path[:] = json.loads(sys.stdin.buffer.readline()); "
    "from antiphon.kernel.run.tools.isolated_child import main; main()"
)


class ChildRequest(Struct, frozen=True):
    """What a process is asked to do."""

    module: str
    file: str
    function: str
    code: str
    """The digest of the function's code in the process that asks."""
    arguments: str
    """Canonical JSON."""
    context: dict[str, Any] | None
    """The fields `PLAIN` of a ToolContext, for a function that takes one."""
    parent: int
    """The id of the process that asks; the one that is asked ends with it."""


class ChildAnswer(Struct, frozen=True):
    """How the function ended. For a failure the result's content says why."""

    outcome: Literal["returned", "done", "failed"]
    result: ToolResult
    files: tuple[Attachment, ...] = ()
    """What it attached."""


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(ChildAnswer).decode


class ChildCall:
    """A call to be made in a thread, which then waits for the process; `stop` comes from another thread."""

    def __init__(self, tool: Tool, arguments: str, context: ToolContext | None) -> None:
        self._request, self._context = _request(tool, arguments, context), context
        self._process: subprocess.Popen[bytes] | None = None
        self._stopped = threading.Event()
        # Whoever kills a process must know that its id has not been given to another one.
        self._alive = threading.Lock()

    def __call__(self) -> ToolResult:
        """The tool's result. Raises ToolError, Done; NoResult when the process ended without one."""
        if self._stopped.is_set():
            raise NoResult("it was stopped before its process was started")
        try:
            process = subprocess.Popen(
                [sys.executable, "-P", "-c", _PROGRAM],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as error:
            raise ToolError(f"not run, its process could not be started: {error}") from error
        self._process = process
        if self._stopped.is_set():
            self.stop()
        try:
            line = self._exchange(process)
        finally:
            code = self._end(process)
        try:
            answer = _decode(line)
        except msgspec.MsgspecError as error:
            raise NoResult(_ended(code)) from error
        if answer.outcome == "failed":
            raise ToolError(answer.result.content)
        if self._context is not None:
            self._context.attached.extend(answer.files)
        if answer.outcome == "done":
            raise Done(answer.result.content)
        return answer.result

    def stop(self) -> None:
        """Kill the process, and what it started; a call that has not begun then does not."""
        self._stopped.set()
        with self._alive:
            if self._process is not None:
                _kill(self._process)

    def _exchange(self, process: subprocess.Popen[bytes]) -> bytes:
        if process.stdin is None or process.stdout is None:
            raise RuntimeError("a process was started without its pipes")
        with suppress(BrokenPipeError):
            process.stdin.write(json.dumps(sys.path).encode() + b"\n" + self._request + b"\n")
            # The pipe stays open: its end is how the process learns that this one is gone.
            process.stdin.flush()
        return process.stdout.readline(MAX_ANSWER)

    def _end(self, process: subprocess.Popen[bytes]) -> int:
        """Have the process end, and forget it; its exit code."""
        with self._alive:
            self._process = None
        try:
            code = process.wait(SECONDS_TO_END)
        except subprocess.TimeoutExpired:
            _kill(process)
            code = process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with suppress(BrokenPipeError):
                    pipe.close()
        return code


def _request(tool: Tool, arguments: str, context: ToolContext | None) -> bytes:
    function = tool.function
    module = sys.modules[function.__module__]
    plain = None
    if context is not None:
        plain = {name: getattr(context, name) for name in PLAIN}
    return _encode(
        ChildRequest(
            module.__name__,
            os.path.abspath(module.__file__ or ""),
            function.__qualname__,
            code_digest(function),
            arguments,
            plain,
            os.getpid(),
        )
    )


def _kill(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError, PermissionError):
        if sys.platform == "win32":
            process.kill()
        else:
            os.killpg(process.pid, signal.SIGKILL)


def _ended(code: int) -> str:
    if code >= 0:
        return f"its process ended with exit code {code} and no result"
    try:
        return f"its process was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"its process was ended by signal {-code}"
