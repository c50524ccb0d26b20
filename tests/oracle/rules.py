"""Scenarios: agents with rules of their own: plan, ingest, route, decide."""

import asyncio

from antiphon import Limits, Message
from antiphon.models.script import call
from antiphon.values.hooks import Answer, Call, Continue, Do, Return, Shown
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
            Call("b", "You?", data={"n": 1}, intent="order", task_id="t"),
            Call("c", "And you?"),
            Call("nobody", "?"),
        ],
        [Call("b", calls=(ToolCall("1", "look", '{"where":"there"}'),)), Call("c", take=(0,), until=now - 1)],
        [Call("d", "x", until=now + 5)],
    ]

    def plan(moment):
        return Do(turns[moment.turn - 1], {"turn": moment.turn}) if moment.turn <= len(turns) else None

    def decide(moment):
        if moment.turn > len(turns):
            return Return(value=moment.said, why="by rule", team={"turns": moment.turn})
        return Continue(
            set={"ended": [f"{each.agent} {each.outcome} {each.content}" for each in moment.ended]}
        )

    replies = {"a": ["in the end"], "b": ["b1", "b2"], "c": ["c1", "c2"], "d": [never]}
    team = agent("a", plan=plan, decide=decide), agent("b"), agent("c"), agent("d")
    await stage.ask(*team, model=stage.script(replies))


@scenario
async def a_plan_goes_on_without_those_who_ask_people(stage):
    def decide(moment):
        back = [f"{each.task_id}: {each.content or each.why}" for each in moment.returned]
        return (
            Continue(set={"turn": moment.turn, "back": back})
            if moment.turn < 2 and not back
            else Return(value=str(back))
        )

    def plan(moment):
        calls = [Call("b", "pay", task_id="1"), Call("b", "talk", task_id="2")] if moment.turn == 1 else []
        return Do(calls)

    def b(request):
        last = request.messages[-1]
        return last.content if last.role == "tool" or last.content == "talk" else call("pay", amount=1)

    team = agent("a", plan=plan, decide=decide), agent("b", model=stage.script(b))
    async with stage.open(*team) as conversation:
        request = await conversation.post("a", "go")
        await stage.until(conversation, "2/1.c1? wait", "1 a turn finished")
        await conversation.answer("2/1.c1?", "yes")
        await stage.ended(conversation, request)


@scenario
async def one_message_at_a_time(stage):
    mail = [
        Message("forward", "x", "", text, id=text, priority=9 - number)
        for number, text in enumerate(("one", "two"))
    ]
    one = agent(
        "a", plan=lambda moment: Do((), {"taken": [each.content for each in moment.taken]}), consume="one"
    )
    await stage.ask(one, asking={"mail": mail})


@scenario
async def what_a_model_is_shown(stage):
    """Other words, a tail, fewer tools; messages to oneself."""

    def ingest(moment):
        told = [ChatMessage("user", f"{each.source or 'mail'}: {each.content}") for each in moment.taken]
        again = (
            [Message("forward", USER, "a", "look at me", id="again", source="poster")]
            if moment.turn == 1
            else []
        )
        only = ("look",) if moment.turn < 3 else None
        return Shown(told, f"turn {moment.turn}", only, {"turn": moment.turn}, {"at": moment.turn}, again)

    replies = [call("look"), [call("send", to="x"), call("look")], call("send", to="x"), "done"]
    await stage.ask(agent("a", model=stage.script(replies), ingest=ingest))
    await stage.ask(agent("a", model=stage.script(["done"]), ingest=lambda moment: None))


@scenario
async def what_a_call_becomes(stage):
    """An answer, a failure, a call of an agent, of one that is not there, the end."""

    def route(moment, name, arguments):
        found = {
            "answer": Answer("answered", set={"last": arguments}, team={"notes": [arguments]}),
            "failed": Answer("no such thing", "failed"),
            "call": Call("b", "help with it", data={"asked": arguments}, set={"called": True}),
            "nobody": Call("nobody", "help"),
            "end": Answer("all done", ends=True),
        }
        return next((answer for key, answer in found.items() if key in arguments), None)

    names = ["answer", "failed", "call", "nobody", "here"]
    replies = {
        "a": [[call("look", where=each) for each in names], call("look", where="end")],
        "b": ["helped"],
    }
    await stage.ask(agent("a", route=route), agent("b"), model=stage.script(replies))


@scenario
async def what_follows_a_turn(stage):
    answers = [
        Continue("again"),
        Continue(set={"n": 1}),
        None,
        Return("failed", "by rule", "because", {"n": 2}, {"m": 3}),
    ]
    replies = ["one", "two", call("look"), "four"]
    await stage.ask(agent("a", model=stage.script(replies), decide=lambda moment: answers[moment.turn - 1]))
    await stage.ask(
        agent("a", model=stage.script(["no"] * 9), decide=lambda moment: Continue("go on"), nudges=2)
    )
    posted = [
        Message("forward", "a", "a", text, id=text, priority=n) for text, n in (("late", 90), ("early", 5))
    ]
    again = [Continue(post=posted), None]
    await stage.ask(
        agent("a", model=stage.script(["one", "two"]), decide=lambda moment: again[moment.turn - 1])
    )


@scenario
async def calls_in_the_background_by_rule(stage):
    """They are waited for; another one takes their place."""

    def route(moment, name, arguments):
        return Call("b", arguments, background=True, replaces="anew" in arguments, set={"asked": arguments})

    def decide(moment):
        back = [f"{each.agent} {each.outcome} {each.replaced}" for each in moment.returned]
        if moment.called:
            return None
        return Continue(wait=True, set={"back": back}) if moment.running else Return(value=moment.said)

    begun = asyncio.Event()

    async def works(request):
        begun.set()
        return await never()

    async def anew(request):
        await begun.wait()
        return call("look", where="anew")

    replies = [call("look", where="x"), anew, "waits", "ended"]
    lead = agent("a", model=stage.script(replies), route=route, decide=decide)
    await stage.ask(lead, agent("b", model=stage.script([works, "worked"])))


@scenario
async def rules_that_raise(stage):
    for hook in ("plan", "ingest", "decide", "route", "judge"):
        replies = [Reply("so far", (call("look"),), "calls"), "done"]
        await stage.ask(agent("a", model=stage.script(replies), **{hook: raising}))


@scenario
async def brokers_add_no_depth(stage):
    def broker(name, callee):
        return agent(
            name,
            plan=lambda moment: Do([Call(callee, "x")]),
            decide=lambda moment: Return(value=moment.ended[0].content),
        )

    team = broker("a", "b"), broker("b", "c"), agent("c")
    await stage.ask(*team, model=stage.script(["c says"]), limits=Limits(depth=1))


@scenario
async def who_waits_for_people_is_given_more_to_read(stage):
    """A callee that goes on where it was cannot be called twice; what it would be called for is its mail."""

    def plan(moment):
        calls = [[Call("b", "pay", take=(0,))], [Call("b", "more", data={"n": 2})], []]
        return Do(calls[moment.turn - 1] if moment.turn <= 3 else ())

    def decide(moment):
        ended = [f"{each.agent} {each.outcome} {each.why}" for each in moment.ended]
        back = [f"{each.agent} {each.outcome} {each.content}" for each in moment.returned]
        if moment.turn > 1:
            return Return(value=str(back)) if back else None
        return Continue(set={f"turn {moment.turn}": ended})

    lines = [call("pay", amount=1), "paid", "read it"]
    team = agent("a", plan=plan, decide=decide), agent("b", model=stage.script(lines), context="continue")
    async with stage.open(*team) as conversation:
        request = await conversation.post("a", "go")
        await stage.until(conversation, "2/1.c1? wait", "1/2.c1 skipped")
        await conversation.answer("2/1.c1?", "yes")
        await stage.ended(conversation, request)
