"""Questions with form: options, a schema, a deadline; what does not fit is refused, the question stays."""

import asyncio

import pytest

from antiphon import Agent, Hooks, Limits, Policy, RunFailed, UserError, open_run, run, tool
from antiphon.errors import EffectFailed
from antiphon.journal.memory import MemoryJournal
from antiphon.kernel.facts.events import EffectFinished
from antiphon.kernel.run.commands import FinishEffect, encode
from antiphon.models.script import Script, call
from antiphon.testing.clock import VirtualClock
from antiphon.testing.invariants import check_journal
from antiphon.values.form import fitted, wrong_form
from antiphon.values.hooks import DirectResult, PlannedCall, Return, TurnPlan
from antiphon.view import connect
from tests.transcript import effects, recorded, until

AGE = {"type": "object", "properties": {"age": {"type": "integer", "minimum": 0}}, "required": ["age"]}


@tool
def send(to: str) -> str:
    """Send."""
    return f"sent to {to}"


def asking(**form):
    return call("call_agent", agent_name="user", message="Which?", **form)


def asker(*replies):
    return Agent("a", can_call=["user"], tools=[send], model=Script([*replies, "end"]))


def acting(act):
    return Agent("a", hooks=Hooks(act=act))


def bounded(talk):
    async def in_time():
        async with asyncio.timeout(20):
            return await talk()

    return asyncio.run(in_time())


async def asks(opened, place="1/1.c1"):
    await until(opened, f"{place} wait question user started")


def test_a_model_is_told_which_form_a_question_to_the_user_may_have():
    model = Script(["hi"])
    recorded(Agent("a", can_call=["user"]), "go", model=model, interactive=True)
    (told,) = [each for each in model.requests[0].tools if each.name == "call_agent"]
    form = {name: each["type"] for name, each in told.parameters["properties"].items()}
    assert form.items() >= {("options", "array"), ("schema", "object"), ("timeout_seconds", "number")}


# -- what fits ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "options", "schema", "kept"),
    [
        (" blue ", ("red", "blue"), None, "blue"),
        ("any\nthing ", (), None, "any\nthing "),
        (' {"age" : 3}', (), AGE, '{"age":3}'),
        ("3", (), {"type": "integer"}, "3"),
        ("three words here", (), {"type": "string"}, '"three words here"'),
        ('"quoted"', (), {"type": "string"}, '"quoted"'),
        ("42", (), {"type": "string"}, '"42"'),
        ("null", (), {"type": ["null", "string"]}, "null"),
        ("x", (), {}, '"x"'),
    ],
)
def test_what_fits_is_kept_as_it_is_read(said, options, schema, kept):
    assert fitted(said, options, schema) == kept


@pytest.mark.parametrize(
    ("said", "options", "schema", "wrong"),
    [
        ("green", ("red", "blue"), None, "at $ expected one of red, blue; got 'green'"),
        ("", ("red", "blue"), None, "at $ expected one of red, blue; got ''"),
        ("RED", ("red", "blue"), None, "at $ expected one of red, blue; got 'RED'"),
        ('{"age": -1}', (), AGE, "at $.age "),
        ('{"age": "x"}', (), AGE, "at $.age expected integer, got string"),
        ("{}", (), AGE, "at $ object missing required field age"),
        ("three", (), AGE, "at $ expected object, got string (not JSON: "),
        ('{"age": 3', (), AGE, "at $ expected object, got string (not JSON: "),
        ("[" * 10_000, (), AGE, "at $ "),
        ("1" * 10_000, (), {"type": "integer"}, "at $ "),
        ("true", (), {"type": "integer"}, "at $ expected integer, got boolean"),
    ],
)
def test_what_does_not_fit_says_where_and_what_is_expected(said, options, schema, wrong):
    with pytest.raises(ValueError) as refused:
        fitted(said, options, schema)
    assert str(refused.value).startswith(wrong)


@pytest.mark.parametrize(
    ("options", "schema", "said"),
    [
        (("a",), {}, "not both"),
        (("a", "a"), None, "must differ"),
        (("",), None, "none may be empty"),
        ((" a",), None, "blank"),
        (tuple(map(str, range(101))), None, "100 options; got 101"),
        ((), {"type": "integr"}, "cannot be used: #/type"),
        ((), {"$ref": "https://elsewhere"}, "leads out of the schema"),
    ],
)
def test_what_cannot_be_a_form(options, schema, said):
    assert said in wrong_form(options, schema)


def test_a_model_may_not_write_a_regular_expression():
    deep = {"properties": {"a": {"items": {"pattern": "(a+)+$"}}}}
    assert wrong_form((), deep) == ""
    assert "may not hold `pattern`" in wrong_form((), deep, patterns=False)


# -- asked and answered -------------------------------------------------------------------------


def test_a_wrong_answer_is_refused_and_the_question_stays():
    async def talk():
        model = asker([asking(options=["red", "blue"]), asking(schema=AGE)])
        async with open_run([model]) as opened:
            request = await opened.post("a", "go")
            await asks(opened, "1/1.c2")
            before = opened.seq
            with pytest.raises(UserError, match=r"^1/1\.c1 is not answered: at \$ expected one of red, blue"):
                await opened.answer("1/1.c1", "green")
            with pytest.raises(UserError, match=r"at \$\.age expected integer, got string"):
                await opened.answer("1/1.c2", '{"age": "old"}')
            assert opened.seq == before
            await opened.answer("1/1.c1", "red")
            await opened.answer("1/1.c2", '{"age": 3}')
            await opened.result(request)
            return [each.content for each in model.model.requests[-1].messages if each.role == "tool"]

    assert bounded(talk) == ["red", '{"age":3}']


def test_who_is_connected_sees_the_form_and_is_refused_too():
    journal = MemoryJournal()
    replies = [asking(options=["red", "blue"]), asking(schema=AGE, timeout_seconds=600), call("send", to="x")]

    async def talk():
        async with (
            open_run([asker(replies)], journal=journal, policy=Policy("guarded")) as opened,
            connect(journal, opened.run_id) as seen,
        ):
            request = await opened.post("a", "go")
            await until(opened, "1/1.c3? wait approval send started")
            first, second, third = await seen.open_questions()
            assert (first.options, first.schema, first.deadline) == (("red", "blue"), None, None)
            assert (second.options, second.schema) == ((), AGE)
            assert second.deadline == pytest.approx(second.since + 600)
            assert (third.options, third.takes_verdict) == (("yes", "no", "always"), True)
            assert third.schema == send.parameters
            for effect_id, wrong in (("1/1.c1", "green"), ("1/1.c2", "{}")):
                with pytest.raises(UserError, match=r"is not answered: at \$ "):
                    await seen.answer(effect_id, wrong)
            for effect_id, right in (("1/1.c1", "red"), ("1/1.c2", '{"age":3}'), ("1/1.c3?", "no")):
                await seen.taken(await seen.answer(effect_id, right))
            assert await seen.open_questions() == ()
            await opened.result(request)

    bounded(talk)
    asyncio.run(check_journal(journal))


def test_whoever_ends_it_otherwise_is_held_to_the_form_too():
    journal = MemoryJournal()

    async def talk():
        async with (
            open_run([asker(asking(options=["red", "blue"]))], journal=journal) as opened,
            connect(journal, opened.run_id) as seen,
        ):
            request = await opened.post("a", "go")
            await asks(opened)
            for key, content in (("1", "green"), ("2", "red")):
                await journal.post(opened.run_id, key, encode(FinishEffect("1/1.c1", content)))
            with pytest.raises(UserError, match="expected one of red, blue"):
                await seen.taken(1)
            assert await seen.taken(2) == "1/1.c1"
            await opened.result(request)

    bounded(talk)


def test_a_handler_is_told_what_did_not_fit_and_may_answer_again():
    shown, answers = [], iter(["green", "red"])

    async def on_input(message):
        shown.append(dict(message.data))
        return next(answers)

    agent = asker(asking(options=["red", "blue"]))
    result = asyncio.run(run(agent, "go", on_input=on_input))
    assert result.output == "end"
    assert shown[0] == {"options": ["red", "blue"]}
    assert shown[1]["options"] == ["red", "blue"]
    assert "expected one of red, blue; got 'green'" in shown[1]["refused"]


def test_a_handler_that_never_fits_ends():
    async def on_input(message):
        return "green"

    with pytest.raises(UserError, match=r"10 answers did not fit; the last one: .*got 'green'"):
        asyncio.run(run(asker(asking(options=["red"])), "go", on_input=on_input))


@pytest.mark.parametrize("fails", [True, False])
def test_a_question_with_a_form_that_a_handler_refuses_fails_and_the_agent_goes_on(fails):
    async def on_input(message):
        if fails:
            raise ValueError("no terminal")
        return "green"

    async def talk():
        agent = asker(asking(options=["red"]))
        async with open_run([agent]) as opened:
            opened.on_input(on_input)
            result = await opened.result(await opened.post("a", "go"))
            return result.output, ends_of(await opened.records())

    said = "no terminal" if fails else "10 answers did not fit"
    output, ends = bounded(talk)
    (ended,) = [each for each in ends if each.id == "1/1.c1"]
    assert (output, ended.outcome, ended.decided_by) == ("end", "failed", "nobody")
    assert ended.reason.startswith(f"No answer: {said}")


def test_a_plan_and_a_hook_ask_with_form():
    """A plan gives options; a tool call becomes a question with a schema, and does not park the run."""

    def plan(context):
        if not context.results:
            return TurnPlan([PlannedCall("user", "Which?", options=("red", "blue"))])
        return TurnPlan()

    def instead(context, name, arguments):
        return PlannedCall("user", "How old?", schema=AGE) if name == "send" else DirectResult()

    async def on_input(message):
        return "red" if "options" in (message.data or {}) else '{"age": 3}'

    model = Script([call("send", to="x"), "end"])
    agent = Agent("a", can_call=["user"], tools=[send], hooks=Hooks(intercept_call=instead), model=model)
    assert asyncio.run(run(agent, "go", on_input=on_input)).output == "end"
    assert [each.content for each in model.requests[-1].messages if each.role == "tool"] == ['{"age":3}']

    def ended(context):
        return Return(output=context.results[0].content) if context.results else None

    planner = Agent("p", can_call=["user"], hooks=Hooks(plan_turn=plan, end_turn=ended))
    assert asyncio.run(run(planner, "go", on_input=on_input)).outcome == "completed"


# -- actions ------------------------------------------------------------------------------------


def test_an_action_gets_an_option_and_a_value():
    async def act(ctx):
        colour = await ctx.ask_user("Which?", options=["red", "blue"])
        age = await ctx.ask_user("How old?", schema=AGE)
        return f"{colour} {age['age'] + 1}"

    async def on_input(message):
        return "blue" if "options" in message.data else '{"age": 3}'

    assert asyncio.run(run(acting(act), "go", on_input=on_input)).output == "blue 4"


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ({"options": ["a"], "schema": {}}, "not both"),
        ({"options": "red"}, "ask_user(options) takes"),
        ({"options": [1]}, "ask_user(options) takes"),
        ({"schema": "object"}, "ask_user(schema) takes"),
        ({"schema": {"type": object}}, "ask_user(schema) takes a dict that JSON can hold"),
        ({"schema": {"type": "integr"}}, "cannot be used"),
        ({"timeout_seconds": 0}, "above 0; got 0"),
        ({"timeout_seconds": float("nan")}, "finite number"),
        ({"timeout_seconds": "soon"}, "ask_user(timeout_seconds) takes"),
    ],
)
def test_a_form_that_cannot_be_is_refused_where_it_is_given(form, said):
    async def act(ctx):
        await ctx.ask_user("Which?", **form)

    async def nobody(message):
        raise AssertionError("nobody is asked")

    with pytest.raises(RunFailed) as failed:
        asyncio.run(run(acting(act), "go", on_input=nobody))
    assert said in str(failed.value)


def test_a_question_of_an_action_is_asked_once_over_a_crash():
    """The form is part of what identifies it, the time it has is not."""
    journal = MemoryJournal()

    async def act(ctx):
        return await ctx.ask_user("Which?", options=["red", "blue"], timeout_seconds=600 / ctx.attempt)

    async def talk():
        async with open_run([acting(act)], journal=journal) as opened:
            await opened.post("a", "go")
            async with connect(journal, opened.run_id) as seen:
                async for record in opened.events():
                    if "x:question" in getattr(record.event, "id", ""):
                        break
                assert [each.options for each in await seen.open_questions()] == [("red", "blue")]
        async with open_run([acting(act)], journal=journal, run_id=opened.run_id) as again:
            async with connect(journal, opened.run_id) as seen:
                (question,) = await seen.open_questions()
                assert question.options == ("red", "blue")
                await again.answer(question.id, "red")
            return (await again.result("0/1.c1")).output

    assert bounded(talk) == "red"


# -- deadlines ----------------------------------------------------------------------------------


def ends_of(records):
    return [each.event for each in records if isinstance(each.event, EffectFinished)]


def test_nobody_answers_and_the_agent_is_told():
    async def talk():
        clock = VirtualClock()
        agent = asker(asking(timeout_seconds=90), call("send", to="x"))
        async with open_run(
            [agent], clock=clock, policy=Policy("guarded"), limits=Limits(answer_seconds=60)
        ) as opened:
            await opened.result(await opened.post("a", "go"))
            told = [each.content for each in agent.model.requests[-1].messages if each.role == "tool"]
            return told, [round(each - 1_700_000_000) for each in clock.jumps]

    told, jumps = bounded(talk)
    late = "nobody answered within 60 s; go on without it"
    assert told == [f"Error: {late}", f"Error: permission denied: {late}"]
    assert jumps == [60, 120], "the limits are tighter than what was asked for"


def test_an_action_is_told_with_limit():
    async def act(ctx):
        try:
            await ctx.ask_user("Which?", timeout_seconds=5)
        except EffectFailed as error:
            return error.outcome

    async def talk():
        async with open_run([acting(act)], clock=VirtualClock()) as opened:
            return (await opened.result(await opened.post("a", "go"))).output

    assert bounded(talk) == "limit"


def test_an_answer_in_time_ends_the_wait():
    """An action that is answered goes on at once, and nothing is left that waits."""

    async def act(ctx):
        return await ctx.ask_user("Which?", timeout_seconds=600)

    async def talk():
        clock = VirtualClock(autojump=False)
        async with open_run([acting(act)], clock=clock) as opened:
            request = await opened.post("a", "go")
            async for record in opened.events():
                if "x:question" in getattr(record.event, "id", ""):
                    break
            await opened.answer(record.event.id, "red")
            result = await opened.result(request)
            await asyncio.sleep(0)
            return result.output, clock.sleeping

    assert bounded(talk) == ("red", 0)


def test_an_answer_after_the_deadline_is_too_late_though_nobody_drove_the_run():
    journal, clock = MemoryJournal(), VirtualClock(autojump=False)

    async def talk():
        agent = asker(asking(timeout_seconds=60))
        async with open_run([agent], journal=journal, clock=clock) as opened:
            await opened.post("a", "go")
            await asks(opened)
        clock.advance(61)
        async with connect(journal, opened.run_id) as seen:
            late = await seen.answer("1/1.c1", "red")
            async with open_run([agent], journal=journal, clock=clock, run_id=opened.run_id) as again:
                await again.result("0/1.c1")
                with pytest.raises(UserError, match=r"too late|not an open question"):
                    await seen.taken(late)
                return effects(await again.records(), "c")[2]

    assert bounded(talk) == "1/1.c1 limit: nobody answered within 60 s; go on without it"


def test_an_answer_at_the_deadline_is_too_late_though_nobody_has_said_so_yet():
    async def talk():
        clock = VirtualClock(autojump=False)
        async with open_run([asker(asking(timeout_seconds=60))], clock=clock) as opened:
            request = await opened.post("a", "go")
            await asks(opened)
            while not clock.sleeping:  # noqa: ASYNC110 - the clock tells nobody
                await asyncio.sleep(0)
            clock.advance(60)
            with pytest.raises(UserError, match="the answer comes too late: nobody answered within 60 s"):
                await opened.answer("1/1.c1", "red")
            return (await opened.result(request)).output

    assert bounded(talk) == "end"


def test_the_deadline_is_kept_by_the_next_owner():
    journal, clock = MemoryJournal(), VirtualClock(autojump=False)

    async def talk():
        agent = asker(asking(timeout_seconds=60))
        async with open_run([agent], journal=journal, clock=clock) as opened:
            await opened.post("a", "go")
            await asks(opened)
            await opened.drain(1)
        clock.advance(30)
        async with open_run([agent], journal=journal, clock=clock, run_id=opened.run_id) as again:
            with pytest.raises(UserError, match="not an open question"):
                await again.answer("1/1.c9", "red")
            clock.advance(30)
            await again.result("0/1.c1")
            ended = next(each for each in ends_of(await again.records()) if each.id == "1/1.c1")
            return ended.outcome, ended.reason

    assert bounded(talk) == ("limit", "nobody answered within 60 s; go on without it")
    asyncio.run(check_journal(journal))


def test_a_cancelled_question_waits_no_longer():
    async def talk():
        clock = VirtualClock(autojump=False)
        async with open_run([asker(asking(timeout_seconds=60))], clock=clock) as opened:
            request = await opened.post("a", "go")
            await asks(opened)
            await opened.cancel(request)
            await opened.result(request)
            await asyncio.sleep(0)
            return clock.sleeping

    assert bounded(talk) == 0


@pytest.mark.parametrize("seconds", [-1, "soon", float("inf")])
def test_a_limit_that_is_none(seconds):
    with pytest.raises(UserError, match="answer_seconds"):
        Limits(answer_seconds=seconds)


def test_the_tightest_of_the_limits_counts():
    async def talk():
        clock = VirtualClock()
        agent = Agent(
            "a", can_call=["user"], model=Script([asking(), "end"]), limits=Limits(answer_seconds=10)
        )
        async with open_run([agent], clock=clock, limits=Limits(answer_seconds=60)) as opened:
            await opened.result(await opened.post("a", "go"))
            return [round(each - 1_700_000_000) for each in clock.jumps]

    assert bounded(talk) == [10]
