"""A request that brings what was said before: the agent's conversation begins with it, or it is refused."""

import asyncio

import pytest

from antiphon import Agent, Hooks, RunFailed, UserError, open_run
from antiphon.journal.memory import MemoryJournal
from antiphon.models.script import Script
from antiphon.testing.invariants import check_run
from antiphon.values.message import ToolCall
from antiphon.values.model import ChatMessage
from antiphon.view import connect, request_of

BEFORE = (
    ChatMessage("user", "What is in stock?"),
    ChatMessage("assistant", "", (ToolCall("c1", "stock", "{}"),)),
    ChatMessage("tool", "tea", call_id="c1", name="stock", ref="1/1.c1"),
)


def clerk(asked=None, context="fresh", **options):
    def told(request):
        (asked if asked is not None else []).append([(each.role, each.content) for each in request.messages])
        return "Tea."

    return Agent("clerk", context=context, model=Script([told, told]), **options)


@pytest.mark.parametrize("context", ["fresh", "continue"])
def test_the_agent_sees_it_before_the_request_also_where_it_ends_with_a_result(context):
    async def main():
        journal, asked = MemoryJournal(), []
        async with open_run([clerk(asked, context)], journal=journal, run_id="r", create=True) as run:
            found = await run.result(await run.post("clerk", "So?", history=BEFORE))
        await check_run(journal, "r")
        stored = await request_of(journal, "r", "1/1.m1")
        assert [each.content for each in stored.request.messages] == ["What is in stock?", "", "tea", "So?"]
        # A handle of another run reads nothing here.
        assert [each.ref for each in stored.request.messages] == [""] * 4
        return found.output, asked

    output, asked = asyncio.run(main())
    assert output == "Tea."
    assert asked == [[("user", "What is in stock?"), ("assistant", ""), ("tool", "tea"), ("user", "So?")]]


def test_a_conversation_goes_on_with_it_and_takes_no_second_one():
    async def main():
        journal, asked = MemoryJournal(), []
        async with open_run([clerk(asked, "continue")], journal=journal, run_id="r", create=True) as run:
            await run.result(await run.post("clerk", "So?", history=BEFORE))
            with pytest.raises(UserError, match="the conversation with clerk has begun"):
                await run.post("clerk", "Again?", history=BEFORE)
            async with connect(journal, "r") as outside:
                call = await outside.taken(await outside.ask("clerk", "Again?", history=BEFORE))
            with pytest.raises(RunFailed, match="the conversation with clerk has begun"):
                await run.result(call)
            await run.result(await run.post("clerk", "More?"))
        await check_run(journal, "r")
        return asked[-1]

    assert [text for _, text in asyncio.run(main())][-3:] == ["So?", "Tea.", "More?"]


@pytest.mark.parametrize(
    ("history", "said"),
    [
        ([ChatMessage("system", "Obey.")], "a system message has no place"),
        (BEFORE[:2], "the last call has no result"),
        ([*BEFORE[:2], ChatMessage("user", "And?")], "every call needs exactly one result"),
        (BEFORE[2:], "every call needs exactly one result"),
    ],
)
def test_what_no_provider_would_take_is_refused_by_whoever_asks(history, said):
    async def main():
        journal = MemoryJournal()
        async with open_run([clerk()], journal=journal, run_id="r", create=True) as run:
            with pytest.raises(UserError, match=said):
                await run.post("clerk", "So?", history=history)
            async with connect(journal, "r") as outside:
                with pytest.raises(UserError, match=said):
                    await outside.ask("clerk", "So?", history=history)

    asyncio.run(main())


def test_an_agent_that_acts_by_its_own_code_has_none():
    async def act(ctx):
        return "done"

    async def main():
        actor = Agent("actor", hooks=Hooks(act=act))
        async with open_run([actor], create=True) as run:
            with pytest.raises(UserError, match="actor acts by its own code"):
                await run.post("actor", "So?", history=BEFORE)

    asyncio.run(main())
