"""Scenarios: a process leaves a run in the middle, another goes on; and those that are killed everywhere."""

from antiphon import Hooks, Limits, ToolContext, tool
from antiphon.kernel.run.commands import AskAgent
from antiphon.models.script import call
from antiphon.testing.world import World
from antiphon.values.hooks import Continue
from tests.oracle.stage import scenario
from tests.oracle.tools import agent, look, never, to
from tests.promises.crash_scenarios import ALL


async def left_and_resumed(stage, before, after, at, then=None, **options):
    """Play `before` until these lines are there, leave, and see `after` through."""
    async with stage.open(*before, **options) as run:
        request, run_id = await run.post(before[0].name, "go"), run.run_id
        await stage.until(run, *at)
    async with stage.open(*after, run_id=run_id) as run:
        if then is not None:
            await then(run)
        await stage.ended(run, request)


def contracts(hangs):
    """A tool of each contract."""

    async def answer(name):
        return await never() if hangs else name

    @tool(effect="read")
    async def read() -> str:
        """Read."""
        return await answer("read")

    @tool(effect="idempotent")
    async def put(ctx: ToolContext) -> str:
        """Put."""
        return await answer(f"put, attempt {ctx.attempt}")

    @tool(effect="once")
    async def do() -> str:
        """Do."""
        return await answer("done")

    @tool(effect="once", reconcile=lambda ctx: "booked before")
    async def book() -> str:
        """Book."""
        return await answer("booked")

    return [read, put, do, book]


@scenario
async def left_with_tools_in_flight(stage):
    calls = [call("read"), call("put"), call("do"), call("book")]
    before = agent("a", tools=contracts(True), model=stage.script([calls]))
    after = agent("a", tools=contracts(False), model=stage.script(["done"]))
    await left_and_resumed(stage, [before], [after], ["1/1.c4 tool"])


@scenario
async def left_with_models_in_flight(stage):
    """Two agents ask; a timer runs beside them, and a call in the background."""
    calls = [to("b"), to("c", background=True)]
    before = [agent(name, model=stage.script([never])) for name in "bc"]
    before.insert(0, agent("a", model=stage.script([calls, never]), limits=Limits(timeout_seconds=3_600)))
    fetch = call("get_result", call_id="1/1.c2")
    lines = {"a": [fetch, "done"], "b": ["b done"], "c": ["c done"]}
    after = [agent(name, model=stage.script(replies)) for name, replies in lines.items()]
    await left_and_resumed(stage, before, after, ["2/1.m1 model", "3/1.m1 model"], background=True)


@scenario
async def left_while_people_are_asked(stage):
    calls = [call("pay", amount=1), to("user", "Which?")]

    async def answered(run):
        await run.answer("1/1.c1?", "yes")
        await run.answer("1/1.c2", "this one")

    before, after = agent("a", model=stage.script([calls])), agent("a", model=stage.script(["done"]))
    await left_and_resumed(stage, [before], [after], ["1/1.c1? wait", "1/1.c2 wait"], answered)


@scenario
async def left_in_an_action(stage):
    """Its steps that ended are not done again; what was in flight is."""

    def acting(hangs):
        async def last(name):
            return await never() if hangs else name

        async def act(ctx):
            found = [await ctx.step("first", str.upper, "x"), await ctx.ask_model("What of it?")]
            found += [await ctx.step("last", last, "y"), await ctx.call("b", "help"), ctx.attempt]
            ctx.set("found", found)
            return found

        return act

    before = [agent("a", hooks=Hooks(act=acting(True)), model=stage.script(["thought"])), agent("b")]
    after = [agent("a", hooks=Hooks(act=acting(False))), agent("b", model=stage.script(["helped"]))]
    await left_and_resumed(stage, before, after, ["1/1.x:last"])


@scenario
async def left_while_it_waits_to_try_again(stage):
    from antiphon import ModelError
    from antiphon.testing.clock import VirtualClock

    stage.clock = VirtualClock(autojump=False)
    before = agent("a", model=stage.script([ModelError("overloaded", "busy")]))

    async def later(run):
        stage.clock.advance(60)

    await left_and_resumed(
        stage, [before], [agent("a", model=stage.script(["done"]))], ["1/1.w1 wait"], later
    )


@scenario
async def left_while_it_rests(stage):
    """Waiting for a call in the background."""

    def decide(context):
        return Continue(wait_for_messages=True) if context.background_agents else None

    def team(lines, worker):
        lead = agent("a", model=stage.script(lines), hooks=Hooks(end_turn=decide))
        return [lead, agent("b", model=stage.script(worker))]

    before, after = team([to("b", background=True), "waits"], [never]), team(["done"], ["b done"])
    await left_and_resumed(stage, before, after, ["1 a turn finished", "2/1.m1 model"], background=True)


@scenario
async def a_team_that_lost_an_agent(stage):
    before = [agent("a", model=stage.script([to("b")])), agent("b", model=stage.script([never]))]
    after = [agent("a", model=stage.script(["went on"]))]
    await left_and_resumed(stage, before, after, ["2/1.m1 model"])


@scenario
async def continued_later(stage):
    """Closed by nobody: the next process asks again, with another model, tools and prompt."""
    async with stage.open(agent("a", model=stage.script(["one"]), context="continue")) as run:
        await stage.ended(run, await run.post("a", "go"))
        run_id = run.run_id
    other = agent("a", tools=[look], model=stage.script(["two"], name="other"), context="continue")
    async with stage.open(other, run_id=run_id, interactive=False) as run:
        await stage.ended(run, await run.post("a", "again"))


def _killed(each):
    async def played(stage):
        model = each.model()
        options = {"model": stage.kept(model), **each.options}
        async with stage.open(*each.agents(World(stage.folder / "world")), **options) as run:
            requests = [
                await run.post(
                    asked.agent,
                    asked.text,
                    **{name: getattr(asked, name) for name in ("inbox", "calls", "data", "options")},
                )
                for asked in (one if isinstance(one, AskAgent) else AskAgent(*one) for one in each.requests)
            ]
            outside = stage.play_outside(run, each.outside)
            for request in requests:
                await stage.ended(run, request)
            outside.cancel()
            await run.close()

    played.__name__ = f"killed_{each.name.replace(' ', '_').replace('-', '_')}"
    return played


for _each in ALL:
    scenario(_killed(_each))
