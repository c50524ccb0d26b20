"""A run's stream over cuts, restarts and servers that mean no good: each record once, or one clear error."""

import asyncio

import httpx2
import msgspec
import pytest

from antiphon import Agent, Record, ReplyDelta, open_run
from antiphon.cli.remote import events as module
from antiphon.cli.remote.address import ServerAddress
from antiphon.cli.remote.client import ServerClient, ServerFault, ServerRefused
from antiphon.cli.remote.connection import ServerRun
from antiphon.cli.remote.events import ServerEvents
from antiphon.journal.memory import MemoryJournal
from antiphon.kernel.run.rows import read
from antiphon.models.script import Script
from antiphon.server.streams.event_stream import event_of
from antiphon.values.secret import Secret
from antiphon.view import RunConnection

RUN = "the-run"
HELLO = b": antiphon\nretry: 1000\n\n"


async def recorded():
    journal = MemoryJournal()
    async with open_run(
        [Agent("desk", model=Script(["Hello."]))], journal=journal, run_id=RUN, create=True
    ) as run:
        await run.result(await run.post("desk", "Hi"))
        await run.close()
    return await read(journal, RUN)


RECORDS = asyncio.run(recorded())
STREAM = [event_of(each) for each in RECORDS]
CLOSED = b'event: end\ndata: {"reason":"closed"}\n\n'


class Body(httpx2.AsyncByteStream):
    """A stream that says these pieces, then ends, breaks or says nothing more."""

    def __init__(self, pieces, then="ends"):
        self.pieces, self.then = pieces, then

    async def __aiter__(self):
        for each in self.pieces:
            yield each
        if self.then == "breaks":
            raise httpx2.ReadError("connection reset")
        if self.then == "waits":
            await asyncio.Event().wait()


class Scripted:
    """A server whose streams are these, one a connection; `after` is where each was asked to begin."""

    def __init__(self, *streams):
        self.streams, self.after = list(streams), []

    def __call__(self, request):
        self.after.append(int(request.headers["last-event-id"]))
        found = self.streams.pop(0) if self.streams else httpx2.ConnectError("nobody")
        if isinstance(found, Exception):
            raise found
        if isinstance(found, httpx2.Response):
            return found
        return httpx2.Response(200, content=found)


def followed(server, after=0, check=None):
    """What a stream hands out, and what the person is told."""

    async def work():
        told, found = [], []
        address = ServerAddress("http://127.0.0.1:8000", Secret("the token"))
        async with ServerClient(address, httpx2.MockTransport(server)) as client:
            events = ServerEvents(client, RUN, after, True, told.append, check)
            try:
                async for each in events:
                    found.append(each)
            finally:
                await events.aclose()
        return found, told

    return asyncio.run(work())


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    monkeypatch.setattr(module, "PAUSES", (0,))


def test_a_stream_is_the_run():
    found, told = followed(Scripted(Body([HELLO, *STREAM, CLOSED])))
    assert found == RECORDS
    assert told == []


@pytest.mark.parametrize("then", ["ends", "breaks"])
def test_cut_at_every_byte_each_record_comes_once(then):
    whole = b"".join(STREAM)
    for at in range(0, len(whole), 37):
        server = Scripted(Body([HELLO, whole[:at]], then))
        full = whole[:at].count(b"\n\n")
        server.streams.append(Body([HELLO, *STREAM[full:], CLOSED]))
        found, told = followed(server)
        assert [each.seq for each in found] == [each.seq for each in RECORDS]
        assert server.after == ([0, full] if full < len(STREAM) else [0])
        assert told[:1] == (
            ["(the connection to http://127.0.0.1:8000 was cut; reconnecting)"] if told else []
        )


def test_a_restart_of_the_server_is_waited_for_and_told_once():
    left = b'event: end\ndata: {"reason":"server_left"}\n\n'
    away = httpx2.ConnectError("refused")
    draining = httpx2.Response(503, json={"title": "Leaving", "type": "urn:antiphon:problem:draining"})
    gateway = httpx2.Response(502, content=b"<html>")
    server = Scripted(
        Body([HELLO, *STREAM[:3], left]), away, draining, gateway, away, Body([*STREAM[3:], CLOSED])
    )
    found, told = followed(server)
    assert found == RECORDS
    assert server.after == [0, 3, 3, 3, 3, 3]
    assert told == ["(the connection to http://127.0.0.1:8000 was cut; reconnecting)", "(connected again)"]


def test_a_server_that_stays_away_is_an_error_in_the_end(monkeypatch):
    monkeypatch.setattr(module, "GIVE_UP_SECONDS", 0.0)
    with pytest.raises(ServerFault, match="did not come back within 0 s"):
        followed(Scripted(Body([HELLO, STREAM[0]])))


def test_a_server_that_says_nothing_any_more_is_taken_for_gone(monkeypatch):
    monkeypatch.setattr(module, "IDLE_SECONDS", 0.01)
    server = Scripted(Body(STREAM[:2], "waits"), Body([*STREAM[2:], CLOSED]))
    assert followed(server)[0] == RECORDS


def test_a_reply_that_is_cut_is_not_said_twice():
    def piece(text, offset=0, index=0, kind="text"):
        return ReplyDelta("1/1.m1", 1, "desk", kind, text, index, offset)

    first = [*STREAM[:5], event_of(piece("Half ")), event_of(piece("an ", 5))]
    # Who comes again is given all that is said so far as one piece.
    again = [
        event_of(piece("Half an ")),
        event_of(piece("thinking", kind="reasoning")),
        event_of(piece("answer", 8)),
    ]
    found, _ = followed(Scripted(Body(first), Body([HELLO, *again, *STREAM[5:], CLOSED])))
    said = "".join(each.text for each in found if isinstance(each, ReplyDelta) and each.kind == "text")
    assert said == "Half an answer"
    assert [each for each in found if isinstance(each, Record)] == RECORDS


def test_whoever_is_interrupted_goes_on_with_the_next_record():
    async def work():
        server = Scripted(Body([HELLO, *STREAM[:4]], "waits"), Body([HELLO, *STREAM[4:], CLOSED]))
        address, told = ServerAddress("http://127.0.0.1:8000", Secret("the token")), []
        async with ServerClient(address, httpx2.MockTransport(server)) as client:
            events = ServerEvents(client, RUN, 0, True, told.append)
            found = [await anext(events) for _ in range(4)]
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.01):
                    await anext(events)
            found += [each async for each in events]
        return found, told

    # Nobody is told: it was no fault of the connection.
    assert asyncio.run(work()) == (RECORDS, [])


def changed(record, **fields):
    return event_of(msgspec.structs.replace(record, **fields))


HOSTILE = {
    "a gap": [STREAM[0], STREAM[2]],
    "another run": [changed(RECORDS[0], run_id="another")],
    "no JSON": [b"event: record\ndata: {\n\n"],
    "another type": [b'event: record\ndata: {"seq": "one"}\n\n'],
    "an unknown event of a run": [b'event: record\ndata: {"seq":1,"at":0,"event":{"type":"owned"}}\n\n'],
    "a delta of nothing": [b"event: delta\ndata: []\n\n"],
    "a place in no line": [event_of(ReplyDelta("1/1.m1", 1, "desk", "queued", "\u0662\x1b[2J"))],
    "no end": [b"event: end\ndata: 7\n\n"],
}  # fmt: skip


@pytest.mark.parametrize("pieces", HOSTILE.values(), ids=HOSTILE)
def test_what_is_no_stream_of_a_run_ends_it_with_an_error(pieces):
    with pytest.raises(ServerFault):
        followed(Scripted(Body([HELLO, *pieces]), Body([*STREAM, CLOSED])))


def test_a_line_that_does_not_end_is_bounded(monkeypatch):
    monkeypatch.setattr(module, "MAX_EVENT", 10_000)
    with pytest.raises(ServerFault, match="more than 10000 bytes"):
        followed(Scripted(Body([b"data: " + b"x" * 6_000, b"x" * 6_000])))


def test_what_it_does_not_know_is_passed_over():
    later = b"event: of tomorrow\ndata: whatever\n\n"
    assert followed(Scripted(Body([HELLO, later, *STREAM, b"nonsense\n\n", CLOSED])))[0] == RECORDS
    # Records that are known come again from a server that begins too early.
    assert followed(Scripted(Body([*STREAM, CLOSED])), after=4)[0] == RECORDS[4:]


def test_an_end_with_a_problem_is_that_error():
    token = b'event: end\ndata: {"reason":"token"}\n\n'
    with pytest.raises(ServerRefused, match="ANTIPHON_SERVER_TOKEN"):
        followed(Scripted(Body([token])))
    failed = (
        b'event: end\ndata: {"reason":"failed","problem":{"title":"Damaged","status":500,'
        b'"type":"urn:antiphon:problem:journal"}}\n\n'
    )
    with pytest.raises(ServerRefused, match="Damaged") as refused:
        followed(Scripted(Body([failed])))
    assert refused.value.exit_code == 5


def test_a_run_that_nobody_drives_any_more_is_found_out():
    async def check():
        raise ServerFault("nobody drives it")

    with pytest.raises(ServerFault, match="nobody drives it"):
        followed(Scripted(Body([HELLO, *STREAM[:3], b": alive\n\n"], "waits")), check=check)


def test_a_run_there_has_the_face_of_one_here():
    def public(kind):
        return {name for name in vars(kind) if not name.startswith("_")}

    # A server offers the calls of a person by a route of their own, and what is folded is not sent.
    assert public(ServerRun) == public(RunConnection) - {"call", "folded"}
