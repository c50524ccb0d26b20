"""Instructions that a function writes: once in each call, recorded, with all that the context knows."""

import asyncio
from dataclasses import dataclass

import pytest

from antiphon import Agent, Hooks, Limits, ToolCall, UserError, open_run, run_sync
from antiphon.errors import RunFailed
from antiphon.journal import MemoryJournal
from antiphon.kernel.facts.events import CallEffect, EffectFinished, EffectStarted, ModelEffect
from antiphon.models.script import Script, call
from antiphon.testing.replay import check_recorded, save_run
from antiphon.values.hooks import PlannedCall, Return, TurnPlan
from tests.transcript import lines, recorded


@dataclass
class Customer:
    name: str
    vip: bool = False


def greet(ctx):
    manner = "very politely" if ctx.deps.vip else "politely"
    return f"Answer {ctx.deps.name} {manner}."


def look(page: int) -> str:
    """Look at a page."""
    return f"page {page}"


def systems(model):
    return [request.system for request in model.requests]


def test_a_function_writes_the_instructions_from_the_deps():
    model = Script(["Hello, Ann."])
    agent = Agent("desk", greet, model=model, standalone=True)

    assert run_sync(agent, "Hi", deps=Customer("Ann", vip=True)).output == "Hello, Ann."
    assert systems(model) == ["Answer Ann very politely."]


def test_what_it_wrote_is_on_record_before_the_model_is_asked():
    _, records = recorded(Agent("desk", lambda ctx: "Be brief.", model=Script(["Yes."])), "Hi")

    assert lines(records)[5:9] == [
        "1 desk turn started, 1 taken",
        "1/1.i instructions desk started",
        "1/1.i completed: Be brief.",
        "1/1.m1 model started",
    ]


def test_it_is_asked_once_in_a_call_and_again_in_the_next():
    asked = []

    def write(ctx):
        asked.append([message.content for message in ctx.messages])
        return f"Call {len(asked)}."

    model = Script([call("look", page=1), "one", "two"])
    agent = Agent("a", write, tools=[look], model=model, standalone=True, context="continue")

    async def main():
        async with open_run([agent]) as run:
            first = await run.result(await run.post("a", "first"))
            second = await run.result(await run.post("a", "second"))
            return [first.output, second.output]

    assert asyncio.run(main()) == ["one", "two"]
    assert systems(model) == ["Call 1.", "Call 1.", "Call 2."]
    assert asked[0] == ["first"]
    assert asked[1][-1] == "second"
    assert len(asked) == 2


def test_the_same_text_keeps_the_prefix_that_a_provider_has_cached():
    model = Script(["one", "two", "three"])
    texts = iter(["Same.", "Same.", "Other."])
    agent = Agent("a", lambda ctx: next(texts), model=model, context="continue")

    async def main():
        async with open_run([agent]) as run:
            for text in ("1", "2", "3"):
                await run.result(await run.post("a", text))
            return await run.records()

    asked = [
        record.event.detail.prefix
        for record in asyncio.run(main())
        if isinstance(record.event, EffectStarted) and isinstance(record.event.detail, ModelEffect)
    ]
    # The event names the prefix only where it is another one than before.
    assert [bool(each) for each in asked] == [True, False, True]
    assert model.requests[0].tools is model.requests[1].tools


def test_an_async_function_is_awaited():
    async def write(ctx):
        await asyncio.sleep(0)
        return f"You are {ctx.agent} in {ctx.run_id}."

    model = Script(["done"])
    result, _ = recorded(Agent("a", write, model=model, standalone=True), "go")
    assert systems(model) == [f"You are a in {result.run_id}."]


def test_what_the_team_adds_follows_the_text():
    model = Script(["done"])
    team = [Agent("a", lambda ctx: "Ask b."), Agent("b", lambda ctx: "", description="knows")]
    recorded(team[0], "go", agents=team, model=model, extra_instructions="In French.")
    system = systems(model)[0]
    assert system.startswith('You are "a". Ask b.\n\nAvailable agents:\n- b: knows\n\n')
    assert system.endswith("\n\nIn French.")


def test_a_callee_has_its_own_written_when_it_is_called():
    model = Script({"a": [call("call_agent", agent_name="b", message="you?"), "done"], "b": ["me"]})
    seen = []

    def write(ctx):
        seen.append((ctx.agent, [message.content for message in ctx.messages]))
        return f"You are {ctx.agent} of {len(seen)}."

    team = [Agent("a", write, model=model), Agent("b", write, model=model)]
    recorded(team[0], "go", agents=team)
    assert seen == [("a", ["go"]), ("b", ["you?"])]
    assert [system.partition(".")[0] for system in systems(model)] == [
        'You are "a"', 'You are "b"', 'You are "a"',
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("write", "why"),
    [
        (lambda ctx: {}["x"], "KeyError: 'x'"),
        (lambda ctx: None, "a text is expected, not None"),
        (lambda ctx: b"bytes", "a text is expected, not b'bytes'"),
        (lambda: "no parameter", "TypeError: "),
    ],
)
def test_without_instructions_the_agent_fails_and_says_why(write, why):
    model = Script(["never asked"])
    result, records = recorded(Agent("a", write, model=model), "go")

    assert result.outcome == "failed"
    assert result.reason.startswith(f"the instructions of a could not be written: {why}")
    assert model.requests == []
    assert not any(isinstance(getattr(each.event, "detail", None), ModelEffect) for each in records)


def test_the_caller_of_one_that_fails_is_told_and_goes_on():
    model = Script([call("call_agent", agent_name="b", message="you?"), "without b"])

    def broken(ctx):
        raise LookupError("no such customer")

    team = [Agent("a", model=model), Agent("b", broken, model=model)]
    result, _ = recorded(team[0], "go", agents=team)
    assert result.output == "without b"
    assert "no such customer" in model.requests[1].messages[-1].content


def test_the_trace_of_one_that_raises_is_kept():
    def broken(ctx):
        raise LookupError("no such customer")

    with pytest.raises(RunFailed) as failed:
        run_sync(Agent("a", broken, model=Script(["x"])), "go")
    assert isinstance(failed.value.__cause__, LookupError)


def test_a_run_that_goes_on_elsewhere_reads_what_was_written():
    """The function is not asked again for a call that has its instructions."""
    journal, asked = MemoryJournal(), []

    def write(ctx):
        asked.append(ctx.run_id)
        return f"Text {len(asked)}."

    async def hang(request):
        await asyncio.Event().wait()

    async def main():
        first = Script([call("look", page=1), hang])
        agent = Agent("a", write, tools=[look], standalone=True)
        async with open_run([agent], journal=journal, model=first) as run:
            request = await run.post("a", "go")
            async for record in run.events(deltas=False):
                if isinstance(record.event, EffectStarted) and record.event.id == "1/2.m1":
                    break
        second = Script(["done"])
        async with open_run([agent], journal=journal, model=second, run_id=run.run_id) as again:
            return (await again.result(request)).output, systems(second)

    assert asyncio.run(main()) == ("done", ["Text 1."])
    assert len(asked) == 1


def test_a_function_that_a_crash_cut_off_is_asked_again():
    journal, asked = MemoryJournal(), []

    async def main():
        begun = asyncio.Event()

        async def write(ctx):
            asked.append(ctx.run_id)
            if len(asked) == 1:
                begun.set()
                await asyncio.Event().wait()
            return "At last."

        agent = Agent("a", write, standalone=True)
        model = Script(["done"])
        async with open_run([agent], journal=journal, model=model) as run:
            request = await run.post("a", "go")
            await begun.wait()
        async with open_run([agent], journal=journal, model=model, run_id=run.run_id) as again:
            return (await again.result(request)).output, systems(model)

    assert asyncio.run(main()) == ("done", ["At last."])


def test_one_that_never_comes_ends_with_the_deadline():
    async def write(ctx):
        await asyncio.Event().wait()

    result, _ = recorded(
        Agent("a", write, model=Script(["x"])), "go", limits=Limits(timeout_seconds=0.01),
    )  # fmt: skip
    assert (result.outcome, "0.01" in result.reason) == ("limit", True)


def test_a_recorded_run_is_replayed_without_the_function(tmp_path):
    journal = MemoryJournal()
    agent = Agent("desk", greet, model=Script(["Hello."]), standalone=True)

    async def main():
        async with open_run([agent], journal=journal, deps=Customer("Ann")) as run:
            await run.result(await run.post("desk", "Hi"))
        await save_run(journal, run.run_id, tmp_path / "run.json")

    asyncio.run(main())
    check_recorded(tmp_path / "run.json", agent)


def test_calls_that_came_with_the_message_are_done_before_anything_is_written():
    written = []

    def plan(context):
        look_at_3 = ToolCall("1", "look", '{"page":3}')
        return TurnPlan([PlannedCall("b", "x", calls=(look_at_3,))])

    def write(ctx):
        written.append([message.content for message in ctx.messages])
        return "You are b."

    broker = Agent("a", hooks=Hooks(plan_turn=plan, end_turn=lambda context: Return(output="done")))
    b = Agent("b", write, tools=[look], model=Script(["b done"]))
    _, records = recorded(broker, "go", agents=[broker, b])
    started = [each.event.id for each in records if isinstance(each.event, EffectStarted)]
    assert started[-3:] == ["2/1.c1", "2/2.i", "2/2.m1"]
    assert written == [["x", "", "page 3"]]


def test_instructions_that_are_neither_text_nor_function_are_refused():
    with pytest.raises(UserError, match=r"Agent\(instructions=\.\.\.\)"):
        Agent("a", 3)


def test_a_call_of_such_an_agent_names_the_prompt_without_them():
    _, records = recorded(Agent("a", lambda ctx: "Text.", model=Script(["x"])), "go")
    calls = [
        each.event.detail
        for each in records
        if isinstance(each.event, EffectStarted) and isinstance(each.event.detail, CallEffect)
    ]
    ends = [each.event.content for each in records if isinstance(each.event, EffectFinished)]
    assert len(calls[0].digest) == 64
    assert "Text." in ends
