"""A run is what its records say: given the same facts again, the same follows, byte for byte."""

import asyncio
from typing import Any

import pytest

from antiphon import Agent, Hooks, Limits, Message, ModelOptions, Usage, open_run, run_sync, tool
from antiphon.journal.memory import MemoryJournal
from antiphon.models.script import Script, call, finish
from antiphon.testing.witness import ReplayDiffers, Witness, watching
from antiphon.values.hooks import Continue, PlannedCall, Return, TurnPlan
from tests.transcript import until

pytestmark = pytest.mark.unwatched


@tool(effect="read")
async def look(page: int) -> str:
    """Look at a page."""
    return f"page {page}"


def witnessed(*agents: Agent, model: Any = None, **options: Any) -> Witness:
    with watching() as witness:
        run_sync(agents[0], "go", agents=agents, model=model or Script(["done"]), **options)
    return witness


def test_a_run_of_pure_rules_follows_again() -> None:
    witness = witnessed(Agent("a", tools=[look]), model=Script([call("look", page=1), "done"]))
    witness.verdict()
    assert (witness.replayed, witness.differed, witness.skipped) == (1, 0, 0)


def test_a_rule_that_counts_its_calls_is_found_with_both_events() -> None:
    calls: list[int] = []

    def decide(context: Any) -> Continue | None:
        calls.append(1)
        return Continue("go on") if len(calls) == 1 else None

    witness = witnessed(Agent("a", hooks=Hooks(end_turn=decide)), model=Script(["one", "two"]))
    with pytest.raises(ReplayDiffers) as found:
        witness.verdict()
    where, recorded, replayed = str(found.value).splitlines()
    assert where.endswith("row 11, event 2 of 4:")
    assert '"reminder":"go on"' in recorded
    assert '{"type":"turn_finished","activation":1}' in replayed


def test_a_rule_that_raises_later_or_says_more_is_found() -> None:
    said: list[str] = []

    def decide(context: Any) -> Return:
        said.append("")
        return Return(activation_data={"said": 1} if len(said) > 1 else {})

    with pytest.raises(ReplayDiffers, match="state_changed"):
        witnessed(Agent("a", hooks=Hooks(end_turn=decide))).verdict()


def test_what_an_action_publishes_is_given_whatever_it_drew_for_it() -> None:
    async def act(ctx: Any) -> str:
        ctx.set("read", len(ctx.new_messages))
        ctx.publish(Message("forward", "b", "", "news"))
        return "done"

    def plan(context: Any) -> TurnPlan:
        return TurnPlan(
            [PlannedCall("b", forward=tuple(range(len(context.new_messages))))] if context.turn < 3 else ()
        )

    witness = witnessed(
        Agent("a", hooks=Hooks(plan_turn=plan)), Agent("b", hooks=Hooks(act=act), context="continue")
    )
    witness.verdict()
    assert witness.replayed == 1


def test_calls_that_waited_for_room_follow_again() -> None:
    """Twelve share room for one; who waits is on no record, so the rules must find it out again."""
    names = "bcdefghijklm"
    asked = [call("call_agent", agent_name=name, message="m") for name in names]
    script: dict[str, Any] = {name: [finish("r")] for name in names}
    witness = witnessed(
        *(Agent("a"), *(Agent(name, asking=ModelOptions(max_output_tokens=6_500)) for name in names)),
        model=Script(script | {"a": [asked, "end"]}, usage=Usage(1, 1)),
        limits=Limits(tokens=9_000),
    )
    witness.verdict()
    assert witness.replayed == 1


def test_a_run_that_was_opened_again_is_replayed_as_one_with_the_team_of_each_time() -> None:
    journal = MemoryJournal()

    async def hangs(request: Any) -> None:
        await asyncio.Event().wait()

    async def main() -> str:
        async with open_run([Agent("a")], journal=journal, model=Script([hangs])) as run:
            request, run_id = await run.post("a", "go"), run.run_id
            await until(run, "1/1.m1 model started")
        second = [Agent("a", "Otherwise.", tools=[look])]
        model = Script([call("look", page=1), "done"])
        async with open_run(second, journal=journal, model=model, run_id=run_id) as run:
            return (await run.result(request)).output

    with watching() as witness:
        assert asyncio.run(main()) == "done"
    witness.verdict()
    assert witness.replayed == 1


def test_a_run_too_long_to_be_replayed_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("antiphon.testing.replay.LONGEST", 3)
    witness = witnessed(Agent("a"))
    witness.verdict()
    assert (witness.replayed, witness.skipped) == (0, 1)


def test_rules_said_to_be_impure_must_be() -> None:
    with pytest.raises(ReplayDiffers, match="its hooks are pure"):
        witnessed(Agent("a")).verdict(pure=False)
