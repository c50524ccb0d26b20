"""A team over streamable HTTP: behind the server's gate, on one's own runs."""

import asyncio
import json
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from antiphon import Agent
from antiphon.host import Host
from antiphon.journal.memory import MemoryJournal
from antiphon.server.app import ServerSettings, make_app
from antiphon.server.mcp.http import mounted
from antiphon.server.subjects import AccessToken, Subject, digest_of, one_token
from tests.unit.server.asgi import Client
from tests.unit.server.mcp.conftest import ended
from tests.unit.server.teams import ADA, TOKEN, Held, desk, in_time, payer

MODERN = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
}
BOTH = "application/json, text/event-stream"


@asynccontextmanager
async def over_http(team):
    """A client of a server at whose /mcp a team is, and its host."""
    async with AsyncExitStack() as stack:
        host = await stack.enter_async_context(Host(MemoryJournal(), {"desk": team}, drain_seconds=0))
        mount = await stack.enter_async_context(mounted(host, "desk"))
        reader = AccessToken(Subject("reader", frozenset({"read"})), digest_of("reads"))
        tokens = (one_token(TOKEN), AccessToken(Subject("ada"), digest_of(ADA)), reader)
        yield Client(make_app(host, ServerSettings(tokens), mounts=[mount]), TOKEN), host
        for task in asyncio.all_tasks():
            # The library that writes event streams has one for each event loop, as long as that lives.
            if task.get_coro().__name__ == "_shutdown_watcher":
                task.cancel()


def called(name, arguments, **more):
    """The arguments of a request that calls a tool as of 2026-07-28."""
    params = {"name": name, "arguments": arguments, "_meta": MODERN, **more}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    headers = {
        "accept": BOTH, "mcp_protocol_version": "2026-07-28", "mcp_method": "tools/call", "mcp_name": name,
    }  # fmt: skip
    return ("POST", "/mcp", body), headers


async def call(client, name, arguments, **more):
    words, headers = called(name, arguments, **more)
    return await client(*words, **headers)


def test_a_run_is_the_subjects_own_and_asks_the_subject():
    async def work():
        async with over_http(payer()) as (client, host):
            asked = (await call(client, "ask", {"message": "Pay"})).json["result"]
            assert asked["resultType"] == "input_required"
            state = json.loads(asked["requestState"])
            ada = client.as_(ADA)
            said = {"1/1.c1?": {"action": "accept", "content": {"answer": "yes"}}}
            again = {"inputResponses": said, "requestState": asked["requestState"]}
            stolen = (await call(ada, "ask", {"message": "Pay"}, **again)).json["result"]
            assert (stolen["isError"], "nknown run" in stolen["content"][0]["text"]) == (True, True)
            ended = (await call(client, "ask", {"message": "Pay"}, **again)).json["result"]
            assert ended["structuredContent"]["output"] == "done"
            async with host.connect(state["run_id"]) as run:
                assert (await run.tree()).effects["1/1.c1?"].wait.by == "outsider local (MCP client t)"

    in_time(work)


def test_who_has_no_token_or_may_only_read_calls_nothing():
    async def work():
        async with over_http(desk("x")) as (client, host):
            assert (await call(client.as_(""), "ask", {"message": "Hi"})).status == 401
            assert (await call(client.as_("reads"), "ask", {"message": "Hi"})).status == 403
            words, headers = called("ask", {"message": "Hi"})
            assert (await client(*words, **headers, origin="https://evil.example")).status == 403
            assert (await client(*words, **headers, host="evil.example")).status in (400, 403, 421)
            assert host.runs == {}

    in_time(work)


def test_closing_the_stream_of_a_call_cancels_it():
    model = Held()

    async def work():
        async with over_http(Agent("desk", model=model)) as (client, host):
            words, headers = called("ask", {"message": "Hi"}, _meta=MODERN | {"progressToken": 1})
            async with client.stream(*words, **headers) as reply:
                assert reply.status == 200
                await model.asked.wait()
            (run_id,) = host.runs
            async with host.connect(run_id) as run:
                assert (await ended(run)).outcome == "cancelled"

    in_time(work)


def test_a_client_of_the_handshake_keeps_a_session():
    async def work():
        async with over_http(desk("Tea.")) as (client, _):
            hello = {
                "jsonrpc": "2.0", "id": 1, "method": "initialize",
                "params": {
                    "protocolVersion": "2025-06-18", "capabilities": {},
                    "clientInfo": {"name": "t", "version": "1"},
                },
            }  # fmt: skip
            found = await client("POST", "/mcp", hello, accept=BOTH)
            session = {"mcp_session_id": found.headers["mcp-session-id"], "accept": BOTH}
            ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
            assert (await client("POST", "/mcp", ready, **session)).status == 202
            params = {"name": "ask", "arguments": {"message": "Hi"}}
            asked = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params}
            said = await client("POST", "/mcp", asked, **session)
            lines = [line for line in said.body.decode().splitlines() if line.startswith("data: {")]
            told = json.loads(lines[-1].removeprefix("data: "))
            assert told["result"]["structuredContent"]["output"] == "Tea."
            assert (await client("DELETE", "/mcp", **session)).status == 200
            assert (await client("POST", "/mcp", asked, **session)).status == 404

    in_time(work)


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"[" * 100_000, b"\xff", b"x" * 2_000_000, b'{"jsonrpc": "2.0", "id": 1}'],
    ids=["empty", "open", "batch", "deep", "bytes", "long", "half"],
)  # fmt: skip
def test_what_is_no_message_is_refused(body):
    async def work():
        async with over_http(desk("x")) as (client, _):
            for version in ("2026-07-28", "2025-06-18", "1999-01-01"):
                headers = {
                    "accept": BOTH,
                    "content_type": "application/json",
                    "mcp_protocol_version": version,
                }
                assert 400 <= (await client("POST", "/mcp", body, **headers)).status < 500
            assert (await call(client, "list_runs", {})).json["result"]["structuredContent"] == {"runs": []}

    in_time(work)
