"""Whatever users, their tools, models and hooks hand in: a row that was written is read as what it was.

Every test of this suite checks it for every row (see `testing.witness`); here are the things that could
break it, and what becomes of them.
"""

import asyncio
from enum import IntEnum

import pytest

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
from antiphon.values.hooks import Continue
from antiphon.values.message import ToolCall
from antiphon.values.model import Reply, Usage
from antiphon.values.tool import Done


class Says:
    """A model made by somebody: it says, or raises, what it is given."""

    name = "says"

    def __init__(self, *said):
        self.said = list(said)

    async def complete(self, request, emit):
        found = self.said.pop(0)
        if isinstance(found, Exception):
            raise found
        return found


async def told(agent, model=None, **options):
    """One request: what came of it, and whether the run is read again as it was left."""
    journal = MemoryJournal()
    async with open_run([agent], journal=journal, model=model or Script([]), **options) as run:
        try:
            found = await run.result(await run.post(agent, "go"))
        except RunFailed as error:
            found = error.result
    await fold(journal, run.run_id)
    return found


def answer(agent, model=None, **options):
    return asyncio.run(told(agent, model, **options))


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


# -- models ------------------------------------------------------------------------------------


class Status(IntEnum):
    BUSY = 429


@pytest.mark.parametrize("wait", [2, 2.0, None, float("nan"), float("inf")])
def test_a_failure_is_read_as_it_was_told(wait):
    model = Says(ModelError("overloaded", "\ud800", retry_after=wait, status=Status.BUSY), Reply("done"))
    assert str(answer(Agent("a"), model, clock=VirtualClock())) == "done"


@pytest.mark.parametrize(
    "reply",
    [Reply("x", usage=Usage(10.0, 2)), Reply("x", opaque={1: (2, {3})}), Reply("x", opaque=float("nan")),
     Reply("\ud800", usage=Usage(1, 1)), Reply("x", [])],
)  # fmt: skip
def test_a_reply_is_what_can_be_read(reply):
    found = answer(Agent("a"), Says(reply))
    assert found.outcome == "completed"
    assert found.usage == (reply.usage if type(reply.usage.input_tokens) is int else Usage())


@pytest.mark.parametrize(
    "reply",
    [None, "text", Reply(None), Reply("x", opaque=object()), 5,
     Reply("", (ToolCall("1", "look", {"a": 1}),)), Reply("x", stop="because")],
)  # fmt: skip
def test_what_is_no_reply_fails_the_call_and_not_the_run(reply):
    found = answer(Agent("a"), Says(reply))
    assert (found.outcome, found.reason.partition(":")[0]) == ("failed", "provider")


# -- tools -------------------------------------------------------------------------------------


def given(value, *, ends=False):
    @tool
    def give() -> object:
        """Give something."""
        if ends:
            raise Done(value)
        return value

    last = [call("give"), lambda request: request.messages[-1].content]
    return str(answer(Agent("a", tools=[give]), Script(last)))


@pytest.mark.parametrize(
    ("value", "shown"),
    [(ToolResult("fine"), "fine"), (ToolResult(5), "Expected `str`"), (ToolResult(None), "Expected `str`"),
     (ToolResult("x", "no files"), "Expected `array`"), (Attachment(5), "Expected `str`"),
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
