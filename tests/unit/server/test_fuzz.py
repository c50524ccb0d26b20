"""Whatever is sent, a route answers with a status that it declares, and a WebSocket with an error."""

import json
import random

import pytest

from antiphon.host import HostedTeam
from antiphon.host.projects import Projects
from antiphon.styles.profiles import ProfileTeam
from tests.unit.server.teams import TOKEN, desk, in_time, payer, served, started, until_asked
from tests.unit.server.test_gate import MANY, ways

PARTS = [
    "x", "%00", "%FF", "..%2F..", "a" * 201, "a" * 5000, "%0A", "-1", "0", "999999999999999999999",
    "%F0%9F%92%A9", "'; drop table runs", "RUN",
]  # fmt: skip
VALUES = [
    None, True, 0, -1, 1e308, 2**63, "", "x", "\x00", "\ud800", "é" * 300, [], [[]], {}, {"type": "x"},
    [None], {"turns": -1}, {"kind": "x"}, {"scope": "run"}, "1/1.c1?", "0/1.c1", "yes", "desk", "always",
    "project", "owner", "strict", "create", {"action": "create", "name": "x"}, ["a.txt"], "../x", "tides",
]  # fmt: skip
NAMES = [
    "team", "message", "entry", "attachments", "data", "limits", "name", "project", "agent", "call_id",
    "question", "content", "arguments", "grant", "reason", "ends_turn", "target", "more", "files", "model",
    "policy", "scope", "action", "module_id", "status", "change",
]  # fmt: skip
QUERIES = [
    "",
    "?after=x",
    "?after=-1",
    "?limit=1e9",
    "?at=0",
    "?deltas=maybe",
    "?before=%00",
    "?state=%FF",
    "?project=tides",
    "?confirm=tides",
    "?confirm=%00",
    "?%FF=%FF",
]
RAW = [
    b"",
    b"{",
    b"\x00",
    b"\xff\xfe",
    b"[" * 10_000,
    b'{"team":' * 2_000,
    b"1" * 5_000,
    b'"\\ud800"',
    b"nul",
]


def body(chance):
    if chance.random() < 0.2:
        return chance.choice(RAW)
    names = chance.sample(NAMES, chance.randrange(6))
    # Mostly what is asked for, with something in it that is not.
    found = {
        "team": "desk",
        "message": "x",
        "agent": "desk",
        "question": "1/1.c1?",
        "content": "yes",
        "name": "n",
    }
    kept = {key: found[key] for key in chance.sample(sorted(found), chance.randrange(7))}
    return json.dumps(kept | {name: chance.choice(VALUES) for name in names}).encode()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_only_declared_statuses_and_never_a_fault(seed, tmp_path):
    chance, projects = random.Random(seed), Projects(tmp_path, None)
    profiles = ProfileTeam("examples/lookup")
    planned = HostedTeam(tuple(profiles.agents()), source=profiles, model=desk("x").model)

    async def work():
        teams = {"desk": payer(), "plain": desk("x"), "planned": planned}
        async with served(teams, bounds=MANY, projects=projects) as (client, _):
            assert (await client("POST", "/projects", {"project": "tides"})).status == 201
            lines = [await started(client, "planned")]
            document = (await client("GET", "/schema/openapi.json")).json
            paths = [each for each in ways(client.app) if not each[0].startswith("/schema")]
            run_id = await started(client)
            await until_asked(client, run_id)
            for _ in range(400):
                path, method, _ = chance.choice(paths)
                address = path
                known = {"run_id": "RUN", "project": "tides", "path": "a/b.txt"}
                for name in ("run_id", "number", "digest", "name", "project", "path"):
                    part = chance.choice(PARTS) if chance.random() < 0.4 else known.get(name, "0")
                    run = chance.choice([run_id, run_id, *lines])
                    address = address.replace(f"{{{name}}}", part.replace("RUN", run))
                if method == "DELETE" and (run_id in address or lines[0] in address):
                    continue
                address += chance.choice(QUERIES) if chance.random() < 0.4 else ""
                sent = body(chance) if method in ("POST", "PATCH", "PUT") else None
                headers = {}
                if chance.random() < 0.3:
                    headers["idempotency_key"] = chance.choice(["k", "", "k" * 201, "\x7f", "é"])
                if chance.random() < 0.2:
                    headers["last_event_id"] = chance.choice(["x", "1", "99999", "\x00", "-"])
                async with client.stream(method, address, sent, **headers) as reply:
                    told = (path, method, address, sent, headers, reply.status)
                    declared = document["paths"][path][method.lower()]["responses"]
                    known = {*declared, "405"} if address.partition("?")[0] != path else declared
                    assert reply.status < 500, told
                    assert str(reply.status) in known, told
                line = (await client("GET", f"/runs/{run_id}")).json
                if line["state"] != "waiting":
                    run_id = await started(client)
                    await until_asked(client, run_id)

    in_time(work)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_a_websocket_answers_whatever_comes_and_lives(seed):
    chance = random.Random(seed)
    tags = ["hello", "subscribe", "unsubscribe", "start_run", "send_to_run", "answer", "stop_run", "nothing",
            "request_run_context", "request_run_profiles", "request_available_toolsets", "change_run",
            "manage_work_modules_request"]  # fmt: skip

    async def work():
        async with served({"desk": payer()}, bounds=MANY) as (client, _):
            run_id = await started(client)
            await until_asked(client, run_id)
            async with client.as_("").socket() as socket:
                await socket.ask({"type": "hello", "request_id": "h", "token": TOKEN})
                for number in range(300):
                    if chance.random() < 0.2:
                        socket.send(chance.choice(RAW).decode("latin-1"))
                        reply = await socket.until("error")
                        assert reply["code"] in ("invalid", "not_json"), reply
                        continue
                    names = chance.sample([*NAMES, "after", "view", "key"], chance.randrange(4))
                    message = {name: chance.choice(VALUES) for name in names}
                    message |= {"type": chance.choice(tags), "request_id": str(number)}
                    if chance.random() < 0.7:
                        message["run_id"] = chance.choice([run_id, run_id, "x", 3])
                    socket.send(json.dumps(message))
                    while True:
                        reply = await socket.receive()
                        assert reply is not None, (socket.closed, message)
                        if reply.get("request_id") in (str(number), ""):
                            break
                    assert reply.get("code") not in ("fault", "journal", "failed"), (message, reply)

    in_time(work)
