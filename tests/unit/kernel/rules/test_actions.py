"""An agent's own coroutine: what it begins is on record, done once, and ends with it."""

import asyncio
import copy

import pytest

from antiphon import Agent, Limits, Message, ModelError, open_journal, open_run, tool
from antiphon.errors import EffectFailed, UserError
from antiphon.kernel.facts.events import (
    EffectFinished,
    EffectStarted,
    MessagePosted,
    QuestionEffect,
    StateChanged,
    StepEffect,
)
from antiphon.kernel.facts.records import ReplyDelta
from antiphon.kernel.run.api import stream
from antiphon.models.script import Script, call
from antiphon.testing.clock import VirtualClock
from antiphon.values.hooks import PlannedCall
from antiphon.values.model import Reply
from tests.transcript import effects, recorded, results_shown, shown
from tests.unit.kernel.teams import acted, actor, contents, inside, never, opened, rounds


async def fetch(url):
    return {"page": url}


# -- steps --------------------------------------------------------------------------------------


def test_a_step_is_on_record_with_its_result():
    async def act(ctx):
        found = await ctx.step("fetch", fetch, "home")
        return found["page"]

    result, records = acted(act)
    assert (result.outcome, result.output) == ("completed", "home")
    assert inside(records) == [
        "1/1.x action a started",
        "1/1.x:fetch step fetch started",
        '1/1.x:fetch completed: {"page":"home"}',
        "1/1.x completed: home",
    ]


def test_a_plain_function_is_a_step_too_and_its_result_is_what_json_has_of_it():
    async def act(ctx):
        return repr(await ctx.step("divmod", divmod, 7, 2))

    result, _ = acted(act)
    assert result.output == "[3, 1]"


def test_a_result_that_json_cannot_hold_fails_the_step():
    async def act(ctx):
        try:
            await ctx.step("make", object)
        except EffectFailed as error:
            return str(error)

    result, records = acted(act)
    assert result.output.startswith("step make must return what JSON can hold: ")
    assert inside(records)[2].startswith("1/1.x:make failed: step make must return")


def test_a_step_that_raises_fails_and_the_action_may_go_on():
    async def act(ctx):
        try:
            await ctx.step("parse", int, "x")
        except EffectFailed as error:
            return f"{error.outcome}, {error}"

    result, _ = acted(act)
    assert result.output == ("failed, step parse: ValueError: invalid literal for int() with base 10: 'x'")


def test_the_same_step_asked_for_twice_is_two():
    count = iter(range(9))

    async def act(ctx):
        return [await ctx.step("next", next, count), await ctx.step("next", next, count)]

    result, records = acted(act)
    assert result.output == "[0,1]"
    assert [each for each in inside(records) if "started" in each] == [
        "1/1.x action a started",
        "1/1.x:next step next started",
        "1/1.x:next:2 step next started",
    ]


def test_a_step_is_known_by_what_it_was_asked_with():
    """Whatever order a set was filled in; the name may hold anything."""

    async def act(ctx):
        for what in ({8, 0}, {0, 8}, {0, 9}):
            await ctx.step("sum/up: ü", sum, what)

    _, records = acted(act)
    first, second, third = [
        each.event.id
        for each in records
        if type(each.event) is EffectStarted and type(each.event.detail) is StepEffect
    ]
    assert first.startswith("1/1.x:sum_up__ü:")
    assert second == first + ":2"
    assert third.count(":") == first.count(":")


def test_steps_run_at_once():
    async def act(ctx):
        both = asyncio.Barrier(2)

        async def meet(name):
            await both.wait()
            return name

        return await asyncio.gather(*[ctx.step("meet", meet, name) for name in "xy"])

    result, _ = acted(act)
    assert result.output == '["x","y"]'


# -- asking the model, agents and people --------------------------------------------------------


def test_asking_is_a_talk_with_the_agents_own_model_with_tools_and_retries():
    @tool(effect="read")
    async def look() -> str:
        "Look."
        return "a bird"

    async def act(ctx):
        return f"It says: {await ctx.ask_model('What is there?')}"

    model = Script([ModelError("overloaded", ""), call("look"), "A bird."])
    agent = actor(act, tools=[look], instructions="Be brief.")
    result, records = recorded(agent, "go", model=model, clock=VirtualClock(), limits=Limits(depth=0))
    assert result.output == "It says: A bird."
    assert model.requests[0].system.startswith('You are "a". Be brief.')
    assert shown(model.requests[0]) == ["user: What is there?"]
    assert results_shown(model.requests[-1]) == ["a bird"]
    assert [each for each in effects(records, "m", "w", "c") if "started" in each][1:] == [
        "2/1.m1 model started",
        "2/1.w1 wait retry started",
        "2/1.m2 model started",
        "2/1.c1 tool look started",
        "2/2.m1 model started",
    ]


def test_what_the_model_says_meanwhile_is_the_agents():
    async def act(ctx):
        return await ctx.ask_model("Well?")

    async def watching():
        async with stream(actor(act), "go", model=Script(["one two three"])) as events:
            return [item async for item in events if isinstance(item, ReplyDelta)]

    pieces = asyncio.run(watching())
    assert "".join(each.text for each in pieces) == "one two three"
    assert {(each.agent, each.effect_id) for each in pieces} == {("a", "2/1.m1")}


def test_an_agent_that_acts_needs_no_model_until_it_asks():
    async def act(ctx):
        return await ctx.ask_model("Well?")

    agent = actor(act)
    result, _ = recorded(agent, "go", env={})
    assert result.outcome == "failed"
    assert result.reason == "a has no model to ask; give it one, or the run"


def test_calling_another_agent():
    async def act(ctx):
        return f"b says: {await ctx.call('b', 'Write.')}"

    result, records = acted(act, {"b": ["Written."]})
    assert result.output == "b says: Written."
    assert inside(records)[1:3] == ["1/1.x:call call b started", "1/1.x:call completed: Written."]
    assert [(each.sender, each.receiver) for each in result.messages][1:3] == [("a", "b"), ("b", "a")]


def test_a_colleague_that_continues_goes_on_with_what_the_same_caller_asked_before():
    model = Script(["Ann.", "You are Ann."])

    async def act(ctx):
        await ctx.call("b", "I am Ann.")
        return await ctx.call("b", "Who am I?")

    team = [actor(act), Agent("b", model=model, context="continue")]
    result, _ = recorded(team[0], "go", agents=team)
    assert result.output == "You are Ann."
    assert shown(model.requests[1]) == ["user: I am Ann.", "assistant: Ann.", "user: Who am I?"]


@pytest.mark.parametrize(
    ("options", "limits", "outcome", "why"),
    [
        ({}, Limits(), "not_found", "Unknown agent: nobody. Available agents: b"),
        ({"can_call": ()}, Limits(), "not_found", "Unknown agent: b. Available agents: (none)"),
        ({}, Limits(depth=0), "denied", "the depth limit of 0 nested calls is reached; do the work yourself"),
        ({}, Limits(activations=1), "denied", "the limit of 1 agent calls is reached; do the work yourself"),
        ({}, Limits(calls=0), "limit", "the limit of 0 calls is used up"),
    ],
    ids=["unknown", "can_call", "depth", "activations", "calls"],
)
def test_a_call_that_may_not_be(options, limits, outcome, why):
    name = "nobody" if "nobody" in why else "b"

    async def act(ctx):
        try:
            await ctx.call(name, "Write.")
        except EffectFailed as error:
            return f"{error.outcome}: {error}"

    # The request itself is a call in no scope but its own.
    result, records = acted(actor(act, limits=limits, **options))
    assert result.output == f"{outcome}: {why}"
    assert inside(records)[1] == f"1/1.x:call {result.output}"


def test_asking_the_model_is_in_the_agents_own_scopes_and_begins_none():
    async def act(ctx):
        return await ctx.ask_model("one")

    _, records = acted(actor(act, limits=Limits(timeout_seconds=60)), ["1"])
    assert [each for each in effects(records, "d") if "started" in each] == ["1/1.d1 wait deadline started"]


@pytest.mark.parametrize("limits", [Limits(calls=1), Limits(activations=2)], ids=["calls", "activations"])
def test_asking_the_model_is_counted_like_any_call(limits):
    async def act(ctx):
        await ctx.ask_model("one")
        await ctx.ask_model("two")

    result, _ = acted(actor(act, limits=limits), ["1", "2"])
    assert result.outcome == "limit"
    assert result.reason.startswith("the limit of ")


@pytest.mark.parametrize(
    ("poor", "outcome"),
    [
        (Agent("b", limits=Limits(tokens=1)), "budget"),
        (Agent("b", limits=Limits(timeout_seconds=5)), "limit"),
    ],
    ids=["budget", "time"],
)
def test_why_a_callee_had_to_stop_is_why_the_action_does(poor, outcome):
    async def act(ctx):
        return await ctx.call("b", "Write.")

    result, _ = acted(act, {"b": [never]}, agents=(poor,))
    assert result.outcome == outcome


def test_what_a_callee_had_said_is_not_lost():
    async def act(ctx):
        try:
            await ctx.call("b", "Write.")
        except EffectFailed as error:
            return f"{error.outcome} after {error.partial!r}"

    @tool(effect="read")
    async def look() -> str:
        "Look."
        return ""

    slow = Agent("b", tools=[look], limits=Limits(turns=1))
    result, _ = acted(act, {"b": [Reply("So far.", (call("look"),), "calls")]}, agents=(slow,))
    assert result.output == "limit after 'So far.'"


@pytest.mark.parametrize("how", ["question", "call"])
def test_a_question_waits_for_the_user(how):
    async def act(ctx):
        said = ctx.ask_user("Which?") if how == "question" else ctx.call("user", "Which?")
        return f"the {await said}"

    async def main():
        async with open_run([actor(act)], model=Script([])) as run:
            request = await run.post("a", "go")
            asked = await opened(run, QuestionEffect)
            assert asked.detail.text == "Which?"
            await run.answer(asked.id, "left one")
            result = await run.result(request)
            assert result.output == "the left one"
            assert ("a", "user", "Which?") in [(m.sender, m.receiver, m.content) for m in result.messages]
            assert ("user", "a", "left one") in [(m.sender, m.receiver, m.content) for m in result.messages]

    asyncio.run(main())


def test_a_question_that_nobody_is_there_for():
    async def act(ctx):
        return await ctx.ask_user("Which?")

    result, _ = acted(act)
    assert (result.outcome, result.reason) == ("failed", "nobody is there to answer")


# -- what it knows and records ------------------------------------------------------------------


def test_what_it_sets_is_there_the_next_time():
    seen = []

    async def act(ctx):
        seen.append((copy.deepcopy(ctx.data), contents(ctx.new_messages), len(ctx.all_messages), ctx.attempt))
        ctx.append("log", ["dropped"])
        ctx.set("log", [ctx.new_messages[0].content])
        ctx.append("log", ["and"])
        ctx.append("all", [ctx.new_messages[0].content])
        ctx.set("pair", (1, {"two": 2}))
        return None

    async def main():
        journal, run_id = open_journal(), None
        for text in ("one", "two", "three"):
            agent = actor(act, context="continue")
            async with open_run(
                [agent], journal=journal, run_id=run_id, model=Script([]), deps="mine"
            ) as run:
                run_id = run.run_id
                assert (await run.result(await run.post("a", text))).output == ""
        await journal.close()

    asyncio.run(main())
    pair = [1, {"two": 2}]
    assert seen == [
        ({}, ["one"], 1, 1),
        ({"log": ["one", "and"], "all": ["one"], "pair": pair}, ["two"], 2, 1),
        ({"log": ["two", "and"], "all": ["one", "two"], "pair": pair}, ["three"], 3, 1),
    ]


def test_changing_what_it_is_shown_changes_nothing_that_is_kept():
    seen = []

    async def act(ctx):
        seen.append(copy.deepcopy(ctx.data))
        if not ctx.data:
            ctx.set("tree", {"leaves": [1]})
            ctx.append("list", [{"x": 1}])
        else:
            ctx.data["tree"]["leaves"].append(2)
            ctx.data["list"][0]["x"] = 2
            ctx.data["list"].append("more")
            assert ctx.data["tree"] == {"leaves": [1, 2]}

    async def main():
        async with open_run([actor(act, context="continue")], model=Script([])) as run:
            for text in ("one", "two", "three"):
                await run.result(await run.post("a", text))

    asyncio.run(main())
    kept = {"tree": {"leaves": [1]}, "list": [{"x": 1}]}
    assert seen == [{}, kept, kept]


@pytest.mark.parametrize("method", ["set", "append"])
def test_what_no_journal_can_hold_is_refused_at_once(method):
    async def act(ctx):
        with pytest.raises(UserError, match=r"a: .* must be what JSON can hold"):
            getattr(ctx, method)("key", [object()])
        return "refused"

    result, records = acted(act)
    assert result.output == "refused"
    assert not any(type(each.event) is StateChanged for each in records)


@pytest.mark.parametrize("kept", [False, True])
def test_only_a_list_goes_on(kept):
    async def act(ctx):
        if not ctx.data:
            ctx.set("count", 1)
        if bool(ctx.data) == kept:
            with pytest.raises(UserError, match=r"a: data\['count'\] is no list that could go on; set it"):
                ctx.append("count", [2])

    async def main():
        async with open_run([actor(act, context="continue")], model=Script([])) as run:
            for _ in range(2):
                result = await run.result(await run.post("a", "go"))
                assert result.outcome == "completed"

    asyncio.run(main())


def test_it_knows_where_it_is():
    async def act(ctx):
        return [ctx.agent, ctx.effect_id, len(ctx.run_id), ctx.deps, ctx.can_publish]

    result, _ = acted(act, deps="mine")
    assert result.output == '["a","1/1.x",32,"mine",false]'


def test_publishing_needs_a_caller_who_hands_it_on():
    async def act(ctx):
        ctx.publish(Message("forward", "a", "", "news"))

    result, _ = acted(act)
    assert result.outcome == "failed"
    assert "a was called by somebody who distributes nothing; return the result" in result.reason


def publisher(*texts, **fields):
    """A broker without a model that returns what was published to it, and the agent that publishes it."""

    async def act(ctx):
        for text in texts:
            ctx.publish(Message("forward", "a", "", text, **fields))
        return contents(ctx.all_messages)

    agent = rounds(
        [PlannedCall("a", "publish")], [], value=lambda context: "|".join(contents(context.new_messages))
    )
    return agent, actor(act)


def test_what_is_published_reaches_the_caller_with_the_end():
    broker, agent = publisher("one", "two")
    result, records = recorded(broker, "go", agents=[broker, agent], model=Script([]))
    assert result.output == "one|two"
    place = [type(each.event) for each in records].index
    said = [each.event for each in records if type(each.event) is MessagePosted and each.event.by == 2]
    assert [each.message.content for each in said] == ["one", "two"]
    end = next(each for each in records if type(each.event) is EffectFinished and each.event.id == "2/1.x")
    assert end.event.content == '["publish"]'
    assert place(EffectFinished) == records.index(end)


def test_what_finds_no_room_is_a_dead_letter():
    broker, agent = publisher("one", "two", "three")
    result, records = recorded(broker, "go", agents=[broker, agent], model=Script([]), limits=Limits(inbox=2))
    assert result.output == "one|two"
    posted = [each.event for each in records if type(each.event) is MessagePosted]
    dead = [each for each in posted if each.dead_letter]
    assert [(each.message.content, each.dead_letter) for each in dead] == [
        ("three", "the inbox of broker is full (2 unread messages)")
    ]


def test_nothing_is_published_by_an_action_that_failed():
    async def act(ctx):
        ctx.publish(Message("forward", "a", "", "news"))
        raise LookupError("after that")

    broker, _ = publisher()
    agent = actor(act)
    result, _ = recorded(broker, "go", agents=[broker, agent], model=Script([]))
    assert (result.outcome, result.output) == ("completed", "")


def test_a_message_that_no_journal_can_hold_is_refused():
    broker, agent = publisher("one", data=object())
    result, _ = recorded(broker, "go", agents=[broker, agent], model=Script([]))
    assert result.output == ""
