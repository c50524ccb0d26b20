"""A team as an MCP server: a client of either era asks it, answers what it asks, looks at its runs."""

import asyncio
import json

import pytest
from mcp import Client, MCPError
from mcp_types import ElicitResult, InputRequiredResult

from antiphon import Agent
from antiphon.host import Host
from antiphon.journal.listing import Labels
from antiphon.journal.memory import MemoryJournal
from antiphon.server.mcp.team_server import AT_WORK, CANCELLED
from antiphon.values.limits import Limits
from tests.unit.server.mcp.conftest import (
    DEEP,
    ERAS,
    FLAT,
    Person,
    asker,
    client_of,
    ended,
    serving,
    state_of,
    text_of,
)
from tests.unit.server.teams import Held, desk, in_time, payer


@ERAS
def test_a_client_asks_a_team_and_goes_on_with_its_run(mode):
    async def work():
        async with client_of(desk("Tea.", "Milk."), mode) as (client, host):
            tools = {each.name: each for each in (await client.list_tools()).tools}
            assert list(tools) == ["ask", "get_run", "list_runs", "cancel_run"]
            assert tools["get_run"].annotations.read_only_hint
            first = await client.call_tool("ask", {"message": "What is hot?"})
            run_id = first.structured_content["run_id"]
            assert (state_of(first), first.is_error) == ("completed", False)
            assert text_of(first) == f"Tea.\n[run {run_id}]"
            second = await client.call_tool("ask", {"message": "And cold?", "run_id": run_id})
            assert second.structured_content["output"] == "Milk."
            looked = await client.call_tool("get_run", {"run_id": run_id})
            assert looked.structured_content == second.structured_content
            (line,) = (await client.call_tool("list_runs", {})).structured_content["runs"]
            # What a run says of itself in a list may be a second old.
            assert (line["run_id"], line["title"] in ("What is hot?", "And cold?")) == (run_id, True)
            async with host.connect(run_id) as run:
                # The agent remembers: its second turn is in the same conversation.
                assert [each.turn for each in (await run.tree()).activations.values()] == [2, 2]

    in_time(work)


@ERAS
@pytest.mark.parametrize(
    ("answer", "paid"),
    [
        ({"answer": "yes"}, "paid 3"),
        ({"answer": "no", "reason": "too much"}, "too much"),
        ("decline", "denied"),
    ],
)
def test_an_approval_is_asked_of_the_clients_person(mode, answer, paid):
    person = Person(answer)

    async def work():
        async with client_of(payer(), mode, person) as (client, host):
            found = await client.call_tool("ask", {"message": "Pay"})
            assert state_of(found) == "completed"
            async with host.connect(found.structured_content["run_id"]) as run:
                tree = await run.tree()
            ended = tree.effects["1/1.c1"]
            assert paid in ended.content + ended.reason + ended.outcome
            assert tree.effects["1/1.c1?"].wait.by == "outsider user (MCP client mcp)"

    in_time(work)
    ((message, schema),) = person.shown
    assert message == 'desk wants to call pay.\npay needs approval\nArguments: {"amount":3}'
    assert schema["properties"]["answer"]["enum"] == ["yes", "no", "always"]


@ERAS
@pytest.mark.parametrize(
    ("form", "answer", "told"),
    [
        ("flat", {"cups": 2, "hot": True}, "{'cups': 2, 'hot': True}"),
        ("deep", {"answer": "[1, 2]"}, "[1, 2]"),
        ("options", {"answer": "milk"}, "milk"), ("text", {"answer": "a chair"}, "a chair"),
    ],
)  # fmt: skip
def test_a_question_is_shown_as_a_form(mode, form, answer, told):
    person = Person(answer)

    async def work():
        async with client_of(asker(form), mode, person) as (client, host):
            found = await client.call_tool("ask", {"message": "Order"})
            async with host.connect(found.structured_content["run_id"]) as run:
                assert (await run.tree()).effects["1/1.c1"].content == f"ordered {told}"

    in_time(work)
    ((message, schema),) = person.shown
    assert message.startswith("desk asks: What do you want?")
    if form == "flat":
        assert schema == FLAT
    else:
        assert list(schema["properties"]) == ["answer"]
    assert (json.dumps(DEEP) in message) is (form == "deep")


@ERAS
def test_an_answer_that_does_not_fit_is_asked_for_again_with_what_is_wrong(mode):
    person = Person({"cups": 0}, {"cups": 1})

    async def work():
        async with client_of(asker("flat"), mode, person) as (client, _):
            assert state_of(await client.call_tool("ask", {"message": "Order"})) == "completed"

    in_time(work)
    assert "The last answer was not taken" not in person.shown[0][0]
    assert "The last answer was not taken: 1/1.c1:question" in person.shown[1][0]


@ERAS
def test_a_question_that_is_declined_fails_and_the_run_goes_on(mode):
    async def work():
        async with client_of(asker("text"), mode, Person("decline")) as (client, host):
            found = await client.call_tool("ask", {"message": "Order"})
            assert found.structured_content["output"] == "done"
            async with host.connect(found.structured_content["run_id"]) as run:
                assert "declined" in (await run.tree()).effects["1/1.c1"].reason

    in_time(work)


@ERAS
def test_a_form_that_is_closed_leaves_the_run_waiting(mode):
    async def work():
        async with client_of(payer(), mode, Person("cancel", {"answer": "yes"})) as (client, _):
            found = await client.call_tool("ask", {"message": "Pay"})
            assert (state_of(found), found.is_error) == ("waiting", False)
            run_id = found.structured_content["run_id"]
            assert f"antiphon answer {run_id} 1/1.c1?" in text_of(found)
            # Whoever looks again is asked again.
            assert (
                state_of(await client.call_tool("get_run", {"run_id": run_id, "wait_seconds": 9}))
                == "completed"
            )

    in_time(work)


@ERAS
def test_a_client_without_forms_is_told_who_answers_and_cannot_itself(mode):
    async def work():
        async with client_of(payer(), mode) as (client, host):
            found = await client.call_tool("ask", {"message": "Pay"})
            assert state_of(found) == "waiting"
            (asked,) = found.structured_content["questions"]
            assert (asked["id"], asked["kind"], asked["tool"]) == ("1/1.c1?", "approval", "pay")
            assert "waits for a person, whom you cannot answer for" in text_of(found)
            run_id = found.structured_content["run_id"]
            async with host.connect(run_id) as run:
                await run.answer("1/1.c1?", "yes")
            ended = await client.call_tool("get_run", {"run_id": run_id, "wait_seconds": 20})
            assert ended.structured_content["output"] == "done"

    in_time(work)


def test_somebody_else_may_answer_while_an_older_client_shows_the_form():
    async def work():
        shown, closed = asyncio.Event(), asyncio.Event()

        async def says(ctx, params):
            shown.set()
            try:
                await asyncio.Event().wait()
            finally:
                closed.set()

        async with client_of(payer(), "legacy", says) as (client, host):
            calling = asyncio.ensure_future(client.call_tool("ask", {"message": "Pay"}))
            await shown.wait()
            (run_id,) = host.runs
            async with host.connect(run_id) as run:
                await run.answer("1/1.c1?", "yes")
            assert state_of(await calling) == "completed"
            await closed.wait()

    in_time(work)


def test_an_answer_comes_back_after_the_server_was_started_anew():
    journal = MemoryJournal()

    async def work():
        async with client_of(payer(), "auto", journal=journal) as (client, _):
            asked = await client.session.call_tool("ask", {"message": "Pay"}, allow_input_required=True)
            assert state_of(asked) == "waiting"
        async with client_of(payer(), "auto", Person(), journal=journal) as (client, _):
            run_id = asked.structured_content["run_id"]
            again = await client.session.call_tool(
                "get_run", {"run_id": run_id, "wait_seconds": 20}, allow_input_required=True
            )
            assert isinstance(again, InputRequiredResult)
            assert list(again.input_requests) == ["1/1.c1?"]
            state = again.request_state
        async with client_of(payer(), "auto", Person(), journal=journal) as (client, _):
            said = {"1/1.c1?": ElicitResult(action="accept", content={"answer": "yes"})}
            # The same call once more: it goes on, and begins nothing.
            ended = await client.session.call_tool(
                "ask", {"message": "Pay"}, input_responses=said, request_state=state
            )
            assert (state_of(ended), ended.structured_content["run_id"]) == ("completed", run_id)
            assert len((await client.call_tool("list_runs", {})).structured_content["runs"]) == 1
            # What is said twice counts once.
            ended = await client.session.call_tool(
                "ask", {"message": "Pay"}, input_responses=said, request_state=state
            )
            assert state_of(ended) == "completed"

    in_time(work)


@pytest.mark.parametrize(
    "state", ["", "{", "[]", "{}", '{"run_id": 1, "request": "0/1.c1"}', "[" * 100_000,
              '{"run_id": "x", "request": "1/1.c1"}', '{"run_id": "x", "request": "0/1.x:y"}'],
)  # fmt: skip
def test_a_state_that_the_server_did_not_give_is_refused(state):
    async def work():
        async with client_of(desk("x"), "auto") as (client, host):
            with pytest.raises(MCPError, match="requestState is none"):
                await client.session.call_tool("ask", {"message": "Hi"}, request_state=state)
            assert host.runs == {}

    in_time(work)


def test_a_state_reaches_no_run_that_its_client_could_not_look_at():
    journal = MemoryJournal()

    async def work():
        async with Host(journal, {"desk": desk("x"), "bank": payer()}, drain_seconds=0) as host:
            other = (await host.start("bank", "Pay")).run_id
            owned = (await host.start("desk", "Hi", labels=Labels(owner="ada"))).run_id
        async with client_of(desk("x"), "auto") as (client, _):
            for run_id in (other, owned, "none", "../x"):
                state = json.dumps({"run_id": run_id, "request": "0/1.c1"})
                found = await client.session.call_tool("ask", {"message": "Hi"}, request_state=state)
                assert (found.is_error, "nknown run" in text_of(found)) == (True, True), found
                assert (await client.call_tool("get_run", {"run_id": run_id})).is_error
                assert (await client.call_tool("cancel_run", {"run_id": run_id})).is_error
            assert (await client.call_tool("list_runs", {})).structured_content == {"runs": []}

    in_time(work)


@ERAS
def test_what_cannot_be_called_so_is_refused_with_what_is_expected(mode):
    async def work():
        async with client_of(desk("x"), mode) as (client, host):
            for name, given, told in (
                ("ask", {}, "message"), ("ask", {"message": ""}, "length"),
                ("ask", {"message": " "}, "empty"),
                ("ask", {"message": "x", "mesage": "y"}, "mesage"), ("get_run", {"run_id": 3}, "string"),
                ("ask", {"message": "x", "wait_seconds": -1}, ">= 0"), ("list_runs", {"limit": 0}, ">= 1"),
            ):  # fmt: skip
                found = await client.call_tool(name, given)
                assert found.is_error, (name, given)
                assert told in text_of(found), text_of(found)
            with pytest.raises(MCPError, match="Unknown tool: aks"):
                await client.call_tool("aks", {})
            assert host.runs == {}

    in_time(work)


@ERAS
def test_a_call_stops_waiting_and_the_run_goes_on(mode):
    model = Held()

    async def work():
        async with client_of(Agent("desk", model=model), mode) as (client, _):
            found = await client.call_tool("ask", {"message": "Hi", "wait_seconds": 0})
            assert (state_of(found), found.is_error) == ("running", False)
            run_id = found.structured_content["run_id"]
            assert state_of(await client.call_tool("get_run", {"run_id": run_id})) == "running"
            model.gate.set()
            ended = await client.call_tool("get_run", {"run_id": run_id, "wait_seconds": 20})
            assert ended.structured_content["output"] == "Half an answer."

    in_time(work)


@ERAS
def test_a_request_uses_no_more_than_it_or_the_server_allows(mode):
    async def work():
        async with client_of(desk("x"), mode) as (client, _):
            found = await client.call_tool("ask", {"message": "Hi", "max_tokens": 10})
            assert (state_of(found), found.is_error) == ("budget", True)
            assert "the budget is used up" in text_of(found)
        async with client_of(desk("x"), mode, limits=Limits(tokens=10)) as (client, _):
            for more in ({}, {"max_tokens": 1_000_000}):
                assert state_of(await client.call_tool("ask", {"message": "Hi", **more})) == "budget"

    in_time(work)


def test_what_is_going_on_is_told_as_progress():
    told = []

    async def tells(progress, total, message):
        told.append((progress, message))

    async def work():
        async with client_of(payer(), "legacy", Person({"answer": "yes"})) as (client, _):
            await client.call_tool("ask", {"message": "Pay"}, progress_callback=tells)

    in_time(work)
    lines = [message for _, message in told]
    assert lines[0].startswith("run ")
    assert "desk: pay" in lines
    numbers = [number for number, _ in told]
    assert numbers == sorted(set(numbers))


def test_a_call_that_is_cancelled_takes_its_request_with_it():
    model = Held()

    async def work():
        async with client_of(Agent("desk", model=model), "legacy") as (client, host):
            calling = asyncio.ensure_future(client.call_tool("ask", {"message": "Hi"}))
            await model.asked.wait()
            calling.cancel()
            await asyncio.wait({calling})
            (run_id,) = host.runs
            async with host.connect(run_id) as run:
                end = await ended(run)
            assert (end.outcome, end.reason) == ("cancelled", CANCELLED)

    in_time(work)


def test_a_client_that_leaves_cancels_nothing():
    model = Held()

    async def work():
        async with serving(Agent("desk", model=model)) as (_, server):
            async with Client(server.protocol, mode="legacy") as client:
                calling = asyncio.ensure_future(client.call_tool("ask", {"message": "Hi"}))
                await model.asked.wait()
            await asyncio.wait({calling})
            assert calling.exception() is not None
            model.gate.set()
            async with Client(server.protocol, mode="legacy") as client:
                (line,) = (await client.call_tool("list_runs", {})).structured_content["runs"]
                ended = await client.call_tool("get_run", {"run_id": line["run_id"], "wait_seconds": 20})
                assert ended.structured_content["output"] == "Half an answer."

    in_time(work)


@ERAS
def test_a_run_is_stopped_by_a_tool(mode):
    async def work():
        async with client_of(Agent("desk", model=Held()), mode) as (client, _):
            found = await client.call_tool("ask", {"message": "Hi", "wait_seconds": 0})
            run_id = found.structured_content["run_id"]
            stopped = await client.call_tool("cancel_run", {"run_id": run_id, "reason": "enough"})
            assert state_of(stopped) == "stopped"
            ended = await client.call_tool("get_run", {"run_id": run_id})
            assert (state_of(ended), ended.is_error) == ("cancelled", True)
            assert "enough" in text_of(ended)

    in_time(work)


def test_so_many_calls_go_on_at_once_and_no_more():
    model = Held()

    async def work():
        async with client_of(Agent("desk", model=model), "legacy") as (client, host):
            calls = [
                asyncio.ensure_future(client.call_tool("ask", {"message": "Hi"})) for _ in range(AT_WORK + 1)
            ]
            done, _ = await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED)
            (refused,) = done
            assert f"{AT_WORK} calls are under way" in text_of(refused.result())
            model.gate.set()
            await asyncio.gather(*calls)
            assert len(host.runs) == AT_WORK

    in_time(work)
