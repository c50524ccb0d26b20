"""Scenarios: what is refused, what waits, and what becomes of an agent at its limit."""

from decimal import Decimal

from antiphon import Limits, LoopOptions, ModelOptions, Usage
from antiphon.models.catalog import Prices
from antiphon.models.script import call, finish
from antiphon.values.model import Reply
from tests.oracle.stage import scenario
from tests.oracle.tools import agent, never, to

LOOK = Reply("so far", (call("look"),), "calls", Usage(80, 20))
DONE = Reply("done", usage=Usage(80, 20))


def working(limits, replies, **options):
    return agent("a", limits=limits, model=replies, asking=ModelOptions(max_output_tokens=100), **options)


def priced(stage, replies, each, **options):
    """A model of which a token costs so many US dollars."""
    model = stage.script(replies, **options)
    model.prices = Prices(input=Decimal(each) * 1_000_000, output=Decimal(each) * 1_000_000)
    return model


@scenario
async def limits_of_number(stage):
    for limits in (Limits(turns=2), Limits(calls=1)):
        await stage.ask(agent("a", model=stage.script([LOOK] * 4)), limits=limits)
    for limits in (Limits(depth=1), Limits(activations=2), Limits(calls=2)):
        replies = {
            "a": [[to("b"), to("b")], "end"],
            "b": [to("c"), "b done", to("c"), "b done"],
            "c": ["c"] * 2,
        }
        await stage.ask(agent("a"), agent("b"), agent("c"), model=stage.script(replies), limits=limits)


@scenario
async def limits_of_tokens(stage):
    """Never enough; enough for two; spent; and a bill beyond what was held."""
    await stage.ask(agent("a", model=stage.script([])), limits=Limits(tokens=10))
    await stage.ask(working(Limits(tokens=2_150), stage.script([LOOK] * 20)))
    over = Reply("so far", (call("look"),), "calls", Usage(9_000, 20))
    await stage.ask(working(Limits(tokens=5_000), stage.script([over, DONE])))


@scenario
async def a_limit_with_room_for_one_at_a_time(stage):
    names = "bcdefghijklm"
    replies = {name: [finish(name)] for name in names} | {"a": [[to(name) for name in names], "end"]}
    team = [
        agent("a", tools=[]),
        *(agent(name, tools=[], asking=ModelOptions(max_output_tokens=6_500)) for name in names),
    ]
    await stage.ask(*team, model=stage.script(replies, usage=Usage(1, 1)), limits=Limits(tokens=9_000))


@scenario
async def limits_of_money(stage):
    await stage.ask(working(None, priced(stage, [LOOK] * 30, "0.001")), limits=Limits(usd=2.15))
    nobodys = stage.script(["x"], name="nobody/knows")
    await stage.ask(agent("a", model=nobodys), limits=Limits(usd=1))
    lead = agent("a", model=priced(stage, [to("b"), "end"], "0.0001"))
    await stage.ask(lead, agent("b", model=priced(stage, [LOOK, DONE], "0.0001"), limits=Limits(usd=9)))


@scenario
async def limits_of_time(stage):
    """A request's own, in the middle of its calls; a callee's own; waiting for people is no time."""
    calls = [call("look"), call("hang"), call("look")]
    one = agent("a", model=stage.script([calls]), tool_execution="sequential")
    await stage.ask(one, limits=Limits(timeout_seconds=10))
    slow = agent("b", model=stage.script([call("hang")]), limits=Limits(timeout_seconds=5))
    await stage.ask(agent("a", model=stage.script([to("b"), "end"])), slow)


@scenario
async def waiting_for_people_is_no_time(stage):
    from antiphon.testing.clock import VirtualClock

    stage.clock = VirtualClock(autojump=False)
    one = agent("a", model=stage.script([to("user", "?"), never]), limits=Limits(timeout_seconds=10))
    async with stage.open(one) as run:
        request = await run.post("a", "go")
        await stage.until(run, "1/1.c1 wait")
        stage.clock.advance(100)
        await run.answer("1/1.c1", "!")
        await stage.until(run, "1/2.m1 model", "1/2.d2 wait")
        stage.clock.advance(100)
        await stage.ended(run, request)


@scenario
async def a_limit_raised_by_a_person(stage):
    one = working(Limits(turns=1, on_breach="ask"), stage.script([LOOK, LOOK, LOOK]))
    async with stage.open(one) as run:
        request = await run.post("a", "go")
        for place, answer in (("1/2.l1", "yes"), ("1/3.l2", "no")):
            await stage.until(run, f"{place} wait")
            await run.answer(place, answer)
        await stage.ended(run, request)


@scenario
async def a_cheaper_model_at_the_limit(stage):
    (stage.folder / "cheap.yaml").write_text("'*': [c1, c2, c3, c4, c5]\n")
    cheap = f"script:{stage.folder}/cheap.yaml"
    model = priced(stage, [LOOK] * 30, "0.001", name="dear")
    await stage.ask(working(Limits(usd=2.15, on_breach="degrade", breach_target=cheap), model))


@scenario
async def another_agent_at_the_limit(stage):
    """On the outer books, within the same ones, and where the other one fails too."""
    for limits, other in (
        (Limits(tokens=2_150, on_breach="handoff", breach_target="b"), ["b done"]),
        (Limits(turns=1, on_breach="handoff", breach_target="b"), ["b done"]),
        (Limits(turns=1, on_breach="handoff", breach_target="b"), []),
    ):
        one = working(limits, stage.script([LOOK] * 30))
        await stage.ask(
            one, agent("b", model=stage.script(other), asking=ModelOptions(max_output_tokens=100))
        )


@scenario
async def a_last_word_at_the_limit(stage):
    replies = [LOOK, "what I have"]
    await stage.ask(
        working(Limits(turns=1), stage.script(replies), loop=LoopOptions(summarize_at_limit=True))
    )


@scenario
async def one_question_for_all_whom_a_limit_holds(stage):
    """Three are held; the question of the first is taken back, so that the second asks; yes, then no."""
    replies = {"lead": [[to(name) for name in "bcd"], "end"], **{name: [LOOK] * 5 for name in "bcd"}}
    team = agent("lead"), agent("b"), agent("c"), agent("d")
    limits = Limits(turns=1, on_breach="ask")
    async with stage.open(*team, model=stage.script(replies), limits=limits) as run:
        request = await run.post("lead", "go")
        await stage.until(run, "4/2.l1 wait")
        await run.cancel("1/1.c1", "enough of b")
        await stage.until(run, "4/2.l2 wait")
        await run.answer("3/2.l2", "yes", by="ann")
        await stage.until(run, "3/3.l3 wait", "4/3.l3 wait")
        starts = [each.event for each in await run.records() if "l3" in str(getattr(each.event, "id", ""))]
        await run.answer(next(each.id for each in starts if not each.detail.joins), "no", by="ann")
        await stage.ended(run, request)
