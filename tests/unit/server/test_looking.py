"""A look that changes nothing: what writes is refused and says how to go on; a page's token."""

import asyncio

import pytest

from antiphon.errors import UserError
from antiphon.host import Host
from antiphon.host.host import HostReadsOnly
from antiphon.journal.memory import MemoryJournal
from antiphon.server.app import ROUTES, ServerSettings, make_app
from antiphon.server.permissions import permission_of
from antiphon.server.presence import Presence
from antiphon.server.subjects import OPENING_SECONDS, one_token
from antiphon.testing.clock import VirtualClock
from tests.unit.server.asgi import Client
from tests.unit.server.teams import NOW, TOKEN, in_time, payer, served, started, until_asked

READ = frozenset({"read"})


async def asking():
    """A journal with a run that waits for a person, and its id."""
    journal = MemoryJournal()
    async with served({"desk": payer()}, journal=journal) as (client, _):
        run_id = await started(client)
        await until_asked(client, run_id)
    return journal, run_id


def looking(host, scopes=READ, now=lambda: NOW):
    return make_app(
        host, ServerSettings((one_token(TOKEN, scopes),), commands={"answer": "x {run}"}), now=now
    )


WRITING = [
    (method, path) for each in ROUTES if permission_of(each) == "write"
    for method in each.http_methods for path in each.paths
]  # fmt: skip


def test_every_route_that_writes_is_refused_and_says_how_to_go_on():
    async def work():
        journal, run_id = await asking()
        before = await journal.read(run_id), await journal.commands(run_id)
        async with Host(journal, {}, drives=False) as host:
            client = Client(looking(host), TOKEN)
            for method, path in WRITING:
                said = await client(method, path.replace("{run_id:str}", run_id), {"anything": 1})
                assert said.status == 403, (method, path, said)
                assert said.json["type"].endswith(":read_only")
                assert "antiphon answer RUN" in said.json["detail"]
            async with client.socket() as socket:
                await socket.ask({"type": "hello", "request_id": "1", "token": TOKEN})
                stop = {"type": "stop_run", "request_id": "2", "run_id": run_id}
                assert (await socket.ask(stop))["code"] == "read_only"
        assert (await journal.read(run_id), await journal.commands(run_id)) == before

    assert len(WRITING) > 8
    in_time(work)


def test_what_reads_is_answered_and_nothing_is_taken_up():
    async def work():
        journal, run_id = await asking()
        async with Host(journal, {}, drives=False) as host:
            client = Client(looking(host), TOKEN)
            assert [each["state"] for each in (await client("GET", "/runs")).json["runs"]] == ["waiting"]
            assert (await client("GET", "/inbox")).json["items"][0]["question"]["tool"] == "pay"
            assert (await client("GET", f"/runs/{run_id}/frames")).json["frames"]
            assert (await client("GET", "/teams")).json == {"teams": []}
            told = (await client("GET", "/session")).json
            assert (told["subject"], told["scopes"], told["drives"]) == ("local", ["read"], False)
            assert told["commands"] == {"answer": "x {run}"}
            assert host.runs == {}

    in_time(work)


def test_a_run_that_another_host_drives_is_seen_as_it_goes_on():
    async def work():
        journal = MemoryJournal()
        async with served({"desk": payer()}, journal=journal) as (driving, _):
            run_id = await started(driving)
            asked = await until_asked(driving, run_id)
            async with Host(journal, {}, drives=False) as host:
                client = Client(looking(host), TOKEN)
                async with client.stream("GET", f"/runs/{run_id}/events?view=frames") as stream:
                    answer = {"question": asked["id"], "content": "yes"}
                    assert (await driving("POST", f"/runs/{run_id}/answers", answer)).status == 202
                    async for _, _, data in stream.events():
                        ends = [each for each in data.get("changes", ()) if each["type"] == "effect_ended"]
                        if any(each["id"] == "0/1.c1" and each["content"]["text"] == "done" for each in ends):
                            return

    in_time(work)


@pytest.mark.parametrize("doing", ["start", "resume", "close", "delete"])
def test_a_host_that_only_reads_does_nothing_else(doing):
    async def work():
        journal, run_id = await asking()
        async with Host(journal, {"desk": payer()}, drives=False) as host:
            words = ("desk", "Hi") if doing == "start" else (run_id,)
            with pytest.raises(HostReadsOnly, match="only reads its journal"):
                await getattr(host, doing)(*words)
            assert (await journal.info(run_id)).run_id == run_id

    in_time(work)


def test_drives_is_yes_or_no():
    with pytest.raises(UserError, match=r"Host\(drives\)"):
        Host("memory", {}, drives="no")


def test_a_token_of_a_reader_on_a_server_that_drives_is_told_of_its_scope():
    async def work():
        journal, run_id = await asking()
        async with Host(journal, {}, drives=True) as host:
            said = await Client(looking(host), TOKEN)("POST", f"/runs/{run_id}/cancel", {})
            assert said.json["type"].endswith(":scope")

    in_time(work)


def test_what_a_browser_was_opened_with_is_exchanged_for_the_token_once_and_in_time():
    async def work():
        clock = [NOW]
        async with Host(MemoryJournal(), {}, drives=False) as host:
            app = looking(host, now=lambda: clock[0])
            nobody, subjects = Client(app), app.state.served.subjects
            opening = subjects.opening(TOKEN)
            given = await nobody("POST", "/session/opening", {"opening": opening})
            assert (given.status, given.json) == (201, {"token": TOKEN})
            late, revoked = subjects.opening(TOKEN), subjects.opening("no token of ours")
            clock[0] += OPENING_SECONDS
            for text in (opening, late, revoked, "", TOKEN, "\x00"):
                said = await nobody("POST", "/session/opening", {"opening": text})
                assert (said.status, said.json["type"]) == (403, "urn:antiphon:problem:opening"), text

    in_time(work)


def test_a_look_is_over_some_time_after_the_last_request_or_stream_of_who_was_let_in():
    async def work():
        clock = VirtualClock(autojump=False)
        async with Host(MemoryJournal(), {}, drives=False) as host:
            presence = Presence(looking(host), clock)
            client = Client(presence, TOKEN)
            left = asyncio.ensure_future(presence.until_left(300))

            async def later(seconds):
                clock.advance(seconds)
                for _ in range(10):
                    await asyncio.sleep(0)
                return left.done()

            # Nobody has come yet, or only somebody who was not let in.
            assert not await later(1_000)
            await client.as_("")("GET", "/health")
            assert not await later(1_000)
            await client("GET", "/session")
            assert not await later(299)
            await client("GET", "/session")
            assert not await later(299)
            journal, run_id = host.journal, "r"
            await journal.release(await journal.claim(run_id, create=True))
            async with client.stream("GET", f"/runs/{run_id}/events"):
                assert not await later(10_000)
            assert not await later(299)
            assert await later(1)

    in_time(work)
