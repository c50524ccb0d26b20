"""A recorded run as a regression test: the same facts, given to today's team."""

import asyncio
import json

import pytest
from msgspec.structs import replace

from antiphon import Agent, Hooks, Limits, RetryPolicy, UserError, open_journal, open_run, tool
from antiphon.errors import JournalError, ModelError, UnknownName
from antiphon.models.bounded import Bounded
from antiphon.models.script import Script, call
from antiphon.testing.clock import VirtualClock
from antiphon.testing.replay import ReplayDiffers, check_recorded, save_run
from antiphon.values.hooks import Continue


@tool(effect="once")
async def refund(order: str) -> str:
    """Give the money back."""
    return f"refunded {order}"


@tool(effect="read")
async def look(order: str) -> str:
    """Look an order up."""
    return f"{order}: a kettle, delivered"


DESK = Agent("desk", "You help customers.", tools=[refund, look])
SAID = [call("look", order="A1"), call("refund", order="A1"), "Your money is on its way."]


@pytest.fixture
def recorded(tmp_path):
    """A file of a run of the desk, with a call that the policy let through."""

    async def record():
        journal = open_journal(f"sqlite:///{tmp_path}/runs.db")
        try:
            options = {"model": Script(SAID), "journal": journal, "limits": Limits(tokens=50_000)}
            async with open_run([DESK], **options) as run:
                assert (await run.result(await run.post("desk", "My kettle is broken."))).output == SAID[-1]
            await save_run(journal, run.run_id, path)
            with pytest.raises(UnknownName, match="nobody"):
                await save_run(journal, "nobody", path)
        finally:
            await journal.close()

    path = tmp_path / "refund.json"
    asyncio.run(record())
    return path


def test_the_same_team_follows_and_neither_models_nor_tools_are_asked(recorded):
    check_recorded(recorded, DESK)
    check_recorded(str(recorded), [DESK])

    async def never(order: str) -> str:
        raise AssertionError("a replay calls no tool")

    check_recorded(recorded, replace(DESK, tools=(replace(refund, function=never), look)))


def test_what_was_retried_as_the_endpoint_says_is_retried_in_a_replay_too(tmp_path):
    agent, path = Agent("a"), tmp_path / "busy.json"

    async def record():
        journal = open_journal(f"sqlite:///{tmp_path}/runs.db")
        model = Bounded(
            Script([*[ModelError("overloaded", "busy")] * 4, "At last."]), retry=RetryPolicy(max_attempts=5)
        )
        try:
            async with open_run([agent], model=model, journal=journal, clock=VirtualClock()) as run:
                assert (await run.result(await run.post("a", "go"))).output == "At last."
            await save_run(journal, run.run_id, path)
        finally:
            await journal.close()

    asyncio.run(record())
    check_recorded(path, agent)


def test_another_prompt_is_found_and_may_be_let(recorded):
    polite = replace(DESK, instructions="You help customers, politely.")
    with pytest.raises(ReplayDiffers) as found:
        check_recorded(recorded, polite)
    first, where, was, again = str(found.value).splitlines()
    assert first.startswith(str(recorded))
    assert "record it again" in first
    assert "an agent's prompt, tools, settings or what it is shown" in where
    assert "digest" in was
    assert "digest" in again
    check_recorded(recorded, polite, same_requests=False)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        (replace(DESK, policy="guarded"), "approval"),
        (replace(DESK, tools=(look,)), "not_found"),
        (replace(DESK, limits=Limits(turns=1)), "limit"),
        (replace(DESK, hooks=Hooks(end_turn=lambda context: Continue("And?"))), "And?"),
    ],
    ids=["a policy that asks", "a tool that is gone", "a limit", "a hook"],
)
def test_agents_that_go_another_way_are_found_whatever_they_are_asked_with(recorded, changed, words):
    with pytest.raises(ReplayDiffers, match=words):
        check_recorded(recorded, changed, same_requests=False)


def test_a_file_that_was_changed_is_no_record(recorded):
    found = json.loads(recorded.read_text())
    for row in found["rows"]:
        row["body"] = row["body"].replace("kettle", "teapot")
    recorded.write_text(json.dumps(found))
    with pytest.raises(JournalError, match="does not match its digest"):
        check_recorded(recorded, DESK)


def test_a_file_of_before_rows_said_what_was_given_is_refused(recorded, monkeypatch):
    monkeypatch.setattr("antiphon.testing.replay.encode", lambda events: b"")
    with pytest.raises(UserError, match="record it again"):
        check_recorded(recorded, DESK)
