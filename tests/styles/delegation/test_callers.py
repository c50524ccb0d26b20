"""What agents are told of the user, and of colleagues whose model fails."""

import asyncio
from typing import Any

import msgspec
import pytest

from antiphon import (
    Agent,
    Hooks,
    Limits,
    Message,
    ModelError,
    ModelOptions,
    RetryPolicy,
    RunFailed,
    UserError,
    open_run,
    run_sync,
    tool,
)
from antiphon.journal.memory import MemoryJournal
from antiphon.kernel.facts.events import EffectFinished
from antiphon.models.script import Script, call
from antiphon.testing.invariants import check_journal
from antiphon.values.hooks import PlannedCall, Return, TurnPlan
from tests.transcript import recorded, results_shown

# -- the user ---------------------------------------------------------------------------------------

THE_USER = "- user: "


async def nobody(message: Message) -> str:
    raise AssertionError("nobody is asked here")


def prompt(agent: Agent, *others: Agent, **options: Any) -> str:
    model = Script(["done"])
    run_sync(agent, "go", agents=[agent, *others] if others else (), model=model, **options)
    return model.requests[0].system


def test_agents_are_told_of_the_user_where_somebody_answers() -> None:
    lead, clerk = Agent("lead", "You lead."), Agent("clerk", "You count.")
    attended = prompt(lead, clerk, on_input=nobody)
    assert "Available agents:\n- clerk: You count.\n- user: The person you work for." in attended
    assert THE_USER in prompt(lead, on_input=nobody)
    assert THE_USER not in prompt(lead, clerk)


@pytest.mark.parametrize(
    ("agent", "told"),
    [
        (Agent("a", can_call=["user"]), True),
        (Agent("a", can_call=["b"]), False),
        (Agent("a", can_call=[]), False),
        (Agent("a", standalone=True), False),
    ],
    ids=["user only", "others only", "nobody", "alone"],
)
def test_only_who_may_call_the_user_is_told_so(agent: Agent, told: bool) -> None:
    assert (THE_USER in prompt(agent, Agent("b"), on_input=nobody)) is told


def test_a_run_that_is_opened_again_is_told_anew() -> None:
    async def playing() -> list[bool]:
        journal, told = MemoryJournal(), []
        for interactive in (False, True, True, False):
            model = Script(["done"])
            async with open_run(
                [Agent("a", model=model)], journal=journal, run_id="r", create=True, interactive=interactive
            ) as run:
                await run.result(await run.post("a", "go"))
            told.append(THE_USER in model.requests[0].system)
        await check_journal(journal)
        return told

    assert asyncio.run(playing()) == [False, True, True, False]


# -- colleagues whose model fails -----------------------------------------------------------------


@tool(effect="read")
async def look() -> str:
    """Look."""
    return "seen"


SECRETS = ("10.1.2.3", "sk-hidden", "OPENAI_BASE_URL")
ADVICE = "no answer from http://10.1.2.3:9/v1 with key sk-hidden; check OPENAI_BASE_URL"


def broken(kind: Any, name: str = "clerk") -> Agent:
    model = Script([ModelError(kind, ADVICE)])
    return Agent(name, model=model, asking=ModelOptions(retry=RetryPolicy(max_attempts=1)))


def holds_secrets(text: str) -> bool:
    return any(each in text for each in SECRETS)


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        ("network", "its model cannot be reached now; go on without it, or call it again later"),
        ("rate_limit", "its model cannot be reached now; go on without it, or call it again later"),
        ("provider", "its model failed at the request, that is for whoever runs the team to settle"),
        ("validation", "its model failed at the request, that is for whoever runs the team to settle"),
        ("auth", "its model may not be used: that is for whoever runs the team to settle"),
        ("quota", "its model may not be used any more"),
    ],
)
def test_a_caller_is_told_in_a_sentence_and_the_operator_all_of_it(kind: Any, sentence: str) -> None:
    model = Script([call("call_agent", agent_name="clerk", message="Count."), "sorry"])
    lead = Agent("lead", model=model)
    result, records = recorded(lead, "go", agents=[lead, broken(kind)])
    (told,) = results_shown(model.requests[1])
    assert told.startswith("Error: the agent could not go on: ")
    assert sentence in told
    assert not any(holds_secrets(str(msgspec.to_builtins(each.messages[:]))) for each in model.requests)
    assert not holds_secrets(str(msgspec.to_builtins(result.messages)))
    ends = [each.event for each in records if isinstance(each.event, EffectFinished)]
    failed = {each.id: each for each in ends if each.failure is not None}
    assert {each.failure.text for each in failed.values() if each.failure is not None} == {ADVICE}
    assert failed["1/1.c1"].reason == f"{kind}: {ADVICE}"


@pytest.mark.parametrize(
    "said",
    [
        "http://gpu-7/v1 answered 400", "gpu-7.lan:8080 answered 400", "no route to 10.0.0.7",
        "bad key sk-12ab", "set OPENAI_API_KEY", "correct base_url",
    ],
)  # fmt: skip
def test_no_word_for_operators_is_told(said: str) -> None:
    model = Script([call("call_agent", agent_name="clerk", message="Count."), "sorry"])
    clerk = Agent("clerk", model=Script([RuntimeError(said)]))
    lead = Agent("lead", model=model)
    recorded(lead, "go", agents=[lead, clerk])
    assert said not in results_shown(model.requests[1])[0]


def test_what_a_model_of_ones_own_raises_is_told() -> None:
    model = Script([call("call_agent", agent_name="clerk", message="Count."), "sorry"])
    clerk = Agent("clerk", model=Script([RuntimeError("no luck at 9:30, try v1.2")]))
    lead = Agent("lead", model=model)
    recorded(lead, "go", agents=[lead, clerk])
    assert results_shown(model.requests[1]) == ["Error: provider: RuntimeError: no luck at 9:30, try v1.2"]


def test_one_who_hands_over_to_a_broken_one_passes_the_sentence_on() -> None:
    model = Script([call("call_agent", agent_name="desk", message="Count."), "sorry"])
    lead = Agent("lead", model=model)
    limits = Limits(turns=1, on_breach="handoff", breach_target="clerk")
    desk = Agent("desk", model=Script([call("look")]), tools=[look], limits=limits)
    _, records = recorded(lead, "go", agents=[lead, desk, broken("network")])
    assert "1/1.c1 " + ADVICE in [
        f"{each.event.id} {each.event.failure.text}"
        for each in records
        if isinstance(each.event, EffectFinished) and each.event.failure is not None
    ]
    assert "its model cannot be reached now" in results_shown(model.requests[1])[0]
    assert not holds_secrets(results_shown(model.requests[1])[0])


def test_a_plan_reads_the_sentence() -> None:
    read: list[str] = []

    def plan(context: Any) -> TurnPlan | Return:
        if context.results:
            read.extend(each.reason for each in context.results)
            return Return()
        return TurnPlan((PlannedCall("clerk", "Count."),))

    def end(context: Any) -> Return | None:
        read.extend(each.reason for each in context.results)
        return Return()

    desk = Agent("desk", hooks=Hooks(plan_turn=plan, end_turn=end))
    recorded(desk, "go", agents=[desk, broken("network")])
    assert read
    assert not any(map(holds_secrets, read))


def test_who_asks_the_broken_one_itself_reads_all_of_it() -> None:
    with pytest.raises(RunFailed, match="check OPENAI_BASE_URL"):
        run_sync(broken("network"), "go")


# -- messages ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make",
    [
        lambda: Message("notify", "a", "b", "x"),  # type: ignore[arg-type]
        lambda: Message("forward", "a", "b", "x").reply("y", type="note"),
    ],
    ids=["made", "as a reply"],
)
def test_there_is_no_third_type_of_message(make: Any) -> None:
    with pytest.raises(UserError, match="takes 'forward' or 'return'"):
        make()


def test_every_message_of_a_run_is_one_of_the_two() -> None:
    lead = Agent("lead", model=Script([call("call_agent", agent_name="clerk", message="Count."), "7"]))
    result, _ = recorded(lead, "go", agents=[lead, Agent("clerk", model=Script(["7"]))])
    assert [each.type for each in result.messages] == ["forward", "forward", "return", "return"]
