"""The standard input and output as the way in: messages of a client, a line each."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine
from concurrent.futures import CancelledError
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any, TypeVar

import anyio
from mcp.server.lowlevel import Server
from mcp.shared.message import SessionMessage
from mcp_types import INVALID_REQUEST, PARSE_ERROR, ErrorData, JSONRPCError, jsonrpc_message_adapter

MAX_LINE = 4 * 1_048_576
"""Bytes of one message of a client."""
AT_ONCE = 65_536
"""Bytes that are read at once."""
FAREWELL_SECONDS = 1.0
"""How long whoever reads what we write has for the rest of it."""

Value = TypeVar("Value")
Messages = anyio.abc.ObjectSendStream[SessionMessage | Exception]


@asynccontextmanager
async def own_pipes() -> AsyncGenerator[tuple[int, int]]:
    """The standard input and output, for this alone: what anybody else prints meanwhile goes to the error
    output, and whoever reads finds nothing."""
    sys.stdout.flush()
    taken = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    os.close(nothing)
    try:
        yield taken
    finally:
        with suppress(OSError, ValueError):
            sys.stdout.flush()
        os.dup2(taken[0], 0)
        os.dup2(taken[1], 1)
        # They are not closed: a thread may still wait at one of them.


async def serve_pipes(server: Server[object], read: int, write: int, stop: asyncio.Event) -> None:
    """Serve the client at two file descriptors until it closes its end, or `stop` is set."""
    incoming, messages = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    answers, outgoing = anyio.create_memory_object_stream[SessionMessage](0)
    lines: asyncio.Queue[bytes | None] = asyncio.Queue(1)
    writer = _Writer(write)
    _thread(partial(_read_lines, read, _from_thread(lines), stop), "MCP input")

    async def serve() -> None:
        try:
            await server.run(messages, answers, server.create_initialization_options())
        finally:
            stop.set()

    async with anyio.create_task_group() as group:
        group.start_soon(_pass_on, lines, incoming, writer)
        group.start_soon(_write_all, outgoing, writer, stop)
        serving = asyncio.ensure_future(serve())
        await stop.wait()
        # Whatever it raises when its streams are taken from under it says nothing.
        fault = serving.exception() if serving.done() and not serving.cancelled() else None
        serving.cancel()
        await asyncio.wait({serving})
        with suppress(asyncio.CancelledError):
            serving.exception()
        group.cancel_scope.cancel()
    for each in (incoming, messages, answers, outgoing):
        each.close()
    # The thread that reads may wait until somebody takes what it has read.
    while not lines.empty():
        lines.get_nowait()
        await asyncio.sleep(0)
    await writer.end()
    if fault is not None:
        raise fault


def _thread(work: Callable[[], None], name: str) -> None:
    """Whatever kind of file it is, waiting at it holds nobody up, not even the end of the process."""
    threading.Thread(target=work, name=name, daemon=True).start()


def _from_thread(lines: asyncio.Queue[bytes | None]) -> Callable[[bytes | None], None]:
    loop = asyncio.get_running_loop()
    return lambda line: _in_loop(loop, lines.put(line))


def _in_loop(loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, Value]) -> Value:
    """What a coroutine of the loop gives, waited for by a thread. Raises RuntimeError where the loop is
    gone."""
    try:
        return asyncio.run_coroutine_threadsafe(work, loop).result()
    except RuntimeError:
        work.close()
        raise


def _read_lines(read: int, put: Callable[[bytes | None], None], stop: asyncio.Event) -> None:
    """Give each line, and None at the end. One that is too long comes cut, with one byte too many."""
    # The loop may be gone by the time that something comes.
    with suppress(RuntimeError, CancelledError, OSError):
        kept, skipping = b"", False
        while chunk := os.read(read, AT_ONCE):
            *ends, rest = chunk.split(b"\n")
            for end in ends:
                if stop.is_set():
                    return
                if not skipping:
                    put((kept + end)[: MAX_LINE + 1])
                kept, skipping = b"", False
            kept = b"" if skipping else kept + rest
            if len(kept) > MAX_LINE:
                put(kept[: MAX_LINE + 1])
                kept, skipping = b"", True
        if not stop.is_set():
            put(None)


async def _pass_on(lines: asyncio.Queue[bytes | None], incoming: Messages, writer: _Writer) -> None:
    """Make messages of lines; what is none is answered so, and counts for nothing else."""
    async with incoming:
        while (line := await lines.get()) is not None:
            if not line.strip():
                continue
            try:
                found = _message_of(line)
            except ValueError as error:
                code = PARSE_ERROR if len(line) <= MAX_LINE else INVALID_REQUEST
                refusal = JSONRPCError(jsonrpc="2.0", id=None, error=ErrorData(code=code, message=str(error)))
                await writer.put(refusal.model_dump_json(by_alias=True).encode())
                continue
            try:
                await incoming.send(found)
            except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                return


def _message_of(line: bytes) -> SessionMessage:
    """Raises ValueError for what is no message."""
    if len(line) > MAX_LINE:
        raise ValueError(f"A message has at most {MAX_LINE:,} bytes")
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
    except (ValueError, RecursionError):
        raise ValueError("This line is no JSON-RPC message") from None


async def _write_all(
    outgoing: anyio.abc.ObjectReceiveStream[SessionMessage], writer: _Writer, stop: asyncio.Event
) -> None:
    async for each in outgoing:
        await writer.put(each.message.model_dump_json(by_alias=True, exclude_unset=True).encode())
        if writer.broken:
            stop.set()


class _Writer:
    """Lines to a file descriptor, in order. broken: nobody reads them any more."""

    def __init__(self, write: int) -> None:
        self._write, self.broken = write, False
        self._loop = asyncio.get_running_loop()
        self._lines: asyncio.Queue[bytes | None] = asyncio.Queue(1)
        self._ended = asyncio.Event()
        _thread(self._live, "MCP output")

    async def put(self, line: bytes) -> None:
        """Write a line once those before it are written."""
        await self._lines.put(line + b"\n")

    async def end(self) -> None:
        """Wait until all is written, though not for long."""
        with suppress(TimeoutError):
            async with asyncio.timeout(FAREWELL_SECONDS):
                await self._lines.put(None)
                await self._ended.wait()

    def _live(self) -> None:
        with suppress(RuntimeError, CancelledError):
            while line := _in_loop(self._loop, self._lines.get()):
                try:
                    while not self.broken and line:
                        line = line[os.write(self._write, line) :]
                except OSError:
                    self.broken = True
            self._loop.call_soon_threadsafe(self._ended.set)
