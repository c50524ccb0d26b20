"""Requests that are made of one session at the same time."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from antiphon import ModelError, RunFailed, tool
from antiphon.models.script import Script, call
from antiphon.styles.loop import AbortError, FinalResponseEvent, LoopAgent, ToolResultEvent
from tests.styles.loop.looping import echo
from tests.transcript import results_shown, shown


def last_said(request: Any) -> str:
    return [each.content for each in request.messages if each.role == "user"][-1]


def answer_to(request: Any) -> str:
    return f"answer to {last_said(request)}"


class Gate:
    """A model that says what it is asked for, once it is let."""

    def __init__(self) -> None:
        self.asked, self.opened = asyncio.Event(), asyncio.Event()

    async def __call__(self, request: Any) -> str:
        self.asked.set()
        await self.opened.wait()
        return answer_to(request)


@pytest.mark.parametrize("stays_open", [False, True], ids=["opened anew", "kept open"])
@pytest.mark.parametrize("stored", [False, True], ids=["memory", "sqlite"])
def test_both_get_their_own_answer_and_the_conversation_holds_both(
    tmp_path: Path, stored: bool, stays_open: bool
) -> None:
    async def playing() -> None:
        model = Script([answer_to] * 3)
        journal = f"sqlite:///{tmp_path}/runs.db" if stored else None
        agent = LoopAgent(llm=model, journal=journal)

        async def asking() -> None:
            answers = await asyncio.gather(
                *(agent.run(each, session="s") for each in ("one", "two", "three"))
            )
            assert answers == ["answer to one", "answer to two", "answer to three"]
            assert shown(model.requests[2]) == [
                "user: one", "assistant: answer to one", "user: two", "assistant: answer to two",
                "user: three",
            ]  # fmt: skip
            assert len(await agent.get_history_messages("s")) == 6

        if stays_open:
            async with agent:
                await asking()
        else:
            await asking()

    asyncio.run(playing())


def test_each_stream_has_the_events_of_its_own_request() -> None:
    """Both are read by one task, turn and turn about."""

    async def playing() -> None:
        replies = [call("echo", value="1"), answer_to, call("echo", value="2"), answer_to]
        agent = LoopAgent(llm=Script(replies), tools=[echo])
        async with agent.run_stream("one") as first, agent.run_stream("two") as second:
            found: dict[str, list[Any]] = {"one": [await anext(first)], "two": [await anext(second)]}
            found["two"] += [event async for event in second]
            found["one"] += [event async for event in first]
        for name, value in (("one", "ok:1"), ("two", "ok:2")):
            results = [each.result for each in found[name] if isinstance(each, ToolResultEvent)]
            finals = [each.content for each in found[name] if isinstance(each, FinalResponseEvent)]
            assert (results, finals) == ([value], [f"answer to {name}"])

    asyncio.run(playing())


def test_who_reads_one_may_ask_another() -> None:
    """The first one goes on whether its events are read or not."""

    async def playing() -> None:
        agent = LoopAgent(llm=Script([call("echo", value="1"), answer_to, answer_to]), tools=[echo])
        said = []
        async with agent.run_stream("one", deltas=False) as events:
            async for event in events:
                if not said:
                    said.append(await agent.run("two"))
                if isinstance(event, FinalResponseEvent):
                    said.append(event.content)
        assert said == ["answer to two", "answer to one"]

    asyncio.run(playing())


@pytest.mark.parametrize("stays_open", [False, True], ids=["opened anew", "kept open"])
def test_the_second_may_have_tools_of_its_own(stays_open: bool) -> None:
    """Its run is opened with them, and who still reads the first one misses nothing."""

    @tool(effect="read")
    async def extra() -> str:
        """Only then."""
        return "extra"

    async def playing() -> None:
        replies = [call("echo", value="1"), "first", call("extra"), "second", "third"]
        agent = LoopAgent(llm=Script(replies), tools=[echo])

        async def asking() -> None:
            async with agent.run_stream("one", deltas=False) as events:
                await anext(events)
                assert await agent.run("two", tools=[extra]) == "second"
                left = [event async for event in events]
            assert isinstance(left[-1], FinalResponseEvent)
            assert (left[-1].content, len(left)) == ("first", 4)
            assert await agent.run("three") == "third"

        if stays_open:
            async with agent:
                await asking()
        else:
            await asking()
        assert len(await agent.get_history_messages()) == 10
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(playing())


def test_one_that_fails_holds_nobody_up() -> None:
    async def playing() -> None:
        agent = LoopAgent(llm=Script([ModelError("auth", "who are you"), answer_to]))
        failed, answered = await asyncio.gather(agent.run("one"), agent.run("two"), return_exceptions=True)
        assert isinstance(failed, RunFailed)
        assert answered == "answer to two"

    asyncio.run(playing())


def test_one_that_waits_can_be_stopped_at_once() -> None:
    async def playing() -> None:
        gate, signal = Gate(), asyncio.Event()
        model = Script([gate, answer_to])
        agent = LoopAgent(llm=model)
        one = asyncio.ensure_future(agent.run("one"))
        await gate.asked.wait()
        two, three = (
            asyncio.ensure_future(agent.run(name, signal=s)) for name, s in (("two", signal), ("three", None))
        )
        signal.set()
        with pytest.raises(AbortError):
            await two
        assert not one.done()
        gate.opened.set()
        assert [await one, await three] == ["answer to one", "answer to three"]
        assert [each.content for each in await agent.get_history_messages() if each.role == "user"] == [
            "one", "three"
        ]  # fmt: skip

    asyncio.run(playing())


def test_who_gives_up_waiting_does_not_let_the_next_one_in() -> None:
    async def playing() -> None:
        gate = Gate()
        model = Script([gate, answer_to])
        agent = LoopAgent(llm=model)
        one = asyncio.ensure_future(agent.run("one"))
        await gate.asked.wait()
        two, three = (asyncio.ensure_future(agent.run(name)) for name in ("two", "three"))
        history = asyncio.ensure_future(agent.get_history_messages())
        await asyncio.sleep(0)
        two.cancel()
        with pytest.raises(asyncio.CancelledError):
            await two
        assert model.asked == 1
        gate.opened.set()
        assert [await one, await three] == ["answer to one", "answer to three"]
        assert len(await history) == 4

    asyncio.run(playing())


def test_a_tool_that_asks_its_own_session_is_told_so() -> None:
    """It would wait for the request that waits for it."""

    async def playing() -> None:
        @tool
        async def ask_again(session: str) -> str:
            """Ask the same agent."""
            return str(await agent.run("again", session=session or None))

        @tool
        async def look_back() -> str:
            """Read the conversation."""
            return str(len(await agent.get_history_messages()))

        calls = [call("ask_again", session=""), call("look_back"), call("ask_again", session="other")]
        model = Script([calls, "from the other", "done"])
        agent = LoopAgent(llm=model, tools=[ask_again, look_back])
        assert await agent.run("go") == "done"
        own, back, other = results_shown(model.requests[2])
        assert "give it a session of its own" in own
        assert "give it a session of its own" in back
        assert other == "from the other"

    asyncio.run(playing())


def test_a_session_that_nobody_uses_holds_nothing() -> None:
    async def playing() -> None:
        agent = LoopAgent(llm=Script([answer_to] * 2))
        await asyncio.gather(agent.run("one"), agent.run("two"))
        known = agent._session(None)
        assert (known.open, known.last, known.readers) == (None, None, {})

    asyncio.run(playing())
