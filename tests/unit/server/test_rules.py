"""Rules over HTTP: who sees them, who makes and drops them, and what they hold for."""

from contextlib import asynccontextmanager

import pytest

from antiphon.journal.port import StoredRule
from antiphon.server.routes import rules as routes
from tests.unit.server.teams import (
    ADA,
    BOB,
    READER,
    USERS,
    in_time,
    payer,
    served,
    started,
    until_asked,
    until_done,
)


@asynccontextmanager
async def asking():
    """A server whose desk asks before it pays: clients of ada, bob, a reader and the operator; its host."""
    async with served({"desk": payer()}, tokens=USERS) as (operator, host):
        yield operator.as_(ADA), operator.as_(BOB), operator.as_(READER), operator, host


def rule(scope, key, verdict="allow", **more):
    return {"scope": scope, "key": key, "tool": "pay", "verdict": verdict} | more


async def keys(client, query=""):
    return [(each["scope"], each["key"]) for each in (await client("GET", f"/rules{query}")).json["rules"]]


def test_a_rule_holds_for_what_its_maker_sees():
    async def work():
        async with asking() as (ada, bob, reader, operator, _):
            hers, his = await started(ada), await started(bob)
            made = {
                (scope, key): (await ada("POST", "/rules", rule(scope, key))).status
                for scope, key in (
                    ("run", hers), ("run", his), ("run", "nobody"), ("owner", "ada"), ("owner", "bob"),
                    ("project", "tides"),
                )
            }  # fmt: skip
            assert [key for key, status in made.items() if status == 201] == [("run", hers), ("owner", "ada")]
            assert {status for status in made.values() if status != 201} == {404}
            # A project is a mere label here, which another's run may have, too.
            assert (await operator("POST", "/rules", rule("project", "tides"))).status == 201
            assert await keys(ada) == [("run", hers), ("owner", "ada")]
            assert await keys(ada, "?owner=ada") == [("owner", "ada")]
            assert (await ada("GET", "/rules?owner=bob")).status == 404
            assert (await ada("GET", f"/rules?run={his}")).status == 404
            assert await keys(bob) == []
            assert await keys(operator) == [("run", hers), ("owner", "ada"), ("project", "tides")]
            assert (await reader("POST", "/rules", rule("owner", "reader"))).status == 403

    in_time(work)


def test_an_answer_makes_no_rule_for_a_label_that_others_may_have():
    async def work():
        async with asking() as (ada, bob, *_, host):
            run_id = await started(ada, project="tides")
            body = {"content": "always", "scope": "project"}
            body["question"] = (await until_asked(ada, run_id))["id"]
            assert (await ada("POST", f"/runs/{run_id}/answers", body)).status == 404
            assert await host.journal.rules() == []
            assert (await ada("POST", f"/runs/{run_id}/answers", body | {"scope": "run"})).status == 202
            assert await until_asked(bob, await started(bob, project="tides"))

    in_time(work)


def test_a_rule_decides_in_the_next_run_and_says_who_made_it():
    async def work():
        async with asking() as (ada, bob, *_):
            made = await ada("POST", "/rules", rule("owner", "ada", grant={"arguments": [["amount", "3"]]}))
            assert (made.json["author"], made.json["grant"]["arguments"]) == ("ada", [["amount", "3"]])
            await until_done(ada, await started(ada))
            assert await until_asked(bob, await started(bob))
            assert (await bob("DELETE", f"/rules/{made.json['id']}")).status == 404
            assert (await ada("DELETE", f"/rules/{made.json['id']}")).status == 204
            assert (await ada("DELETE", f"/rules/{made.json['id']}")).status == 404
            assert await until_asked(ada, await started(ada))

    in_time(work)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"tool": " "}, "tool"),
        ({"scope": "world"}, "scope"),
        ({"verdict": "perhaps"}, "verdict"),
        ({"grant": {"until": "soon"}}, "until"),
        ({"grant": {"agents": "x"}}, "agents"),
        ({"author": "eve"}, "author"),
    ],
)
def test_what_is_no_rule_is_refused(change, said):
    async def work():
        async with asking() as (ada, *_, host):
            refused = await ada("POST", "/rules", rule("owner", "ada") | change)
            assert (refused.status, said in refused.body.decode()) == (400, True), refused
            assert await host.journal.rules() == []

    in_time(work)


def test_one_author_keeps_so_many_and_no_more(monkeypatch):
    monkeypatch.setattr(routes, "MAX_RULES", 2)

    async def work():
        async with asking() as (ada, bob, _, operator, _):
            statuses = [(await ada("POST", "/rules", rule("owner", "ada"))).status for _ in range(3)]
            assert statuses == [201, 201, 409]
            assert (await bob("POST", "/rules", rule("owner", "bob"))).status == 201
            assert [(await operator("POST", "/rules", rule("owner", "x"))).status for _ in range(3)] == [
                201
            ] * 3

    in_time(work)


def test_a_rule_that_cannot_be_read_is_told_to_those_it_concerns():
    async def work():
        async with asking() as (ada, bob, _, operator, host):
            await host.journal.add_rule(StoredRule("rule-1", "owner", "ada", b"[]", 1.0))
            for client, status in ((ada, 400), (operator, 400), (bob, 200)):
                assert (await client("GET", "/rules")).status == status
            assert (await bob("POST", "/rules", rule("owner", "bob"))).status == 201
            assert (await operator("DELETE", "/rules/rule-1")).status == 204
            assert await keys(ada) == []

    in_time(work)
