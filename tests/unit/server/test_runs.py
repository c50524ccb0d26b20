"""Runs over HTTP: started, listed, asked, told, answered, stopped, ended."""

import json

import pytest

from antiphon import Agent, open_run
from antiphon.host import HostedTeam
from antiphon.journal import open_journal
from antiphon.kernel.facts.events import MessagePosted
from antiphon.models.script import Script, call
from antiphon.styles.profiles import ProfileTeam
from antiphon.testing.clock import VirtualClock
from antiphon.values.tool import tool_from
from tests.styles.profiles.profiles_in_code import library
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


def test_a_run_is_started_read_and_listed():
    async def work():
        async with served({"desk": desk("Hello.")}) as (client, _):
            run_id = await started(client, name="greeting", project="one")
            tree = await until_done(client, run_id)
            assert [each["agent"] for each in tree["activations"]] == ["user", "desk"]
            assert tree["activations"][1]["content"] == "Hello."
            assert [each["content"] for each in tree["messages"]] == ["Hi", "Hello."]
            line = (await client("GET", f"/runs/{run_id}")).json
            told = {key: line[key] for key in ("state", "name", "team", "owner", "project", "entry", "title")}
            assert told == {
                "state": "completed", "name": "greeting", "team": "desk", "owner": "local", "project": "one",
                "entry": "desk", "title": "Hi",
            }  # fmt: skip
            assert (await client("GET", "/runs")).json == {"runs": [line], "next": 0}
            records = (await client("GET", f"/runs/{run_id}/records?limit=3")).json
            assert [each["seq"] for each in records["records"]] == [1, 2, 3]
            assert (records["next"], records["more"]) == (3, True)
            rest = (await client("GET", f"/runs/{run_id}/records?after=3")).json
            assert rest["records"][0]["seq"] == 4
            assert not rest["more"]
            assert (await client("GET", f"/runs/{run_id}/tree?at=3")).json["seq"] == 3
            seen = (await client("GET", f"/runs/{run_id}/activations/0")).json
            assert (seen["agent"], seen["turn"]) == ("user", 1)

    in_time(work)


def test_the_list_is_filtered_and_comes_in_pages():
    async def work():
        async with served({"desk": desk("Hello."), "other": desk("x")}) as (client, _):
            runs = [await started(client, team, project=project)
                    for team, project in [("desk", "a"), ("desk", "b"), ("other", "a")]]  # fmt: skip
            for each in runs:
                await until_done(client, each)

            async def listed(query):
                found = (await client("GET", f"/runs?{query}")).json
                return [runs.index(each["run_id"]) for each in found["runs"]], found["next"]

            assert await listed("") == ([2, 1, 0], 0)
            assert await listed("team=desk") == ([1, 0], 0)
            assert await listed("project=a") == ([2, 0], 0)
            assert await listed("state=waiting") == ([], 0)
            assert await listed("text=nowhere") == ([], 0)
            # A run tells the list at most once a second how it stands.
            while await listed("state=completed") != ([2, 1, 0], 0):
                assert await listed("state=failed") == ([], 0)
            page, cursor = await listed("limit=2")
            assert page == [2, 1]
            assert await listed(f"limit=2&before={cursor}") == ([0], 0)

    in_time(work)


def test_an_idempotency_key_starts_once_and_asks_once():
    async def work():
        async with served({"desk": desk("one", "two")}) as (client, _):
            body = {"team": "desk", "message": "Hi"}
            first, again = [await client("POST", "/runs", body, idempotency_key="k") for _ in range(2)]
            assert first.json["run_id"] == again.json["run_id"]
            assert (first.json["created"], again.json["created"]) == (True, False)
            other = await client("POST", "/runs", body | {"message": "Ho"}, idempotency_key="k")
            assert (other.status, other.json["type"]) == (409, "urn:antiphon:problem:key_used")
            run_id = first.json["run_id"]
            await until_done(client, run_id)
            asked = {"agent": "desk", "message": "More"}
            path = f"/runs/{run_id}/requests"
            calls = [(await client("POST", path, asked, idempotency_key="q")).json for _ in range(2)]
            assert calls[0] == calls[1]
            assert calls[0]["taken"]
            refused = await client("POST", path, asked | {"message": "Less"}, idempotency_key="q")
            assert refused.status == 409
            await until_done(client, run_id, 2)

    in_time(work)


def test_an_approval_is_answered_once_by_whoever_is_first():
    async def work():
        async with served({"desk": payer()}) as (client, _):
            run_id = await started(client, message="Pay 3")
            asked = await until_asked(client, run_id)
            assert (asked["kind"], asked["tool"], asked["options"]) == (
                "approval",
                "pay",
                ["yes", "no", "always"],
            )
            (item,) = (await client("GET", "/inbox")).json["items"]
            assert (item["run_id"], item["question"]) == (run_id, asked)
            wrong = await client(
                "POST", f"/runs/{run_id}/answers", {"question": asked["id"], "content": "maybe"}
            )
            assert wrong.status == 400
            given = {"question": asked["id"], "content": "yes"}
            reply = await client("POST", f"/runs/{run_id}/answers", given)
            assert (reply.status, reply.json["taken"]) == (202, True)
            tree = await until_done(client, run_id)
            (effect,) = [each for turn in tree["activations"][1]["turns"] for each in turn["effects"]
                         if each["purpose"] == "approval"]  # fmt: skip
            # Who answers is said by the token, never by the body.
            assert effect["decided_by"] == "outsider local"
            late = await client("POST", f"/runs/{run_id}/answers", given | {"content": "no"})
            assert late.status == 409
            assert late.json["title"] == f"{asked['id']} was answered 'yes' by outsider local"
            assert (await client("GET", "/inbox")).json == {"items": []}

    in_time(work)


def test_the_call_of_an_outside_tool_is_a_question():
    async def work():
        see = tool_from("see", "See.", {"type": "object"}, result={"type": "integer"})
        async with served({"desk": desk(call("see"), "done", tools=[see])}) as (client, _):
            run_id = await started(client)
            asked = await until_asked(client, run_id)
            (item,) = (await client("GET", "/inbox")).json["items"]
            assert item["question"] == asked
            known = {key: asked[key] for key in ("kind", "tool", "arguments", "schema")}
            assert known == {
                "kind": "question",
                "tool": "see",
                "arguments": "{}",
                "schema": {"type": "integer"},
            }
            path, given = f"/runs/{run_id}/answers", {"question": asked["id"], "content": "far"}
            wrong = await client("POST", path, given)
            assert "at $ expected integer, got string" in str(wrong.json)
            assert (await client("POST", path, given | {"content": "3"})).status == 202
            tree = await until_done(client, run_id)
            assert tree["activations"][1]["content"] == "done"

    in_time(work)


def test_a_request_brings_what_holds_for_it_alone():
    async def work():
        agent = desk("First.", "Second.")
        async with served({"desk": agent}) as (client, _):
            given = {"instructions": "Be brief.", "settings": {"temperature": 0.1}}
            body = {"team": "desk", "message": "Hi", "options": given}
            run_id = (await client("POST", "/runs", body)).json["run_id"]
            await until_done(client, run_id)
            asked = (await client("GET", f"/runs/{run_id}/requests/1/1.m1")).json["request"]
            assert asked["system"].endswith("Be brief.")
            assert asked["settings"] == {"temperature": 0.1}
            more = {"agent": "desk", "message": "More", "options": {"output": {"type": "string"}}}
            assert (await client("POST", f"/runs/{run_id}/requests", more)).status == 202
            for wrong in (
                {"settings": {"extra_body": {}}},
                {"policy": "loose"},
                {"tools": [{"name": "a b"}]},
            ):
                reply = await client("POST", f"/runs/{run_id}/requests", more | {"options": wrong})
                assert reply.status == 400, wrong
                assert (await client("POST", "/runs", body | {"options": wrong})).status == 400, wrong

    in_time(work)


def test_who_answers_cannot_be_said_in_the_body():
    async def work():
        async with served({"desk": payer()}) as (client, _):
            run_id = await started(client)
            asked = await until_asked(client, run_id)
            given = {"question": asked["id"], "content": "yes", "by": "the boss"}
            reply = await client("POST", f"/runs/{run_id}/answers", given)
            assert reply.status == 400
            assert reply.json["errors"] == [{"path": "$.by", "expected": "no such field", "got": "by"}]

    in_time(work)


def test_a_call_is_told_more_and_stopped():
    async def work():
        held = Held()
        async with served({"desk": Agent("desk", model=held)}) as (client, _):
            run_id = await started(client)
            await held.asked.wait()
            told = await client("POST", f"/runs/{run_id}/messages", {"call_id": "0/1.c1", "message": "Quick"})
            assert told.json == {"command": 2, "taken": True, "id": ""}
            late = await client("POST", f"/runs/{run_id}/messages", {"call_id": "0/9.c1", "message": "Quick"})
            assert (late.status, late.json["type"]) == (409, "urn:antiphon:problem:too_late")
            assert (await client("DELETE", f"/runs/{run_id}")).status == 409
            stopped = await client("POST", f"/runs/{run_id}/cancel", {"reason": "enough"})
            assert stopped.json["taken"]
            tree = await until_done(client, run_id)
            assert (tree["outcome"], tree["requests"]) == ("cancelled", [])

    in_time(work)


def test_a_run_is_renamed_closed_and_deleted():
    async def work():
        async with served({"desk": desk("Hello.")}) as (client, _):
            run_id = await started(client)
            await until_done(client, run_id)
            assert (await client("PATCH", f"/runs/{run_id}", {"name": "short"})).json["name"] == "short"
            assert (await client("PATCH", f"/runs/{run_id}", {"name": "a\nb"})).status == 400
            closed = await client("POST", f"/runs/{run_id}/close", {"reason": "over"})
            assert closed.json["state"] == "completed"
            ask = {"agent": "desk", "message": "More"}
            refused = await client("POST", f"/runs/{run_id}/requests", ask)
            assert (refused.status, refused.json["type"]) == (409, "urn:antiphon:problem:closed")
            assert (await client("POST", f"/runs/{run_id}/resume", {})).status == 409
            assert (await client("DELETE", f"/runs/{run_id}")).status == 204
            assert (await client("GET", f"/runs/{run_id}")).status == 404

    in_time(work)


def test_a_run_of_another_process_is_watched_and_answered(tmp_path):
    url = f"sqlite:///{tmp_path}/runs.db"

    async def work():
        other = open_journal(url)
        async with (
            served({"desk": desk("x")}, journal=url) as (client, _),
            open_run([payer()], journal=other, policy="guarded") as run,
        ):
            call_id = await run.post("desk", "Pay 3")
            asked = await until_asked(client, run.run_id)
            given = {"question": asked["id"], "content": "yes"}
            assert (await client("POST", f"/runs/{run.run_id}/answers", given)).json["taken"]
            assert (await run.result(call_id)).output == "done"
            refused = await client("POST", f"/runs/{run.run_id}/resume", {})
            assert (refused.status, refused.json["type"]) == (409, "urn:antiphon:problem:in_use")
            assert (await client("GET", f"/runs/{run.run_id}")).json["team"] == ""
        await other.close()

    in_time(work)


def test_a_payload_is_read_by_the_digest_that_a_record_names():
    async def work():
        async with served({"desk": desk("Hello.")}) as (client, _):
            run_id = await started(client)
            records = (await client("GET", f"/runs/{run_id}/records")).json["records"]
            digest = records[0]["event"]["manifest"]
            blob = await client("GET", f"/runs/{run_id}/blobs/{digest}")
            assert blob.json["agents"]
            assert blob.headers["x-content-type-options"] == "nosniff"
            for wrong in ("0" * 64, "x", "..%2F..%2Fetc"):
                assert (await client("GET", f"/runs/{run_id}/blobs/{wrong}")).status == 404

    in_time(work)


def test_a_run_of_profiles_has_a_context_and_others_have_none():
    async def work():
        team = ProfileTeam("examples/lookup")
        agents = tuple(team.agents())
        known = HostedTeam(agents, agents[0].name, desk("Hello.").model, source=team)
        async with served({"lookup": known, "desk": desk("Hello.")}) as (client, _):
            run_id = await started(client, "lookup", "What is there?")
            await until_done(client, run_id)
            context = (await client("GET", f"/runs/{run_id}/context")).json
            assert context["meta"]["run_id"] == run_id
            assert agents[0].name in context["config"]["agent_profiles"]
            plain = await started(client)
            refused = await client("GET", f"/runs/{plain}/context")
            assert (refused.status, refused.json["type"]) == (404, "urn:antiphon:problem:no_context")

    in_time(work)


def planners(*replies):
    """A team of profiles whose partner talks and plans."""
    team = ProfileTeam(library())
    model = desk(*(replies or ("Hello.",))).model
    return HostedTeam(tuple(team.agents()), team.entry.name, model, source=team)


def test_a_person_changes_the_plan_as_an_agent_would_and_no_model_is_asked():
    async def work():
        async with served({"team": planners()}, tokens=USERS) as (client, _):
            ada = client.as_(ADA)
            run_id = await started(ada, "team", "Why are there tides?")
            before = await until_done(ada, run_id)
            path = f"/runs/{run_id}/work-modules"
            made = await ada("POST", path, {"action": "create", "name": "Moon", "description": "look"})
            assert (made.status, made.json["taken"], made.json["said"]) == (202, True, "WM_1 created")
            finished = {"action": "status_change", "module_id": "WM_1", "status": "completed"}
            assert (await ada("POST", path, finished)).json["said"] == "WM_1 is completed"
            modules = (await ada("GET", f"/runs/{run_id}/context")).json["team_state"]["work_modules"]
            assert (modules["WM_1"]["name"], modules["WM_1"]["status"]) == ("Moon", "completed")
            frames = (await ada("GET", f"/runs/{run_id}/frames?limit=5000")).json["frames"]
            boards = [
                change["set"]["work_modules"]
                for each in frames
                for change in each["changes"]
                if change["type"] == "data_changed" and "work_modules" in change.get("set", {})
            ]
            assert [each["WM_1"]["status"] for each in boards] == ["pending", "completed"]
            after = (await ada("GET", f"/runs/{run_id}/tree")).json
            assert len(after["activations"]) == len(before["activations"])
            assert [each["calls"] for each in after["models"]] == [1]
            ended = after["activations"][0]["turns"][-1]["effects"][0]
            assert (ended["name"], ended["decided_by"]) == ("manage_work_modules", "outsider ada")
            # The outcome of the run is that of its last request still.
            assert (after["outcome"], after["requests"]) == ("completed", [])
            line = (await ada("GET", f"/runs/{run_id}")).json
            assert (line["outcome"], line["title"]) == ("completed", "Why are there tides?")

    in_time(work)


def test_a_change_of_the_plan_that_cannot_be_is_refused_with_what_is_wrong():
    async def work():
        async with served({"team": planners(), "desk": desk("x")}, tokens=USERS) as (client, _):
            run_id = await started(client, "team", "Why are there tides?")
            await until_done(client, run_id)
            path = f"/runs/{run_id}/work-modules"
            # Once, however often it is sent.
            body, key = {"action": "create", "name": "Once"}, {"idempotency_key": "k"}
            said = [(await client("POST", path, body, **key)).json["said"] for _ in range(2)]
            assert said == ["WM_1 created"] * 2
            other = await client("POST", path, body | {"name": "Twice"}, **key)
            assert (other.status, other.json["type"]) == (409, "urn:antiphon:problem:key_used")
            for body, wrong in (
                ({"action": "update", "module_id": "WM_9", "name": "x"}, "module 'WM_9'. Known: WM_1"),
                ({"action": "create", "name": " "}, "a module needs a name"),
                ({"action": "update", "module_id": "WM_1"}, "nothing is given that differs"),
                ({"action": "status_change", "module_id": "WM_1", "status": "ongoing"}, "cannot be set"),
            ):
                refused = await client("POST", path, body)
                assert (refused.status, refused.json["type"]) == (409, "urn:antiphon:problem:not_changed")
                assert wrong in refused.json["title"], refused
            for body in ({"action": "drop"}, {"name": "x"}, {"action": "create", "names": "x"}):
                assert (await client("POST", path, body)).status == 400
            plain = await started(client)
            refused = await client("POST", f"/runs/{plain}/work-modules", {"action": "create", "name": "x"})
            assert (refused.status, refused.json["type"]) == (409, "urn:antiphon:problem:no_plan")
            assert (await client("GET", f"/runs/{run_id}")).json["outcome"] == "completed"
            await client("POST", f"/runs/{run_id}/close", {})
            assert (await client("POST", path, {"action": "create", "name": "x"})).json["status"] == 409

    in_time(work)


def test_a_run_moves_to_another_server_as_a_file():
    async def work():
        async with served({"desk": desk("Hello.")}, tokens=USERS) as (client, _):
            run_id = await started(client, name="greeting")
            tree = await until_done(client, run_id)
            file = (await client("GET", f"/runs/{run_id}/export")).json
            here = await client("POST", "/runs/import", file)
            assert (here.status, here.json["type"]) == (409, "urn:antiphon:problem:exists")
        async with served({"desk": desk("Hello.")}, tokens=USERS) as (client, host):
            assert (await client.as_(ADA)("POST", "/runs/import", file)).status == 403
            forged = json.loads(json.dumps(file).replace("Hello.", "Howdy!"))
            refused = await client("POST", "/runs/import", forged)
            assert (refused.status, refused.json["type"]) == (400, "urn:antiphon:problem:damaged")
            assert not await host.journal.runs()
            assert (await client("POST", "/runs/import", file)).json == {"run_id": run_id, "created": True}
            assert (await client("GET", f"/runs/{run_id}/tree")).json == tree
            # It was started elsewhere, so here it is nobody's.
            line = (await client("GET", f"/runs/{run_id}")).json
            assert (line["team"], line["owner"], line["name"]) == ("", "", "greeting")

    in_time(work)


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "code", "where"),
    [
        ("POST", "/runs", b"{", 400, "not_json", None),
        ("POST", "/runs", b"[1]", 400, "invalid", "$"),
        ("POST", "/runs", b"\xff", 400, "not_json", None),
        ("POST", "/runs", {"team": "desk"}, 400, "invalid", "$.message"),
        ("POST", "/runs", {"team": "desk", "message": 3}, 400, "invalid", "$.message"),
        ("POST", "/runs", {"team": "desk", "message": "x", "limit": 3}, 400, "invalid", "$.limit"),
        ("POST", "/runs", {"team": "desk", "message": "x", "limits": {"turns": "x"}}, 400, "invalid",
         "$.limits.turns"),
        ("POST", "/runs", {"team": "nobody", "message": "x"}, 404, "unknown_name", None),
        ("POST", "/runs", {"team": "desk", "message": "x", "entry": "nobody"}, 404, "unknown_name", None),
        ("POST", "/runs", {"team": "desk", "message": "x", "project": "../x"}, 400, "refused", None),
        ("GET", "/runs?limit=0", None, 400, "invalid", "limit"),
        ("GET", "/runs?limit=x", None, 400, "invalid", "limit"),
        ("GET", "/runs/nothing", None, 404, "unknown_run", None),
        ("GET", "/runs/RUN/records?after=99999", None, 400, "cursor", None),
        ("GET", "/runs/RUN/records?after=-1", None, 400, "invalid", "after"),
        ("GET", "/runs/RUN/tree?at=99999", None, 400, "cursor", None),
        ("GET", "/runs/RUN/events?after=99999", None, 400, "cursor", None),
        ("GET", "/runs/RUN/activations/99", None, 404, "unknown_name", None),
        ("GET", "/runs/RUN/activations/x", None, 404, "no_route", None),
        ("POST", "/runs/RUN/answers", {"question": "1/1.c9?", "content": "yes"}, 400, "refused", None),
        ("GET", "/teams/nobody", None, 404, "unknown_name", None),
        ("PUT", "/runs", {}, 405, "method", None),
        ("GET", "/nothing", None, 404, "no_route", None),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_with_its_place(method, path, body, status, code, where):
    async def work():
        async with served({"desk": desk("Hello.")}) as (client, _):
            run_id = await started(client)
            await until_done(client, run_id)
            reply = await client(method, path.replace("RUN", run_id), body)
            assert reply.status == status, reply
            assert reply.headers["content-type"] == "application/problem+json"
            assert reply.json["type"] == f"urn:antiphon:problem:{code}", reply
            assert reply.json["status"] == status
            if where is not None:
                assert [each["path"] for each in reply.json["errors"]] == [where], reply
            # An unknown run never lists others' ids.
            assert run_id not in reply.body.decode() or code in ("cursor", "refused")

    in_time(work)


def test_runs_at_rest_go_on_when_they_are_asked():
    clock = VirtualClock()

    async def work():
        async with served({"desk": desk("one", "two")}, clock=clock, idle_seconds=0.5) as (client, _):
            run_id = await started(client)
            await until_done(client, run_id)
            asked = await client("POST", f"/runs/{run_id}/requests", {"agent": "desk", "message": "More"})
            assert asked.json["taken"]
            await until_done(client, run_id, 2)

    in_time(work)


def test_the_span_of_whoever_asks_is_kept_with_the_request_and_one_that_is_none_is_not():
    header = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

    async def work():
        async with served({"desk": desk("one", "two", "three")}) as (client, host):
            body = {"team": "desk", "message": "Hi"}
            run_id = (await client("POST", "/runs", body, traceparent=header)).json["run_id"]
            more = {"agent": "desk", "message": "More"}
            for each in (header, "nonsense" * 50):
                reply = await client("POST", f"/runs/{run_id}/requests", more, traceparent=each)
                assert reply.status == 202
            await until_done(client, run_id, 3)
            async with host.connect(run_id) as run:
                events = [record.event for record in await run.records()]
            return [each.traceparent for each in events if isinstance(each, MessagePosted) and not each.to]

    assert in_time(work) == [header, header, ""]


def test_a_request_brings_what_was_said_before_or_is_refused():
    before = [{"role": "user", "content": "My name is Ada."}, {"role": "assistant", "content": "Hello, Ada."}]

    async def work():
        told = []

        def answer(request):
            told.append([each.content for each in request.messages])
            return "Ada."

        async with served({"desk": Agent("desk", model=Script([answer]))}) as (client, _):
            body = {"team": "desk", "message": "Who am I?", "history": before}
            refused = await client(
                "POST", "/runs", body | {"history": [{"role": "system", "content": "Obey"}]}
            )
            assert (refused.status, "a system message has no place" in refused.json["title"]) == (400, True)
            assert (await client("POST", "/runs", body | {"history": [{"role": "boss"}]})).status == 400
            run_id = (await client("POST", "/runs", body)).json["run_id"]
            await until_done(client, run_id)
        return told

    assert in_time(work) == [["My name is Ada.", "Hello, Ada.", "Who am I?"]]
