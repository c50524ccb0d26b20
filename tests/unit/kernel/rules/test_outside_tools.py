"""Outside tools: their calls are questions to whoever runs the request, and the answers are their results."""

import asyncio
import re

import pytest

from antiphon import Agent, Hooks, Limits, Policy, RunFailed, UserError, open_run, run
from antiphon.errors import ToolDefinitionError, ToolError
from antiphon.journal.memory import MemoryJournal
from antiphon.kernel.facts.events import EffectFinished
from antiphon.kernel.run.commands import AnswerInput, encode
from antiphon.models.script import Script, call
from antiphon.testing.clock import VirtualClock
from antiphon.testing.invariants import check_journal
from antiphon.values.hooks import DirectResult
from antiphon.values.tool import tool_from
from antiphon.view import Dialogue, connect
from tests.transcript import recorded, until

PAGE = {"type": "object", "properties": {"page": {"type": "integer", "default": 1}}}
COUNT = {"type": "integer", "minimum": 0}


def see(**contract):
    contract.setdefault("result", COUNT)
    return tool_from("see_page", "See a page of the reader's.", PAGE, **contract)


def seer(*replies, tools=None, **options):
    return Agent("a", tools=tools or [see()], model=Script([*replies, "end"]), **options)


def bounded(talk):
    async def in_time():
        async with asyncio.timeout(20):
            return await talk()

    return asyncio.run(in_time())


async def asked(opened, place="1/1.c1"):
    await until(opened, f"{place} wait question user started")


def results(agent):
    return [each.content for each in agent.model.requests[-1].messages if each.role == "tool"]


def test_the_question_carries_the_call_and_the_answer_is_its_result():
    async def talk():
        agent = seer(call("see_page", page=3))
        journal = MemoryJournal()
        async with open_run([agent], journal=journal, run_id="r", create=True, interactive=True) as opened:
            request = await opened.post("a", "go")
            await asked(opened)
            async with connect(journal, "r") as connection:
                (question,) = await connection.open_questions()
                *_, shown = Dialogue(await connection.tree()).requests["0/1.c1"].parts
            assert (question.kind, question.tool, question.arguments) == (
                "question",
                "see_page",
                '{"page":3}',
            )
            assert question.schema == COUNT
            assert question.call_id
            assert question.text == "Do see_page, and answer with its result. See a page of the reader's."
            assert not question.takes_verdict
            assert (shown.asks_for, shown.tool, shown.arguments) == ("question", "see_page", '{"page":3}')
            with pytest.raises(UserError, match=r"not answered: at \$ expected integer, got string"):
                await opened.answer("1/1.c1", "many")
            await opened.answer("1/1.c1", " 12 ")
            assert (await opened.result(request)).output == "end"
        await check_journal(journal)
        assert results(agent) == ["12"]

    bounded(talk)


def test_arguments_are_checked_before_anybody_is_asked():
    agent, shown = seer(call("see_page", page="many"), call("see_page")), []
    asyncio.run(run(agent, "go", on_input=_answering("7", shown)))
    assert [each.data["arguments"] for each in shown] == ['{"page":1}']
    refused, answered = results(agent)
    assert refused.startswith("Error: Invalid arguments for tool 'see_page'")
    assert answered == "7"


def _answering(answer, shown):
    async def answered(message):
        shown.append(message)
        return answer

    return answered


def test_whoever_attends_a_run_is_shown_the_call():
    agent, shown = seer(call("see_page", page=2)), []
    result = asyncio.run(run(agent, "go", on_input=_answering("5", shown)))
    assert result.output == "end"
    (message,) = shown
    assert message.intent == "tool"
    assert message.data.pop("call_id")
    assert message.data == {"schema": COUNT, "tool": "see_page", "arguments": '{"page":2}'}
    assert results(agent) == ["5"]


def test_where_nobody_is_there_it_is_refused():
    agent = seer(call("see_page"))
    asyncio.run(run(agent, "go"))
    assert results(agent) == [
        "Error: see_page is done by whoever runs the request, and nobody is there to answer"
    ]


def test_one_that_failed_says_why():
    async def talk():
        agent = seer(call("see_page"))
        journal = MemoryJournal()
        async with open_run([agent], journal=journal, run_id="r", create=True, interactive=True) as opened:
            request = await opened.post("a", "go")
            await asked(opened)
            with pytest.raises(UserError, match="a result, or a reason why it failed, not both"):
                await opened.answer("1/1.c1", "3", reason="no light")
            async with connect(journal, "r") as connection:
                with pytest.raises(UserError, match="a result, or a reason why it failed, not both"):
                    await connection.answer("1/1.c1", "3", reason="no light")
                await connection.answer("1/1.c1", "", reason="no light")
            await opened.result(request)
        assert results(agent) == ["Error: [see_page] no light"]

    bounded(talk)


def test_a_run_is_left_and_taken_up_between_the_call_and_its_result():
    """The agent's turn waits as for a question; whoever comes later answers, also while nobody drives it."""

    async def talk():
        journal, model = MemoryJournal(), Script([[call("see_page"), call("see_page", page=2)], "end"])
        agent = Agent("a", tools=[see()], model=model)
        async with open_run([agent], journal=journal, run_id="r", create=True, interactive=True) as opened:
            request = await opened.post("a", "go")
            await asked(opened, "1/1.c2")
            assert opened.at_rest
        await journal.post("r", "one", encode(AnswerInput("1/1.c1", "1")))
        async with open_run([agent], journal=journal, run_id="r", interactive=True) as opened:
            await opened.answer("1/1.c2", "2")
            assert (await opened.result(request)).output == "end"
        await check_journal(journal)
        assert results(agent) == ["1", "2"]

    bounded(talk)


def test_a_tool_that_lost_its_outside_still_takes_its_answer():
    """What is asked is what is answered, whatever the team is by then."""

    async def talk():
        journal, model = MemoryJournal(), Script([call("see_page"), "end"])
        kept = {"journal": journal, "run_id": "r", "interactive": True}
        async with open_run([Agent("a", tools=[see()], model=model)], create=True, **kept) as opened:
            request = await opened.post("a", "go")
            await asked(opened)
        async with open_run([Agent("a", model=model)], **kept) as opened:
            await opened.answer("1/1.c1", "9")
            await opened.result(request)
        assert model.requests[-1].messages[-1].content == "9"

    bounded(talk)


def test_policy_and_limits_bind_it_as_any_tool():
    agent, shown = seer(call("see_page")), []
    asyncio.run(run(agent, "go", policy=Policy(deny=("see_page",)), on_input=_answering("1", shown)))
    assert results(agent)[0].startswith("Error: permission denied")
    assert not shown

    agent = seer(call("see_page"), call("see_page"))
    asyncio.run(_ended(run(agent, "go", limits=Limits(calls=1), on_input=_answering("1", shown))))
    assert len(shown) == 1


async def _ended(running):
    try:
        return await running
    except RunFailed as failed:
        return failed.result


def test_one_that_needs_approval_is_asked_about_first():
    async def talk():
        agent, shown = seer(call("see_page"), tools=[see(requires_approval=True)]), []

        async def answered(message):
            shown.append(message.intent)
            return "yes" if message.intent == "approval" else "4"

        await run(agent, "go", on_input=answered)
        assert shown == ["approval", "tool"]
        assert results(agent) == ["4"]

    bounded(talk)


def test_its_answer_may_end_the_work():
    agent = Agent("a", tools=[see(finishes=True)], model=Script([call("see_page")]))
    assert asyncio.run(run(agent, "go", on_input=_answering("8", []))).output == "8"


def test_a_hook_may_answer_in_its_place():
    hook = Hooks(intercept_call=lambda context, name, arguments: DirectResult("6"))
    agent = seer(call("see_page"), hooks=hook)
    _, records = recorded(agent, "go", interactive=True)
    assert results(agent) == ["6"]
    ends = [each.event for each in records if type(each.event) is EffectFinished]
    assert next(each for each in ends if each.id == "1/1.c1").decided_by == "intercept_call"


@pytest.mark.parametrize("which", ["its own timeout", "the limits"])
def test_nobody_does_it_in_time(which):
    agent = seer(call("see_page"), tools=[see(timeout=30) if which == "its own timeout" else see()])
    limits = Limits(answer_seconds=30) if which == "the limits" else None
    recorded(agent, "go", interactive=True, clock=VirtualClock(), limits=limits)
    assert results(agent) == ["Error: nobody answered within 30 s; go on without it"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"isolated": True}, "see_page: isolated is about a function, and an outside tool has none"),
        ({"raw": True}, "see_page: raw is about a function"),
        ({"reconcile": print}, "see_page: reconcile is about a function"),
        ({"result": {"type": "integr"}}, "see_page: result: the schema of the answer cannot be used"),
        ({"result": "integer"}, "see_page: tool(result=...) takes"),
        ({"call": len, "result": COUNT}, "see_page: result goes with a tool without a function"),
    ],
)
def test_what_cannot_be_an_outside_tool(given, said):
    with pytest.raises(ToolDefinitionError, match=re.escape(said)):
        tool_from("see_page", "", PAGE, **given)


def test_it_is_known_for_what_it_is():
    one = see()
    assert one.outside
    assert not tool_from("see_page", "See a page of the reader's.", PAGE, len).outside
    assert (
        len({one.digest, see(result=None).digest, tool_from("see_page", one.description, PAGE, len).digest})
        == 3
    )
    with pytest.raises(ToolError, match="see_page has no function: whoever runs the request does it"):
        one({})
