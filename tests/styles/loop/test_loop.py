"""Options, the loop, cancellation, events, the iteration limit."""

import asyncio
from typing import Any

import msgspec
import pytest

from antiphon import ModelError, RunFailed, ToolContext, UserError, tool
from antiphon.models.script import Script, call
from antiphon.styles.loop import (
    MARKER,
    NO_SUMMARY,
    AbortError,
    AgentServices,
    FinalResponseEvent,
    HiddenUserMessageEvent,
    LlmRetryEvent,
    LoopAgent,
    ReasoningEvent,
    StepStartEvent,
    TextEvent,
    ToolResultEvent,
    loop_events,
)
from antiphon.styles.loop.options import AgentOptions
from antiphon.testing.clock import VirtualClock
from antiphon.values.model import Reply
from tests.styles.loop.looping import ask, done, echo, kinds, play
from tests.transcript import results_shown, shown

# -- 1. the constructor -------------------------------------------------------------------------


def test_defaults_are_those_of_the_document() -> None:
    found = AgentOptions(llm="script:x")
    assert (found.max_iterations, found.tool_choice, found.enable_usage_tracking) == (200, None, True)
    assert found.compaction is not None
    assert found.tool_output_cache is not None
    assert found.can_execute_tool is None
    assert not found.require_done_tool


def test_an_unknown_option_is_refused() -> None:
    with pytest.raises(UserError, match="no 'systemPrompt'; did you mean system_prompt='x'"):
        LoopAgent(llm=Script([]), systemPrompt="x")


def test_tool_choice_reaches_the_model_and_a_run_may_have_its_own() -> None:
    model = Script(["a", "b"])
    agent = LoopAgent(llm=model, tools=[echo], tool_choice="required")
    ask(agent)
    ask(agent, tool_choice="echo")
    assert [each.tool_choice for each in model.requests] == ["required", "echo"]


def test_the_reply_goes_into_the_history_as_it_came() -> None:
    reply = Reply("text", (call("echo", value="x"),), "calls", reasoning="why", opaque={"signed": 1})
    model = Script([reply, "done"])
    agent = LoopAgent(llm=model, tools=[echo])
    ask(agent)
    history = asyncio.run(agent.get_history_messages())
    assert (history[1].content, history[1].reasoning, history[1].opaque) == ("text", "why", {"signed": 1})
    assert [each.role for each in history] == ["user", "assistant", "tool", "assistant"]


# -- 2. run -------------------------------------------------------------------------------------


def test_the_system_prompt_is_kept_once_word_for_word() -> None:
    model = Script(["a", "b"])
    agent = LoopAgent(llm=model, system_prompt="Be brief.")
    ask(agent, "one")
    ask(agent, "two")
    assert [each.system for each in model.requests] == ["Be brief.", "Be brief."]
    assert shown(model.requests[1]) == ["user: one", "assistant: a", "user: two"]
    history = asyncio.run(agent.get_history_messages())
    assert [each.role for each in history] == ["system", "user", "assistant", "user", "assistant"]


def test_a_text_ends_with_final_alone() -> None:
    assert ask(LoopAgent(llm=Script(["hello"]))) == "hello"
    assert kinds(play(LoopAgent(llm=Script([" hello \n"])))) == ["final"]


def test_a_refusal_is_the_final_text() -> None:
    assert ask(LoopAgent(llm=Script([Reply("I will not.", stop="refusal")]))) == "I will not."


def test_incomplete_work_is_named_and_done() -> None:
    todo = ["write", "check"]

    def left(messages: Any) -> str | None:
        tried = sum(each.role == "assistant" for each in messages)
        return f"Still to do: {todo[tried - 1]}" if tried <= len(todo) else None

    model = Script(["first", "second", "third"])
    events = play(LoopAgent(llm=model, incomplete_work=left))
    assert [type(each) for each in events] == [
        TextEvent, HiddenUserMessageEvent, TextEvent, HiddenUserMessageEvent, FinalResponseEvent
    ]  # fmt: skip
    assert shown(model.requests[-1])[-1] == "user: Still to do: check"
    assert events[-1].content == "third"


def test_the_hook_is_bounded_and_one_that_raises_fails_by_name() -> None:
    model = Script([str(n) for n in range(10)])
    assert ask(LoopAgent(llm=model, incomplete_work=lambda _: "more", max_reminders=2)) == "2"

    def broken(messages: Any) -> str:
        raise LookupError("no list")

    with pytest.raises(RunFailed, match=r"hook end_turn of agent failed: LookupError: no list"):
        ask(LoopAgent(llm=Script(["x"]), incomplete_work=broken))


# -- 2.3 cancellation ---------------------------------------------------------------------------


def test_a_signal_set_before_nothing_begins() -> None:
    async def playing() -> None:
        model, signal = Script(["never"]), asyncio.Event()
        signal.set()
        agent = LoopAgent(llm=model)
        with pytest.raises(AbortError):
            await agent.run("go", signal=signal)
        assert model.asked == 0
        assert await agent.get_history_messages() == []

    asyncio.run(playing())


def test_abort_during_a_model_call() -> None:
    async def playing() -> None:
        signal, asked = asyncio.Event(), asyncio.Event()

        async def never(request: Any) -> str:
            signal.set()
            await asked.wait()
            return "late"

        agent = LoopAgent(llm=Script([never, "next"]))
        async with agent.run_stream("go", signal=signal) as events:
            assert [event async for event in events] == []
        assert await agent.run("again") == "next"

    asyncio.run(playing())


def test_abort_while_waiting_to_try_again() -> None:
    async def playing() -> float:
        clock, signal = VirtualClock(1_000.0, autojump=False), asyncio.Event()
        model = Script([ModelError("rate_limit", "slow", retry_after=30.0), "never"])
        agent = LoopAgent(llm=model, services=AgentServices(clock=clock))
        async with agent.run_stream("go", signal=signal) as events:
            async for event in events:
                assert isinstance(event, LlmRetryEvent)
                signal.set()
        assert model.asked == 1
        return clock.now()

    assert asyncio.run(playing()) == 1_000.0


def test_abort_during_a_tool_leaves_a_history_that_can_go_on() -> None:
    async def playing() -> None:
        signal = asyncio.Event()
        ended: list[str] = []

        @tool
        async def slow(ctx: ToolContext) -> str:
            """Take long."""
            signal.set()
            try:
                await asyncio.Event().wait()
            finally:
                ended.append("cleaned up" if ctx.is_cancelled() else "not told")
            return "never"

        model = Script([[call("echo", value="1"), call("slow"), call("echo", value="2")], "well"])
        agent = LoopAgent(llm=model, tools=[echo, slow])
        with pytest.raises(AbortError):
            await agent.run("go", signal=signal)
        assert await agent.run("and now?") == "well"
        assert ended == ["cleaned up"]
        assert results_shown(model.requests[-1]) == [
            "ok:1", "Error: the caller ended; it may or may not have taken effect",
            "Error: cancelled before it was done",
        ]  # fmt: skip
        assert shown(model.requests[-1])[-1] == "user: and now?"

    asyncio.run(playing())


def test_leaving_the_stream_early_stops_the_request() -> None:
    async def playing() -> None:
        async def never(request: Any) -> str:
            await asyncio.Event().wait()
            return "late"

        model = Script([[call("echo", value="1")], never, "new"])
        agent = LoopAgent(llm=model, tools=[echo])
        async with agent.run_stream("go") as events:
            async for event in events:
                if isinstance(event, StepStartEvent):
                    break
        assert await agent.run("again") == "new"
        assert shown(model.requests[-1]) == [
            "user: go", "assistant: [echo]", "tool: ok:1", "user: again"
        ]  # fmt: skip

    asyncio.run(playing())


# -- 3. events ----------------------------------------------------------------------------------


def test_the_order_of_one_iteration() -> None:
    reply = Reply("Looking.", (call("echo", value="x"), call("echo", value="y")), "calls", reasoning="hm")
    events = play(LoopAgent(llm=Script([reply, "done"]), tools=[echo]))
    step = ["step_start", "tool_call", "tool_result", "step_complete"]
    assert kinds(events) == ["reasoning", "text", *step, *step, "final"]
    assert [each.step_number for each in events if isinstance(each, StepStartEvent)] == [1, 2]
    assert [each.result for each in events if isinstance(each, ToolResultEvent)] == ["ok:x", "ok:y"]
    assert isinstance(events[0], ReasoningEvent)
    assert events[-1].content == "done"


def test_the_events_are_a_projection_of_the_stored_records() -> None:
    """Read again later, by anyone, they are the same."""

    async def playing() -> tuple[list[Any], list[Any]]:
        agent = LoopAgent(llm=Script([call("echo", value="x"), "done"]), tools=[echo])
        async with agent:
            async with agent.run_stream("go", deltas=False) as events:
                live = [event async for event in events]
            session = agent._session(None)
            assert session.open is not None
            return live, list(loop_events(await session.open.run.records()))

    live, stored = asyncio.run(playing())
    assert live == stored
    assert msgspec.json.decode(msgspec.json.encode(live[0]))["type"] == "step_start"


def test_run_gives_the_first_final() -> None:
    model = Script([call("echo", value="x"), "  the answer  "])
    assert ask(LoopAgent(llm=model, tools=[echo])) == "the answer"


# -- 6. the limit of iterations -----------------------------------------------------------------


def test_a_summary_is_asked_for_beside_the_history() -> None:
    model = Script(["not done", "still running", "summary", "later"])
    agent = LoopAgent(llm=model, tools=[done], require_done_tool=True, max_iterations=2)
    found = ask(agent)
    assert found.startswith(MARKER)
    assert "summary" in found
    last = model.requests[2]
    assert (last.tools, last.tool_choice) == ((), "none")
    history = asyncio.run(agent.get_history_messages())
    assert not any("all your turns" in each.content or each.content == "summary" for each in history)


def test_the_summary_call_fails() -> None:
    model = Script(["not done", ModelError("provider", "down")])
    agent = LoopAgent(llm=model, tools=[done], require_done_tool=True, max_iterations=1)
    assert ask(agent) == NO_SUMMARY
    assert NO_SUMMARY.startswith(MARKER)


def test_the_limit_is_of_one_request_not_of_the_conversation() -> None:
    agent = LoopAgent(llm=Script(["a", "b", "c", "d"]), max_iterations=1)
    assert [ask(agent) for _ in range(4)] == ["a", "b", "c", "d"]


def test_the_limit_may_be_above_the_kernels_default() -> None:
    model = Script([*[call("echo", value="x")] * 250, "done"])
    assert ask(LoopAgent(llm=model, tools=[echo], max_iterations=251)) == "done"
