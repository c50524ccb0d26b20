"""Limits(breach=…): what happens when turns, tokens or money do not suffice for the next model call."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from antiphon import (
    Agent,
    Limits,
    LoopOptions,
    Message,
    ModelError,
    ModelOptions,
    Record,
    RetryPolicy,
    RunFailed,
    Usage,
    UserError,
    open_journal,
    open_run,
    run,
    tool,
)
from antiphon.errors import UnknownName
from antiphon.kernel.facts.events import CallEffect, EffectStarted, LimitEffect, ModelEffect, TurnStarted
from antiphon.kernel.facts.ledger import NANO
from antiphon.kernel.rules.team.compiled import ModelOption
from antiphon.kernel.run import open as opening
from antiphon.kernel.run.commands import AnswerInput, encode
from antiphon.kernel.run.rows import fold
from antiphon.models.script import Script, call
from antiphon.testing.clock import VirtualClock
from antiphon.testing.invariants import check_run
from antiphon.values.model import Reply
from tests.transcript import effects, recorded, shown

LOOK = Reply("so far", (call("look"),), "calls", Usage(80, 20))
DONE = Reply("done", usage=Usage(80, 20))


@tool(effect="read")
async def look() -> str:
    """Look."""
    return "seen"


def working(limits: Limits | None, turns: int = 3, **options: Any) -> Agent:
    """The agent `a`, which looks until its last turn."""
    model = Script([*[LOOK] * (turns - 1), DONE], name="dear")
    return Agent(
        "a",
        "Work.",
        tools=[look],
        model=model,
        limits=limits,
        asking=ModelOptions(max_output_tokens=100),
        **options,
    )


async def asked(opened: Any, place: str = "1/2.l1") -> EffectStarted:
    """The question about a limit at that place, once it is there."""
    events = opened.events(deltas=False)
    async for item in events:
        event = item.event if isinstance(item, Record) else None
        if isinstance(event, EffectStarted) and event.id == place:
            events.close()
            return event
    pytest.fail("nobody was asked")


def answered(agent: Agent, *answers: str, agents: Any = (), **options: Any) -> tuple[Any, list[str]]:
    """Ask `a`; what it came to, and the questions about limits that got these answers, one by one."""
    questions, said = [], iter(answers)

    async def on_input(message: Message) -> str:
        questions.append(message.content)
        return next(said, "no")

    async def main() -> Any:
        journal = open_journal()
        result = await run(
            agent, "go", agents=[agent, *agents], on_input=on_input, journal=journal, env={}, **options
        )
        await check_run(journal, result.run_id)
        return result

    return asyncio.run(main()), questions


# -- ask ----------------------------------------------------------------------------------------

ASKED_TURNS = "the limit of {} turns of one activation is used up. Allow as much again?"


def test_yes_allows_as_much_again_and_again_and_again() -> None:
    result, questions = answered(working(Limits(turns=2, on_breach="ask"), turns=7), "yes", "always", "yes")
    assert (result.outcome, result.output) == ("completed", "done")
    assert questions == [ASKED_TURNS.format(each) for each in (2, 4, 6)]


@pytest.mark.parametrize("answer", ["no", "maybe"])
def test_no_stops(answer: str) -> None:
    result, questions = answered(working(Limits(turns=1, on_breach="ask")), answer)
    assert (result.outcome, result.output) == ("limit", "so far")
    assert len(questions) == 1


def test_tokens_are_asked_for_too() -> None:
    result, questions = answered(working(Limits(tokens=1_500, on_breach="ask"), turns=9), *["yes"] * 9)
    assert result.output == "done"
    assert questions
    assert questions[0].startswith("the budget is used up: ")


def test_the_whole_request_is_asked_for_by_whoever_needs_it_first() -> None:
    """What one callee got the others may spend, and each asks once it is short again."""
    calls = [call("call_agent", agent_name="a", message=x) for x in "12"]
    lead = Agent("lead", model=Script([calls, "ok"]), asking=ModelOptions(max_output_tokens=100))
    busy = working(None, turns=5)
    busy = replace(busy, model=Script(lambda request: LOOK if len(request.messages) < 9 else DONE))
    limits = Limits(tokens=2_500, on_breach="ask")
    result, questions = answered(lead, *["yes"] * 20, agents=[busy], limits=limits)
    assert result.output == "ok"
    assert questions


def test_with_nobody_there_it_stops() -> None:
    result, _ = recorded(working(Limits(turns=1, on_breach="ask")), "go", env={})
    assert (result.outcome, result.reason) == ("limit", "the limit of 1 turns of one activation is used up")


def test_what_as_much_again_does_not_help_is_not_asked() -> None:
    """Whose price is unknown stays so, whatever is allowed."""
    agent = Agent("a", model=Script(["x"], name="nobody/knows"), limits=Limits(usd=1.0, on_breach="ask"))
    result, questions = answered(agent, *["yes"] * 3)
    assert result.outcome == "budget"
    assert questions == []


def test_the_time_that_somebody_takes_to_answer_counts_for_nothing() -> None:
    async def main() -> None:
        clock = VirtualClock(autojump=False)
        agent = working(Limits(turns=1, timeout_seconds=10, on_breach="ask"), turns=2)
        async with open_run([agent], clock=clock, env={}) as opened:
            request = await opened.post("a", "go")
            effect = await asked(opened)
            clock.advance(1_000)
            for _ in range(5):
                await asyncio.sleep(0)
            await opened.answer(effect.id, "yes")
            assert (await opened.result(request)).output == "done"

    asyncio.run(main())


def test_a_question_about_a_limit_has_three_answers() -> None:
    async def main() -> None:
        async with open_run([working(Limits(turns=1, on_breach="ask"), turns=2)], env={}) as opened:
            request = await opened.post("a", "go")
            effect = await asked(opened)
            assert (effect.id, effect.detail) == ("1/2.l1", LimitEffect(ASKED_TURNS.format(1)))
            with pytest.raises(UserError, match="answered yes, no or always; got 'perhaps'"):
                await opened.answer(effect.id, "perhaps")
            await opened.answer(effect.id, "yes")
            with pytest.raises(UserError, match="is not an open question or approval"):
                await opened.answer(effect.id, "yes")
            assert (await opened.result(request)).output == "done"

    asyncio.run(main())


def test_it_may_be_cancelled_while_it_asks() -> None:
    async def main() -> None:
        async with open_run([working(Limits(turns=1, on_breach="ask"))], env={}) as opened:
            request = await opened.post("a", "go")
            effect = await asked(opened)
            # The question alone: then nothing is allowed, and it stops.
            await opened.cancel(effect.id)
            result = await opened.result(request)
            assert (result.outcome, result.output) == ("limit", "so far")

    asyncio.run(main())


@pytest.mark.parametrize("how", ["here", "from elsewhere"])
def test_the_question_survives_the_process(how: str, tmp_path: Path) -> None:
    async def main() -> None:
        journal, limits = open_journal(f"sqlite:///{tmp_path}/runs.db"), Limits(turns=1, on_breach="ask")
        async with open_run([working(limits)], journal=journal, env={}) as opened:
            request = await opened.post("a", "go")
            effect = await asked(opened)
        run_id, again = opened.run_id, working(limits, turns=2)
        if how == "from elsewhere":
            # As another process would, with a store of its own.
            other = open_journal(f"sqlite:///{tmp_path}/runs.db")
            await other.post(run_id, "answer", encode(AnswerInput(effect.id, "yes", by="ann")))
            await other.close()
        async with open_run([again], journal=journal, run_id=run_id, env={}) as opened:
            if how == "here":
                await opened.answer(effect.id, "yes", by="ann")
            second = await asked(opened, "1/3.l2")
            state = await fold(journal, run_id)
            assert state.activations[1].scopes[0].limits.turns == 2
            await opened.answer(second.id, "no")
            assert (await opened.result(request)).outcome == "limit"
        await check_run(journal, run_id)
        await journal.close()

    asyncio.run(main())


def test_a_last_word_needs_room_too() -> None:
    agent = working(Limits(turns=1, tokens=1_100), loop=LoopOptions(summarize_at_limit=True))
    result, records = recorded(agent, "go", env={})
    assert (result.outcome, result.output) == ("budget", "so far")
    assert len([each for each in effects(records, "m") if "started" in each]) == 1


# -- degrade ------------------------------------------------------------------------------------


@pytest.fixture
def priced(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """A model a hundred times cheaper than all others, by its name: it says what it costs."""
    (tmp_path / "cheap.yaml").write_text(f"'*': [{', '.join(['cheap'] * 60)}]\n")
    cheap = f"script:{tmp_path}/cheap.yaml"

    def choice(model: Any, windows: Any, env: Any) -> ModelOption:
        each = 0.001 * NANO / (100 if model.name == cheap else 1)
        return ModelOption(model, None, each, each, lambda usage: int(usage.total * each))

    monkeypatch.setattr(opening, "_option", choice)
    return cheap


@pytest.mark.parametrize("whose", ["the agent's", "the request's"])
def test_a_cheaper_model_goes_on_and_the_record_says_why(priced: str, whose: str) -> None:
    limits = Limits(usd=2.0, on_breach="degrade", breach_target=priced)
    agent = working(limits if whose == "the agent's" else None, turns=50)
    options = {} if whose == "the agent's" else {"limits": limits}
    result, records = recorded(agent, "go", env={}, **options)
    assert (result.outcome, result.output) == ("completed", "cheap")
    started = [each.event.detail for each in records if isinstance(each.event, EffectStarted)]
    asks = [each for each in started if isinstance(each, ModelEffect)]
    assert [each.model for each in asks][-2:] == ["dear", priced]
    assert asks[-1].reason.startswith("degraded: the budget is used up: $")


def test_its_failures_are_tried_again_with_the_same_model(priced: str, tmp_path: Path) -> None:
    """Retries stay with it, and it is never a fallback of its own accord."""
    agent = Agent(
        "a",
        model=Script([ModelError("auth", "no")], name="dear"),
        limits=Limits(usd=9.0, on_breach="degrade", breach_target=priced),
    )
    result, records = recorded(agent, "go", env={}, clock=VirtualClock())
    assert (result.outcome, result.reason) == ("failed", "auth: no")
    assert [each for each in effects(records, "m") if "started" in each] == ["1/1.m1 model started"]


def test_it_does_not_stand_in_for_a_model_that_is_left_alone(priced: str) -> None:
    model = Script([ModelError("overloaded", "busy")] * 5, name="dear")
    limits = Limits(usd=9.0, on_breach="degrade", breach_target=priced)
    agent = Agent("a", model=model, asking=ModelOptions(retry=RetryPolicy(max_attempts=1)), limits=limits)

    async def main() -> list[str]:
        said = []
        async with open_run([agent], clock=VirtualClock(), env={}) as opened:
            for _ in range(6):
                with pytest.raises(RunFailed) as caught:
                    await opened.result(await opened.post("a", "go"))
                said.append(caught.value.result.reason)
        return said

    said = asyncio.run(main())
    assert said[:5] == ["overloaded: busy"] * 5
    assert said[5] == "overloaded: dear failed 5 times in a row; not asked now"


@pytest.mark.parametrize(
    ("limits", "why"),
    [
        (Limits(usd=0.001), "the budget is used up: $0.0000 of $0.0010 are spent"),
        (Limits(tokens=50, usd=9.0), "the budget is used up: 0 of 50 tokens are spent"),
    ],
    ids=["usd", "tokens"],
)
def test_when_nothing_cheaper_fits_either_it_stops(priced: str, limits: Limits, why: str) -> None:
    result, _ = recorded(working(replace(limits, on_breach="degrade", breach_target=priced)), "go", env={})
    assert result.outcome == "budget"
    assert result.reason.startswith(why)


def test_turns_cannot_be_degraded(priced: str) -> None:
    result, _ = recorded(working(Limits(turns=1, on_breach="degrade", breach_target=priced)), "go", env={})
    assert (result.outcome, result.output) == ("limit", "so far")


# -- hand over ----------------------------------------------------------------------------------


def heir(*replies: Any, **options: Any) -> Agent:
    return Agent(
        "heir",
        model=Script(replies or ["done by the heir"]),
        asking=ModelOptions(max_output_tokens=100),
        **options,
    )


def heirs_call(records: list[Record]) -> CallEffect:
    """The call of the agent that takes over."""
    started = [each.event.detail for each in records if isinstance(each.event, EffectStarted)]
    return next(each for each in started if isinstance(each, CallEffect) and each.agent == "heir")


def test_another_agent_takes_over_in_the_outer_scopes() -> None:
    other = heir()
    agent = working(Limits(tokens=1_500, on_breach="handoff", breach_target="heir"), turns=99)

    async def main() -> None:
        journal = open_journal()
        async with open_run([agent, other], journal=journal, env={}) as opened:
            result = await opened.result(await opened.post("a", "Count the birds."))
            assert (result.outcome, result.output) == ("completed", "done by the heir")
            assert result.reason == "handed over to heir"
            records = await opened.records()
            call_of_heir = heirs_call(records)
            planned = [each.event for each in records if isinstance(each.event, TurnStarted)]
        assert [each.id for each in planned[-2].calls or ()] == ["hand_over"]
        assert (call_of_heir.outside, call_of_heir.finishes) == (1, True)
        assert call_of_heir.breach.startswith("the budget is used up: ")
        await check_run(journal, opened.run_id)

    asyncio.run(main())
    told = shown(other.model.requests[0])[0]
    assert told.startswith(
        "user: Count the birds.\n\n[system] a began this and had to stop: the budget is used up: "
    )
    assert told.endswith("What it had so far:\nso far")


def test_turns_are_handed_over_within_the_same_scopes() -> None:
    agent = working(Limits(turns=1, tokens=50_000, on_breach="handoff", breach_target="heir"))
    result, records = recorded(agent, "go", agents=[agent, heir()], env={})
    assert result.output == "done by the heir"
    assert effects(records, "c")[-3:] == [
        "1/3.c1 call limit heir started",
        "1/3.c1 completed: done by the heir",
        "0/1.c1 completed: done by the heir; handed over to heir",
    ]
    assert heirs_call(records).outside == 0


def test_what_has_said_nothing_hands_over_the_task_alone() -> None:
    other = heir()
    agent = working(Limits(tokens=50, on_breach="handoff", breach_target="heir"))
    recorded(agent, "go", agents=[agent, other], env={})
    assert "What it had so far" not in shown(other.model.requests[0])[0]


@pytest.mark.parametrize(
    ("own", "limits", "outcome"),
    [
        (None, Limits(tokens=1_500, on_breach="handoff", breach_target="heir"), "budget"),
        (Limits(turns=1, calls=1, on_breach="handoff", breach_target="heir"), Limits(), "limit"),
        (Limits(turns=1, on_breach="handoff", breach_target="heir"), Limits(activations=1), "limit"),
    ],
    ids=["no scope outside", "no call left", "no activation left"],
)
def test_where_nobody_can_take_over_it_stops(own: Any, limits: Limits, outcome: str) -> None:
    agent = working(own, turns=99)
    result, _ = recorded(agent, "go", agents=[agent, heir()], env={}, limits=limits)
    assert (result.outcome, result.output) == (outcome, "so far")


def test_when_the_other_fails_its_outcome_is_the_agents() -> None:
    agent = working(Limits(turns=1, on_breach="handoff", breach_target="heir"))
    failing = heir("never", limits=Limits(tokens=1))
    result, _ = recorded(agent, "go", agents=[agent, failing], env={})
    assert (result.outcome, result.output) == ("budget", "so far")
    assert result.reason.startswith("the budget is used up: 0 of 1 tokens are spent")


@pytest.mark.parametrize("outside", [0, 1])
def test_the_other_has_its_own_time(outside: int) -> None:
    """Also where it stands in as many scopes as the one before it."""

    async def never(request: Any) -> None:
        await asyncio.Event().wait()

    own = Limits(turns=1) if not outside else Limits(tokens=1_500)
    agent = working(replace(own, on_breach="handoff", breach_target="heir"), turns=99)
    other = heir(never, limits=Limits(timeout_seconds=5))
    result, _ = recorded(agent, "go", agents=[agent, other], env={}, clock=VirtualClock())
    assert (result.outcome, result.reason) == ("limit", "the limit of 5 s is used up")


def test_an_agent_that_took_over_may_hand_over_too() -> None:
    middle = Agent(
        "middle",
        model=Script([LOOK]),
        tools=[look],
        limits=Limits(turns=1, on_breach="handoff", breach_target="heir"),
    )
    agent = working(Limits(turns=1, on_breach="handoff", breach_target="middle"))
    result, _ = recorded(agent, "go", agents=[agent, middle, heir()], env={})
    assert (result.outcome, result.output) == ("completed", "done by the heir")


def test_cancelled_in_the_middle_it_takes_the_other_along() -> None:
    async def never(request: Any) -> None:
        await asyncio.Event().wait()

    async def main() -> None:
        team = [working(Limits(turns=1, on_breach="handoff", breach_target="heir")), heir(never)]
        async with open_run(team, env={}) as opened:
            request = await opened.post("a", "go")
            async for item in opened.events(deltas=False):
                if getattr(getattr(item, "event", None), "id", "") == "2/1.m1":
                    break
            await opened.cancel(request, "enough")
            result = await opened.result(request)
            assert (result.outcome, result.output) == ("cancelled", "so far")

    asyncio.run(main())


# -- what cannot be -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limits", "error", "why"),
    [
        (Limits(on_breach="degrade"), UserError, "needs breach_target: the model to degrade to"),
        (Limits(on_breach="handoff"), UserError, "needs breach_target: the agent to hand over to"),
        (
            Limits(on_breach="handoff", breach_target="x"),
            UnknownName,
            "Unknown agent in Limits.breach_target: x. Known: a, heir",
        ),
    ],
)
@pytest.mark.parametrize("whose", ["the agent's", "the request's"])
def test_limits_that_cannot_be(limits: Limits, error: Any, why: str, whose: str) -> None:
    agent = working(limits if whose == "the agent's" else None)
    options = {} if whose == "the agent's" else {"limits": limits}
    with pytest.raises(error) as caught:
        recorded(agent, "go", agents=[agent, heir()], env={}, **options)
    assert why in str(caught.value)
