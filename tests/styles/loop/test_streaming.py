"""What a stream tells while it happens: pieces of replies, progress, colleagues, and why it failed."""

import asyncio
from typing import Any

import pytest

from antiphon import Agent, ModelError, RunFailed, ToolContext, tool
from antiphon.models.script import Script, call, finish
from antiphon.styles.loop import (
    AgentEvent,
    CompactionCompleteEvent,
    DeltaEvent,
    FinalResponseEvent,
    LlmRetryEvent,
    LoopAgent,
    StepStartEvent,
    ToolCallEvent,
    ToolProgressEvent,
    ToolResultEvent,
    loop_events,
)
from antiphon.values.model import Delta, Reply
from antiphon.values.progress import FileLocation
from tests.styles.loop.looping import ask, echo, kinds, play, waiting


def pieces(events: list[Any], kind: str = "text") -> str:
    return "".join(each.content for each in events if isinstance(each, DeltaEvent) and each.kind == kind)


def test_the_pieces_of_a_reply_come_before_it() -> None:
    events = play(LoopAgent(llm=Script([Reply("The answer.", reasoning="hm")])), deltas=True)
    assert kinds(events) == ["delta", "delta", "reasoning", "final"]
    assert (pieces(events), pieces(events, "reasoning")) == ("The answer.", "hm")


def test_a_stream_has_them_and_can_do_without() -> None:
    async def playing(**options: Any) -> list[Any]:
        async with LoopAgent(llm=Script(["hello"])).run_stream("go", **options) as events:
            return [event async for event in events]

    assert kinds(asyncio.run(playing()))[0] == "delta"
    assert kinds(asyncio.run(playing(deltas=False))) == ["final"]


def test_a_call_is_told_while_it_is_written() -> None:
    events = play(LoopAgent(llm=Script([call("echo", value="x"), "done"]), tools=[echo]), deltas=True)
    assert (pieces(events, "call_name"), pieces(events, "call_arguments")) == ("echo", '{"value":"x"}')


def test_a_place_in_the_line_before_the_model_is_no_piece_of_the_reply() -> None:
    class Queued(Script):
        async def complete(self, request: Any, emit: Any) -> Reply:
            emit(Delta("queued", "3", 1))
            emit(Delta("queued", "0", 2))
            return await super().complete(request, emit)

    events = play(LoopAgent(llm=Queued(["hello"])), deltas=True)
    assert [each.kind for each in events if isinstance(each, DeltaEvent)] == ["text"]


class Cut(Script):
    """Is cut off in its first reply, `laps` of the event loop after it was said."""

    laps = 0

    async def complete(self, request: Any, emit: Any) -> Reply:
        reply = await super().complete(request, emit)
        if self.asked == 1:
            for _ in range(self.laps):
                await asyncio.sleep(0)
            raise ModelError("disconnected", "cut")
        return reply


def test_what_a_failed_attempt_said_is_told_apart() -> None:
    services, _ = waiting()
    model = Cut(["half", "whole"])
    model.laps = 10
    events = play(LoopAgent(llm=model, services=services), deltas=True)
    retry = next(index for index, each in enumerate(events) if isinstance(each, LlmRetryEvent))
    before, after = events[:retry], events[retry:]
    assert (pieces(before), pieces(after)) == ("half", "whole")
    attempts = [{each.effect_id for each in half if isinstance(each, DeltaEvent)} for half in (before, after)]
    assert attempts[0].isdisjoint(attempts[1])
    void = [each.effect_id for each in before if isinstance(each, DeltaEvent) and each.kind == "void"]
    assert {*void} == attempts[0]


def test_what_a_failed_attempt_said_is_not_shown_to_who_comes_later() -> None:
    services, _ = waiting()
    events = play(LoopAgent(llm=Cut(["half", "whole"]), services=services), deltas=True)
    assert pieces(events) == "whole"
    assert all(each.kind != "void" for each in events if isinstance(each, DeltaEvent))


def test_a_summary_of_the_conversation_is_not_shown_as_an_answer() -> None:
    agent = LoopAgent(llm=Script(["one", "<summary>S</summary>"]))
    ask(agent)
    events = play(agent, "", force_compaction=True, deltas=True)
    assert isinstance(events[1], CompactionCompleteEvent)
    assert pieces(events) == ""


@pytest.mark.parametrize("threaded", [False, True], ids=["async", "in a thread"])
def test_a_tool_tells_how_far_it_has_come(threaded: bool) -> None:
    def work(ctx: ToolContext) -> str:
        """Work."""
        for part in ("1 of 2", "2 of 2"):
            ctx.report_progress(part, locations=[FileLocation(part)])
        return "done"

    async def work_async(ctx: ToolContext) -> str:
        """Work."""
        return work(ctx)

    used = tool(effect="read", name="work")(work if threaded else work_async)
    model = Script([call("work"), "all done"])
    events = play(LoopAgent(llm=model, tools=[used]), deltas=True)
    told = [each for each in events if isinstance(each, ToolProgressEvent)]
    assert [(each.tool, each.content) for each in told] == [("work", "2 of 2")]
    assert told[0].locations == (FileLocation("2 of 2"),)
    call_id = next(each.tool_call_id for each in events if isinstance(each, ToolCallEvent))
    assert {each.tool_call_id for each in told} == {call_id}
    shown = [type(each) for each in events if not isinstance(each, DeltaEvent)]
    assert shown.index(ToolCallEvent) < shown.index(ToolProgressEvent) < shown.index(ToolResultEvent)
    assert "1 of 2" not in str(model.requests[1].messages[-1])


def colleagues() -> tuple[LoopAgent, Script]:
    model = Script(
        {
            "agent": [call("call_agent", agent_name="clerk", message="Count."), "There are 7."],
            "clerk": [call("echo", value="7"), finish("7")],
        }
    )
    clerk = Agent("clerk", "You count.", tools=[echo], model=model)
    return LoopAgent(llm=model, system_prompt="You ask.", agents=[clerk]), model


def test_what_a_colleague_does_is_told_inside_the_call() -> None:
    agent, _ = colleagues()
    events = play(agent, deltas=True)
    within = [each for each in events if isinstance(each, AgentEvent)]
    assert {(each.agent, each.tool_call_id) for each in within} == {("clerk", "agent_1_1")}
    assert pieces([each.event for each in within], "call_name") == "echofinish"
    plain = [each for each in events if not isinstance(each, DeltaEvent)]
    told = [each.event if isinstance(each, AgentEvent) else each for each in plain]
    assert [each.__struct_config__.tag for each in told if not isinstance(each, DeltaEvent)] == [
        "step_start", "tool_call",
        "step_start", "tool_call", "tool_result", "step_complete",
        "step_start", "tool_call", "tool_result", "step_complete",
        "tool_result", "step_complete", "final",
    ]  # fmt: skip
    assert isinstance(plain[-1], FinalResponseEvent)
    assert plain[-1].content == "There are 7."


def test_stored_events_of_colleagues_are_those_that_were_told() -> None:
    async def playing() -> None:
        agent, _ = colleagues()
        async with agent:
            async with agent.run_stream("go", deltas=False) as events:
                live = [event async for event in events]
            opened = agent._session(None).open
            assert opened is not None
            assert list(loop_events(await opened.run.records())) == live

    asyncio.run(playing())


def test_a_model_that_fails_is_raised_from_the_stream() -> None:
    async def playing() -> None:
        agent = LoopAgent(
            llm=Script([call("echo", value="x"), ModelError("auth", "wrong key"), "well"]), tools=[echo]
        )
        told = []

        async def reading() -> None:
            async for event in events:
                told.append(event)

        async with agent.run_stream("go") as events:
            with pytest.raises(RunFailed, match="auth: wrong key") as caught:
                await reading()
        assert any(isinstance(each, StepStartEvent) for each in told)
        assert events.failure is caught.value
        assert await agent.run("again") == "well"

    asyncio.run(playing())
