"""A tool that asks in its middle: a person, a model, an agent, or a step of its own; on record, once."""

import asyncio
import threading

import pytest

from antiphon import Agent, Limits, ToolContext, open_run, tool
from antiphon.errors import EffectFailed, ToolError
from antiphon.kernel.facts.ids import parent_of
from antiphon.kernel.run.tools import door
from antiphon.models.script import Script, call
from antiphon.view.tree import RunTree
from tests.promises.isolated_tools import asking
from tests.promises.test_drain import in_a_loop, outcomes


def agent(tools, *lines, name="a", **options):
    return Agent(name, f"You are {name}.", tools=tools, model=Script(list(lines), by="turn"), **options)


async def asked(run, count=1):
    """The ids of what people are asked, once there are so many."""
    found = []
    async for record in run.events(0, deltas=False):
        if record.type == "EffectStarted" and type(record.event.detail).__name__ == "QuestionEffect":
            found.append(record.event.id)
            if len(found) == count:
                return found
    raise AssertionError("the run ended")


async def until(run, what):
    async for record in run.events(0, deltas=False):
        if what in str(record.event):
            return record
    raise AssertionError("the run ended")


def order(kind="async", **options):
    """A tool that asks a person, a model and an agent, and steps; plain or async."""
    options.setdefault("effect", "idempotent")
    stepped = []

    def note(what):
        stepped.append((what, threading.current_thread() is threading.main_thread()))
        return {"noted": what}

    async def work(ctx, what):
        region = await ctx.ask_user("Which region?", options=["north", "south"])
        price = await ctx.ask_model(f"What does {what} cost?")
        stock = await ctx.call("stock", what)
        kept = await ctx.step("note", note, what)
        return f"{what} {region} {price} {stock} {kept['noted']}"

    if kind == "async":

        @tool(**options)
        async def order(ctx: ToolContext, what: str) -> str:
            "Order something."
            return await work(ctx, what)

    else:

        @tool(**options)
        def order(ctx: ToolContext, what: str) -> str:
            "Order something."
            return ctx.wait(work(ctx, what))

    return order, stepped


LINES = [call("order", what="tea"), "ordered"]


def asks(request):
    """What the model of `a` says: the price to whoever asks for it, else its turn's line."""
    if "What does" in request.messages[-1].content:
        assert not request.tools, "whoever wrote the question is not whoever made the agent"
        return "5 EUR"
    return LINES[sum(each.role == "assistant" for each in request.messages)]


def team(made):
    stock = Agent("stock", "You know the stock.", model=Script(["plenty"]))
    return [Agent("a", tools=[made], model=Script(asks), can_call=["stock"]), stock]


@pytest.mark.parametrize("kind", ["async", "plain"])
@in_a_loop
async def test_a_tool_asks_and_goes_on_with_the_answers(kind):
    made, stepped = order(kind)
    async with open_run(team(made)) as run:
        request = await run.post("a", "go")
        (question,) = await asked(run)
        assert question.startswith("1/1.c1:question:")
        await run.answer(question, "north", by="ann")
        result = await run.result(request)
        records = await run.records()
    shown = next(each.event.content for each in records if getattr(each.event, "id", "") == "1/1.c1"
                 and each.type == "EffectFinished")  # fmt: skip
    assert (result.output, shown) == ("ordered", "tea north 5 EUR plenty tea")
    assert stepped == [("tea", kind == "async")]
    inside = [each.event.id.split(":")[1] for each in records
              if each.type == "EffectStarted" and ":" in each.event.id]  # fmt: skip
    assert inside == ["question", "ask", "call", "note"]


@in_a_loop
async def test_nobody_is_there_to_ask_and_the_tool_is_told():
    @tool(effect="read")
    async def order(ctx: ToolContext) -> str:
        "Order."
        try:
            return await ctx.ask_user("Which?")
        except EffectFailed as error:
            return f"{error.outcome}: {error}"

    async with open_run([agent([order], call("order"), "done")], interactive=False) as run:
        request = await run.post("a", "go")
        assert (await run.result(request)).output == "done"
        assert "not_found: nobody is there to answer" in str(await run.records())


@in_a_loop
async def test_an_agent_that_the_caller_may_not_call_is_refused_inside_its_tools_too():
    @tool(effect="read")
    async def order(ctx: ToolContext) -> str:
        "Order."
        return await ctx.call("b", "help")

    made = [agent([order], call("order"), "done", can_call=[]), agent([], "never", name="b")]
    async with open_run(made) as run:
        request = await run.post("a", "go")
        assert (await run.result(request)).output == "done"
        found = await outcomes(run)
    assert [value for key, value in found.items() if ":" in key] == ["not_found"]
    assert not any(key.startswith("2/") for key in found)


@in_a_loop
async def test_what_a_tool_asks_is_on_its_agents_budget():
    """A limit of calls counts what happens inside; the tool is told, and what it does then is its own."""

    @tool(effect="read")
    async def order(ctx: ToolContext) -> str:
        "Order."
        told = []
        for number in range(5):
            try:
                told.append(await ctx.step("look", lambda each: each, number))
            except EffectFailed as error:
                told.append(error.outcome)
        return str(told)

    async with open_run([agent([order], call("order"), "done", limits=Limits(calls=3))]) as run:
        request = await run.post("a", "go")
        assert (await run.result(request)).output == "done"
        assert "[0, 1, 'limit', 'limit', 'limit']" in str(await run.records())


@in_a_loop
async def test_the_tokens_of_a_model_that_a_tool_asks_are_its_agents():
    @tool(effect="read")
    async def order(ctx: ToolContext) -> str:
        "Order."
        return await ctx.ask_model("What does it cost?")

    def says(request):
        if "cost" in request.messages[-1].content:
            return "5 EUR"
        return [call("order"), "done"][sum(each.role == "assistant" for each in request.messages)]

    async with open_run([Agent("a", tools=[order], model=Script(says))]) as run:
        await run.result(await run.post("a", "go"))
        tree = RunTree()
        for record in await run.records():
            tree.add(record)
    assert tree.activations[1].total.calls == 3


@pytest.mark.parametrize("kind", ["async", "plain"])
@in_a_loop
async def test_cancelling_a_tool_cancels_what_it_asked_first(kind):
    left = []

    async def work(ctx):
        try:
            await asyncio.gather(ctx.ask_user("Which?"), ctx.call("b", "help"))
        finally:
            left.append("left")

    if kind == "async":

        @tool(effect="read")
        async def order(ctx: ToolContext) -> None:
            "Order."
            await work(ctx)

    else:

        @tool(effect="read")
        def order(ctx: ToolContext) -> None:
            "Order."
            ctx.wait(work(ctx))

    async def never(request):
        await asyncio.Event().wait()

    made = [agent([order], call("order"), "done", can_call=["b"]), Agent("b", model=Script(never))]
    async with open_run(made) as run:
        request = await run.post("a", "go")
        await asked(run)
        await until(run, "2/1.m1")
        await run.cancel("1/1.c1", "enough")
        assert (await run.result(request)).output == "done"
        records = await run.records()
    ends = [each.event.id for each in records if each.type == "EffectFinished"]
    within = [position for position, each in enumerate(ends) if parent_of(each) == "1/1.c1"]
    assert len(within) == 2
    assert max(within) < ends.index("1/1.c1")
    assert left == ["left"]


@in_a_loop
async def test_what_a_tool_began_and_did_not_wait_for_ends_before_it():
    @tool(effect="read")
    async def order(ctx: ToolContext) -> str:
        "Order."
        tasks.append(asyncio.create_task(ctx.ask_user("Which?")))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        return "ordered"

    tasks = []
    async with open_run([agent([order], call("order"), "done")]) as run:
        assert (await run.result(await run.post("a", "go"))).output == "done"
        found = await outcomes(run)
        with pytest.raises(EffectFailed, match="the tool ended without it"):
            await tasks[0]
    (question,) = [each for each in found if ":" in each]
    assert (found[question], found["1/1.c1"]) == ("cancelled", "completed")


@in_a_loop
async def test_a_tool_that_has_ended_can_ask_nothing():
    kept = []

    @tool(effect="read")
    async def order(ctx: ToolContext) -> str:
        "Order."
        kept.append(ctx)
        return "ordered"

    async with open_run([agent([order], call("order"), "done")]) as run:
        assert (await run.result(await run.post("a", "go"))).output == "done"
        with pytest.raises(EffectFailed, match="has ended; nothing can follow in it"):
            await kept[0].ask_user("Which?")
        assert not any(":" in each for each in await outcomes(run))


@in_a_loop
async def test_its_own_time_stands_still_while_a_tool_waits():
    @tool(effect="read", timeout=0.05)
    async def order(ctx: ToolContext) -> str:
        "Order."
        answer = await ctx.ask_user("Which?")
        await asyncio.Event().wait()
        return answer

    @tool(effect="read", timeout=0.1)
    async def outlasts():
        "Takes longer than the other may."
        await asyncio.Event().wait()

    async with open_run([agent([order, outlasts], [call("order"), call("outlasts")], "done")]) as run:
        request = await run.post("a", "go")
        (question,) = await asked(run)
        await until(run, "no result after 0.1 s")
        assert "1/1.c1" not in await outcomes(run)
        await run.answer(question, "north", by="ann")
        assert (await run.result(request)).output == "done"
        found = await outcomes(run)
    assert (found[question], found["1/1.c1"]) == ("completed", "failed")


@in_a_loop
async def test_a_tool_that_asks_for_ever_is_stopped_and_leaves_so_many_records(monkeypatch):
    monkeypatch.setattr(door, "MOST", 40)
    refused = []

    @tool(effect="read", timeout=20)
    async def order(ctx: ToolContext) -> str:
        "Order."
        for number in range(100):
            try:
                await ctx.step("look", lambda each: each, number)
            except EffectFailed as error:
                refused.append(error.outcome)
        return "ordered"

    async with open_run([agent([order], call("order"), "done")]) as run:
        assert (await run.result(await run.post("a", "go"))).output == "done"
        found = await outcomes(run)
    assert (len([each for each in found if ":" in each]), refused) == (40, ["limit"] * 60)


@pytest.mark.parametrize(("limits", "ends"), [(Limits(calls=5), "limit"), (None, "denied")])
@in_a_loop
async def test_an_agent_that_calls_itself_through_its_tool_comes_to_an_end(limits, ends):
    @tool(effect="read")
    async def order(ctx: ToolContext) -> str:
        "Order."
        return await ctx.call("a", "again")

    made = Agent("a", tools=[order], model=Script([call("order"), "done"], by="turn"), can_call=["a"])
    async with open_run([made], limits=limits) as run:
        result = await run.result(await run.post("a", "go"))
        found = await outcomes(run)
    inside = sorted(value for key, value in found.items() if ":" in key)
    assert result.output == "done"
    assert [each for each in inside if each != "completed"] == [ends]


@in_a_loop
async def test_a_tool_that_swallows_its_cancellation_is_closed_and_asks_no_more():
    @tool(effect="read")
    async def order(ctx: ToolContext) -> str:
        "Order."
        for _ in range(3):
            try:
                await ctx.ask_user("Which?")
            except (asyncio.CancelledError, EffectFailed):
                continue
        return "late"

    async with open_run([agent([order], call("order"), "done")]) as run:
        request = await run.post("a", "go")
        await asked(run)
        await run.cancel("1/1.c1", "enough")
        assert (await run.result(request)).output == "done"
        found = await outcomes(run)
    assert found["1/1.c1"] == "cancelled"
    assert len([each for each in found if ":" in each]) == 1


@in_a_loop
async def test_two_tools_of_a_turn_ask_side_by_side_and_answers_find_their_own():
    @tool(effect="read")
    async def order(ctx: ToolContext, what: str) -> str:
        "Order."
        return f"{what}: {await ctx.ask_user('Which?')}"

    lines = [[call("order", what="tea"), call("order", what="rum")], "done"]
    async with open_run([agent([order], *lines)]) as run:
        request = await run.post("a", "go")
        first, second = await asked(run, 2)
        assert [parent_of(first), parent_of(second)] == ["1/1.c1", "1/1.c2"]
        await run.answer(second, "south", by="ann")
        await run.answer(first, "north", by="ann")
        assert (await run.result(request)).output == "done"
        said = str(await run.records())
    assert "tea: north" in said
    assert "rum: south" in said


@in_a_loop
async def test_the_same_question_twice_is_two_questions():
    @tool(effect="read")
    async def order(ctx: ToolContext) -> str:
        "Order."
        return str([await ctx.ask_user("Which?"), await ctx.ask_user("Which?")])

    async with open_run([agent([order], call("order"), "done")]) as run:
        request = await run.post("a", "go")
        (first,) = await asked(run)
        await run.answer(first, "one", by="ann")
        _, second = await asked(run, 2)
        assert second == f"{first}:2"
        await run.answer(second, "two", by="ann")
        assert (await run.result(request)).output == "done"
        assert "['one', 'two']" in str(await run.records())


@in_a_loop
async def test_an_isolated_tool_that_asks_is_told_that_it_cannot():
    async with open_run([agent([asking], call("asking"), "done")]) as run:
        assert (await run.result(await run.post("a", "go"))).output == "done"
        assert "an isolated tool has one of its own" in str(await run.records())


@in_a_loop
async def test_waiting_on_the_event_loop_and_awaiting_in_a_thread_are_refused_with_what_to_do():
    @tool(effect="read")
    async def on_the_loop(ctx: ToolContext) -> str:
        "On the loop."
        return ctx.wait(ctx.ask_user("Which?"))

    @tool(effect="read")
    def in_a_thread(ctx: ToolContext) -> str:
        "In a thread."
        return asyncio.run(ctx.ask_user("Which?"))

    lines = [[call("on_the_loop"), call("in_a_thread")], "done"]
    async with open_run([agent([on_the_loop, in_a_thread], *lines)]) as run:
        assert (await run.result(await run.post("a", "go"))).output == "done"
        said = str(await run.records())
    assert "ctx.wait would hold up the event loop; await it" in said
    assert "is awaited on the run's event loop; elsewhere use ctx.wait(...)" in said


@in_a_loop
async def test_a_tool_that_no_run_has_called_cannot_ask():
    with pytest.raises(ToolError, match="no run has called the tool"):
        await ToolContext().ask_user("Which?")
    with pytest.raises(ToolError, match="no run has called the tool"):
        ToolContext().wait(ToolContext().ask_user("Which?"))
