"""Scenarios: agents with rules of their own: plan, ingest, route, decide."""

import asyncio

from antiphon import Hooks, Limits, LoopOptions, Message
from antiphon.models.script import call
from antiphon.values.hooks import Continue, DirectResult, ModelInput, PlannedCall, Return, TurnPlan
from antiphon.values.message import USER, ToolCall
from antiphon.values.model import ChatMessage, Reply
from tests.oracle.stage import scenario
from tests.oracle.tools import agent, never


def raising(*given):
    raise LookupError("no idea")


@scenario
async def a_plan_calls_others(stage):
    """At once, one after the other with calls of its own, an unknown one, by a deadline; then the model."""
    now = stage.clock.now()
    turns = [
        [
            PlannedCall("b", "You?", data={"n": 1}, intent="order", task_id="t"),
            PlannedCall("c", "And you?"),
            PlannedCall("nobody", "?"),
        ],
        [
            PlannedCall("b", calls=(ToolCall("1", "look", '{"where":"there"}'),)),
            PlannedCall("c", forward=(0,), deadline=now - 1),
        ],
        [PlannedCall("d", "x", deadline=now + 5)],
    ]

    def plan(context):
        return (
            TurnPlan(turns[context.turn - 1], {"turn": context.turn}) if context.turn <= len(turns) else None
        )

    def decide(context):
        if context.turn > len(turns):
            return Return(output=context.reply, reason="by rule", run_data={"turns": context.turn})
        return Continue(
            activation_data={
                "ended": [f"{each.agent} {each.outcome} {each.content}" for each in context.results]
            }
        )

    replies = {"a": ["in the end"], "b": ["b1", "b2"], "c": ["c1", "c2"], "d": [never]}
    team = agent("a", hooks=Hooks(plan_turn=plan, end_turn=decide)), agent("b"), agent("c"), agent("d")
    await stage.ask(*team, model=stage.script(replies))


@scenario
async def a_plan_goes_on_without_those_who_ask_people(stage):
    def decide(context):
        back = [f"{each.task_id}: {each.content or each.reason}" for each in context.background_results]
        return (
            Continue(activation_data={"turn": context.turn, "back": back})
            if context.turn < 2 and not back
            else Return(output=str(back))
        )

    def plan(context):
        calls = (
            [PlannedCall("b", "pay", task_id="1"), PlannedCall("b", "talk", task_id="2")]
            if context.turn == 1
            else []
        )
        return TurnPlan(calls)

    def b(request):
        last = request.messages[-1]
        return last.content if last.role == "tool" or last.content == "talk" else call("pay", amount=1)

    team = agent("a", hooks=Hooks(plan_turn=plan, end_turn=decide)), agent("b", model=stage.script(b))
    async with stage.open(*team) as run:
        request = await run.post("a", "go")
        await stage.until(run, "2/1.c1? wait", "1 a turn finished")
        await run.answer("2/1.c1?", "yes")
        await stage.ended(run, request)


@scenario
async def one_message_at_a_time(stage):
    mail = [
        Message("forward", "x", "", text, id=text, priority=9 - number)
        for number, text in enumerate(("one", "two"))
    ]
    one = agent(
        "a",
        hooks=Hooks(
            plan_turn=lambda context: TurnPlan((), {"taken": [each.content for each in context.new_messages]})
        ),
        loop=LoopOptions(batch="one"),
    )
    await stage.ask(one, asking={"inbox": mail})


@scenario
async def what_a_model_is_shown(stage):
    """Other words, a tail, fewer tools; messages to oneself."""

    def ingest(context):
        told = [
            ChatMessage("user", f"{each.source or 'mail'}: {each.content}") for each in context.new_messages
        ]
        again = (
            [Message("forward", USER, "a", "look at me", id="again", source="poster")]
            if context.turn == 1
            else []
        )
        only = ("look",) if context.turn < 3 else None
        return ModelInput(
            told, f"turn {context.turn}", only, {"turn": context.turn}, {"at": context.turn}, again
        )

    replies = [call("look"), [call("send", to="x"), call("look")], call("send", to="x"), "done"]
    await stage.ask(agent("a", model=stage.script(replies), hooks=Hooks(prepare_input=ingest)))
    await stage.ask(agent("a", model=stage.script(["done"]), hooks=Hooks(prepare_input=lambda context: None)))


@scenario
async def what_a_call_becomes(stage):
    """An answer, a failure, a call of an agent, of one that is not there, the end."""

    def route(context, name, arguments):
        found = {
            "answer": DirectResult(
                "answered", activation_data={"last": arguments}, run_data={"notes": [arguments]}
            ),
            "failed": DirectResult("no such thing", "failed"),
            "call": PlannedCall(
                "b", "help with it", data={"asked": arguments}, activation_data={"called": True}
            ),
            "nobody": PlannedCall("nobody", "help"),
            "end": DirectResult("all done", finishes=True),
        }
        return next((answer for key, answer in found.items() if key in arguments), None)

    names = ["answer", "failed", "call", "nobody", "here"]
    replies = {
        "a": [[call("look", where=each) for each in names], call("look", where="end")],
        "b": ["helped"],
    }
    await stage.ask(agent("a", hooks=Hooks(intercept_call=route)), agent("b"), model=stage.script(replies))


@scenario
async def what_follows_a_turn(stage):
    answers = [
        Continue("again"),
        Continue(activation_data={"n": 1}),
        None,
        Return("failed", "by rule", "because", {"n": 2}, {"m": 3}),
    ]
    replies = ["one", "two", call("look"), "four"]
    await stage.ask(
        agent(
            "a", model=stage.script(replies), hooks=Hooks(end_turn=lambda context: answers[context.turn - 1])
        )
    )
    await stage.ask(
        agent(
            "a",
            model=stage.script(["no"] * 9),
            hooks=Hooks(end_turn=lambda context: Continue("go on")),
            loop=LoopOptions(max_reminders=2),
        )
    )
    posted = [
        Message("forward", "a", "a", text, id=text, priority=n) for text, n in (("late", 90), ("early", 5))
    ]
    again = [Continue(post=posted), None]
    await stage.ask(
        agent(
            "a",
            model=stage.script(["one", "two"]),
            hooks=Hooks(end_turn=lambda context: again[context.turn - 1]),
        )
    )


@scenario
async def calls_in_the_background_by_rule(stage):
    """They are waited for; another one takes their place."""

    def route(context, name, arguments):
        return PlannedCall(
            "b",
            arguments,
            background=True,
            cancel_previous="anew" in arguments,
            activation_data={"asked": arguments},
        )

    def decide(context):
        back = [f"{each.agent} {each.outcome} {each.replaced}" for each in context.background_results]
        if context.called_tools:
            return None
        return (
            Continue(wait_for_messages=True, activation_data={"back": back})
            if context.background_agents
            else Return(output=context.reply)
        )

    begun = asyncio.Event()

    async def works(request):
        begun.set()
        return await never()

    async def anew(request):
        await begun.wait()
        return call("look", where="anew")

    replies = [call("look", where="x"), anew, "waits", "ended"]
    lead = agent("a", model=stage.script(replies), hooks=Hooks(intercept_call=route, end_turn=decide))
    await stage.ask(lead, agent("b", model=stage.script([works, "worked"])))


@scenario
async def rules_that_raise(stage):
    for hook in ("plan_turn", "prepare_input", "end_turn", "intercept_call", "authorize"):
        replies = [Reply("so far", (call("look"),), "calls"), "done"]
        await stage.ask(agent("a", model=stage.script(replies), hooks=Hooks(**{hook: raising})))


@scenario
async def brokers_add_no_depth(stage):
    def broker(name, callee):
        return agent(
            name,
            hooks=Hooks(
                plan_turn=lambda context: TurnPlan([PlannedCall(callee, "x")]),
                end_turn=lambda context: Return(output=context.results[0].content),
            ),
        )

    team = broker("a", "b"), broker("b", "c"), agent("c")
    await stage.ask(*team, model=stage.script(["c says"]), limits=Limits(depth=1))


@scenario
async def who_waits_for_people_is_given_more_to_read(stage):
    """A callee that goes on where it was cannot be called twice; what it would be called for is its mail."""

    def plan(context):
        calls = [[PlannedCall("b", "pay", forward=(0,))], [PlannedCall("b", "more", data={"n": 2})], []]
        return TurnPlan(calls[context.turn - 1] if context.turn <= 3 else ())

    def decide(context):
        ended = [f"{each.agent} {each.outcome} {each.reason}" for each in context.results]
        back = [f"{each.agent} {each.outcome} {each.content}" for each in context.background_results]
        if context.turn > 1:
            return Return(output=str(back)) if back else None
        return Continue(activation_data={f"turn {context.turn}": ended})

    lines = [call("pay", amount=1), "paid", "read it"]
    team = (
        agent("a", hooks=Hooks(plan_turn=plan, end_turn=decide)),
        agent("b", model=stage.script(lines), context="continue"),
    )
    async with stage.open(*team) as run:
        request = await run.post("a", "go")
        await stage.until(run, "2/1.c1? wait", "1/2.c1 skipped")
        await run.answer("2/1.c1?", "yes")
        await stage.ended(run, request)


@scenario
async def a_function_writes_the_instructions(stage):
    """From the deps; of a callee too, once in each call; and one that raises."""

    def write(ctx):
        return f"You are {ctx.agent} for {ctx.deps}: {ctx.messages[-1].content}."

    replies = {"a": [call("call_agent", agent_name="b", message="You?"), "in the end"], "b": ["b1"]}
    team = agent("a", instructions=write), agent("b", instructions=write)
    await stage.ask(*team, model=stage.script(replies), deps="Ann")
    await stage.ask(agent("a", instructions=raising), model=stage.script(["never"]))
