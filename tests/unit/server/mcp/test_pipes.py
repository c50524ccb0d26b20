"""The standard input and output as the way in: hostile lines, long ones, a client that leaves."""

import asyncio
import json
import os
import threading
from contextlib import asynccontextmanager, suppress

import anyio
import pytest
from mcp import Client
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from antiphon import Agent
from antiphon.server.mcp.pipes import MAX_LINE, serve_pipes
from tests.unit.server.mcp.conftest import serving, state_of
from tests.unit.server.teams import Held, desk, in_time

HELLO = {
    "jsonrpc": "2.0", "id": 1, "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"},
    },
}  # fmt: skip


class Ends:
    """The client's ends of the pipes, with what is read of one in lines."""

    def __init__(self, write, read):
        self.write, self.reader = write, asyncio.StreamReader(limit=1 << 26)
        self.read = os.fdopen(read, "rb")

    async def open(self):
        loop = asyncio.get_running_loop()
        self.transport, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(self.reader), self.read
        )

    def say(self, line):
        data = line if isinstance(line, bytes) else json.dumps(line).encode()
        return asyncio.to_thread(self._write, data + b"\n")

    def _write(self, data):
        while data:
            data = data[os.write(self.write, data) :]

    async def hear(self):
        line = await self.reader.readline()
        return json.loads(line) if line else None

    def leave(self):
        with suppress(OSError):
            os.close(self.write)
        self.write = -1


@asynccontextmanager
async def piped(team):
    """A team behind pipes; `done` is set once it serves no more."""
    to_read, to_write = os.pipe()
    from_read, from_write = os.pipe()
    stop, ends = asyncio.Event(), Ends(to_write, from_read)
    await ends.open()
    async with serving(team) as (host, server):
        task = asyncio.ensure_future(serve_pipes(server.protocol, to_read, from_write, stop))
        try:
            yield ends, host, stop, task
        finally:
            stop.set()
            ends.leave()
            await task
            for each in [each for each in threading.enumerate() if each.name == "MCP input"]:
                await asyncio.to_thread(each.join)
            for end in (to_read, from_write):
                os.close(end)
            ends.transport.close()
            await asyncio.sleep(0)


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"hello", -32700), (b"\xff\xfe\x00", -32700), (b"[" * 200_000, -32700), (b"[]", -32700),
        (b'{"jsonrpc": "2.0", "id": {}, "method": 3}', -32700), (b"x" * (MAX_LINE + 1), -32600),
        (b"x" * (2 * MAX_LINE), -32600), (b'"' + b"9" * 1_000_000, -32700),
    ],
    ids=["words", "bytes", "deep", "batch", "shapes", "long", "longer", "open"],
)  # fmt: skip
def test_a_line_that_is_no_message_is_answered_so_and_the_next_one_counts(line, code):
    async def work():
        async with piped(desk("x")) as (ends, _, _, _):
            await ends.say(line)
            refused = await ends.hear()
            assert (refused["id"], refused["error"]["code"]) == (None, code)
            await ends.say(b"")
            await ends.say(HELLO)
            assert (await ends.hear())["result"]["serverInfo"]["name"] == "antiphon-desk"

    in_time(work)


def test_it_ends_when_the_client_does_and_no_run_is_stopped():
    model = Held()

    async def work():
        async with piped(Agent("desk", model=model)) as (ends, host, stop, task):
            await ends.say(HELLO)
            await ends.hear()
            await ends.say({"jsonrpc": "2.0", "method": "notifications/initialized"})
            asked = {"name": "ask", "arguments": {"message": "Hi"}}
            await ends.say({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": asked})
            await model.asked.wait()
            ends.leave()
            await task
            assert stop.is_set()
            (hosted,) = host.runs.values()
            assert hosted.run is not None
            assert (await hosted.run.open_requests()) != ()

    in_time(work)


@pytest.mark.slow
def test_a_client_that_reads_nothing_holds_up_itself_alone():
    async def work():
        to_read, to_write = os.pipe()
        from_read, from_write = os.pipe()
        stop, written = asyncio.Event(), []
        flood = asyncio.ensure_future(asyncio.to_thread(_flood, to_write, written))
        async with serving(desk("x")) as (_, server):
            task = asyncio.ensure_future(serve_pipes(server.protocol, to_read, from_write, stop))
            while len(written) < 2_000:  # noqa: ASYNC110 - a thread writes them
                await asyncio.sleep(0)
            stop.set()
            await task
            for end in (to_read, from_read):
                os.close(end)
            await flood
            assert len(written) < LINES, "nobody has read all of it"
            for end in (to_write, from_write):
                os.close(end)

    in_time(work)


LINES = 1_000_000


def _flood(write, written):
    with suppress(OSError):
        for number in range(LINES):
            os.write(write, json.dumps({"jsonrpc": "2.0", "id": number, "method": "ping"}).encode() + b"\n")
            written.append(number)


def test_a_client_of_the_sdk_speaks_over_pipes():
    async def work():
        async with piped(desk("Tea.")) as (ends, _, _, _), Client(_streams(ends)) as client:
            assert client.protocol_version == "2026-07-28"
            assert state_of(await client.call_tool("ask", {"message": "Hi"})) == "completed"

    in_time(work)


@asynccontextmanager
async def _streams(ends):
    """The client's side as the SDK wants it."""
    incoming, messages = anyio.create_memory_object_stream(0)
    answers, outgoing = anyio.create_memory_object_stream(0)

    async def read():
        async with incoming:
            while line := await ends.reader.readline():
                await incoming.send(SessionMessage(jsonrpc_message_adapter.validate_json(line)))

    async def write():
        async for each in outgoing:
            await ends.say(each.message.model_dump_json(by_alias=True, exclude_unset=True).encode())

    async with anyio.create_task_group() as group:
        group.start_soon(read)
        group.start_soon(write)
        yield messages, answers
        group.cancel_scope.cancel()
    for each in (incoming, messages, answers, outgoing):
        each.close()
