"""Teams and apps of the server's tests."""

import asyncio
from contextlib import asynccontextmanager

from antiphon import Agent, tool
from antiphon.host import Host
from antiphon.journal.memory import MemoryJournal
from antiphon.models.script import Script, call
from antiphon.server.app import ServerSettings, make_app
from antiphon.server.subjects import AccessToken, Subject, digest_of, one_token
from tests.unit.server.asgi import Client

TOKEN = "the token of the server"
ADA, BOB, READER, OLD = "the token of ada", "the token of bob", "the token of a reader", "an expired token"
NOW = 1_700_000_000.0
USERS = (
    AccessToken(Subject("ada"), digest_of(ADA)),
    AccessToken(Subject("bob"), digest_of(BOB)),
    AccessToken(Subject("reader", frozenset({"read"}), sees_all=True), digest_of(READER)),
    AccessToken(Subject("old"), digest_of(OLD), expires_at=NOW - 1),
    AccessToken(Subject("gone"), digest_of("a revoked token")),
)


@tool(requires_approval=True)
async def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


def desk(*replies, tools=(), name="desk"):
    return Agent(name, model=Script(replies, by="turn"), tools=tools)


def payer():
    return desk(call("pay", amount=3), "done", tools=[pay])


class Held:
    """A model that says one piece, waits to be let go on, and says the other."""

    name = "held"

    def __init__(self, first="Half an ", second="answer."):
        self.first, self.second = first, second
        self.asked, self.gate = asyncio.Event(), asyncio.Event()

    async def complete(self, request, emit):
        from antiphon.values.model import Delta, Reply, Usage

        emit(Delta("text", self.first))
        self.asked.set()
        await self.gate.wait()
        emit(Delta("text", self.second))
        return Reply(self.first + self.second, usage=Usage(3, 2))


@asynccontextmanager
async def served(teams, *, tokens=(), journal=None, more=(), mounts=(), **options):
    """A client of a server with these teams, and its host."""
    journal = MemoryJournal() if journal is None else journal
    followed = {"users": options.pop("users")} if "users" in options else {}
    bounds = {"bounds": options.pop("bounds")} if "bounds" in options else {}
    async with Host(journal, teams, drain_seconds=0, **options) as host:
        settings = ServerSettings((one_token(TOKEN), *tokens), **bounds, **followed)
        app = make_app(host, settings, now=lambda: NOW, more=more, mounts=mounts)
        app.state.served.subjects.revoke("gone")
        yield Client(app, TOKEN), host


def in_time(work):
    async def bounded():
        async with asyncio.timeout(20):
            return await work()

    return asyncio.run(bounded())


async def started(client, team="desk", message="Hi", **more):
    reply = await client("POST", "/runs", {"team": team, "message": message, **more})
    assert reply.status == 201, reply
    return reply.json["run_id"]


async def until_asked(client, run_id):
    """The first question of a run, once it is there."""
    async with client.stream("GET", f"/runs/{run_id}/events?deltas=false") as stream:
        async for _ in stream.events():
            found = (await client("GET", f"/runs/{run_id}/questions")).json
            if found:
                return found[0]


async def until_done(client, run_id, request=1):
    """The tree of a run once a request of it has ended."""
    async with client.stream("GET", f"/runs/{run_id}/events?deltas=false") as stream:
        async for event, _, data in stream.events():
            ends = event == "record" and data["event"].get("type") == "finished"
            if ends and data["event"]["id"] == f"0/{request}.c1":
                return (await client("GET", f"/runs/{run_id}/tree")).json
