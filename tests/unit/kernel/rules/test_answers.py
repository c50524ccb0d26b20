"""Answers of people: what does not fit what was asked is refused, and the question stays."""

import asyncio
import json

import pytest

from antiphon import Agent, Policy, UserError, open_run, tool
from antiphon.journal.memory import MemoryJournal
from antiphon.kernel.facts.events import EffectFinished, PermissionDecided
from antiphon.kernel.run.commands import AnswerInput, encode
from antiphon.models.script import Script, call
from antiphon.testing.invariants import check_journal
from antiphon.view import connect
from tests.transcript import effects, until


@tool
def send(to: str, times: int = 1) -> str:
    """Send."""
    return f"sent to {to} {times} times"


GUARDED = Policy("guarded")


def sender(*replies):
    return Agent("a", model=Script(replies or [call("send", to="x"), "end"]), tools=[send])


def bounded(talk):
    async def in_time():
        async with asyncio.timeout(20):
            return await talk()

    return asyncio.run(in_time())


# -- edited arguments ---------------------------------------------------------------------------

WRONG_EDITS = [
    ('{"whom": "?"}', "unknown argument 'whom'"),
    ('{"to": "x", "times": "many"}', r"at \$\.times expected int, got str"),
    ("{}", "missing required argument 'to'"),
    ("[1]", r"at \$ expected an object, got array"),
    ('{"to": "x"', "not JSON"),
    ('{"to": "x", "to": "y"}', "twice"),
]


@pytest.mark.parametrize(("arguments", "said"), WRONG_EDITS)
@pytest.mark.parametrize("verdict", ["yes", "always"])
def test_arguments_that_the_tool_would_refuse_are_no_answer(verdict, arguments, said):
    async def talk():
        async with open_run([sender()], policy=GUARDED, interactive=True) as run:
            request = await run.post("a", "go")
            await until(run, "1/1.c1? wait approval send started")
            before = run.seq
            with pytest.raises(UserError, match=rf"^1/1\.c1\? is not answered: .*{said}"):
                await run.answer("1/1.c1?", verdict, arguments=arguments)
            assert run.seq == before, "nothing is recorded of it"
            await run.answer("1/1.c1?", "yes", arguments='{"to": "y"}')
            await run.result(request)
            return effects(await run.records(), "c")

    assert "1/1.c1 completed: sent to y 1 times" in bounded(talk)


def test_edited_arguments_bind_as_canonical_json():
    async def talk():
        async with open_run([sender()], policy=GUARDED, interactive=True) as run:
            request = await run.post("a", "go")
            await until(run, "1/1.c1? wait approval send started")
            await run.answer("1/1.c1?", "yes", arguments='{ "times" : "2", "to" : "y" }')
            await run.result(request)
            return [each.event for each in await run.records()]

    events = bounded(talk)
    ended = next(each for each in events if isinstance(each, EffectFinished) and each.id == "1/1.c1?")
    ruled = next(each for each in events if isinstance(each, PermissionDecided))
    assert ended.arguments == ruled.arguments == '{"to":"y","times":2}'


@pytest.mark.parametrize("arguments", [{"to": "y"}, 3, b"{}"])
def test_arguments_are_a_json_text(arguments):
    async def talk():
        async with open_run([sender()], policy=GUARDED, interactive=True) as run:
            await run.post("a", "go")
            await until(run, "1/1.c1? wait approval send started")
            with pytest.raises(UserError):
                await run.answer("1/1.c1?", "yes", arguments=arguments)
            return await run.open_requests()

    assert bounded(talk) == ("0/1.c1",)


def test_what_is_refused_takes_no_arguments_and_neither_does_a_question():
    async def talk():
        asking = sender([call("send", to="x"), call("call_agent", agent_name="user", message="Which?")])
        async with open_run([asking], policy=GUARDED, interactive=True) as run:
            await run.post("a", "go")
            await until(run, "1/1.c2 wait question user started")
            with pytest.raises(UserError, match="arguments come with `yes` or `always`"):
                await run.answer("1/1.c1?", "no", arguments='{"to": "y"}')
            with pytest.raises(UserError, match="a question is answered by its content"):
                await run.answer("1/1.c2", "blue", arguments="{}")

    bounded(talk)


def test_a_posted_edit_that_does_not_fit_is_a_dead_letter_and_the_next_answer_counts():
    journal = MemoryJournal()

    async def talk():
        async with (
            open_run([sender()], policy=GUARDED, journal=journal, interactive=True) as run,
            connect(journal, run.run_id) as seen,
        ):
            request = await run.post("a", "go")
            await until(run, "1/1.c1? wait approval send started")
            for count, (arguments, said) in enumerate(WRONG_EDITS, 1):
                wrong = await seen.answer("1/1.c1?", "yes", arguments=arguments)
                with pytest.raises(UserError, match=f"was not taken in: .*{said}"):
                    await seen.taken(wrong)
                (question,) = await seen.open_questions()
                assert (question.id, question.refused) == ("1/1.c1?", count)
            right = await seen.answer("1/1.c1?", "yes", arguments='{"times": 2, "to": "y"}')
            with pytest.raises(UserError, match="has an answer already"):
                await seen.answer("1/1.c1?", "no")
            assert await seen.taken(right) == "1/1.c1?"
            await run.result(request)
            return effects(await run.records(), "c")

    assert "1/1.c1 completed: sent to y 2 times" in bounded(talk)
    asyncio.run(check_journal(journal))


def test_an_answer_that_waited_for_the_next_owner_is_checked_by_it():
    journal = MemoryJournal()

    async def talk():
        async with open_run([sender()], policy=GUARDED, journal=journal, interactive=True) as run:
            await run.post("a", "go")
            await until(run, "1/1.c1? wait approval send started")
        async with connect(journal, run.run_id) as seen:
            wrong = await seen.answer("1/1.c1?", "yes", arguments='{"to": 3}')
            async with open_run(
                [sender("end")], journal=journal, run_id=run.run_id, interactive=True
            ) as again:
                with pytest.raises(UserError, match=r"at \$\.to expected str, got int"):
                    await seen.taken(wrong)
                await seen.taken(await seen.answer("1/1.c1?", "yes"))
                await again.result("0/1.c1")
                return effects(await again.records(), "c")

    assert "1/1.c1 completed: sent to x 1 times" in bounded(talk)


def test_what_nobody_should_have_posted_is_a_dead_letter():
    """A peer that does not use `connect` says whatever it likes."""
    journal = MemoryJournal()
    posted = [
        AnswerInput("1/1.c1?", "perhaps"),
        AnswerInput("1/1.c1?", "no", json.dumps({"to": "y"})),
        AnswerInput("1/1.c7", "yes"),
    ]

    async def talk():
        async with (
            open_run([sender()], policy=GUARDED, journal=journal, interactive=True) as run,
            connect(journal, run.run_id) as seen,
        ):
            await run.post("a", "go")
            await until(run, "1/1.c1? wait approval send started")
            for number, each in enumerate(posted, 1):
                await journal.post(run.run_id, str(number), encode(each))
            said = []
            for number in range(1, len(posted) + 1):
                with pytest.raises(UserError) as refused:
                    await seen.taken(number)
                said.append(str(refused.value).partition(": ")[2])
            assert [each.id for each in await seen.open_questions()] == ["1/1.c1?"]
            return said

    assert bounded(talk) == [
        "an approval is answered yes, no or always; got 'perhaps'",
        "arguments come with `yes` or `always`: what is not allowed is not run with others",
        "1/1.c7 is not an open question",
    ]
