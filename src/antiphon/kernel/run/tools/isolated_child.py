"""The process of an isolated tool: reads one request, calls one function, writes one answer, ends.

Imports the module that its parent names, which is where the developer defined the tool.
"""

from __future__ import annotations

import asyncio
import ctypes
import importlib
import importlib.util
import os
import signal
import sys
import threading
from collections.abc import Coroutine
from contextlib import suppress
from types import ModuleType
from typing import Any

import msgspec

from antiphon.errors import ToolError
from antiphon.kernel.rules.team.manifest import code_digest
from antiphon.kernel.run.tools.isolated import ChildAnswer, ChildRequest
from antiphon.values.actions import Operation
from antiphon.values.codec import clean_text
from antiphon.values.message import Attachment, ToolResult
from antiphon.values.tool import Dependency, Done, Tool, ToolContext, as_tool, result_of

_PR_SET_PDEATHSIG = 1


class IsolatedContext(ToolContext, frozen=True):
    """What an isolated tool may know about its call; what lives in the run's process is refused."""

    @property  # type: ignore[misc]
    def deps(self) -> Any:
        raise ToolError("ctx.deps lives in the run's process, and an isolated tool has one of its own")

    async def _execute(self, operation: Operation, content: Any) -> Any:
        raise ToolError(
            f"a {operation.name} is asked in the run's process, and an isolated tool has one of its own; "
            "give the tool isolated=False, or let one that is not isolated ask"
        )

    def wait(self, asking: Coroutine[Any, Any, Any]) -> Any:
        asking.close()
        raise ToolError("ctx.wait asks in the run's process, and an isolated tool has one of its own")

    def resolve(self, key: Dependency) -> Any:
        raise ToolError(
            f"ctx.resolve({key.id}): dependencies are made in the run's process, and an isolated tool has "
            "one of its own"
        )


def main() -> None:
    """Do what is asked on standard input. What the tool prints goes to standard error."""
    request = msgspec.json.decode(sys.stdin.buffer.readline(), type=ChildRequest)
    parent, answer = os.dup(0), os.dup(1)
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)
    _end_with(request.parent, parent)
    found = msgspec.json.encode(_call(request))
    sys.stdout.flush()
    with open(answer, "wb") as pipe:
        pipe.write(found + b"\n")


def _end_with(parent: int, pipe: int) -> None:
    """Have this process killed when its parent is gone: by the kernel on Linux, else when the pipe ends."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    threading.Thread(target=_outlive, args=(pipe,), daemon=True).start()
    if sys.platform != "win32" and os.getppid() != parent:
        # It went before it could be told.
        os._exit(1)


def _outlive(pipe: int) -> None:
    while os.read(pipe, 4096):
        continue
    if sys.platform != "win32":
        os.killpg(0, signal.SIGKILL)
    os._exit(1)


def _call(request: ChildRequest) -> ChildAnswer:
    context = None if request.context is None else IsolatedContext(**request.context)
    try:
        tool = _find(request)
        found = tool.bind(request.arguments, context)()
        result = result_of(asyncio.run(found) if tool.is_async else found)
        return ChildAnswer("returned", result, _attached(context))
    except Done as done:
        return ChildAnswer("done", ToolResult(clean_text(done.result)), _attached(context))
    except Exception as error:  # noqa: BLE001 - a tool's failure is a result that the model is shown
        text = str(error) if isinstance(error, ToolError) or str(error) else type(error).__name__
        return ChildAnswer("failed", ToolResult(clean_text(text)))


def _attached(context: ToolContext | None) -> tuple[Attachment, ...]:
    return () if context is None else tuple(context.attached)


def _find(request: ChildRequest) -> Tool:
    found = getattr(_module(request), request.function, None)
    if not callable(found):
        raise ToolError(f"not run: {request.file} has no function {request.function}")
    tool = as_tool(found)
    if code_digest(tool.function) != request.code:
        raise ToolError(
            f"not run: {request.function} in {request.file} has changed since the run's process imported it; "
            "restart that process"
        )
    return tool


def _module(request: ChildRequest) -> ModuleType:
    """The module, under its name when that leads to its file, else from the file."""
    name, spec = request.module, None
    # A module that was imported from its file, by no name that can be found, still has that file.
    with suppress(ModuleNotFoundError):
        spec = importlib.util.find_spec(name)
    if spec is not None and spec.origin and os.path.abspath(spec.origin) == request.file:
        return importlib.import_module(name)
    spec = importlib.util.spec_from_file_location(name, request.file)
    if spec is None or spec.loader is None:
        raise ToolError(f"not run: {request.file} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
