"""Scenarios: agents that call each other, and people."""

import asyncio
from functools import partial

from antiphon import Attachment, Hooks, Limits, ToolContext, tool
from antiphon.errors import EffectFailed
from antiphon.kernel.run.commands import AnswerInput, encode
from antiphon.models.script import call, finish
from antiphon.values.message import ToolCall
from tests.oracle.stage import scenario
from tests.oracle.tools import agent, look, never, to

FETCH = call("get_result", call_id="1/1.c1")


@scenario
async def nested_calls(stage):
    """A calls B, which calls A again, which calls nobody."""
    inner = {"a": [to("b", "one"), finish("inner"), "end"], "b": [to("a", "two"), finish("b done")]}
    await stage.ask(agent("a"), agent("b"), model=stage.script(inner))


@scenario
async def parallel_calls_one_of_which_fails(stage):
    replies = {"a": [[to("b"), to("c"), to("nobody"), call("look")], "end"], "b": ["b done"]}
    await stage.ask(agent("a"), agent("b"), agent("c"), model=stage.script(replies))


@scenario
async def background_calls(stage):
    """Told something meanwhile, waited for, fetched twice; unknown ones; one that ends with its caller."""
    held = asyncio.Event()

    async def b(request):
        await held.wait()
        return call("look")

    def c(request):
        held.set()
        return FETCH

    tell = call("send_message", call_id="1/1.c1", message="and be quick")
    lost = [call("get_result", call_id="9/9.c9"), call("send_message", call_id="9/9.c9", message="?")]
    replies = {
        "a": [
            [to("b", background=True), to("c", background=True)],
            tell,
            c,
            FETCH,
            lost,
            tell,
            finish("end"),
        ],
        "b": [b, finish("b done")],
        "c": [never],
    }
    await stage.ask(agent("a"), agent("b"), agent("c"), model=stage.script(replies), background=True)


@scenario
async def a_full_inbox(stage):
    tell = call("send_message", call_id="1/1.c1", message="more")
    replies = {"a": [to("b", background=True), [tell, tell], finish("end")], "b": [never]}
    options = {"background": True, "limits": Limits(inbox=1)}
    await stage.ask(agent("a"), agent("b"), model=stage.script(replies), **options)


@scenario
async def handed_over(stage):
    """B answers in A's place; and one that fails in A's place."""
    for b in (["b done"], []):
        replies = {"a": [[to("b", handoff=True), call("look")], "went on"], "b": b}
        await stage.ask(agent("a"), agent("b"), model=stage.script(replies))


@tool(effect="read")
async def draw(ctx: ToolContext, name: str) -> str:
    """Draw."""
    ctx.attach(Attachment("image/svg+xml", name.encode(), name=name))
    return "drawn"


@scenario
async def files_for_whoever_asked(stage):
    """Attached by an agent and by those that it calls, waits for later, and hands over to."""
    replies = {
        "a": [call("draw", name="one"), [to("b"), to("b", background=True)],
              call("get_result", call_id="1/2.c2"), to("c", handoff=True)],
        "b": [call("draw", name="two"), "b done"] * 2,
        "c": [call("draw", name="three"), "c done"],
    }  # fmt: skip
    team = [agent(name, tools=[draw]) for name in "abc"]
    await stage.ask(*team, model=stage.script(replies), background=True)


@scenario
async def whom_an_agent_may_call(stage):
    replies = {"a": [[to("c"), to("user"), to("b")], "end"], "b": [to("a"), "b done"]}
    team = [agent("a", can_call=["b"]), agent("b", can_call=[]), agent("c")]
    await stage.ask(*team, model=stage.script(replies), interactive=True)
    await stage.ask(agent("a", standalone=True), agent("b"), model=stage.script(["alone"]))
    await stage.ask(agent("a"), agent("b"), model=stage.script(["done"]), disabled_tools=["call_agent"])


@scenario
async def a_question_to_the_user(stage):
    replies = {
        "a": [[to("user", "Which one?"), call("look")], to("b"), "end"],
        "b": [to("user", "Sure?"), "b done"],
    }
    async with stage.open(agent("a"), agent("b"), model=stage.script(replies)) as run:
        request = await run.post("a", "go")
        for place, answer in (("1/1.c1", "the red one"), ("2/1.c1", "quite")):
            await stage.until(run, f"{place} wait")
            await run.answer(place, answer, by="ann")
        await stage.ended(run, request)
    await stage.ask(agent("a"), agent("b"), model=stage.script({"a": [to("user", "Anybody?"), "end"]}))


@scenario
async def questions_with_form(stage):
    """A choice and a schema, answered wrongly by mail first; one that nobody answers in time; three that are
    none."""
    asks = partial(call, "call_agent", agent_name="user", message="Which?")
    age = {"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"]}
    replies = [
        [asks(options=["red", "blue"]), asks(schema=age)],
        asks(timeout_seconds=60),
        [asks(options=["one"], schema=age), asks(schema={"pattern": "x"}),
         call("call_agent", agent_name="b", message="Which?", options=["one"])],
        "end",
    ]  # fmt: skip
    team = agent("a", can_call=("user", "b")), agent("b")
    async with stage.open(*team, model=stage.script({"a": replies})) as run:
        request = await run.post("a", "go")
        await stage.until(run, "1/1.c2 wait")
        for number, (place, wrong) in enumerate((("1/1.c1", "green"), ("1/1.c2", '{"age": "old"}')), 1):
            await stage.journal.post(run.run_id, str(number), encode(AnswerInput(place, wrong)))
            await stage.until(run, f"message forward user>{place}")
        await run.answer("1/1.c1", "blue", by="ann")
        await run.answer("1/1.c2", ' {"age": 3} ', by="ann")
        await stage.ended(run, request)


@scenario
async def nobody_answers_in_time(stage):
    """An approval, a question of an action, and a limit: each is told, and goes on without."""

    async def act(ctx):
        try:
            return await ctx.ask_user("Which?", options=("red", "blue"), timeout_seconds=30)
        except EffectFailed as error:
            return f"{error.outcome}: {error}"

    limits = Limits(answer_seconds=60, turns=2, on_breach="ask")
    a = agent("a", model=stage.script([call("pay", amount=1), to("b"), "end"]))
    b = agent("b", hooks=Hooks(act=act))
    async with stage.open(a, b, limits=limits) as run:
        await stage.ended(run, await run.post("a", "go"))


@scenario
async def a_callee_goes_on_where_it_was(stage):
    a = [to("b", "one"), [to("b", "two"), to("b", "three")], "end", to("b", "four"), "end"]
    replies = {"a": [*a, "<summary>so far</summary>"], "b": [call("look"), "b1", "b2", "b3", "b4"]}
    team = agent("a", context="continue"), agent("b", context="continue")
    async with stage.open(*team, model=stage.script(replies)) as run:
        for text in ("go", "again"):
            await stage.ended(run, await run.post("a", text))
        for intent, text in (("history", '[{"role":"user","content":"anew"}]'), ("compact", "")):
            await stage.ended(run, await run.post("a", text, intent=intent))


@scenario
async def more_is_said_to_some(stage):
    """Instructions for one agent, for the entry and for all."""
    for options in ({"extra_instructions": {"b": "Be brief."}},
                    {"extra_instructions": "Hurry."},
                    {"extra_instructions": "Hurry.", "extra_scope": "all"}):  # fmt: skip
        replies = {"a": [to("b"), "end"], "b": ["b done"]}
        await stage.ask(
            agent("a", tools=[look]), agent("b", tools=[]), model=stage.script(replies), **options
        )


@scenario
async def calls_of_the_kernel_asked_wrongly(stage):
    """Arguments that do not fit, that are not JSON, that only users may give; a call that is off."""
    named = {
        "call_agent": ["{}", '{"agent_name": "b", "message": 3}', "{'agent_name': 'b'}",
                       '{"agent_name": "b", "message": "m", "data": {"forged": true}, "until": 1}'],
        "get_result": ["{}"], "send_message": ['{"call_id": "1/1.c1"}'], "finish": ['{"message": 3}'],
    }  # fmt: skip
    wrong = [
        ToolCall(f"{name}{n}", name, text) for name, texts in named.items() for n, text in enumerate(texts)
    ]
    replies = {"a": [wrong[:-1], wrong[-1], "end"], "b": ["b done"] * 3}
    await stage.ask(agent("a"), agent("b"), model=stage.script(replies), background=True)
    off = [to("b", background=True), call("get_result", call_id="1/1.c1"), call("finish", message="x")]
    replies = {"a": [off[:2], off[2]], "b": []}
    await stage.ask(agent("a"), agent("b"), model=stage.script(replies))
    replies = {"a": [[to("b")], "end"], "b": []}
    await stage.ask(agent("a"), agent("b"), model=stage.script(replies), disabled_tools=["call_agent"])
