"""A run as Server-Sent Events: over disconnects, beside a slow model, to its end."""

import asyncio

from antiphon import Agent
from antiphon.journal.memory import MemoryJournal
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


async def records(stream, upto=None):
    """The ids of records until the stream ends, or one of them has come."""
    found = []
    async for event, number, data in stream.events():
        if event == "record":
            assert int(number) == data["seq"]
            found.append(data["seq"])
            if data["seq"] == upto:
                break
    return found


def test_cut_anywhere_and_gone_on_with_it_is_the_whole_run():
    async def work():
        async with served({"desk": payer()}) as (client, _):
            run_id = await started(client)
            asked = await until_asked(client, run_id)
            await client("POST", f"/runs/{run_id}/answers", {"question": asked["id"], "content": "yes"})
            await until_done(client, run_id)
            await client("POST", f"/runs/{run_id}/close", {})
            path = f"/runs/{run_id}/events"
            async with client.stream("GET", path) as stream:
                whole = await records(stream)
            assert whole == list(range(1, len(whole) + 1))
            for cut in whole:
                async with client.stream("GET", path) as stream:
                    before = await records(stream, cut)
                async with client.stream("GET", path, last_event_id=str(before[-1])) as stream:
                    assert before + await records(stream) == whole

    in_time(work)


def test_pieces_come_before_their_record_and_have_no_id():
    async def work():
        held = Held()
        held.gate.set()
        async with served({"desk": Agent("desk", model=held)}) as (client, _):
            run_id = await started(client)
            last = (await until_done(client, run_id))["seq"]
            held.gate.clear()
            async with client.stream("GET", f"/runs/{run_id}/events?after={last}") as stream:
                ask = {"agent": "desk", "message": "More"}
                await client("POST", f"/runs/{run_id}/requests", ask)
                seen = []
                async for event, number, data in stream.events():
                    seen.append((event, number, data))
                    if event == "delta":
                        held.gate.set()
                    if event == "record" and data["event"].get("reply"):
                        break
            pieces = [(number, data["text"]) for event, number, data in seen if event == "delta"]
            assert pieces == [(None, "Half an "), (None, "answer.")]

    in_time(work)


def test_whoever_leaves_stops_nothing():
    async def work():
        held = Held()
        async with served({"desk": Agent("desk", model=held)}) as (client, host):
            run_id = await started(client)
            await held.asked.wait()
            async with client.stream("GET", f"/runs/{run_id}/events") as stream:
                await records(stream, 3)
            assert client.app.state.served.rates.connections == 0
            held.gate.set()
            tree = await until_done(client, run_id)
            assert tree["activations"][1]["content"] == "Half an answer."
            assert host.runs[run_id].state == "running"

    in_time(work)


def test_the_stream_says_why_it_ends():
    async def work():
        async with served({"desk": desk("Hello.")}) as (client, _):
            runs = [await started(client) for _ in range(2)]
            for each in runs:
                await until_done(client, each)
            await client("POST", f"/runs/{runs[0]}/close", {})
            ends = []
            for run_id in runs:
                async with client.stream("GET", f"/runs/{run_id}/events?deltas=false") as stream:
                    async for event, number, data in stream.events():
                        if run_id == runs[1]:
                            client.app.state.served.leave()
                        if event == "end":
                            ends.append((number, data))
            assert ends == [(None, {"reason": "closed"}), (None, {"reason": "server_left"})]

    in_time(work)


def test_a_cursor_that_is_none_is_refused_before_the_stream_begins():
    async def work():
        async with served({"desk": desk("Hello.")}) as (client, _):
            run_id = await started(client)
            for wrong in ("x", "-1", "1" * 30, "１"):
                reply = await client("GET", f"/runs/{run_id}/events", last_event_id=wrong)
                assert (reply.status, reply.json["type"]) == (400, "urn:antiphon:problem:cursor")
            assert client.app.state.served.rates.connections == 0

    in_time(work)


def test_two_readers_each_have_all_of_it_while_it_goes_on():
    async def work():
        async with served({"desk": payer()}) as (client, _):
            run_id = await started(client)
            path = f"/runs/{run_id}/events?deltas=false"
            async with client.stream("GET", path) as one, client.stream("GET", path) as two:
                reading = [asyncio.ensure_future(records(each)) for each in (one, two)]
                asked = await until_asked(client, run_id)
                await client("POST", f"/runs/{run_id}/answers", {"question": asked["id"], "content": "no"})
                await until_done(client, run_id)
                await client("POST", f"/runs/{run_id}/close", {})
                first, second = await asyncio.gather(*reading)
            assert first == second == list(range(1, len(first) + 1))

    in_time(work)


def test_what_was_opened_with_a_token_ends_with_it():
    async def work():
        async with served({"desk": payer()}, tokens=USERS) as (client, _):
            ada = client.as_(ADA)
            run_id = await started(ada)
            asked = await until_asked(ada, run_id)
            async with (
                ada.stream("GET", f"/runs/{run_id}/events") as stream,
                client.as_("").socket() as socket,
            ):
                await socket.ask({"type": "hello", "request_id": "h", "token": ADA})
                await socket.ask({"type": "subscribe", "request_id": "s", "run_id": run_id})
                await socket.until("question")
                client.app.state.served.subjects.revoke("ada")
                given = {"question": asked["id"], "content": "yes"}
                await client("POST", f"/runs/{run_id}/answers", given)
                told = [(event, data) async for event, _, data in stream.events() if event == "end"]
                assert told == [("end", {"reason": "token"})]
                while await socket.receive() is not None:
                    continue
                assert socket.closed == 1008

    in_time(work)


def test_a_run_that_is_deleted_ends_its_streams():
    async def work():
        async with served({"desk": desk("Hello.")}, journal=MemoryJournal()) as (client, host):
            run_id = await started(client)
            await until_done(client, run_id)
            async with client.stream("GET", f"/runs/{run_id}/events") as stream:
                events = stream.events()
                await anext(events)
                await host.delete(run_id)
                ends = [data async for event, _, data in events if event == "end"]
            assert ends[0]["reason"] == "failed"
            assert ends[0]["problem"]["type"] == "urn:antiphon:problem:unknown_run"

    in_time(work)


def test_frames_say_what_each_record_changed_from_any_cursor():
    async def work():
        async with served({"desk": desk("Hello.")}) as (client, _):
            run_id = await started(client)
            await until_done(client, run_id)
            await client("POST", f"/runs/{run_id}/close", {})
            page = (await client("GET", f"/runs/{run_id}/frames")).json
            assert [each["seq"] for each in page["frames"]] == list(range(1, page["last"] + 1))
            rest = (await client("GET", f"/runs/{run_id}/frames?after=3&limit=2")).json
            assert rest["frames"] == page["frames"][3:5]
            for after in (0, 4):
                heard = []
                path = f"/runs/{run_id}/events?view=frames&after={after}"
                async with client.stream("GET", path) as stream:
                    async for event, number, data in stream.events():
                        if event == "frame":
                            assert number == str(data["seq"])
                            heard.append(data)
                        elif event == "end":
                            break
                assert heard == page["frames"][after:]
            model = next(
                change["id"] for frame in page["frames"] for change in frame["changes"]
                if change["type"] == "effect_started" and change["kind"] == "model"
            )  # fmt: skip
            asked = (await client("GET", f"/runs/{run_id}/requests/{model}")).json
            assert asked["verified"]
            assert [each["role"] for each in asked["request"]["messages"]] == ["user"]
            lost = await client("GET", f"/runs/{run_id}/requests/9/9.m9")
            assert lost.status == 404

    in_time(work)
