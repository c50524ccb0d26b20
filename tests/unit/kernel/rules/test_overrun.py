"""A provider that bills beyond its own cap: all of it counts, and nothing more of the request starts."""

import asyncio
from decimal import Decimal

from antiphon import Agent, Limits, ModelOptions, Usage, run_sync, tool
from antiphon.models.catalog import Prices
from antiphon.models.script import Script, call, finish
from antiphon.values.model import Reply
from tests.transcript import effects, recorded

CAP = ModelOptions(max_output_tokens=1_000)
HUGE = Usage(890_000, 10_000)


def looker(**options):
    """An agent with a tool that counts how often it ran, and that list."""
    ran = []

    @tool(effect="read")
    async def look() -> str:
        """Look."""
        ran.append(1)
        return "seen"

    return Agent("a", tools=[look], asking=CAP, **options), ran


def test_a_bill_beyond_the_limit_ends_the_request_after_that_call():
    agent, ran = looker()
    model = Script([Reply("what I have", (call("look"), call("look")), "calls", HUGE), "never asked"])
    result, records = recorded(agent, "go", model=model, limits=Limits(tokens=100_000))
    assert (result.outcome, result.output, model.asked, ran) == ("budget", "what I have", 1, [])
    assert "900,000 of 100,000 tokens are spent" in result.reason
    assert "were held was billed 900,000" in result.reason
    assert result.usage == HUGE
    assert effects(records, "c")[1:] == [
        "1/1.c1 skipped: look was skipped: the budget is used up",
        "1/1.c2 skipped: look was skipped: the budget is used up",
        f"0/1.c1 budget: what I have; {result.reason}",
    ]


def test_an_overrun_within_the_limit_stops_nothing():
    agent, ran = looker()
    model = Script(
        [Reply("", (call("look"),), "calls", Usage(80_000, 10)), Reply("done", usage=Usage(10, 1))]
    )
    result, _ = recorded(agent, "go", model=model, limits=Limits(tokens=100_000))
    assert (result.outcome, result.output, len(ran)) == ("completed", "done", 1)


def test_an_overrun_counts_in_what_the_next_call_finds_spent():
    agent, _ = looker()
    over = Reply("so far", (call("look"),), "calls", Usage(49_000, 0))
    model = Script([over, over, "never asked"])
    result, _ = recorded(agent, "go", model=model, limits=Limits(tokens=99_000))
    assert (result.outcome, model.asked) == ("budget", 2)
    assert "98,000 of 99,000 tokens are spent" in result.reason


def test_the_text_of_the_call_that_was_billed_is_the_result():
    agent, _ = looker()
    result, _ = recorded(
        agent, "go", model=Script([Reply("the answer", usage=HUGE)]), limits=Limits(tokens=100_000)
    )
    assert (result.outcome, result.output) == ("budget", "the answer")


def test_a_result_that_is_handed_back_is_not_lost():
    agent, ran = looker()
    last = finish("the answer")
    model = Script([Reply("", (call("look"), last), "calls", HUGE)])
    result, _ = recorded(agent, "go", model=model, limits=Limits(tokens=100_000))
    assert (result.outcome, result.output, ran) == ("budget", "the answer", [])


def test_whoever_works_on_the_same_request_starts_nothing_more():
    """One callee is billed too much while the other has calls to do: they are not done, and the lead ends."""
    looking, ran = looker()
    billed = asyncio.Event()

    async def waits(request):
        await billed.wait()
        return Reply("half", (call("look"),), "calls", Usage(10, 1))

    async def bills(request):
        billed.set()
        return Reply("dear", usage=HUGE)

    lead, dear = Agent("lead", asking=CAP), Agent("dear", asking=CAP)
    ask = [call("call_agent", agent_name=name, message="m") for name in ("dear", "a")]
    model = Script(
        {"lead": [Reply("", tuple(ask), "calls", Usage(10, 1)), "never asked"], "dear": [bills], "a": [waits]}
    )
    limits = Limits(tokens=100_000)
    result, _ = recorded(lead, "go", agents=[lead, dear, looking], model=model, limits=limits)
    assert (result.outcome, model.asked, ran) == ("budget", 3, [])
    assert "900,021 of 100,000" in result.reason or "900,022 of 100,000" in result.reason


def test_an_agents_own_limit_stops_that_agent_only():
    agent, ran = looker(limits=Limits(tokens=50_000))
    lead = Agent("lead", asking=CAP)
    lines = {
        "lead": [call("call_agent", agent_name="a", message="m"), Reply("done", usage=Usage(1, 1))],
        "a": [Reply("partly", (call("look"),), "calls", HUGE)],
    }
    model = Script(lines, usage=Usage(1, 1))
    result, _ = recorded(lead, "go", agents=[lead, agent], model=model, limits=Limits(tokens=2_000_000))
    assert (result.outcome, result.output, ran) == ("completed", "done", [])


def test_where_a_person_may_allow_more_the_next_model_call_asks():
    agent, ran = looker()
    model = Script([Reply("", (call("look"),), "calls", HUGE), Reply("done", usage=Usage(10, 1))])

    async def person(message):
        assert "900,000 of 600,000 tokens are spent" in message.content
        return "yes"

    limits = Limits(tokens=600_000, on_breach="ask")
    result = run_sync(agent, "go", model=model, limits=limits, on_input=person)
    assert (result.outcome, result.output, len(ran)) == ("completed", "done", 1)


def test_money_that_was_billed_beyond_its_hold():
    agent, ran = looker()
    model = Script([Reply("what I have", (call("look"),), "calls", HUGE), "never asked"])
    each = Decimal("1")
    model.prices = Prices(input=each, output=each)
    result, _ = recorded(agent, "go", model=model, limits=Limits(tokens=None, usd=0.5))
    assert (result.outcome, result.output, model.asked, ran) == ("budget", "what I have", 1, [])
    assert "$0.9000 of $0.5000 are spent" in result.reason
    assert "were held was billed $0.9000" in result.reason
