"""Scenarios: one agent and its tools."""

import asyncio
from contextlib import suppress

from msgspec import Struct

from antiphon import Hooks, Limits, LoopOptions, Policy, ToolContext, UserError, tool
from antiphon.kernel.run.commands import AnswerInput, encode
from antiphon.models.script import call, finish
from antiphon.tools import grep_output, read_output
from antiphon.values.hooks import Continue
from antiphon.values.limits import OutputLimits
from antiphon.values.message import Attachment, ToolCall, ToolResult
from antiphon.values.model import Reply
from antiphon.values.policy import Grant, StandingRule
from tests.oracle.stage import scenario
from tests.oracle.tools import agent, look, never

LOOK, SEND = call("look", where="x"), call("send", to="x")


@scenario
async def tool_loop(stage):
    model = stage.script([call("look"), Reply("hm", (SEND,), "calls"), "done"])
    await stage.ask(agent("a", model=model))


@scenario
async def tools_at_once(stage):
    """Three of a reply run at once where two may, and one fails; their results keep their order."""
    first, second = asyncio.Event(), asyncio.Event()

    @tool(effect="read")
    async def slow() -> str:
        """Take longest."""
        await second.wait()
        return "slow"

    @tool(effect="read")
    async def quick() -> str:
        """Be quick."""
        first.set()
        return "quick"

    @tool
    async def late() -> str:
        """Begin late."""
        await first.wait()
        second.set()
        raise ValueError("late")

    model = stage.script([[call("slow"), call("quick"), call("late")], "done"])
    await stage.ask(
        agent("a", tools=[slow, quick, late], model=model, loop=LoopOptions(max_parallel_calls=2))
    )


@scenario
async def tools_one_by_one(stage):
    for mode in ("sequential", "single"):
        model = stage.script([[SEND, LOOK], "done"])
        await stage.ask(agent("a", model=model, tool_execution=mode))


@scenario
async def approvals(stage):
    """Yes, no, edited, edited wrongly before it is edited well, and for good; a sibling does not wait."""
    edited = [call("send", to="somewhere"), call("send", to="wrong")]
    replies = [[SEND, LOOK], SEND, *edited, call("pay", amount=1), call("pay", amount=2), "done"]
    answers = {
        "1/1.c1?": ("yes", ""), "1/2.c1?": ("no", ""), "1/3.c1?": ("yes", '{"to":"elsewhere"}'),
        "1/4.c1?": ("yes", '{ "to" : "right" }'), "1/5.c1?": ("always", ""),
    }  # fmt: skip
    async with stage.open(agent("a", model=stage.script(replies)), policy=Policy("guarded")) as run:
        request = await run.post("a", "go")
        for place, (answer, arguments) in answers.items():
            await stage.until(run, f"{place} wait")
            if place == "1/4.c1?":
                with suppress(UserError):
                    await run.answer(place, "yes", arguments='{"whom":1}')
                await stage.journal.post(run.run_id, "1", encode(AnswerInput(place, "yes", '{"whom":1}')))
                await stage.until(run, f"message forward user>{place}")
            await run.answer(place, answer, arguments=arguments, by="ann")
        await stage.ended(run, request)


@scenario
async def a_grant_reaches_so_far(stage):
    replies = [call("pay", amount=1), call("pay", amount=1), call("pay", amount=2), "done"]
    async with stage.open(agent("a", model=stage.script(replies))) as run:
        request = await run.post("a", "go")
        await stage.until(run, "1/1.c1? wait")
        grant = Grant((("amount", "1"),), "a")
        await run.answer("1/1.c1?", "always", grant=grant)
        await stage.until(run, "1/3.c1? wait")
        await run.answer("1/3.c1?", "no")
        await stage.ended(run, request)


@scenario
async def rules_kept_beside_the_runs(stage):
    """One allows, one denies, one asks; of several the strictest word counts, and the record names it."""
    rules = [
        StandingRule("r1", "project", "shop", "p*", "allow", author="ann"),
        StandingRule("r2", "owner", "ann", "pay", "deny", Grant((("amount", "9*"),)), author="bob"),
        StandingRule("r3", "owner", "ann", "look", "ask"),
    ]
    replies = [[call("pay", amount=1), call("pay", amount=90), LOOK, SEND], "done"]
    await stage.ask(agent("a", model=stage.script(replies)), rules=rules, policy=Policy("strict"))


@scenario
async def policies(stage):
    """Denied by name, by preset, by an agent's own rule, and for want of somebody to ask."""
    both = [[SEND, LOOK], "done"]
    for policy in (
        Policy("guarded"),
        Policy("strict", allow=("lo*",)),
        Policy(deny=("send",), ask=("look",)),
    ):
        await stage.ask(agent("a", model=stage.script(both)), policy=policy)
    inner = agent("b", model=stage.script([SEND, "b done"]))
    lead = agent("a", model=stage.script([call("call_agent", agent_name="b", message="m"), "done"]))
    await stage.ask(agent("a", model=lead.model, policy=Policy(deny=("send",))), inner)


@scenario
async def judges(stage):
    """An agent's own rule allows, denies and stops the turn."""

    def judge(tool, arguments):
        found = {"x": "allow", "y": ("deny", "not there"), "z": ("stop", "enough of it")}
        return next((verdict for where, verdict in found.items() if f'"{where}"' in arguments), None)

    calls = [
        [call("send", to=each) for each in "xy"],
        call("send", to="other"),
        call("send", to="z"),
        "never",
    ]
    await stage.ask(
        agent("a", model=stage.script(calls), hooks=Hooks(authorize=judge)), policy=Policy("strict")
    )


@scenario
async def wrong_arguments(stage):
    texts = [
        '{"where": "x", "deep": 1}',
        '{"far": "very"}',
        "",
        "null",
        "[1]",
        '{"where": "x',
        "{'where': 'x'}",
    ]
    reading = [ToolCall(f"r{n}", "look", text) for n, text in enumerate(texts)]
    acting = [ToolCall(f"s{n}", "send", text) for n, text in enumerate(["{'to': 'x'}", "{}", '{"to": null}'])]
    await stage.ask(agent("a", model=stage.script([reading, acting, "done"])))


@scenario
async def unknown_names(stage):
    replies = [[call("nothing"), call("b"), call("call_agent", agent_name="look", message="m")], "done"]
    a, b = agent("a", model=stage.script(replies)), agent("b", model=stage.script([]))
    await stage.ask(a, b)


@scenario
async def finish_wins_or_in_order(stage):
    for order in ("wins", "in_order"):
        model = stage.script([[LOOK, finish("the end"), SEND]])
        await stage.ask(agent("a", model=model, loop=LoopOptions(finish_mode=order)), agent("b"))
    await stage.ask(agent("a", model=stage.script([Reply("so far", (finish(),), "calls")])), agent("b"))


@scenario
async def a_tool_that_ends_the_task(stage):
    @tool(finishes=True)
    async def hand_in(text: str) -> ToolResult:
        """Hand in."""
        return ToolResult(text, (Attachment("text/plain", "eA==", name="x"),), is_error=text == "wrong")

    model = stage.script([[call("hand_in", text="wrong")], [call("hand_in", text="right"), LOOK]])
    await stage.ask(agent("a", tools=[hand_in, look], model=model, completion="finish"))


@scenario
async def reminded_to_finish(stage):
    one = agent("a", model=stage.script(["hm", "hm", LOOK, "hm", finish("done")]), completion="finish")
    other = agent("a", model=stage.script(["hm"] * 3), completion="finish", loop=LoopOptions(max_reminders=2))
    for each in (one, other):
        await stage.ask(each, agent("b"))


@scenario
async def incomplete_work(stage):
    def left(context):
        return None if any("written" in each.content for each in context.messages) else Continue("write it")

    def broken(context):
        raise LookupError("no list")

    await stage.ask(agent("a", model=stage.script(["thought", "written"]), hooks=Hooks(end_turn=left)))
    await stage.ask(agent("a", model=stage.script(["thought"]), hooks=Hooks(end_turn=broken)))


class Sum(Struct):
    total: int


@scenario
async def typed_output(stage):
    await stage.ask(
        agent("a", model=stage.script(["about 3", '{"total": "3"}', '{"total": 3}']), output_type=Sum)
    )
    await stage.ask(
        agent("a", model=stage.script(["3", "4"]), output_type=Sum, loop=LoopOptions(max_reminders=1))
    )


@scenario
async def large_results_are_cut_and_trimmed(stage):
    @tool(effect="read")
    async def much(what: str) -> str:
        """Say much."""
        return "\n".join(f"{what} {number}" for number in range(20))

    reading = call("read_output", handle="1/1.c1", offset=19)
    finding = call("grep_output", handle="1/2.c1", pattern="17")
    replies = [call("much", what="one"), call("much", what="two"), reading, finding, "done"]
    tools = [much, read_output, grep_output]
    await stage.ask(
        agent("a", tools=tools, model=stage.script(replies)), output_limits=OutputLimits(message=60, total=60)
    )


@scenario
async def a_tool_out_of_time(stage):
    @tool(effect="once", timeout=0.01)
    async def slow(ctx: ToolContext) -> str:
        """Be slow."""
        return await never()

    @tool(effect="read", timeout=0.01)
    async def slow_read() -> str:
        """Be slow, and change nothing."""
        return await never()

    await stage.ask(
        agent("a", tools=[slow, slow_read], model=stage.script([[call("slow"), call("slow_read")], "done"]))
    )


@scenario
async def examples_attachments_and_given_calls(stage):
    """What comes with a request: files, data, a thread, and calls that are done before the model is asked."""
    from antiphon.values.model import Example

    one = agent(
        "a", model=stage.script(["done"]), examples=(Example("look there", "look", {"where": "there"}),)
    )
    picture = Attachment("image/png", url="https://example.org/x.png")
    asking = {"attachments": [picture], "data": {"n": 1}, "task_id": "t1", "intent": "query",
              "calls": [ToolCall("g1", "look", '{"where":"given"}')], "limits": Limits(turns=3)}  # fmt: skip
    await stage.ask(one, asking=asking)
