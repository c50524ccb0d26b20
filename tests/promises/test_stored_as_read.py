"""Whatever users, their tools, models and hooks hand in: a row that was written is read as what it was.

Every test of this suite checks it for every row (see `testing.witness`); here are the things that could
break it, and what becomes of them.
"""

import asyncio

import pytest
from msgspec import Struct
from msgspec.structs import replace

from antiphon import (
    Agent,
    Attachment,
    Hooks,
    Limits,
    ModelError,
    ModelOptions,
    RunFailed,
    ToolResult,
    UserError,
    open_run,
    tool,
)
from antiphon.errors import EffectFailed
from antiphon.journal.memory import MemoryJournal
from antiphon.kernel.run.rows import fold
from antiphon.models.script import Script, call
from antiphon.testing.clock import VirtualClock
from antiphon.values.hooks import Continue, PlannedCall, Return, TurnPlan
from antiphon.values.message import ToolCall
from antiphon.values.model import Reply
from antiphon.values.tool import Done
from tests.promises.hostile import (
    Marked,
    Said,
    Says,
    Unspeakable,
    answer,
    nested,
    raises,
)

# -- limits, policies, options -----------------------------------------------------------------


def test_limits_are_of_the_types_that_are_read():
    limits = Limits(turns=3.0, tokens=1e6, timeout_seconds=60, usd=1)
    assert limits == Limits(turns=3, tokens=1_000_000, timeout_seconds=60.0, usd=1.0)
    assert [type(each) for each in (limits.turns, limits.tokens, limits.timeout_seconds, limits.usd)] == [
        int, int, float, float,
    ]  # fmt: skip


@pytest.mark.parametrize(
    "wrong",
    [{"turns": 2.5}, {"turns": True}, {"turns": "3"}, {"timeout_seconds": float("nan")},
     {"usd": float("inf")}, {"tokens": float("inf")}, {"timeout_seconds": "60"}, {"usd": []},
     {"breach_target": None}],
)  # fmt: skip
def test_a_limit_that_is_no_number_is_refused_where_it_is_made(wrong):
    (name,) = wrong
    with pytest.raises(UserError, match=rf"Limits\({name}="):
        Limits(**wrong)


def test_a_reply_is_at_most_a_whole_number_of_tokens():
    assert type(Agent("a", asking=ModelOptions(max_output_tokens=1e3)).asking.max_output_tokens) is int
    with pytest.raises(UserError, match="max_output"):
        Agent("a", asking=ModelOptions(max_output_tokens="many"))


@pytest.mark.parametrize(
    "options",
    [{"data": object()}, {"data": "\ud800"}, {"disabled_tools": [5]},
     {"interactive": "yes"}, {"policy": {"deny": "shell"}}],
)  # fmt: skip
def test_a_run_is_not_started_with_what_cannot_be_stored(options):
    with pytest.raises(UserError):
        answer(Agent("a"), Script(["x"]), **options)


def test_data_of_a_run_are_its_own():
    async def main():
        journal, mine = MemoryJournal(), {"a": (1, {2: 3}), "b": {4}}
        async with open_run([Agent("a")], journal=journal, data=mine, model=Script([])) as run:
            mine["a"] = "changed later"
            (first, *_) = await run.records()
            assert first.event.data == {"a": [1, {"2": 3}], "b": [4]}

    asyncio.run(main())


def test_a_clock_of_whole_seconds_will_do():
    model = Says(ModelError("overloaded", "later", retry_after=5), Reply("done"))
    found = answer(Agent("a"), model, clock=VirtualClock(1_700_000_000), limits=Limits(timeout_seconds=60))
    assert str(found) == "done"


# -- tools -------------------------------------------------------------------------------------


def given(value, *, ends=False):
    @tool
    def give() -> object:
        """Give something."""
        found = value() if callable(value) else value
        if ends:
            raise Done(found)
        return found

    last = [call("give"), lambda request: request.messages[-1].content]
    return str(answer(Agent("a", tools=[give]), Script(last)))


@pytest.mark.parametrize(
    ("value", "shown"),
    [(ToolResult("fine"), "fine"), (lambda: ToolResult(5), "ToolResult(content=...) takes a text; got 5"),
     (lambda: ToolResult("x", "no files"), "takes a list, each item an Attachment"),
     (lambda: replace(ToolResult("x"), content=5), "(content=...) takes a text"), (Said.HELLO, "hello"),
     (Marked("<b>"), "<b>"), (Marked("\u00e9\ud800"), "\u00e9\ufffd"), (raises, "Unspeakable"),
     (lambda: Attachment(5), "Attachment(media_type=...) takes a text; got 5"),
     ({1: {2}}, '{"1":[2]}'), (object(), "JSON cannot carry")],
)  # fmt: skip
def test_a_result_can_be_read_or_the_tool_failed(value, shown):
    assert shown in given(value)


@pytest.mark.parametrize(
    ("value", "shown"), [("fine", "fine"), ({"a": 1}, '{"a":1}'), (5, "5"), (object(), "JSON cannot carry")]
)
def test_the_last_result_is_a_text(value, shown):
    assert shown in given(value, ends=True)


def test_a_file_of_bytes_is_stored_as_base64():
    @tool
    def picture() -> Attachment:
        """Take a picture."""
        return Attachment("image/png", b"\x89PNG")

    model = Script([call("picture"), lambda request: request.messages[-1].attachments[0].data])
    assert str(answer(Agent("a", tools=[picture]), model)) == "iVBORw=="


# -- hooks and actions -------------------------------------------------------------------------


@pytest.mark.parametrize("ruling", [("ask", None), ("deny", 5), ("ask", "\ud800"), ("deny", "no", "more"), 5])
def test_a_ruling_that_gives_no_reason_denies(ruling):
    @tool
    def act() -> str:
        """Act."""
        return "acted"

    agent = Agent("a", tools=[act], hooks=Hooks(authorize=lambda tool, arguments: ruling))
    assert "denied" in str(answer(agent, Script([call("act"), lambda request: request.messages[-1].content]),
                                  interactive=False))  # fmt: skip


@pytest.mark.parametrize("reminder", [True, ["go on"], b"go on"])
def test_a_reminder_that_is_no_text_fails_the_agent(reminder):
    found = answer(Agent("a", hooks=Hooks(end_turn=lambda context: Continue(reminder))), Script(["x", "y"]))
    assert (found.outcome, "the hook end_turn" in found.reason) == ("failed", True)


def test_an_action_may_fail_with_anything():
    async def acts(ctx):
        raise EffectFailed("limit", "\ud800", partial={"a": 1})

    found = answer(Agent("a", hooks=Hooks(act=acts)))
    assert (found.outcome, found.output) == ("limit", "{'a': 1}")


def test_what_an_action_records_is_read_as_it_was():
    async def acts(ctx):
        ctx.set("set", {"t": (1, {2}), 3: 4.0})
        ctx.append("list", ((1, 2), {5}))
        return {"seen": await ctx.step("look", lambda: (1, {2: 3}))}

    assert answer(Agent("a", hooks=Hooks(act=acts))).output == '{"seen":[1,{"2":3}]}'


def test_only_texts_can_be_asked():
    async def acts(ctx):
        return await ctx.ask_model(b"bytes")

    assert "TypeError" in answer(Agent("a", hooks=Hooks(act=acts)), Script(["x"])).reason


@pytest.mark.parametrize(
    "error", [EffectFailed([], "no"), EffectFailed("limit", "no", Unspeakable()), Unspeakable()]
)
def test_an_action_may_fail_in_any_way(error):
    async def acts(ctx):
        raise error

    assert answer(Agent("a", hooks=Hooks(act=acts))).outcome in ("failed", "limit")


@pytest.mark.parametrize(
    "acts",
    [lambda ctx: ctx.publish({"content": "x"}), lambda ctx: ctx.publish(ToolCall("1", "x")),
     lambda ctx: ctx.set(b"key", 1), lambda ctx: ctx.append(5, [1]), lambda ctx: ctx.set("deep", nested(101)),
     lambda ctx: ctx.append("deep", [nested(101)])],
)  # fmt: skip
def test_what_an_action_cannot_record_fails_it(acts):
    async def works(ctx):
        acts(ctx)

    def plan(context):
        return TurnPlan([PlannedCall("worker", "go")]) if context.new_messages else None

    def end(context):
        return Return(context.results[0].outcome, context.results[0].content, context.results[0].reason)

    team = [Agent("a", hooks=Hooks(plan_turn=plan, end_turn=end)), Agent("worker", hooks=Hooks(act=works))]

    async def main():
        journal = MemoryJournal()
        async with open_run(team, journal=journal, model=Script([])) as run:
            with pytest.raises(RunFailed, match=r"UserError|TypeError"):
                await run.result(await run.post("a", "go"))
        await fold(journal, run.run_id)

    asyncio.run(main())


def test_names_of_a_class_of_their_own_are_plain_texts():
    async def acts(ctx):
        ctx.set(Marked("key"), Said.HELLO)
        ctx.append(Marked("list"), [1])
        found = await ctx.step(Marked("look"), lambda: Said.HELLO)
        return Marked(found)

    assert answer(Agent("a", hooks=Hooks(act=acts))).output == "hello"


@pytest.mark.parametrize("found", [nested(101), {(1, 2): 3}, "\ud800"])
def test_a_step_that_gives_what_cannot_be_stored_has_failed(found):
    async def acts(ctx):
        return await ctx.step("look", lambda: found)

    result = answer(Agent("a", hooks=Hooks(act=acts)))
    assert (result.outcome, "must return what JSON can hold" in result.reason) == ("failed", True)


@pytest.mark.parametrize(
    ("hook", "said"),
    [(lambda context: Return("done"), "Return(outcome=...) takes 'completed'"),
     (lambda context: Return("complete"), "did you mean 'completed'?"),
     (lambda context: Return(output=5), "Return(output=...) takes a text; got 5"),
     (lambda context: Return(activation_data={"deep": nested(101)}), "takes a dict that JSON can hold"),
     (lambda context: "completed", "Continue or Return or None is expected, not str"),
     (lambda context: raises(), "Unspeakable")],
)  # fmt: skip
def test_a_hook_that_answers_what_cannot_be_stored_fails_the_agent(hook, said):
    found = answer(Agent("a", hooks=Hooks(end_turn=hook)), Script(["x", "y"]))
    assert (found.outcome, "the hook end_turn" in found.reason) == ("failed", True)
    assert said in found.reason


@pytest.mark.parametrize("output", [Marked("done"), Said.HELLO, "half \ud800"])
def test_a_hook_may_answer_with_any_text(output):
    found = answer(Agent("a", hooks=Hooks(end_turn=lambda context: Return(output=output))), Script(["x"]))
    assert found.output == str(output).replace("\ud800", "\ufffd")


class Unsaid:
    def __repr__(self):
        raise RuntimeError


@pytest.mark.parametrize("ruling", [Unsaid(), (Unsaid(), "because"), ("deny", Marked("no")), [["allow"]]])
def test_a_ruling_of_any_kind_is_a_ruling(ruling):
    @tool
    def act() -> str:
        """Act."""
        return "acted"

    agent = Agent("a", tools=[act], hooks=Hooks(authorize=lambda tool, arguments: ruling))
    assert "denied" in str(answer(agent, Script([call("act"), lambda request: request.messages[-1].content])))


def test_a_validator_may_say_anything():
    class Page(Struct):
        number: int

        def __post_init__(self):
            raise Unspeakable if self.number else ValueError("\ud800")

    @tool
    def look(page: Page) -> str:
        """Look."""
        return "seen"

    def last(request):
        return request.messages[-1].content

    for number in (0, 1):
        model = Script([call("look", page={"number": number}), last])
        assert "Invalid arguments" in str(answer(Agent("a", tools=[look]), model))
    assert answer(Agent("a", output_type=Page), Script(['{"number":1}'] * 9)).outcome == "no_progress"


# -- people ------------------------------------------------------------------------------------


def test_a_run_is_closed_with_a_text():
    async def main():
        journal = MemoryJournal()
        async with open_run([Agent("a")], journal=journal, model=Script([])) as run:
            with pytest.raises(TypeError):
                await run.close(None)
            await run.close("\ud800 enough")
        assert (await fold(journal, run.run_id)).closed

    asyncio.run(main())
