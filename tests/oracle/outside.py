"""Scenarios: what people and other processes say to a run: cancel, tell, answer, close."""

import asyncio
import json

from antiphon import Hooks, Limits, Message, tool
from antiphon.errors import UserError
from antiphon.kernel.run.commands import (
    AnswerInput,
    AskAgent,
    CallTool,
    CancelEffect,
    PostMessage,
    encode,
)
from antiphon.kernel.run.open import cancel_run
from antiphon.models.script import call, finish
from antiphon.values.hooks import DirectResult
from antiphon.values.model import Reply
from tests.oracle.stage import scenario
from tests.oracle.tools import agent, never, to


@scenario
async def a_request_is_cancelled(stage):
    replies = {"a": [Reply("half of it", (to("b"), call("look")), "calls")], "b": [[call("hang"), to("c")]],
               "c": [never]}  # fmt: skip
    async with stage.open(agent("a"), agent("b"), agent("c"), model=stage.script(replies)) as run:
        request = await run.post("a", "go")
        await stage.until(run, "3/1.m1 model")
        await run.cancel(request, "not needed any more")
        await stage.ended(run, request)


@scenario
async def parts_are_cancelled(stage):
    """One call, one tool, a question: the agent is told and goes on. Then everything."""
    replies = {"a": [[to("b"), to("b", "too")], call("hang"), to("user", "?"), never],
               "b": [never, finish("b done")]}  # fmt: skip
    async with stage.open(agent("a"), agent("b"), model=stage.script(replies)) as run:
        request = await run.post("a", "go")
        await stage.until(run, "2/1.m1 model", "1/1.c2 completed")
        await run.cancel("1/1.c1", "too slow")
        for place in ("1/2.c1", "1/3.c1"):
            await stage.until(run, f"{place} ")
            await run.cancel(place)
        await stage.until(run, "1/4.m1 model")
        other = await run.post("b", "go")
        await run.cancel("9/9.c9", "not there")
        await run.cancel()
        for each in (request, other):
            await stage.ended(run, each)


@scenario
async def several_requests_at_once(stage):
    held = asyncio.Event()

    async def late(request):
        await held.wait()
        return "a done"

    model = stage.script({"a": [late], "b": ["b done"]})
    async with stage.open(agent("a"), agent("b"), model=model) as run:
        requests = [await run.post(name, "go") for name in "ab"]
        await stage.until(run, "0/2.c1 completed")
        held.set()
        for each in requests:
            await stage.ended(run, each)


@scenario
async def requests_of_one_conversation(stage):
    """They are answered in their order; one that is cancelled meanwhile never begins."""
    held, asked = asyncio.Event(), asyncio.Event()

    async def late(request):
        asked.set()
        await held.wait()
        return "one done"

    model = stage.script({"a": [late, "three done"]})
    async with stage.open(agent("a", context="continue"), model=model) as run:
        first, second, third = [await run.post("a", each) for each in ("one", "two", "three")]
        await asked.wait()
        await run.cancel(second, "not needed")
        await stage.ended(run, second)
        held.set()
        for each in (first, third):
            await stage.ended(run, each)


@scenario
async def told_something_more(stage):
    """It is read in the next turn; at the end what is unread is dead; then there is no such call."""
    held, last = asyncio.Event(), asyncio.Event()

    async def first(request):
        await held.wait()
        return "thought"

    async def second(request):
        await last.wait()
        return finish("end")

    async with stage.open(agent("a", model=stage.script([first, second])), agent("b")) as run:
        request = await run.post("a", "go")
        await stage.until(run, "1/1.m1 model")
        await run.post(request, "one more thing")
        held.set()
        await stage.until(run, "1/2.m1 model")
        mail = Message(
            "forward", "ann", "a", "urgent", priority=-1, topic="news", labels=("private",), data=[1]
        )
        for text in ("too late", mail):
            await run.post(request, text)
        last.set()
        await stage.ended(run, request)


@scenario
async def commands_by_mail(stage):
    """By mail: requests, messages, answers, a cancellation; too late, twice, and what cannot be read."""
    team = (
        agent("a", model=stage.script([to("user", "?"), "a done"])),
        agent("b", model=stage.script([never])),
    )
    async with stage.open(*team, limits=Limits(inbox=1)) as run:

        async def post(key, command, *lines):
            body = command if isinstance(command, bytes) else encode(command)
            await stage.journal.post(run.run_id, key, body)
            await stage.until(run, *lines)

        await post("1", AskAgent("a", "go"), "1/1.c1 wait")
        await post("2", AnswerInput("1/1.c1", "!", by="ann"), "0/1.c1 completed")
        await post("3", AnswerInput("1/1.c1", "again"), "message forward user>1/1.c1")
        await post("4", AskAgent("b", "go"), "2/1.m1 model")
        await post("5", PostMessage("0/2.c1", "one"), 'message forward user>b to 2: "one"')
        await post("6", PostMessage("0/2.c1", "two"), 'message forward user>b to 2: "two"')
        await post("7", PostMessage("0/1.c1", "three"), "message forward user>0/1.c1")
        await post("8", b"no JSON", 'message forward user>user to 0: "" dead')
        await post("9", AskAgent("nobody", "go"), "0/3.c1 ")
        await post("10", CancelEffect("0/2.c1", "enough"), "0/2.c1 cancelled")


@scenario
async def a_person_calls_a_tool(stage):
    """What the agent's hook answers at once, what it refuses, and what is not for a person to call."""

    @tool(effect="read")
    async def plan(what: str) -> str:
        "Plan."
        return ""

    @tool(effect="read")
    async def other(how: str = "") -> str:
        "Do something else."
        return ""

    def intercept(context, name, arguments):
        if name == "other":
            given = json.loads(arguments)["how"]
            found = {"": None, "own": DirectResult("x", activation_data={"a": 1})}
            return found.get(given, DirectResult("x", finishes=True))
        known = context.run_data.get("plan", [])
        return DirectResult(
            f"{len(known)} before", run_data={"plan": [*known, json.loads(arguments)["what"]]}
        )

    one = agent(
        "a", model=stage.script(["a done"]), tools=[plan, other], hooks=Hooks(intercept_call=intercept)
    )
    async with stage.open(one) as run:

        async def called(key, *given):
            command = CallTool(*given, by="ann")
            await stage.journal.post(run.run_id, key, encode(command))
            await stage.until(run, f"0/{key}.c1 ")

        await called("1", "a", "plan", '{"what":"b"}')
        await stage.ended(run, await run.post("a", "go"))
        await called("3", "a", "plan", '{"what":"c"}')
        await called("4", "a", "plan", '{"where":"c"}')
        await called("5", "a", "plan", "no JSON")
        await called("6", "a", "look", "{}")
        await called("7", "b", "plan", '{"what":"d"}')
        for number, how in enumerate(("", "own", "end"), 8):
            await called(str(number), "a", "other", json.dumps({"how": how}))


@scenario
async def closed(stage):
    model = stage.script({"a": ["done"], "b": [never]})
    async with stage.open(agent("a"), agent("b"), model=model) as run:
        await stage.ended(run, await run.post("a", "go"))
        await run.post("b", "go")
        await stage.until(run, "2/1.m1 model")
        await run.close("that was it")
        try:
            await run.post("a", "more")
        except UserError as error:
            stage.note(str(error))


@scenario
async def cancelled_while_nobody_drives_it(stage):
    async with stage.open(agent("a", model=stage.script([call("hang")]))) as run:
        await run.post("a", "go")
        await stage.until(run, "1/1.c1 tool")
        run_id = run.run_id
    await cancel_run(stage.journal, run_id, "nobody wants it")
