"""An agent that has others work in the background, and waits for mail or for their end."""

import asyncio

import pytest
from msgspec.structs import replace

from antiphon import Agent, Hooks, Limits, open_run, tool
from antiphon.journal import open_journal
from antiphon.models.script import Script, call
from antiphon.testing.clock import VirtualClock
from antiphon.testing.invariants import check_run
from antiphon.values.hooks import Continue, DirectResult, ModelInput, PlannedCall, Return
from antiphon.values.model import ChatMessage, Reply, Usage
from tests.transcript import Gate, effects, lines, recorded, shown, until


@tool(effect="read")
async def start(what: str) -> str:
    """Start something."""
    raise RuntimeError("never run: the agent's own rule answers it")


def boss(*lines, seen=None, wait=True):
    """An agent that starts a worker in the background, and waits when it has nothing to do."""

    def ingest(context):
        ended = [f"{each.agent} {each.outcome}: {each.content}" for each in context.background_results]
        told = [*(each.content for each in context.new_messages), *ended]
        return ModelInput([ChatMessage("user", text) for text in told])

    def decide(context):
        if seen is not None:
            seen.append(
                (list(context.background_agents), [each.agent for each in context.background_results])
            )
        if context.called_tools:
            return None
        return Continue(wait_for_messages=wait) if context.background_agents else Return(output=context.reply)

    def route(context, name, arguments):
        if "work" not in arguments:
            return DirectResult("no")
        return PlannedCall(
            "worker", arguments, background=True, cancel_previous="anew" in arguments,
            activation_data={"asked": arguments}, run_data={"asked": arguments},
        )  # fmt: skip

    return Agent(
        "boss",
        tools=[start],
        hooks=Hooks(prepare_input=ingest, intercept_call=route, end_turn=decide),
        model=Script(list(lines)),
    )


def team(*lines, worker=("worked",), **options):
    head = boss(*lines, **options)
    return head, [head, Agent("worker", "You work.", model=Script(list(worker)))]


def test_a_call_in_the_background_ends_the_wait_and_its_end_is_seen(tmp_path):
    seen = []
    head, agents = team(call("start", what="work"), "started", "ended", seen=seen)
    result, records = recorded(head, "go", agents=agents)
    assert result.output == "ended"
    assert shown(head.model.requests[1])[-1] == "tool: Started in the background as 1/1.c1"
    assert shown(head.model.requests[2])[-1] == "user: worker completed: worked"
    assert seen == [(["worker"], []), (["worker"], []), ([], ["worker"])]
    assert effects(records, "c")[1:3] == ["1/1.c1 call worker started", "1/1.c1 completed: worked"]
    assert lines(records).count("1 boss turn finished, more") == 1


def test_a_call_may_take_the_place_of_those_in_the_background():
    """`replaces`: they end first, with all under them; what the rule records comes with the new one."""
    seen, begun, never = [], asyncio.Event(), Gate("never")

    async def working(request):
        begun.set()
        return never

    async def anew(request):
        await begun.wait()
        return call("start", what="work anew")

    head, agents = team(
        call("start", what="work"), call("start", what="work too"), anew, "started", "ended",
        worker=[working, working, "worked"], seen=seen,
    )  # fmt: skip
    result, records = recorded(head, "go", agents=agents)
    assert result.output == "ended"
    order = [line for line in effects(records, "c") if line.startswith("1/")]
    assert order[2:5] == [
        "1/1.c1 cancelled: replaced by 1/3.c1",
        "1/2.c1 cancelled: replaced by 1/3.c1",
        "1/3.c1 call worker started",
    ]
    told = shown(head.model.requests[4])[-3:]
    assert told[-1] == "user: worker completed: worked"
    assert [running for running, _ in seen] == [["worker"], ["worker"] * 2, ["worker"], ["worker"], []]
    changed = [each.event.set for each in records if each.type == "StateChanged"]
    assert changed[-2:] == [{"asked": '{"what":"work anew"}'}] * 2


def test_with_nothing_to_replace_a_call_is_just_begun():
    head, agents = team(call("start", what="work anew"), "started", "ended")
    result, records = recorded(head, "go", agents=agents)
    assert result.output == "ended"
    assert not [line for line in effects(records, "c") if "cancelled" in line]


def test_an_end_in_the_middle_of_a_turn_is_seen_at_its_end():
    seen, gate = [], Gate("ended")

    def worked(request):
        gate.open.set()
        return "worked"

    head, agents = team(call("start", what="work"), gate, worker=[worked], seen=seen)
    result, _ = recorded(head, "go", agents=agents)
    assert (result.output, seen[-1]) == ("ended", ([], ["worker"]))


def test_mail_ends_the_wait():
    gate = Gate("worked")
    head, agents = team(call("start", what="work"), "started", "heard", "ended", worker=[gate])

    async def talk():
        async with open_run(agents) as run:
            asked = await run.post("boss", "go")
            await until(run, "1 boss turn finished")
            await run.post(asked, "how far?")
            await until(run, "1/3.m1 completed: heard")
            gate.open.set()
            return await run.result(asked)

    assert asyncio.run(talk()).output == "ended"
    assert shown(head.model.requests[2])[-1] == "user: how far?"


@pytest.mark.parametrize("limits", [None, Limits(timeout_seconds=60)])
def test_with_nobody_at_work_nobody_is_waited_for(limits):
    """Nor for the timer of a deadline."""
    answers = [Continue(wait_for_messages=True), Return(output="done")]
    agent = Agent(
        "a", limits=limits, hooks=Hooks(end_turn=lambda context: answers[context.turn - 1]),
        model=Script(["one", "two"]),
    )  # fmt: skip
    assert recorded(agent, "go")[0].output == "done"


def test_whoever_returns_takes_the_background_with_it():
    gate = Gate("never")

    def decide(context):
        return None if context.called_tools else Return(output="gone")

    head, agents = team(call("start", what="work"), "bye", worker=[gate])
    head = replace(head, hooks=replace(head.hooks, end_turn=decide))
    result, records = recorded(head, "go", agents=[head, agents[1]])
    assert result.output == "gone"
    assert "1/1.c1 cancelled: the caller ended" in effects(records, "c")


def test_a_wait_goes_on_after_a_restart(tmp_path):
    journal = f"sqlite:///{tmp_path}/runs.db"

    async def main():
        gate = Gate("never")
        head, agents = team(call("start", what="work"), "started", worker=[gate])
        async with open_run(agents, journal=journal) as run:
            asked = await run.post("boss", "go")
            await until(run, "1 boss turn finished")
            run_id = run.run_id
        head, agents = team("ended", worker=["worked"])
        async with open_run(agents, journal=journal, run_id=run_id) as run:
            result = await run.result(asked)
        store = open_journal(journal)
        await check_run(store, run_id)
        await store.close()
        return result.output, shown(head.model.requests[0])[-1]

    assert asyncio.run(main()) == ("ended", "user: worker completed: worked")


def test_a_rule_sees_the_conversation_and_what_it_cost():
    seen = []

    def decide(context):
        seen.append(([each.content for each in context.messages], context.tokens))
        return None if context.turn > 1 else Continue()

    replies = [Reply("one", usage=Usage(7, 3)), Reply("two", usage=Usage(20, 1))]
    recorded(Agent("a", hooks=Hooks(end_turn=decide), model=Script(replies)), "go")
    assert seen == [(["go", "one"], 10), (["go", "one", "two"], 21)]


@pytest.mark.parametrize("beside", ["a timer", "a call in the background"])
def test_a_model_call_that_was_cut_off_is_asked_again_whatever_is_open_beside_it(beside, tmp_path):
    never = Gate("never")
    if beside == "a timer":
        head = Agent("boss", limits=Limits(timeout_seconds=3_600), model=Script([never]))
        agents, again, cut = [head], Script(["ended"]), "1/1.m1 model started"
    else:
        head, agents = team(call("start", what="work"), never, worker=[never])
        again, cut = Script(lambda request: "ended", by="turn"), "1/2.m1 model started"
        agents = [head, replace(agents[1], model=Script([never]))]
    journal = f"sqlite:///{tmp_path}/runs.db"

    async def go():
        async with open_run(agents, journal=journal) as run:
            asked = await run.post("boss", "go")
            await until(run, cut)
            run_id = run.run_id
        resumed = [replace(head, model=again), *agents[1:]]
        async with open_run(resumed, journal=journal, run_id=run_id) as run:
            await until(run, cut.replace("m1 model started", "m2 completed: ended"))
            await run.cancel(asked)
            await run.result(asked)
            return effects(await run.records(), "m")

    said = asyncio.run(go())
    lost = cut.removesuffix("model started")
    assert f"{lost}interrupted: the process stopped during the call" in said
    assert f"{lost.replace('m1', 'm2')}completed: ended" in said


def test_the_time_of_an_agent_that_waits_may_be_over_and_ends_no_turn_a_second_time():
    head, agents = team(call("start", what="work"), "started", worker=[Gate("never")])
    limits = Limits(timeout_seconds=10)
    result, records = recorded(head, "go", agents=agents, clock=VirtualClock(), limits=limits)
    assert (result.outcome, result.reason) == ("limit", "the limit of 10 s is used up")
    ended = [line for line in lines(records) if line.startswith("1 boss turn finished")]
    assert ended == ["1 boss turn finished, more", "1 boss turn finished"]
