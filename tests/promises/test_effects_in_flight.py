"""What was in flight when the process died is resolved by the tool's declared contract."""

import os

import pytest

from antiphon import Agent, ToolContext, tool
from antiphon.kernel.facts.events import EffectFinished
from antiphon.kernel.run import perform
from antiphon.models.script import Script, call
from antiphon.testing.crash import Scenario, enumerate_crashes
from tests.promises.crash_scenarios import CONTRACTS, team

pytestmark = pytest.mark.deep


def bookers(world):
    """A once tool that can look up what became of it, and one whose look-up does not know."""

    def booked(ctx: ToolContext):
        return "booked x" if any(deed.effect_id == ctx.effect_id for deed in world.deeds()) else "not booked"

    @tool(effect="once", reconcile=booked)
    async def book(ctx: ToolContext, what: str) -> str:
        "Book."
        world.did(ctx)
        return f"booked {what}"

    @tool(effect="once", reconcile=lambda ctx: None)
    async def guess(ctx: ToolContext, what: str) -> str:
        "Guess."
        world.did(ctx)
        return f"guessed {what}"

    return [Agent("a", "You book.", tools=[book, guess])]


RECONCILED = Scenario(
    "reconciled",
    bookers,
    lambda: Script([call("book", what="x"), call("guess", what="y"), "done"], by="turn"),
    (("a", "go"),),
)
KEYED = Scenario(
    "keyed", team(a=["put"]), lambda: Script([call("put", what="y"), "done"], by="turn"), (("a", "go"),)
)


def found(report, text):
    return any(text in wrong for bad in report.bad for wrong in bad.wrong)


@pytest.mark.parametrize("commit", ["at once", "deferred"])
def test_every_contract_is_kept(commit, tmp_path):
    report = enumerate_crashes(CONTRACTS, tmp_path, commit=commit, pairs=40)
    assert not report.bad, str(report)


def test_reconcile_says_what_became_of_it(tmp_path):
    report = enumerate_crashes(RECONCILED, tmp_path)
    # Where the tool had not acted yet the look-up says so: the only place where the conversations differ.
    names = [(bad.crashes[0][1], bad.wrong) for bad in report.bad]
    assert all("not booked" in wrong[0] and len(wrong) == 1 for _, wrong in names), str(report)
    assert {name for name, _ in names} <= {"durable", "tool"}
    assert len(names) <= 2


def test_control_a_rerun_under_another_key_is_found(tmp_path, monkeypatch):
    def other(run_id, effect_id, agent, key, *rest, **more):
        return ToolContext(run_id, effect_id, agent, f"{key} {os.getpid()}", *rest, **more)

    monkeypatch.setattr(perform, "ToolContext", other)
    assert found(enumerate_crashes(KEYED, tmp_path), "different keys")


def test_control_a_guess_instead_of_unknown_is_found(tmp_path, monkeypatch):
    monkeypatch.setattr(
        perform, "in_doubt", lambda effect_id, why: EffectFinished(effect_id, content="surely")
    )
    assert found(enumerate_crashes(CONTRACTS, tmp_path), "not unknown")


def test_control_giving_up_what_could_be_run_again_is_found(tmp_path, monkeypatch):
    use_tool = perform.use_tool

    async def timid(tool, arguments, opened, context, threads, *rest):
        if opened.crashes:
            return EffectFinished(
                opened.id, "unknown", reason="who knows; it may or may not have taken effect"
            )
        return await use_tool(tool, arguments, opened, context, threads, *rest)

    monkeypatch.setattr(perform, "use_tool", timid)
    assert found(enumerate_crashes(KEYED, tmp_path), "could be run again")
