"""A server that is a program: started, spoken with over its pipes, and ended with all that it started."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any

import anyio
from mcp.client._transport import TransportStreams
from mcp.client.stdio import get_default_environment
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from antiphon.errors import ToolError
from antiphon.tools.mcp.servers import McpServer
from antiphon.values.secret import shown

MAX_MESSAGE = 16 * 1_048_576
"""Bytes of one message of a server."""
MAX_NOISE = 100
"""Lines that are no message, before a server is taken for none."""
GRACE = 1.0
"""Seconds for a program to end when its input does; and again after it was asked to."""
END_SECONDS = 0.5
"""How long it is waited for why it closed a pipe: those who call it are to know soon."""
KEPT_WORDS = 4_096
"""Bytes of what it wrote last to its error output."""
MAX_WORDS = 200
"""Characters of it that are told."""
_LOOK = 0.01
"""Seconds between two looks whether a program has ended."""


@asynccontextmanager
async def child_streams(
    server: McpServer, ended: Callable[[str], None]
) -> AsyncGenerator[TransportStreams, None]:
    """Start a server's program; messages from and to it. `ended` is told when it is gone, and why.

    Raises ToolError when it cannot be started. When this is left, the program and whatever it has started in
    its process group are gone.
    """
    child = await _Child.started(server, ended)
    send, receive = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outgoing, to_write = anyio.create_memory_object_stream[SessionMessage](0)
    async with anyio.create_task_group() as group:
        group.start_soon(child.read, send)
        group.start_soon(child.write, to_write)
        group.start_soon(child.listen)
        try:
            yield receive, outgoing
        finally:
            with anyio.CancelScope(shield=True):
                await child.end()
            group.cancel_scope.cancel()
            for each in (send, receive, outgoing, to_write):
                each.close()


async def _whole(starting: Coroutine[Any, Any, asyncio.subprocess.Process]) -> asyncio.subprocess.Process:
    """A program that is started, or, when that is called off, none.

    asyncio ends a program whose start is called off, and then waits for its exit, for ever where not all of
    its pipes were connected: whoever closes the event loop would wait too. Called off again, it does not.
    """
    task = asyncio.ensure_future(starting)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        while not task.done():
            task.cancel()
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(_LOOK)
        if not task.cancelled() and task.exception() is None:
            with suppress(ProcessLookupError):
                os.killpg(task.result().pid, signal.SIGKILL)
        raise


class _Child:
    """One program."""

    def __init__(
        self, server: McpServer, process: asyncio.subprocess.Process, ended: Callable[[str], None]
    ) -> None:
        self._server, self._process, self._ended = server, process, ended
        self._words, self._ending = b"", False

    @classmethod
    async def started(cls, server: McpServer, ended: Callable[[str], None]) -> _Child:
        """Raises ToolError."""
        own = {name: each.reveal() for name, each in server.env.items()}
        pipe = asyncio.subprocess.PIPE
        try:
            process = await _whole(asyncio.create_subprocess_exec(
                server.command, *server.args, env=get_default_environment() | own, cwd=server.cwd or None,
                stdin=pipe, stdout=pipe, stderr=pipe, limit=MAX_MESSAGE, start_new_session=True,
            ))  # fmt: skip
        except FileNotFoundError as error:
            # Of a folder that is not there the error names the folder.
            raise ToolError(f"{error.filename or server.command!r} was not found") from None
        except (OSError, ValueError) as error:
            raise ToolError(f"{server.command!r} cannot be started: {error}") from None
        return cls(server, process, ended)

    async def read(self, send: anyio.abc.ObjectSendStream[SessionMessage | Exception]) -> None:
        """Pass on its messages until it ends, or what it says is none."""
        output, noise, reason = self._process.stdout, 0, ""
        if output is None:
            return
        async with send:
            while not reason:
                try:
                    line = await output.readuntil(b"\n")
                except asyncio.IncompleteReadError:
                    break
                except asyncio.LimitOverrunError:
                    reason = f"it sent a message of more than {MAX_MESSAGE:,} bytes"
                    break
                if not line.strip():
                    continue
                try:
                    message = SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
                except ValueError:
                    noise += 1
                    if noise > MAX_NOISE:
                        reason = "what it writes is no MCP: " + shown(line.decode(errors="replace"), limit=80)
                    continue
                try:
                    await send.send(message)
                except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                    return
            await self._tell("its output", reason)

    async def write(self, to_write: anyio.abc.ObjectReceiveStream[SessionMessage]) -> None:
        """Send it what is given."""
        pipe = self._process.stdin
        if pipe is None:
            return
        try:
            async for each in to_write:
                pipe.write(each.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")
                await pipe.drain()
        except OSError:
            await self._tell("its input")

    async def listen(self) -> None:
        """Keep the last of what it says beside."""
        output = self._process.stderr
        while output is not None and (said := await output.read(KEPT_WORDS)):
            self._words = (self._words + said)[-KEPT_WORDS:]

    async def _tell(self, closed: str, reason: str = "") -> None:
        """It cannot be spoken with any more; nothing, where it is ended from here."""
        if not self._ending:
            self._ended(reason or await self._why(closed))

    async def _why(self, closed: str) -> str:
        """Why it closed a pipe; mostly it has ended, which says more."""
        code = await self._gone_within(END_SECONDS)
        text = f"it ended with exit code {code}" if code is not None else f"it closed {closed}"
        words = shown(self._words.decode(errors="replace"), self._server.secrets, KEPT_WORDS)[-MAX_WORDS:]
        return f"{text}; its last words: {words}" if words else text

    async def _gone_within(self, seconds: float) -> int | None:
        """Its exit code, once it has one. To wait for it would be to wait for whoever else has its pipes."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self._process.returncode is None:  # noqa: ASYNC110 - nothing says when it ends
                    await asyncio.sleep(_LOOK)
        return self._process.returncode

    async def end(self) -> None:
        """Let it end by itself, then ask it to, then end it; and all that is left of its group."""
        self._ending = True
        if self._process.stdin is not None:
            self._process.stdin.close()
        if await self._gone_within(GRACE) is None:
            self._signal(signal.SIGTERM)
            await self._gone_within(GRACE)
        self._signal(signal.SIGKILL)
        await self._gone_within(GRACE)
        transport = getattr(self._process, "_transport", None)
        if transport is not None:
            # A pipe that a survivor outside of the group still has would be waited for.
            transport.close()

    def _signal(self, number: int) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)
