"""One WebSocket for many runs: the first frame, requests and their replies, what is told of runs."""

from typing import get_args

import pytest

from antiphon import Agent
from antiphon.cli.target import load_target
from antiphon.host import HostedTeam
from antiphon.server import messages
from antiphon.server.socket import ACTIONS
from antiphon.styles.profiles import ProfileTeam
from tests.styles.profiles.profiles_in_code import library
from tests.unit.server.teams import (
    ADA,
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


async def hello(socket, token=TOKEN):
    return await socket.ask({"type": "hello", "request_id": "h", "token": token})


async def talk(client, socket, team="desk"):
    """A run that is started and followed over the socket."""
    await hello(socket)
    ready = await socket.ask({"type": "start_run", "request_id": "s", "team": team, "message": "Hi"})
    assert ready["type"] == "run_ready", ready
    await socket.ask({"type": "subscribe", "request_id": "f", "run_id": ready["run_id"]})
    return ready["run_id"]


def test_a_run_is_started_followed_and_answered():
    async def work():
        async with served({"desk": payer()}) as (client, _), client.as_("").socket() as socket:
            run_id = await talk(client, socket)
            asked = await socket.until("question")
            assert (asked["question"]["tool"], asked["run_id"]) == ("pay", run_id)
            question = asked["question"]["id"]
            answer = {"type": "answer", "run_id": run_id, "question": question, "content": "yes"}
            assert (await socket.ask({**answer, "request_id": "a"}))["receipt"]["taken"]
            assert (await socket.ask({**answer, "request_id": "b", "content": "no"}))["code"] == "answered"
            seen = []
            while not any(each["type"] == "turn_completed" and each["turn"] == 2 for each in seen):
                seen.append(await socket.receive())
            (settled,) = [each for each in seen if each["type"] == "question_settled"]
            assert (settled["content"], settled["by"]) == ("yes", "outsider local")
            usage = [each for each in seen if each["type"] == "token_usage_update"]
            assert [each["agent"] for each in usage] == ["desk"]

    in_time(work)


def test_pieces_of_a_reply_name_their_call_and_attempt():
    async def work():
        held = Held()
        async with (
            served({"desk": Agent("desk", model=held)}) as (client, _),
            client.as_("").socket() as socket,
        ):
            held.gate.set()
            run_id = await talk(client, socket)
            await until_done(client, run_id)
            found = []
            ask = {"type": "send_to_run", "request_id": "m", "run_id": run_id, "message": "More"}
            assert (await socket.ask(ask))["receipt"]["id"] == "0/2.c1"
            while not found or found[-1]["type"] != "turn_completed" or found[-1]["activation"] != 2:
                found.append(await socket.receive())
            found = [each for each in found if each["type"] == "llm_chunk"]
            assert found[-1]["text"].endswith("answer.")
            assert {(each["kind"], each["effect_id"], each["attempt"]) for each in found} == {
                ("content", "2/1.m1", 1)
            }

    in_time(work)


@pytest.mark.parametrize("view", ["all", "records", "turns"])
def test_backlog_then_live_from_any_record_on(view):
    async def work():
        async with served({"desk": payer()}) as (client, _):
            run_id = await started(client)
            asked = await until_asked(client, run_id)
            given = {"question": asked["id"], "content": "yes"}
            async with client.as_("").socket() as socket:
                await hello(socket)
                request = {"type": "subscribe", "request_id": "f", "run_id": run_id, "after": 4, "view": view}
                reply = await socket.ask(request)
                assert (reply["after"], reply["run"]["state"]) == (4, "waiting")
                await client("POST", f"/runs/{run_id}/answers", given)
                await until_done(client, run_id)
                await client("POST", f"/runs/{run_id}/close", {})
                seen = []
                while not seen or seen[-1]["type"] != "stream_ended":
                    seen.append(await socket.receive())
            assert seen[-1]["reason"] == "closed"
            last = (await client("GET", f"/runs/{run_id}")).json["records"]
            told = [each["record"]["seq"] for each in seen if each["type"] == "record"]
            assert told == ([] if view == "turns" else list(range(5, last + 1)))
            derived = {each["type"] for each in seen} - {"record", "llm_chunk", "stream_ended"}
            assert bool(derived) == (view != "records")

    in_time(work)


def test_a_question_that_is_open_already_comes_with_the_subscription():
    async def work():
        async with served({"desk": payer()}) as (client, _):
            run_id = await started(client)
            asked = await until_asked(client, run_id)
            last = (await client("GET", f"/runs/{run_id}")).json["records"]
            async with client.as_("").socket() as socket:
                await hello(socket)
                reply = await socket.ask(
                    {"type": "subscribe", "request_id": "f", "run_id": run_id, "after": last}
                )
                assert reply["questions"] == [asked]

    in_time(work)


@pytest.mark.parametrize(
    "first",
    [
        {"type": "hello", "token": "x" * 30},
        {"type": "hello"},
        {"type": "hello", "token": OLD},
        {"type": "hello", "ticket": "x"},
        {"type": "subscribe", "request_id": "1", "run_id": "x"},
        "no JSON",
        "x" * (1 << 20 | 1),
        [],
    ],
    ids=["unknown", "nothing", "expired", "no ticket", "another", "no JSON", "too long", "a list"],
)
def test_a_first_frame_without_a_token_closes_the_connection(first):
    async def work():
        async with (
            served({"desk": desk("x")}, tokens=USERS) as (client, _),
            client.as_("").socket() as socket,
        ):
            socket.send(first)
            assert await socket.receive() is None
            assert socket.closed == 1008

    in_time(work)


def test_a_ticket_opens_one_connection():
    async def work():
        async with served({"desk": desk("x")}) as (client, _):
            made = (await client("POST", "/session")).json
            assert made["expires_in"] == 30
            first = {"type": "hello", "request_id": "h", "ticket": made["ticket"]}
            async with client.as_("").socket() as socket:
                assert (await socket.ask(first))["subject"] == "local"
            async with client.as_("").socket() as socket:
                socket.send(first)
                assert await socket.receive() is None
                assert socket.closed == 1008

    in_time(work)


WRONG = {
    "no JSON": ("{", "not_json"),
    "a list": ("[]", "invalid"),
    "an unknown type": ('{"type": "dance", "request_id": "r"}', "invalid"),
    "no type": ('{"request_id": "r"}', "invalid"),
    "an unknown field": ('{"type": "stop_run", "request_id": "r", "run_id": "x", "why": 1}', "invalid"),
    "a wrong type": ('{"type": "subscribe", "request_id": "r", "run_id": 3}', "invalid"),
    "no request id": ('{"type": "subscribe", "run_id": "x"}', "invalid"),
    "an unknown run": ('{"type": "subscribe", "request_id": "r", "run_id": "x"}', "unknown_run"),
    "a run of no letters": ('{"type": "subscribe", "request_id": "r", "run_id": "\\u0000"}', "unknown_run"),
    "a cursor of the future": (
        '{"type": "subscribe", "request_id": "r", "run_id": "RUN", "after": 99}',
        "cursor",
    ),
    "a cursor below": ('{"type": "subscribe", "request_id": "r", "run_id": "RUN", "after": -1}', "cursor"),
    "a closed run": ('{"type": "send_to_run", "request_id": "r", "run_id": "RUN", "message": "x"}', "closed"),
    "an unknown team": (
        '{"type": "start_run", "request_id": "r", "team": "x", "message": "x"}',
        "unknown_name",
    ),
    "a second hello": ('{"type": "hello", "request_id": "r"}', "hello"),
    "more than a mebibyte": ('{"type": "' + "x" * (1 << 20), "too_large"),
    "a mebibyte of two bytes each": ("ä" * (1 << 19 | 1), "too_large"),
    "nested without end": ("[" * 100_000, "invalid"),
    "half a pair": (
        '{"type": "start_run", "request_id": "r", "team": "desk", "message": "\\ud800"}',
        "not_json",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", WRONG)
def test_each_fault_has_its_code_and_the_connection_lives(what):
    text, code = WRONG[what]

    async def work():
        async with served({"desk": desk("Hello.")}) as (client, _):
            run_id = await started(client)
            await until_done(client, run_id)
            await client("POST", f"/runs/{run_id}/close", {})
            async with client.as_("").socket() as socket:
                await hello(socket)
                socket.send(text.replace("RUN", run_id))
                reply = await socket.receive()
                assert (reply["type"], reply["code"]) == ("error", code), reply
                assert reply["problem"]["title"]
                if '"request_id": "r"' in text and "ud800" not in text:
                    assert reply["request_id"] == "r"
                assert (await hello(socket))["code"] == "hello"

    in_time(work)


def test_g25_an_unknown_type_bad_json_an_inactive_run_and_a_ticket_used_twice():
    """Case G-25: each has an error of its own on a connection that lives; what comes twice is shut, 1008."""

    async def work():
        async with served({"desk": desk("Hello.")}) as (client, _):
            run_id = await started(client)
            await until_done(client, run_id)
            await client("POST", f"/runs/{run_id}/close", {})
            first = {
                "type": "hello",
                "request_id": "h",
                "ticket": (await client("POST", "/session")).json["ticket"],
            }
            async with client.as_("").socket() as socket:
                assert (await socket.ask(first))["type"] == "hello_response"
                told = {"type": "send_to_run", "request_id": "3", "run_id": run_id, "message": "More"}
                for sent, code, request_id in (
                    ({"type": "dance", "request_id": "1"}, "invalid", "1"),
                    ('{"type": "subscribe", ', "not_json", ""),
                    (told, "closed", "3"),
                ):
                    socket.send(sent)
                    reply = await socket.receive()
                    assert (reply["type"], reply["code"], reply["request_id"]) == ("error", code, request_id)
                    assert reply["problem"]["title"]
                follow = {"type": "subscribe", "request_id": "4", "run_id": run_id}
                assert (await socket.ask(follow))["type"] == "subscribe_response"
                async with client.as_("").socket() as again:
                    again.send(first)
                    assert await again.receive() is None
                    assert again.closed == 1008

    in_time(work)


def test_bytes_are_no_message():
    async def work():
        async with served({"desk": desk("x")}) as (client, _), client.as_("").socket() as socket:
            await hello(socket)
            socket.incoming.put_nowait({"type": "websocket.receive", "bytes": b"{}"})
            assert (await socket.receive())["code"] == "not_text"

    in_time(work)


def test_a_reader_may_follow_and_nothing_else():
    async def work():
        async with served({"desk": desk("Hello.")}, tokens=USERS) as (client, _):
            run_id = await started(client)
            async with client.as_("").socket() as socket:
                assert (await hello(socket, READER))["scopes"] == ["read"]
                for kind, (permission, _) in ACTIONS.items():
                    if permission == "write":
                        tag = kind.__struct_config__.tag
                        body = {"request_id": "r", "run_id": run_id, "team": "desk"}
                        body |= dict.fromkeys(("message", "question", "content"), "x")
                        body["change"] = {"action": "create", "name": "x"}
                        known = {each: body[each] for each in body if each in kind.__struct_fields__}
                        assert (await socket.ask({"type": tag, **known}))["code"] == "scope", tag
                reply = await socket.ask({"type": "subscribe", "request_id": "f", "run_id": run_id})
                assert reply["type"] == "subscribe_response"

    in_time(work)


def test_others_runs_are_not_there():
    async def work():
        async with served({"desk": desk("Hello.")}, tokens=USERS) as (client, _):
            run_id = await started(client)
            async with client.as_("").socket() as socket:
                await hello(socket, ADA)
                for message in (
                    {"type": "subscribe"}, {"type": "send_to_run", "message": "x"}, {"type": "stop_run"},
                    {"type": "answer", "question": "x", "content": "x"}, {"type": "request_run_context"},
                    {"type": "request_run_profiles"}, {"type": "change_run", "name": "x"},
                    {"type": "manage_work_modules_request", "change": {"action": "create", "name": "x"}},
                ):  # fmt: skip
                    reply = await socket.ask({"request_id": "r", "run_id": run_id, **message})
                    assert reply["code"] == "unknown_run", message

    in_time(work)


def test_one_connection_carries_many_runs_and_outlives_none_of_them():
    async def work():
        async with served({"desk": desk("Hello.", "Again.")}) as (client, host):
            async with client.as_("").socket() as socket:
                runs = [await talk_more(socket, first=not number) for number in range(3)]
                done = set()
                while done != set(runs):
                    message = await socket.until("turn_completed")
                    done.add(message["run_id"])
                gone = await socket.ask({"type": "unsubscribe", "request_id": "u", "run_id": runs[0]})
                assert gone["type"] == "unsubscribe_response"
                sent = await socket.ask(
                    {"type": "send_to_run", "request_id": "m", "run_id": runs[0], "message": "More"}
                )
                assert sent["receipt"]["taken"]
            assert client.app.state.served.rates.connections == 0
            await until_done(client, runs[0], 2)
            assert host.runs[runs[0]].state == "running"

    in_time(work)


async def talk_more(socket, first):
    if first:
        await hello(socket)
    ready = await socket.ask({"type": "start_run", "request_id": "s", "team": "desk", "message": "Hi"})
    await socket.ask({"type": "subscribe", "request_id": "f", "run_id": ready["run_id"]})
    return ready["run_id"]


def test_a_key_starts_once_and_asks_once():
    async def work():
        async with served({"desk": desk("one", "two")}) as (client, _), client.as_("").socket() as socket:
            await hello(socket)
            start = {"type": "start_run", "request_id": "s", "team": "desk", "message": "Hi", "key": "k"}
            first, again = [await socket.ask(start) for _ in range(2)]
            assert (first["run_id"], first["created"], again["created"]) == (again["run_id"], True, False)
            assert (await socket.ask({**start, "message": "Ho"}))["code"] == "key_used"
            await until_done(client, first["run_id"])
            send = {
                "type": "send_to_run",
                "request_id": "m",
                "run_id": first["run_id"],
                "message": "More",
                "key": "q",
            }
            one, two = [await socket.ask(send) for _ in range(2)]
            assert one["receipt"]["command"] == two["receipt"]["command"]
            await until_done(client, first["run_id"], 2)

    in_time(work)


def test_contexts_profiles_and_toolsets():
    async def work():
        team = ProfileTeam("examples/lookup")
        agents = tuple(team.agents())
        known = HostedTeam(agents, agents[0].name, desk("Hello.").model, source=team)
        async with (
            served({"lookup": known, "desk": payer()}) as (client, _),
            client.as_("").socket() as socket,
        ):
            await hello(socket)
            run_id = await started(client, "lookup")
            ask = {"request_id": "r", "run_id": run_id}
            context = await socket.ask({"type": "request_run_context", **ask})
            assert context["context"]["meta"]["run_id"] == run_id
            profiles = await socket.ask({"type": "request_run_profiles", **ask})
            assert [each["name"] for each in profiles["team"]["agents"]] == [each.name for each in agents]
            toolsets = await socket.ask(
                {"type": "request_available_toolsets", "request_id": "t", "team": "desk"}
            )
            assert [each["name"] for each in toolsets["toolsets"]["desk"]] == ["pay"]

    in_time(work)


@pytest.mark.slow
def test_a_plan_is_changed_and_a_run_renamed_on_the_connection_that_follows_it():
    async def work():
        profiles = ProfileTeam(library())
        team = HostedTeam(tuple(profiles.agents()), model=desk("Hello.").model, source=profiles)
        async with served({"team": team}) as (client, _), client.as_("").socket() as socket:
            await hello(socket)
            run_id = await started(client, "team")
            await until_done(client, run_id)
            ask = {"run_id": run_id, "request_id": "1"}
            await socket.ask({"type": "subscribe", "view": "turns"} | ask)
            change = {"action": "create", "name": "Moon"}
            manage = {"type": "manage_work_modules_request", "change": change, "key": "k"} | ask
            for _ in range(2):
                reply = await socket.ask(manage)
                assert reply["type"] == "manage_work_modules_response"
                assert (reply["receipt"]["taken"], reply["receipt"]["said"]) == (True, "WM_1 created")
            told = await socket.until("work_module_updated")
            assert (told["module_id"], told["module"]["name"]) == ("WM_1", "Moon")
            wrong = await socket.ask(
                manage | {"change": {"action": "update", "module_id": "WM_7"}, "key": ""}
            )
            assert (wrong["type"], wrong["code"]) == ("error", "not_changed")
            renamed = await socket.ask({"type": "change_run", "name": "Tides", "project": "rent"} | ask)
            assert (renamed["run"]["name"], renamed["run"]["project"]) == ("Tides", "rent")

    in_time(work)


def test_the_plan_of_a_team_of_profiles_is_told_module_by_module():
    async def work():
        target = load_target("examples/research", "examples/research")
        script = "script:examples/research/script.yaml"
        team = HostedTeam(target.agents, target.entry, script, source=target.source)
        async with served({"desk": team}) as (client, _), client.as_("").socket() as socket:
            await hello(socket)
            run_id = await started(client, message="Why are there tides?")
            await until_done(client, run_id)
            await client("POST", f"/runs/{run_id}/close", {})
            follow = {"type": "subscribe", "request_id": "f", "run_id": run_id, "view": "turns"}
            await socket.ask(follow)
            seen = []
            while not seen or seen[-1]["type"] != "stream_ended":
                seen.append(await socket.receive())
            modules = [each for each in seen if each["type"] == "work_module_updated"]
            steps = [(each["module_id"], each["module"]["status"]) for each in modules]
            assert steps[:2] == [("WM_1", "pending"), ("WM_2", "pending")]
            assert {"ongoing", "pending_review", "completed"} <= {status for _, status in steps}
            last = {each["module_id"]: each["module"] for each in modules}
            context = (await client("GET", f"/runs/{run_id}/context")).json
            plan = context["team_state"]["work_modules"]
            assert last == {name: {key: value for key, value in each.items() if key != "context_archive"}
                            for name, each in plan.items()}  # fmt: skip

    in_time(work)


def test_a_server_that_is_left_says_so_and_closes():
    async def work():
        async with served({"desk": payer()}) as (client, _), client.as_("").socket() as socket:
            run_id = await talk(client, socket)
            await socket.until("question")
            client.app.state.served.leave()
            ended = await socket.until("stream_ended")
            assert (ended["run_id"], ended["reason"]) == (run_id, "server_left")
            while await socket.receive() is not None:
                continue
            assert socket.closed == 1001

    in_time(work)


def test_every_request_has_its_permission_and_its_deed():
    assert set(ACTIONS) == set(get_args(messages.ClientRequest))
    assert {permission for permission, _ in ACTIONS.values()} == {"read", "write"}


def test_what_is_sent_is_what_is_documented():
    tags = [
        each.__struct_config__.tag
        for each in (*get_args(messages.ServerReply), *get_args(messages.RunUpdate))
    ]
    assert len(tags) == len(set(tags))
    assert {"run_ready", "record", "llm_chunk", "turn_completed", "work_module_updated", "token_usage_update",
            "question", "error"} <= set(tags)  # fmt: skip
