"""The list of runs over HTTP: filters, names, who sees what, and conversations."""

from antiphon import Agent
from antiphon.journal.listing import Labels
from antiphon.values.model import Reply
from tests.unit.server.teams import (
    ADA,
    BOB,
    USERS,
    desk,
    in_time,
    payer,
    served,
    started,
    until_asked,
    until_done,
)


def test_runs_are_listed_by_label_state_and_name():
    async def work():
        async with served({"desk": desk("x"), "clerk": payer()}) as (client, host):
            first = await started(client, name="first", project="tides")
            second = await started(client, "clerk", "Pay")
            await until_done(client, first)
            await until_asked(client, second)
            await client("POST", f"/runs/{first}/close", {})
            await host.journal.relabel(first, Labels("tides", "", "desk"))

            async def listed(query):
                return [each["run_id"] for each in (await client("GET", f"/runs?{query}")).json["runs"]]

            assert await listed("") == [second, first]
            for query, wanted in {
                "project=tides": [first], "project=": [second], "owner=local": [second], "owner=": [first],
                "owner=nobody": [], "team=clerk": [second], "team=": [], f"named={first[:9]}": [first],
                "named=first": [first], "named=fir": [], "state=closed": [first], "state=completed": [first],
                "state=idle": [], "text=FIRST": [first],
            }.items():  # fmt: skip
                assert await listed(query) == wanted, query
            lines = (await client("GET", "/runs")).json["runs"]
            assert [each["number"] for each in lines] == [2, 1]
            assert lines[1]["summary"]["state"] == "closed"
            assert await listed("before=2&limit=1") == [first]

    in_time(work)


def test_nobody_finds_another_s_run_by_its_name_or_owner():
    async def work():
        async with served({"desk": desk("x")}, tokens=USERS) as (client, _):
            ada, bob = client.as_(ADA), client.as_(BOB)
            run_id = await started(ada, name="rent")
            for query in ("", "owner=ada", "owner=", "named=rent", f"named={run_id}", "text=Hi"):
                assert (await bob("GET", f"/runs?{query}")).json == {"runs": [], "next": 0}, query
            assert len((await ada("GET", "/runs?owner=ada&named=rent")).json["runs"]) == 1

    in_time(work)


class Counts:
    """Says how many messages it is shown."""

    name = "counts"

    async def complete(self, request, emit):
        return Reply(f"I was shown {len(request.messages)}.")


def test_a_conversation_remembers_also_when_it_was_let_go_of():
    async def work():
        async with served({"desk": Agent("desk", model=Counts())}, idle_seconds=0) as (client, _):
            for conversation, wanted in ((True, ["1", "3"]), (False, ["1", "1"])):
                run_id = await started(client, conversation=conversation)
                await until_done(client, run_id)
                await client("POST", f"/runs/{run_id}/requests", {"agent": "desk", "message": "More"})
                tree = await until_done(client, run_id, 2)
                said = [each["content"] for each in tree["messages"] if each["type"] == "return"]
                assert said == [f"I was shown {each}." for each in wanted]

    in_time(work)


def test_the_same_answer_again_changes_nothing_and_another_is_refused():
    async def work():
        async with served({"clerk": payer()}) as (client, _):
            run_id = await started(client, "clerk")
            question = (await until_asked(client, run_id))["id"]
            receipts = [
                await client("POST", f"/runs/{run_id}/answers", {"question": question, "content": each})
                for each in ("yes", "no")
            ]
            assert [each.status for each in receipts] == [202, 409]
            assert "yes" in receipts[1].json["title"]

    in_time(work)
