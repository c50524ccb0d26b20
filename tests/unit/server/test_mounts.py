"""Apps of other protocols beside the routes: who comes in, what they reach, what ends with a request."""

import asyncio
import json

import pytest

from antiphon.errors import UserError
from antiphon.journal.listing import RunFilter
from antiphon.server.gate import Bounds
from antiphon.server.routes.mounts import OWN_RUNS, Mount
from tests.unit.server.teams import ADA, BOB, READER, USERS, desk, in_time, payer, served, until_done


async def asking(scope, receive, send):
    """A protocol of three requests: start a run, list mine, follow one."""
    runs, path = scope[OWN_RUNS], scope["path"].removeprefix(scope["root_path"])
    given = b""
    while True:
        message = await receive()
        given += message.get("body", b"")
        if not message.get("more_body"):
            break
    if path == "/start":
        made = await runs.start("desk", given.decode(), key=scope["query_string"].decode())
        said = {"run": made.run_id, "new": made.created, "by": scope["user"].name}
    elif path == "/mine":
        said = [each.run_id for each in await runs.list(RunFilter())]
    else:
        async with runs.connect(path.strip("/")) as run:
            said = {"seq": (await run.tree()).seq}
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": json.dumps(said).encode()})


def mount(permission="write", **more):
    return Mount("/tasks", asking, permission, **more)


def test_it_does_what_its_caller_may_do_and_sees_the_caller_s_runs():
    async def work():
        async with served({"desk": desk("Hello.")}, tokens=USERS, mounts=[mount()]) as (client, _):
            ada, bob = client.as_(ADA), client.as_(BOB)
            made = (await ada("POST", "/tasks/start?once", b"Hi")).json
            assert (made["new"], made["by"]) == (True, "ada")
            again = (await ada("POST", "/tasks/start?once", b"Hi")).json
            assert again == made | {"new": False}
            await until_done(ada, made["run"])
            assert (await ada("GET", "/tasks/mine")).json == [made["run"]]
            assert (await ada("GET", f"/tasks/{made['run']}")).json["seq"] > 0
            assert (await ada("GET", f"/runs/{made['run']}")).json["owner"] == "ada"
            assert (await bob("GET", "/tasks/mine")).json == []
            missing = [await bob("GET", f"/tasks/{run_id}") for run_id in (made["run"], "no-such-run")]
            assert {each.status for each in missing} == {404}
            assert missing[0].json["title"].replace(made["run"], "X") == missing[1].json["title"].replace(
                "no-such-run", "X"
            )

    in_time(work)


@pytest.mark.parametrize(
    ("token", "headers", "status"),
    [
        ("", {}, 401),
        ("another token", {}, 401),
        (READER, {}, 403),
        (ADA, {"host": "elsewhere.example"}, 403),
        (ADA, {"origin": "https://elsewhere.example"}, 403),
        (ADA, {"content_length": str(2 << 20)}, 413),
    ],
)
def test_who_may_not_come_in_does_not_reach_it(token, headers, status):
    async def work():
        async with served({"desk": desk("x")}, tokens=USERS, mounts=[mount()]) as (client, _):
            refused = await client.as_(token)("POST", "/tasks/start", b"Hi", **headers)
            assert refused.status == status
            assert refused.headers["content-type"] == "application/problem+json"
            assert (await client("GET", "/runs")).json["runs"] == []

    in_time(work)


def test_a_body_that_does_not_say_how_long_it_is_is_bounded_too():
    async def work():
        async with served({"desk": desk("x")}, mounts=[mount(max_body=10)]) as (client, _):
            said = await client("POST", "/tasks/start", b"a" * 11, content_length="")
            assert (said.status, said.json["type"]) == (413, "urn:antiphon:problem:too_large")
            assert (await client("POST", "/tasks/start", b"a" * 10, content_length="")).status == 200

    in_time(work)


def test_whoever_leaves_cancels_nothing_and_gives_the_connection_back():
    left = asyncio.Event()

    async def follows(scope, receive, send):
        made = await scope[OWN_RUNS].start("desk", "Pay")
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": made.run_id.encode(), "more_body": True})
        while (await receive())["type"] != "http.disconnect":
            pass
        left.set()

    async def work():
        bounds = Bounds(connections=1)
        mounts = [Mount("/follow", follows, "write")]
        async with served({"desk": payer()}, mounts=mounts, bounds=bounds) as (client, host):
            async with client.stream("GET", "/follow") as stream:
                run_id = (await anext(aiter(stream.chunks()))).decode()
                assert (await client("GET", "/follow")).status == 429
            await left.wait()
            assert client.app.state.served.rates.connections == 0
            assert host.runs[run_id].state in ("queued", "running", "waiting")

    in_time(work)


@pytest.mark.parametrize("kind", ["http", "websocket"])
def test_what_was_opened_with_a_token_ends_with_it(kind):
    ended = asyncio.Event()

    async def follows(scope, receive, send):
        """Says something, then waits; whoever leaves or not."""
        if kind == "http":
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b"begun", "more_body": True})
        else:
            await send({"type": "websocket.accept"})
            await send({"type": "websocket.send", "text": "begun"})
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async def work():
        mounts = [Mount("/follow", follows, "read")]
        async with served({"desk": desk("x")}, tokens=USERS, mounts=mounts) as (client, _):
            subjects, ada = client.app.state.served.subjects, client.as_(ADA)
            if kind == "http":
                async with ada.stream("GET", "/follow") as stream:
                    chunks = aiter(stream.chunks())
                    assert await anext(chunks) == b"begun"
                    subjects.revoke("bob")
                    assert not ended.is_set()
                    subjects.revoke("ada")
                    assert [chunk async for chunk in chunks] == []
            else:
                async with ada.socket("/follow") as socket:
                    assert (await socket.outgoing.get())["text"] == "begun"
                    subjects.revoke("ada")
                    closed = await socket.outgoing.get()
                    assert (closed["type"], closed["code"]) == ("websocket.close", 1008)
            await ended.wait()
            assert client.app.state.served.rates.connections == 0
            assert client.app.state.served.readers == {}

    in_time(work)


def test_it_takes_nothing_from_the_routes_beside_it():
    async def work():
        mounts = [Mount("/run", asking, "public"), Mount("/tasks", asking, "write")]
        async with served({"desk": desk("x")}, mounts=mounts) as (client, _):
            assert (await client("GET", "/runs")).json == {"runs": [], "next": 0}
            assert (await client("GET", "/tasks2/mine")).status == 404
            assert (await client("GET", "/tasks/mine")).json == []

    in_time(work)


def test_a_fault_of_the_app_is_a_problem_and_says_nothing_of_it():
    async def broken(scope, receive, send):
        raise KeyError("a secret")

    async def work():
        async with served({"desk": desk("x")}, mounts=[Mount("/bad", broken, "read")]) as (client, _):
            said = await client("GET", "/bad/x")
            assert said.status == 500
            assert b"secret" not in said.body

    in_time(work)


@pytest.mark.parametrize(
    ("path", "permission"),
    [
        ("", "read"),
        ("/", "read"),
        ("tasks", "read"),
        ("/{id}", "read"),
        ("/a/b", "read"),
        ("/runs", "read"),
        ("/t", "first_frame"),
        ("/t", "all"),
    ],
)
def test_a_mount_that_cannot_be_is_refused(path, permission):
    async def work():
        async with served({"desk": desk("x")}, mounts=[Mount(path, asking, permission)]):
            pass

    with pytest.raises(UserError, match=r"mount"):
        in_time(work)
