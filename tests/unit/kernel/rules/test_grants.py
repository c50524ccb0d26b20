"""Approvals that are remembered: for which arguments, whose calls, and until when."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from antiphon import Agent, Policy, Record, ToolCall, UserError, open_journal, open_run, tool
from antiphon.kernel.facts.events import ApprovalEffect, EffectStarted, PermissionDecided
from antiphon.models.script import Script, call
from antiphon.testing.clock import VirtualClock
from antiphon.values.policy import CallSubject, Grant, covers
from tests.transcript import effects

NOW = 1_000.0


@tool(requires_approval=True)
async def write(path: str, text: str = "", lines: list[str] = []) -> str:  # noqa: B006 - only read
    """Write a file."""
    return f"wrote {path}"


@tool(requires_approval=True)
async def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


def to(path: str, **more: Any) -> ToolCall:
    return call("write", path=path, **more)


def delegate(name: str) -> ToolCall:
    return call("call_agent", agent_name=name, message="m")


async def asked(run: Any, *answers: Any, clock: VirtualClock | None = None, pause: float = 0) -> list[str]:
    """Ask `a`, and see it through; the arguments that a person was asked about, each with the next answer.

    A Grant says `always`, so far; `pause`: seconds that pass after each answer.
    """
    found, said, events = [], iter(answers), run.events(run.seq, deltas=False)
    request = await run.post("a", "go")
    async for item in events:
        event = item.event if isinstance(item, Record) else None
        if isinstance(event, EffectStarted) and isinstance(event.detail, ApprovalEffect):
            found.append(event.detail.arguments)
            answer = next(said, "no")
            if isinstance(answer, Grant):
                await run.answer(event.id, "always", grant=answer)
            else:
                await run.answer(event.id, answer)
            if clock is not None:
                clock.advance(pause)
        if request not in await run.open_requests():
            return found
    return found


def asked_about(lines: Any, *answers: Any, agents: Any = None, pause: float = 0) -> list[str]:
    """What a person is asked about in a run of `a`, whose approvals are answered in this order."""

    async def main() -> list[str]:
        team = agents or [Agent("a", tools=[write, pay])]
        clock = VirtualClock(NOW)
        async with open_run(team, model=Script(lines), clock=clock, env={}) as run:
            return await asked(run, *answers, clock=clock, pause=pause)

    return asyncio.run(main())


def paths(found: list[str]) -> list[str]:
    return [each.partition('"path":"')[2].partition('"')[0] for each in found]


# -- arguments ----------------------------------------------------------------------------------


def test_a_grant_reaches_as_far_as_it_says() -> None:
    lines = [to("docs/a"), to("docs/b"), to("src/a"), to("docs/c", text="x"), "end"]
    found = asked_about(lines, Grant((("path", "docs/*"),)))
    assert paths(found) == ["docs/a", "src/a"]


def test_what_a_grant_says_is_on_record() -> None:
    async def main() -> None:
        grant = Grant((("path", "docs/*"),), "a", NOW + 60)
        model = Script([to("docs/a"), "end"])
        async with open_run([Agent("a", tools=[write])], model=model, env={}) as run:
            await asked(run, grant)
            records = [each.event for each in await run.records()]
        ruled = next(each for each in records if isinstance(each, PermissionDecided))
        assert (ruled.remember, ruled.grant) == (write.digest, grant)

    asyncio.run(main())


def test_without_a_grant_always_is_for_every_call_of_the_tool() -> None:
    assert paths(asked_about([to("docs/a"), to("src/a"), "end"], "always")) == ["docs/a"]


def test_several_grants_each_cover_their_own() -> None:
    lines = [to("docs/a"), to("src/a"), to("docs/b"), to("src/b"), to("etc/b"), "end"]
    found = asked_about(lines, Grant((("path", "docs/*"),)), Grant((("path", "src/*"),)))
    assert paths(found) == ["docs/a", "src/a", "etc/b"]


@pytest.mark.parametrize(
    ("pattern", "value", "covered"),
    [
        ("docs/*", "docs/a", True),
        ("docs/*", "docs/a/b", True),
        ("docs/?", "docs/a", True),
        ("docs/[ab]", "docs/c", False),
        ("docs/*", "docs", False),
        ("docs/*", "Docs/a", False),
        ("docs/*", "/docs/a", False),
        ("docs/*", "docs/../secret", False),
        ("docs/*", "docs/..", False),
        ("docs/*", "docs\\..\\secret", False),
        ("docs*", "docs\\..\\secret", False),
        ("*", "..", False),
        ("*", "a/../b", False),
        ("docs/*", "docs/..a", True),
        ("docs/../a", "docs/../a", True),
        ("5", 5, True),
        ("5", 50, False),
        ("true", True, True),
        ("null", None, True),
        ("*", ["docs/a"], False),
        ('["docs/*"]', ["docs/a", "/etc/passwd"], False),
        ('["docs/a"]', ["docs/a"], True),
        ('{"to":*', {"to": "thief"}, False),
    ],
)
def test_patterns(pattern: str, value: Any, covered: bool) -> None:
    arguments = msgspec.json.encode({"x": value}).decode()
    assert covers(Grant((("x", pattern),)), "a", CallSubject(arguments), NOW) is covered


@pytest.mark.parametrize("arguments", ["{}", '{"y":"docs/a"}', "[]", '"docs/a"', "null"])
def test_what_is_not_there_is_not_covered(arguments: str) -> None:
    assert not covers(Grant((("path", "*"),)), "a", CallSubject(arguments), NOW)


def test_every_argument_that_is_named_must_match() -> None:
    grant = Grant((("path", "docs/*"), ("text", "x*")))
    assert covers(grant, "a", CallSubject('{"path":"docs/a","text":"xy"}'), NOW)
    assert not covers(grant, "a", CallSubject('{"path":"docs/a","text":"yx"}'), NOW)
    assert not covers(grant, "a", CallSubject('{"path":"docs/a"}'), NOW)


# -- whose calls, and until when ----------------------------------------------------------------


@pytest.mark.parametrize(("whose", "again"), [("a", ["docs/a", "docs/a"]), ("", ["docs/a"])])
def test_a_grant_may_be_for_one_agent(whose: str, again: list[str]) -> None:
    lines = {"a": [to("docs/a"), delegate("b"), to("docs/a"), "end"], "b": [to("docs/a"), "end"]}
    agents = [Agent("a", tools=[write]), Agent("b", tools=[write])]
    assert paths(asked_about(lines, Grant(agent=whose), agents=agents)) == again


def test_a_grant_ends_at_its_instant() -> None:
    lines = [to("1"), to("2"), to("3"), "end"]
    assert paths(asked_about(lines, Grant(until=NOW + 10), "no", "no", pause=10)) == ["1", "2", "3"]
    assert paths(asked_about(lines, Grant(until=NOW + 10.5), pause=10)) == ["1"]


def test_a_grant_may_end_between_two_calls() -> None:
    """What was covered a moment ago is asked about again."""

    async def main() -> None:
        clock, agent = VirtualClock(NOW), Agent("a", tools=[pay])
        model = Script([call("pay", amount=1), "1", call("pay", amount=2), "2", call("pay", amount=3), "3"])
        async with open_run([agent], model=model, clock=clock, env={}) as run:
            found = []
            for answer in (Grant(until=NOW + 60), "no", "no"):
                found.append(await asked(run, answer))
                clock.advance(30)
        assert found == [['{"amount":1}'], [], ['{"amount":3}']]

    asyncio.run(main())


# -- what it is bound to ------------------------------------------------------------------------


def test_a_grant_survives_the_process_and_not_another_tool_of_its_name(tmp_path: Path) -> None:
    @tool(name="write", requires_approval=True)
    async def other(path: str, force: bool = False) -> str:
        """Write a file, whatever is in the way."""
        return f"wrote {path}"

    async def main() -> None:
        journal, run_id, found = open_journal(f"sqlite:///{tmp_path}/runs.db"), None, []
        for hand, answer in ((write, Grant((("path", "docs/*"),))), (write, "no"), (other, "no")):
            agent, model = Agent("a", tools=[hand]), Script([to("docs/a"), "end"])
            async with open_run([agent], journal=journal, run_id=run_id, model=model, env={}) as run:
                run_id = run.run_id
                found.append(paths(await asked(run, answer)))
        assert found == [["docs/a"], [], ["docs/a"]]
        await journal.close()

    asyncio.run(main())


def test_a_policy_that_denies_is_stronger_than_a_grant() -> None:
    lines = {"a": [to("x"), delegate("b"), "end"], "b": [to("x"), "end"]}
    strict = Agent("b", tools=[write], policy=Policy(deny=("write",)))

    async def main() -> None:
        team = [Agent("a", tools=[write]), strict]
        async with open_run(team, model=Script(lines), env={}) as run:
            await asked(run, Grant())
            said = effects(await run.records(), "c")
        assert "2/1.c1 denied: permission denied: the policy denies write" in said

    asyncio.run(main())


@pytest.mark.parametrize("answer", ["yes", "no"])
def test_only_always_is_remembered(answer: str) -> None:
    async def main() -> None:
        model = Script([to("x"), "end"])
        async with open_run([Agent("a", tools=[write])], model=model, env={}) as run:
            request = await run.post("a", "go")
            async for item in run.events(deltas=False):
                if isinstance(item, Record) and isinstance(item.asks, ApprovalEffect):
                    break
            with pytest.raises(UserError, match=f"Only `always` is remembered.*got '{answer}'"):
                await run.answer(item.event.id, answer, grant=Grant())
            assert request in await run.open_requests(), "nothing was answered"
            await run.answer(item.event.id, "always", grant=Grant())
            with pytest.raises(UserError, match="is not an open question or approval"):
                await run.answer(item.event.id, "always", grant=Grant())
            await run.result(request)

    asyncio.run(main())
