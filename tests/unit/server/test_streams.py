"""Many readers of one run: what they share, what each costs, and that none stands in another's way."""

import asyncio
import gc
import socket
from contextlib import AsyncExitStack, aclosing

import pytest
from litestar.exceptions import LitestarException

from antiphon import Agent
from antiphon.errors import JournalCorrupt
from antiphon.journal.memory import MemoryJournal
from antiphon.kernel.facts.events import EffectFinished
from antiphon.server.serve import COLLECTED, listen, seldom_collected
from antiphon.server.streams import encodings
from antiphon.server.streams.frames import frames_of
from antiphon.view.reading import projection
from antiphon.view.reading.projection import RecordProjection
from tests.unit.server.teams import (
    ADA,
    USERS,
    Held,
    desk,
    in_time,
    payer,
    served,
    started,
    until_asked,
    until_done,
)  # fmt: skip

MANY = 12
"""Readers that are woken together: more than the few that every record wakes."""


async def ended(stream):
    """The events of a stream up to its end."""
    return [(event, number, data) async for event, number, data in stream.events()]


async def readers(stack, client, path, count=MANY):
    streams = [await stack.enter_async_context(client.stream("GET", path)) for _ in range(count)]
    return [asyncio.ensure_future(ended(each)) for each in streams]


async def question(host, run_id):
    """What a run asks, once it does; without a stream of the server."""
    async with host.connect(run_id) as run, aclosing(run.events(deltas=False)) as events:
        async for _ in events:
            if found := await run.open_questions():
                return found[0].id


async def to_the_end(host, run_id):
    """Answer what is asked, and close the run; without a stream of the server."""
    async with host.connect(run_id) as run:
        await run.taken(await run.answer(await question(host, run_id), "yes"))
        await over(host, run_id)


async def over(host, run_id):
    """Close a run once its request has ended."""
    async with host.connect(run_id) as run, aclosing(run.events(deltas=False)) as events:
        async for item in events:
            if isinstance(item.event, EffectFinished) and item.event.id == "0/1.c1":
                break
    await host.close(run_id)


def no_projection():
    raise AssertionError("nobody has read it")


@pytest.mark.parametrize("view", ["records", "frames"])
def test_a_record_is_encoded_once_for_all_who_read_it(view):
    async def work():
        frames = view == "frames"
        async with served({"desk": payer()}) as (client, host), AsyncExitStack() as stack:
            run_id = await started(client)
            await question(host, run_id)
            begun = host.runs[run_id].run.seq
            path = f"/runs/{run_id}/events?after={begun}&deltas=false&view={view}"
            reading = await readers(stack, client, path)
            await to_the_end(host, run_id)
            heard = await asyncio.gather(*reading)
            assert all(each == heard[0] for each in heard)
            *told, (event, _, data) = heard[0]
            assert (event, data) == ("end", {"reason": "closed"})
            last = int(told[-1][1])
            assert [int(number) for _, number, _ in told] == list(range(begun + 1, last + 1))
            encoded = client.app.state.served.event_encodings.made
            # A frame is made of every record, since it says what that one changed.
            made = host.readings.of(("frames", run_id), RecordProjection, no_projection).made if frames else 0
            assert (encoded, made) == ((0, last) if frames else (last - begun, 0))

    in_time(work)


def test_a_message_of_the_websocket_is_encoded_once_for_all_who_follow():
    async def work():
        async with served({"desk": payer()}) as (client, host), AsyncExitStack() as stack:
            run_id = await started(client)
            asked = await question(host, run_id)
            begun = host.runs[run_id].run.seq
            sockets = [await stack.enter_async_context(client.socket()) for _ in range(MANY)]
            subscribe = {"type": "subscribe", "request_id": "s", "run_id": run_id, "after": begun}
            for each in sockets:
                await each.ask({"type": "hello", "request_id": "h", "token": client.token})
                reply = await each.ask(subscribe)
                assert [one["id"] for one in reply["questions"]] == [asked]
            await to_the_end(host, run_id)
            heard = []
            for each in sockets:
                heard.append([])
                while (found := await each.receive())["type"] != "stream_ended":
                    heard[-1].append(found)
            assert all(each == heard[0] for each in heard)
            last = max(each["record"]["seq"] for each in heard[0] if each["type"] == "record")
            # The records, and the one piece that the model says at once.
            assert client.app.state.served.update_encodings.made == last - begun + 1
            derived = host.readings.of(("updates", run_id), RecordProjection, no_projection)
            assert derived.made == last
            assert {"question_settled", "turn_completed"} <= {each["type"] for each in heard[0]}

    in_time(work)


def test_a_piece_is_encoded_once_for_readers_at_the_same_place():
    async def work():
        held = Held()
        async with served({"desk": Agent("desk", model=held)}) as (client, host), AsyncExitStack() as stack:
            run_id = await started(client)
            await held.asked.wait()
            begun = host.runs[run_id].run.seq
            reading = await readers(stack, client, f"/runs/{run_id}/events?after={begun}", 5)
            held.gate.set()
            await over(host, run_id)
            heard = await asyncio.gather(*reading)
            for each in heard:
                said = "".join(data["text"] for event, _, data in each if event == "delta")
                assert said == "Half an answer."
            # Two looks at what was said, or one that found both halves; and the records.
            last = max(int(number or 0) for _, number, _ in heard[0])
            assert client.app.state.served.event_encodings.made <= last - begun + 2

    in_time(work)


def test_a_record_makes_no_task_however_many_read_it():
    made = []

    async def work():
        async with served({"desk": payer()}) as (client, host):
            counts = []
            for many in (1, MANY):
                run_id = await started(client)
                asked = await until_asked(client, run_id)
                async with AsyncExitStack() as stack:
                    before = len(asyncio.all_tasks())
                    reading = await readers(stack, client, f"/runs/{run_id}/events", many)
                    # The reader here and its response there, and what each waits for.
                    counts.append((len(asyncio.all_tasks()) - before) / len(reading))
                    made.clear()
                    async with host.connect(run_id) as run:
                        await run.answer(asked["id"], "yes")
                        await host.runs[run_id].run.until_durable()
                    await until_done(client, run_id)
                    counts.append(len([name for name in made if "stream" in name.lower()]))
                    for each in reading:
                        each.cancel()
            assert counts[1] == counts[3] == 0
            assert counts[0] == counts[2] <= 4

    async def counted():
        def factory(loop, coro, **options):
            made.append(getattr(coro, "__qualname__", ""))
            return asyncio.Task(coro, loop=loop, **options)

        asyncio.get_running_loop().set_task_factory(factory)
        return await work()

    in_time(counted)


def test_who_does_not_read_holds_nobody_up_and_is_told_all_of_it_later():
    async def work():
        async with served({"desk": payer()}) as (client, host):
            run_id = await started(client)
            sent, began, gate, left = [], asyncio.Event(), asyncio.Event(), asyncio.Event()

            async def send(message):
                sent.append(message)
                began.set()
                await gate.wait()
                if message["type"] == "http.response.body" and not message["more_body"]:
                    left.set()

            async def receive():
                await left.wait()
                return {"type": "http.disconnect"}

            scope = client.scope("http", f"/runs/{run_id}/events?deltas=false", {}, method="GET")
            still = asyncio.ensure_future(client.app(scope, receive, send))
            await began.wait()
            await to_the_end(host, run_id)
            assert len(sent) == 1, "the head of the response; nothing was taken of the rest"
            gate.set()
            await still
            body = b"".join(each.get("body", b"") for each in sent)
            numbers = [int(line[4:]) for line in body.split(b"\n") if line.startswith(b"id: ")]
            assert numbers == list(range(1, len(numbers) + 1))
            assert body.endswith(b'event: end\ndata: {"reason":"closed"}\n\n')
            # What there was came in few chunks, not one by one.
            assert len(sent) < 8

    in_time(work)


def test_a_token_that_is_revoked_ends_its_streams_at_once_and_no_others():
    async def work():
        async with served({"desk": payer()}, tokens=USERS) as (client, _), AsyncExitStack() as stack:
            ada = client.as_(ADA)
            run_id = await started(ada)
            await until_asked(ada, run_id)
            path = f"/runs/{run_id}/events"
            reading = await readers(stack, ada, path)
            (other,) = await readers(stack, client, path, 1)
            sockets = [await stack.enter_async_context(client.as_("").socket()) for _ in range(2)]
            for each, token in zip(sockets, (ADA, client.token), strict=True):
                await each.ask({"type": "hello", "request_id": "h", "token": token})
            client.app.state.served.subjects.revoke("ada")
            # Nothing happens in the run: it is the revocation that ends them.
            for each in await asyncio.gather(*reading):
                assert each[-1] == ("end", None, {"reason": "token"})
            assert not other.done()
            assert (await sockets[0].receive(), sockets[0].closed) == (None, 1008)
            assert await sockets[1].ask({"type": "hello", "request_id": "again"})
            client.app.state.served.leave()
            assert (await other)[-1] == ("end", None, {"reason": "server_left"})

    in_time(work)


def test_who_leaves_before_the_stream_begins_leaves_nothing():
    async def work():
        async with served({"desk": desk("Hello.")}) as (client, _):
            run_id = await started(client)
            await until_done(client, run_id)
            scope = client.scope("http", f"/runs/{run_id}/events", {}, method="GET")
            sent = []

            async def receive():
                return {"type": "http.disconnect"}

            async def send(message):
                sent.append(message)

            for _ in range(5):
                await client.app(dict(scope), receive, send)
            known = client.app.state.served
            assert (known.rates.connections, known.readers) == (0, {})

            async def breaks(message):
                raise OSError("the connection is gone")

            with pytest.raises(LitestarException):
                await client.app(dict(scope), receive, breaks)
            assert (known.rates.connections, known.readers) == (0, {})

    in_time(work)


def test_a_stream_says_that_it_lives_when_nothing_else_does(monkeypatch):
    async def work():
        async with served({"desk": desk("Hello.")}) as (client, _):
            run_id = await started(client)
            last = (await until_done(client, run_id))["seq"]
            path = f"/runs/{run_id}/events?after={last}"
            async with client.stream("GET", path) as stream, aclosing(stream.chunks()) as chunks:
                assert await anext(chunks) == b": antiphon\nretry: 1000\n\n"
                assert await anext(chunks) == b": alive\n\n"

    monkeypatch.setattr("antiphon.server.streams.event_stream.ALIVE_SECONDS", 0.01)
    in_time(work)


def test_frames_that_are_kept_no_longer_are_made_anew(monkeypatch):
    async def work():
        async with served({"desk": payer()}) as (client, host):
            run_id = await started(client)
            await to_the_end(host, run_id)
            whole = (await client("GET", f"/runs/{run_id}/frames")).json["frames"]
            monkeypatch.setattr(projection, "WINDOW", 2_000)
            host.readings = type(host.readings)()
            for after in range(len(whole)):
                path = f"/runs/{run_id}/frames?after={after}&limit=3"
                assert (await client("GET", path)).json["frames"] == whole[after : after + 3]
                async with client.stream("GET", f"/runs/{run_id}/events?view=frames&after={after}") as found:
                    assert [data for event, _, data in await ended(found) if event == "frame"] == whole[
                        after:
                    ]

    in_time(work)


def test_a_run_that_is_made_anew_under_its_id_is_read_anew():
    async def work():
        async with served({"desk": desk("Hello."), "other": desk("Bye.", name="other")}) as (client, host):
            shown = []
            for team in ("desk", "other", "desk"):
                await host.start(team, "Hi", run_id="same")
                tree = await until_done(client, "same")
                page = (await client("GET", "/runs/same/frames")).json
                view = (await client("GET", "/runs/same/activations/0")).json
                print(view)
                shown.append((tree["activations"][1]["content"], page["frames"][0]["at"]))
                assert [each["seq"] for each in page["frames"]] == list(range(1, page["last"] + 1))
                assert (await client("DELETE", "/runs/same")).status in (200, 204)
                assert (await client("GET", "/runs/same/frames")).status == 404
            assert [each[0] for each in shown] == ["Hello.", "Bye.", "Hello."]
            assert len({each[1] for each in shown}) == 3

    in_time(work)


def test_a_run_that_is_deleted_under_a_reader_of_frames_ends_its_stream():
    async def work():
        async with served({"desk": desk("Hello.")}, journal=MemoryJournal()) as (client, host):
            run_id = await started(client)
            await until_done(client, run_id)
            async with client.stream("GET", f"/runs/{run_id}/events?view=frames") as stream:
                events = stream.events()
                await anext(events)
                await host.delete(run_id)
                ends = [data async for event, _, data in events if event == "end"]
            assert ends[0]["problem"]["type"] == "urn:antiphon:problem:unknown_run"
            await host.start("desk", "Hi", run_id=run_id)
            with pytest.raises(JournalCorrupt):
                await frames_of(host, run_id).between(0, 10_000)

    in_time(work)


def test_what_is_kept_of_encodings_is_bounded(monkeypatch):
    monkeypatch.setattr(encodings, "ENCODED", 10)
    monkeypatch.setattr(encodings, "ENCODED_BYTES", 100)
    known = encodings.Encodings()
    first = "a" * 5
    for text in [first, *(str(n) * 3 for n in range(100)), "x" * 1_000]:
        assert known.of(text, str.encode) == text.encode()
        assert known.of(text, str.encode) == text.encode()
        assert known.size <= 100
    assert known.made == 103, "the last is larger than all that is kept"
    assert known.of(first, str.encode) == first.encode()


def test_readers_at_one_place_are_sent_the_same_chunks_and_no_others(monkeypatch):
    shared, one, twin = encodings.SharedChunks(), object(), object()
    first = shared.of([one, twin], lambda: [b"a"])
    assert shared.of([one, twin], lambda: [b"b"]) is first
    assert shared.of([twin, one], lambda: [b"b"]) == [b"b"]
    assert shared.of([one], lambda: [b"c"]) == [b"c"]
    # An object that is equal is another one: nothing of one run is taken for something of another.
    equal = [1_000, "x" * 9], [10**3, "".join(["x"] * 9)]
    assert [shared.of(each, lambda n=n: [b"%d" % n]) for n, each in enumerate(equal)] == [[b"0"], [b"1"]]
    for _ in range(encodings.PLACES):
        shared.of([object()], lambda: [b"d"])
    assert shared.of([one, twin], lambda: [b"e"]) == [b"e"], "those at whose place nobody was lately"
    monkeypatch.setattr(encodings, "CHUNKS_BYTES", 3)
    large = [object()]
    assert shared.of(large, lambda: [b"1234"]) is not shared.of(large, lambda: [b"1234"])


def test_what_is_sent_does_not_wait_for_a_receipt():
    async def work():
        taken = asyncio.get_running_loop().create_future()
        listening = listen("127.0.0.1", 0)

        async def met(_, writer):
            taken.set_result(
                writer.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
            )
            writer.close()

        async with await asyncio.start_server(met, sock=listening):
            _, writer = await asyncio.open_connection(*listening.getsockname())
            assert await taken
            writer.close()

    in_time(work)


@pytest.mark.parametrize("frozen", [False, True])
def test_the_collector_is_as_it_was_once_a_server_was_left(frozen):
    # Whatever an earlier test has left.
    gc.unfreeze()
    if frozen:
        gc.freeze()
    before = gc.get_threshold()
    with seldom_collected():
        assert gc.get_threshold() == COLLECTED
        assert gc.get_freeze_count() > 0
    assert (gc.get_threshold(), gc.get_freeze_count() > 0) == (before, frozen)
    gc.unfreeze()
