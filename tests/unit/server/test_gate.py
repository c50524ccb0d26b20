"""Who comes in, and what each may do: every route, method and subject; every attack of a page."""

import pytest
from litestar import get
from litestar.routes import HTTPRoute, WebSocketRoute

from antiphon import Agent, UserError
from antiphon.host.projects import Projects
from antiphon.server.gate import Bounds, CallerRates
from antiphon.server.permissions import allowed, permission_of
from antiphon.server.problems import Refusal
from antiphon.server.subjects import MAX_TICKETS, Subject, Subjects, one_token
from tests.unit.server.teams import (
    ADA,
    BOB,
    NOW,
    OLD,
    READER,
    TOKEN,
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

BODIES = {
    "/runs": {"team": "desk", "message": "Hi"},
    "/runs/{run_id}/requests": {"agent": "desk", "message": "Hi"},
    "/runs/{run_id}/messages": {"call_id": "0/1.c1", "message": "Hi"},
    "/runs/{run_id}/answers": {"question": "1/1.c1?", "content": "no"},
    "/runs/{run_id}/cancel": {},
    "/runs/{run_id}/close": {},
    "/runs/{run_id}/resume": {},
    "/runs/{run_id}": {"name": "x"},
    "/projects": {"project": "new"},
    "/session/opening": {"opening": "none"},
    "/projects/{project}": {"name": "x"},
}
PARTS = {"number": "0", "digest": "0" * 64, "name": "desk", "path": "a.txt", "rule_id": "none"}
SUBJECTS = {
    "owner": ADA, "other tenant": BOB, "anonymous": "", "unknown": "x" * 30, "expired": OLD,
    "revoked": "a revoked token", "reader": READER,
}  # fmt: skip
MANY = Bounds(requests_per_second=1e6, burst=10**6)


def ways(app):
    """Every route and method, with the permission that it declares."""
    for route in app.routes:
        if isinstance(route, HTTPRoute):
            for handler, _ in route.route_handler_map.values():
                for method in sorted(handler.http_methods - {"OPTIONS"}):
                    yield route.path_format, method, permission_of(handler)


def wanted(path, permission, who):
    """The statuses that a subject may get."""
    if permission == "public":
        # No file of the page has the name that is tried, and no address with that text was printed.
        found = {"/assets/{name}": 404, "/session/opening": 403}.get(path, 200)
        return (401,) if who in ("unknown", "expired", "revoked") else (found,)
    if who in ("anonymous", "unknown", "expired", "revoked"):
        return (401,)
    if who == "reader" and permission == "write":
        return (403,)
    if "{run_id}" in path and who == "other tenant":
        return (404,)
    if "{project}" in path and who == "other tenant":
        return (404,)
    if path == "/runs/import":
        # Only who sees every run may; a body that is no run is refused before that is looked at.
        return (400, 403)
    return (200, 201, 202, 204, 400, 404, 409)


@pytest.mark.slow
@pytest.mark.parametrize("who", SUBJECTS)
def test_every_route_and_method_answers_each_subject_as_it_declares(who, tmp_path):
    projects = Projects(tmp_path, None)

    async def work():
        async with served({"desk": payer()}, tokens=USERS, bounds=MANY, projects=projects) as (client, _):
            ada, mine = client.as_(ADA), client.as_(SUBJECTS[who])
            found, project = {}, ""
            for path, method, permission in sorted(ways(client.app), key=lambda each: each[1] == "DELETE"):
                # Only their owner changes what there is.
                if who == "owner" or not project:
                    run_id, project = await started(ada), f"p{len(found)}"
                    await until_asked(ada, run_id)
                    assert (await ada("POST", "/projects", {"project": project})).status == 201
                    assert (await ada("PUT", f"/projects/{project}/files/a.txt", b"a")).status == 200
                address = path
                for part, value in ({"run_id": run_id, "project": project} | PARTS).items():
                    address = address.replace(f"{{{part}}}", value)
                body = BODIES.get(path, {}) if method in ("POST", "PATCH", "PUT") else None
                async with mine.stream(method, address, body) as reply:
                    status = reply.status
                found[path, method] = status
                assert status in wanted(path, permission, who), (path, method, permission, status)
                line = await ada("GET", f"/runs/{run_id}")
                if who != "owner":
                    # Whoever may not has changed nothing, and a reader nothing either.
                    assert (line.status, line.json["name"]) == (200, "")
                    assert line.json["state"] in ("waiting", "running")
                    kept = (await ada("GET", f"/projects/{project}")).json
                    assert (kept["name"], kept["owner"], kept["files"]) == (project, "ada", 1)
                    assert (await ada("GET", f"/projects/{project}/files/a.txt")).body == b"a"
            assert len(found) > 25

    in_time(work)


def test_a_subject_sees_its_own_runs_alone_and_others_are_told_what_is_told_of_none():
    async def work():
        async with served({"desk": payer()}, tokens=USERS) as (client, _):
            ada, bob = client.as_(ADA), client.as_(BOB)
            run_id = await started(ada)
            await until_asked(ada, run_id)
            assert (await bob("GET", "/runs")).json["runs"] == []
            assert (await bob("GET", "/inbox")).json["items"] == []
            assert [each["run_id"] for each in (await ada("GET", "/runs")).json["runs"]] == [run_id]
            # Whoever sees all does.
            assert len((await client("GET", "/runs")).json["runs"]) == 1
            hidden, missing = await bob("GET", f"/runs/{run_id}"), await bob("GET", "/runs/" + "0" * 32)
            assert hidden.body.decode() == missing.body.decode().replace("0" * 32, run_id)
            # The same key is another key for another owner.
            body = {"team": "desk", "message": "Hi"}
            keyed = [(await each("POST", "/runs", body, idempotency_key="k")).json for each in (ada, bob)]
            assert keyed[0]["run_id"] != keyed[1]["run_id"]

    in_time(work)


def test_a_token_without_the_scope_may_look_and_not_touch():
    async def work():
        async with served({"desk": desk("x")}, tokens=USERS) as (client, host):
            reader = client.as_(READER)
            assert (await reader("GET", "/runs")).status == 200
            refused = await reader("POST", "/runs", {"team": "desk", "message": "Hi"})
            assert (refused.status, refused.json["type"]) == (403, "urn:antiphon:problem:scope")
            assert not host.runs

    in_time(work)


def test_a_route_that_declares_no_permission_cannot_be_registered():
    @get("/more", sync_to_thread=False)
    def more() -> str:
        return "open to all"

    @get("/more", sync_to_thread=False, **allowed("read"))
    def declared() -> str:
        return "fine"

    @get("/later", sync_to_thread=False)
    def later() -> None: ...

    async def work():
        with pytest.raises(UserError, match="The route /more declares no permission"):
            async with served({"desk": desk("x")}, more=[more]):
                pass
        async with served({"desk": desk("x")}, more=[declared]) as (client, _):
            with pytest.raises(UserError, match="declares no permission"):
                client.app.register(later)
            assert (await client("GET", "/more")).status == 200
            assert (await client.as_("")("GET", "/more")).status == 401

    in_time(work)


def test_every_websocket_declares_its_permission_too():
    async def work():
        async with served({"desk": desk("x")}) as (client, _):
            found = [each for each in client.app.routes if isinstance(each, WebSocketRoute)]
            assert [permission_of(each.route_handler) for each in found] == ["first_frame"]

    in_time(work)


ATTACKS = {
    "a name that was pointed here": ({"host": "evil.example"}, "/runs", "host"),
    "no host": ({"host": None}, "/runs", "host"),
    "a host with more": ({"host": "localhost@evil.example"}, "/runs", "host"),
    "a host that ends like ours": ({"host": "evil-localhost"}, "/runs", "host"),
    "a page elsewhere": ({"origin": "https://evil.example"}, "/runs", "origin"),
    "a page without an origin": ({"origin": "null"}, "/runs", "origin"),
    "a page on another port": ({"origin": "http://127.0.0.1:3000"}, "/runs", "origin"),
    "a browser that says so": ({"sec_fetch_site": "cross-site"}, "/runs", "origin"),
    "a sibling site": ({"sec_fetch_site": "same-site"}, "/runs", "origin"),
    "a token in the address": ({}, "/runs?token=" + TOKEN, "token_in_address"),
    "a token in the address, named otherwise": ({}, "/runs?access_token=x", "token_in_address"),
    "a ticket in the address": ({}, "/runs?a=b&TICKET=x", "token_in_address"),
}


@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.parametrize("method", ["GET", "POST", "OPTIONS"])
def test_what_a_page_of_another_site_can_send_is_refused_unread(attack, method):
    headers, path, code = ATTACKS[attack]

    async def work():
        async with served({"desk": desk("x")}) as (client, host):
            reply = await client(method, path, b'{"team":"desk","message":"x"}', **headers)
            assert reply.status in (400, 403)
            assert reply.json["type"] == f"urn:antiphon:problem:{code}"
            assert "access-control-allow-origin" not in reply.headers
            assert not host.runs

    in_time(work)


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_websocket_of_another_site_is_refused(attack):
    headers, path, _ = ATTACKS[attack]

    async def work():
        address = "/ws" + path.removeprefix("/runs")
        async with served({"desk": desk("x")}) as (client, _), client.socket(address, **headers) as socket:
            assert socket.closed == 1008

    in_time(work)


def test_its_own_page_may_ask():
    async def work():
        async with served({"desk": desk("x")}) as (client, _):
            for origin, host in [
                ("http://127.0.0.1:8000", "127.0.0.1:8000"),
                ("http://localhost", "localhost"),
            ]:
                assert (await client("GET", "/runs", origin=origin, host=host)).status == 200

    in_time(work)


def test_a_form_and_a_cookie_get_nowhere():
    async def work():
        async with served({"desk": desk("x")}) as (client, host):
            form = b"team=desk&message=x"
            anyone = client.as_("")
            sent = await anyone("POST", "/runs", form, content_type="text/plain", cookie=f"token={TOKEN}")
            assert sent.status == 401
            assert "set-cookie" not in sent.headers
            assert not host.runs

    in_time(work)


def test_a_body_over_one_mebibyte_is_refused():
    async def work():
        async with served({"desk": desk("x")}) as (client, host):
            body = b'{"team":"desk","message":"' + b"x" * (1 << 20) + b'"}'
            for length in (str(len(body)), None):
                reply = await client("POST", "/runs", body, content_length=length)
                assert (reply.status, reply.json["type"]) == (413, "urn:antiphon:problem:too_large")
            assert not host.runs

    in_time(work)


def test_too_many_requests_and_connections_are_refused():
    async def work():
        bounds = Bounds(requests_per_second=0, burst=8, connections=2)
        async with served({"desk": desk("x")}, bounds=bounds) as (client, _):
            run_id = await started(client)
            path = f"/runs/{run_id}/events"
            async with client.stream("GET", path), client.stream("GET", path):
                third = await client("GET", path)
                assert (third.status, third.json["type"]) == (429, "urn:antiphon:problem:connections")
            async with client.stream("GET", path) as again:
                assert again.status == 200
            replies = [await client("GET", "/status") for _ in range(5)]
            assert [each.status for each in replies] == [200, 200, 200, 429, 429]
            assert replies[-1].headers["retry-after"] == "1"
            # Others have their own.
            assert (await client.as_("")("GET", "/health")).status == 200

    in_time(work)


def test_so_many_runs_of_one_owner_are_at_work_and_others_have_their_own():
    held = Held()

    async def work():
        team = Agent("desk", model=held)
        async with served({"desk": team}, tokens=USERS, bounds=Bounds(runs=2)) as (client, _):
            ada, bob = client.as_(ADA), client.as_(BOB)
            for _ in range(2):
                held.asked.clear()
                run_id = await started(ada)
                await held.asked.wait()
            third = await ada("POST", "/runs", {"team": "desk", "message": "Hi"})
            assert (third.status, third.json["type"]) == (429, "urn:antiphon:problem:runs")
            assert (await bob("POST", "/runs", {"team": "desk", "message": "Hi"})).status == 201
            assert (await ada("POST", f"/runs/{run_id}/close", {})).status == 200
            assert (await ada("POST", "/runs", {"team": "desk", "message": "Hi"})).status == 201
            held.gate.set()

    in_time(work)


def test_rates_recover_with_time_and_are_forgotten():
    now = [0.0]
    rates = CallerRates(Bounds(requests_per_second=2, burst=2), lambda: now[0])
    assert [rates.take("a") for _ in range(3)] == [True, True, False]
    now[0] = 0.5
    assert [rates.take("a") for _ in range(2)] == [True, False]
    assert rates.take("b")
    small = CallerRates(Bounds(connections=5, all_connections=1), lambda: 0.0)
    small.connect("a")
    with pytest.raises(Refusal):
        small.connect("b")
    small.disconnect("a")
    small.connect("b")
    assert small.connections == 1


# -- tokens and tickets --------------------------------------------------------------------------------


def test_a_ticket_is_good_once_and_not_for_long():
    now = [NOW]
    subjects = Subjects([one_token(TOKEN)], lambda: now[0])
    ada = Subject("ada")
    first = subjects.ticket(ada)
    assert subjects.by_ticket(first) == ada
    assert subjects.by_ticket(first) is None
    late = subjects.ticket(ada)
    now[0] += 30
    assert subjects.by_ticket(late) is None
    revoked = subjects.ticket(ada)
    subjects.revoke("ada")
    assert subjects.by_ticket(revoked) is None
    oldest = subjects.ticket(ada)
    for _ in range(MAX_TICKETS):
        subjects.ticket(ada)
    assert subjects.by_ticket(oldest) is None


def test_no_token_is_kept():
    subjects = Subjects([one_token(TOKEN)], lambda: NOW)
    assert subjects.by_token(TOKEN) == Subject("local", sees_all=True)
    assert TOKEN not in repr(vars(subjects))
    with pytest.raises(UserError, match="at least 16 characters"):
        one_token("short")


def test_the_token_stands_in_no_reply():
    async def work():
        async with served({"desk": desk("Hello.")}) as (client, _):
            run_id = await started(client)
            await until_done(client, run_id)
            for path in (
                "/runs",
                f"/runs/{run_id}/records",
                f"/runs/{run_id}/tree",
                "/metrics",
                "/status",
                "/x",
            ):
                reply = await client("GET", path)
                assert TOKEN not in reply.body.decode() + repr(reply.headers)

    in_time(work)


def test_the_document_names_every_route_and_what_it_may_answer():
    async def work():
        async with served({"desk": desk("x")}) as (client, _):
            document = (await client("GET", "/schema/openapi.json")).json
            assert document["openapi"].startswith("3.1")
            told = {(path, method.upper()) for path, each in document["paths"].items() for method in each}
            routes = {
                (path, method) for path, method, _ in ways(client.app) if not path.startswith("/schema")
            }
            assert told == routes
            (upload,) = [each["put"] for path, each in document["paths"].items() if path.endswith("/{path}")]
            (content,) = upload["requestBody"]["content"].items()
            assert content == ("application/octet-stream", {"schema": {"type": "string", "format": "binary"}})
            for path, each in document["paths"].items():
                for method, about in each.items():
                    assert {"400", "403", "429", "500"} <= about["responses"].keys(), (path, method)
            assert (await client.as_("")("GET", "/schema/openapi.json")).status == 401

    in_time(work)


def test_health_is_public_and_says_little():
    async def work():
        async with served({"desk": desk("x")}) as (client, host):
            anyone = client.as_("")
            assert (await anyone("GET", "/health")).json == {"status": "ok", "version": "", "runs": {}}
            assert (await anyone("GET", "/ready")).status == 200
            assert (await anyone("GET", "/status")).status == 401
            await host.drain(0)
            assert (await anyone("GET", "/ready")).status == 503
            refused = await client("POST", "/runs", {"team": "desk", "message": "x"})
            assert (refused.status, refused.json["type"]) == (503, "urn:antiphon:problem:draining")

    in_time(work)


def test_metrics_count_requests_runs_and_connections_and_no_content():
    async def work():
        async with served({"desk": desk("secret words")}) as (client, _):
            run_id = await started(client, message="secret words")
            await until_done(client, run_id)
            text = (await client("GET", "/metrics")).body.decode()
            assert 'antiphon_runs{state="running"} 1.0' in text
            assert 'antiphon_request_seconds_count{method="POST",route="/runs",status="201"} 1.0' in text
            assert "secret" not in text
            assert run_id not in text

    in_time(work)
