"""Files that tools attach: they come with the result of the request, and no model is shown them."""

import asyncio
from typing import Any

import pytest

from antiphon import Agent, Attachment, Limits, Result, RunFailed, ToolContext, open_run, run, tool
from antiphon.journal.memory import MemoryJournal
from antiphon.kernel.facts.events import EffectFinished
from antiphon.models.script import Script, call
from antiphon.values.tool import Done
from antiphon.values.tool.definition import MAX_FILE_DATA
from antiphon.view import Dialogue, connect


def chart(name: str) -> Attachment:
    return Attachment("image/png", name.encode(), name=name)


@tool(effect="read")
async def draw(ctx: ToolContext, name: str, then: str = "drawn") -> Any:
    """Draw a chart."""
    ctx.attach(chart(name))
    if then == "fail":
        raise ValueError("no paper")
    if then == "end":
        raise Done(f"{name} is the last one")
    return [then, chart("shown")] if then == "show" else then


@tool(effect="read")
def draw_in_a_thread(ctx: ToolContext, name: str) -> str:
    """Draw a chart."""
    ctx.attach(chart(name))
    return "drawn"


def names(result: Result) -> list[str]:
    return [each.name for each in result.attachments]


def asked(*replies: Any, agents: Any = (), **options: Any) -> tuple[Result, Script]:
    model = Script(list(replies), by="turn")
    entry = Agent("a", tools=[draw, draw_in_a_thread], model=model)
    try:
        return asyncio.run(run(entry, "Draw", agents=[entry, *agents], **options)), model
    except RunFailed as failed:
        return failed.result, model


def test_a_plain_agent_returns_files_in_the_order_of_its_calls() -> None:
    both = [call("draw", name="one"), call("draw_in_a_thread", name="two")]
    result, model = asked(both, call("draw", name="three"), "Here they are.")
    assert (result.output, names(result)) == ("Here they are.", ["one", "two", "three"])
    assert result.attachments[0] == chart("one")
    assert not any(each.attachments for each in model.requests[-1].messages)


def test_what_the_model_sees_and_what_comes_with_the_result_are_two_things() -> None:
    result, model = asked(call("draw", name="kept", then="show"), "Seen.")
    assert names(result) == ["kept"]
    assert [each.name for each in model.requests[-1].messages[-1].attachments] == ["shown"]


def test_a_call_that_failed_gives_no_file() -> None:
    result, _ = asked(call("draw", name="half", then="fail"), call("draw", name="whole"), "One.")
    assert names(result) == ["whole"]


def test_files_come_with_an_answer_that_a_tool_ends() -> None:
    result, _ = asked(call("draw", name="one"), call("draw", name="last", then="end"))
    assert (result.output, names(result)) == ("last is the last one", ["one", "last"])


def test_files_come_with_work_that_a_limit_ends() -> None:
    result, _ = asked(call("draw", name="one"), "more", limits=Limits(turns=1))
    assert (result.outcome, names(result)) == ("limit", ["one"])


@pytest.mark.parametrize("how", ["called", "handed over", "in the background"])
def test_files_of_an_agent_that_is_called_come_with_the_request(how: str) -> None:
    """And the caller's model is not shown them, however the result reaches it."""
    below = Agent("b", tools=[draw], model=Script([call("draw", name="below"), "Drawn."], by="turn"))
    to = {"called": {}, "handed over": {"handoff": True}, "in the background": {"background": True}}[how]
    replies = [call("draw", name="above"), call("call_agent", agent_name="b", message="Draw", **to)]
    if how == "in the background":
        replies.append(call("get_result", call_id="1/2.c1"))
    result, model = asked(*replies, "Both.", agents=[below], background=how == "in the background")
    assert names(result) == ["above", "below"]
    assert not any(each.attachments for request in model.requests for each in request.messages)


def test_each_request_of_a_conversation_has_its_own_files() -> None:
    async def scene() -> list[list[str]]:
        lines = [call("draw", name="one"), "First.", "Second."]
        agent = Agent("a", tools=[draw], model=Script(lines), context="continue")
        async with open_run([agent]) as opened:
            return [names(await opened.result(await opened.post("a", "Draw"))) for _ in range(2)]

    assert asyncio.run(scene()) == [["one"], []]


def test_a_run_that_is_cancelled_gives_the_files_so_far() -> None:
    async def scene() -> list[str]:
        started = asyncio.Event()

        @tool(effect="read")
        async def wait() -> None:
            """Wait."""
            started.set()
            await asyncio.Event().wait()

        agent = Agent("a", tools=[draw, wait], model=Script([call("draw", name="one"), call("wait")]))
        async with open_run([agent]) as opened:
            call_id = await opened.post("a", "Draw")
            await started.wait()
            await opened.cancel(call_id)
            return names(await opened.result(call_id))

    assert asyncio.run(scene()) == ["one"]


def test_files_are_on_record_and_in_every_reading() -> None:
    """A run that is opened again, by whomever, gives the same files; large ones are stored once."""

    async def scene() -> None:
        journal, large = MemoryJournal(), Attachment("text/plain", b"x" * 10_000, name="large")

        @tool(effect="read")
        async def write(ctx: ToolContext) -> str:
            """Write."""
            ctx.attach(large)
            return "written"

        agent = Agent("a", tools=[write], model=Script([call("write"), "Done."]))
        async with open_run([agent], journal=journal, run_id="r", create=True) as opened:
            await opened.result(await opened.post("a", "Write"))
        async with open_run([agent], journal=journal, run_id="r") as opened:
            assert [each.attachments async for each in opened.results()] == [(large,)]
        async with connect(journal, "r") as connection:
            tree = await connection.tree()
            assert tree.effects["0/1.c1"].attachments == tree.effects["1/1.c1"].attachments == (large,)
            assert Dialogue(tree).requests["0/1.c1"].files == (large,)
            ends = [each.event for each in await connection.records() if type(each.event) is EffectFinished]
            assert [each.id for each in ends if each.files] == ["1/1.c1", "0/1.c1"]
        rows = await journal.read("r")
        assert sum(len(row.body) for row in rows) < 10_000

    asyncio.run(scene())


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (b"bytes", "ctx.attach takes an Attachment; got b'bytes'"),
        (Attachment("text/plain", "x" * (MAX_FILE_DATA + 1)), "a call attaches at most 100 files of"),
    ],
    ids=["no attachment", "too large"],
)
def test_what_cannot_be_attached(given: Any, said: str) -> None:
    context = ToolContext()
    with pytest.raises(Exception, match=said):
        context.attach(given)
    assert not context.attached


def test_no_more_than_so_many_files() -> None:
    context = ToolContext()
    for number in range(100):
        context.attach(chart(str(number)))
    with pytest.raises(Exception, match="at most 100 files"):
        context.attach(chart("one more"))
