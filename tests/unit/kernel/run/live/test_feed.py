"""Who watches a run, when they are woken, and what those see who come in the middle."""

import asyncio
import threading
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, aclosing
from typing import Any

import pytest

from antiphon import Agent, Record, ReplyDelta, Run, ToolContext, open_run, tool
from antiphon.journal.memory import MemoryJournal
from antiphon.kernel.facts.events import EffectFinished, EffectStarted
from antiphon.kernel.run.live import feed
from antiphon.kernel.run.live.deltas import KEPT
from antiphon.models.script import Script, call
from antiphon.values.model import Delta, ModelRequest, Reply
from antiphon.values.progress import MAX_TEXT
from antiphon.view import connect


class Writer:
    """Says `first`, waits until it may go on, says `second`."""

    name = "writer"

    def __init__(self, first: str, second: str = "") -> None:
        self.first, self.second = first, second
        self.said, self.go_on = asyncio.Event(), asyncio.Event()

    async def complete(self, request: ModelRequest, emit: Any) -> Reply:
        emit(Delta("text", self.first))
        self.said.set()
        await self.go_on.wait()
        emit(Delta("text", self.second))
        return Reply(self.first + self.second)


def play(scene: Callable[[], Awaitable[Any]]) -> Any:
    async def bounded() -> Any:
        async with asyncio.timeout(20):
            return await scene()

    return asyncio.run(bounded())


async def pieces(events: Any, call_id: str, heard: Callable[[], object] = lambda: None) -> list[ReplyDelta]:
    """The deltas until the call has ended."""
    found = []
    async with aclosing(events):
        async for item in events:
            if isinstance(item, ReplyDelta):
                found.append(item)
                heard()
            elif isinstance(item.event, EffectFinished) and item.event.id == call_id:
                break
    return found


@pytest.mark.parametrize("watched", [False, True], ids=["by nobody before", "by somebody else too"])
def test_who_comes_in_the_middle_of_a_reply_sees_its_beginning(watched: bool) -> None:
    """Whether or not anybody listened when the model was asked."""

    async def scene() -> None:
        model = Writer("One two", " three.")
        async with open_run([Agent("a", model=model)]) as run:
            first = run.events() if watched else None
            call_id = await run.post("a", "go")
            await model.said.wait()
            found = await pieces(run.events(run.seq), call_id, model.go_on.set)
            assert [(each.offset, each.text, each.cut) for each in found] == [
                (0, "One two", False), (7, " three.", False)
            ]  # fmt: skip
            if first is not None:
                assert "".join(each.text for each in await pieces(first, call_id)) == "One two three."

    play(scene)


def test_who_comes_in_the_middle_sees_what_is_said_next_while_it_is_said() -> None:
    """Though nobody was there when the model was asked; and afterwards there is nothing to look at."""

    async def scene() -> None:
        class Talk(Writer):
            async def complete(self, request: ModelRequest, emit: Any) -> Reply:
                emit(Delta("text", "One"))
                self.said.set()
                await self.go_on.wait()
                for _ in range(20):
                    await asyncio.sleep(0)
                emit(Delta("text", " two"))
                await heard.wait()
                return Reply("One two")

        model, heard = Talk(""), asyncio.Event()
        async with open_run([Agent("a", model=model)]) as run:
            call_id = await run.post("a", "go")
            await model.said.wait()
            events, found = run.events(), []
            async for item in events:
                if isinstance(item, ReplyDelta):
                    found.append(item.text)
                    model.go_on.set()
                if len(found) == 2:
                    break
            assert found == ["One", " two"]
            heard.set()
            await run.result(call_id)
            live = run._runtime.feed
            while live.timer is not None:
                live.timer.cancel()
                live._look(asyncio.get_running_loop())
            events.close()

    play(scene)


def test_of_a_long_reply_it_sees_the_end_and_that_it_was_cut() -> None:
    async def scene() -> None:
        said = "".join(f"{number:07}" for number in range(KEPT // 4))
        model = Writer(said, "!")
        async with open_run([Agent("a", model=model)]) as run:
            call_id = await run.post("a", "go")
            await model.said.wait()
            # As a second without readers does.
            run._runtime.feed._look(asyncio.get_running_loop())
            beginning, end = await pieces(run.events(), call_id, model.go_on.set)
            assert (beginning.text, beginning.cut) == (said[-KEPT:], True)
            assert beginning.offset == len(said) - KEPT
            assert (end.text, end.offset, end.cut) == ("!", len(said), False)

    play(scene)


def test_a_connection_sees_the_beginning_too() -> None:
    async def scene() -> None:
        model = Writer("One two", " three.")
        async with open_run([Agent("a", model=model)], journal="memory") as run:
            call_id = await run.post("a", "go")
            await model.said.wait()
            async with connect(run._journal, run.run_id) as connection:
                found = await pieces(connection.events(), call_id, model.go_on.set)
        assert [each.text for each in found] == ["One two", " three."]

    play(scene)


def test_nothing_is_left_of_what_has_ended() -> None:
    async def scene() -> None:
        async with open_run([Agent("a", model=Script(["One.", "Two."]))]) as run:
            await run.result(await run.post("a", "go"))
            assert not run._runtime.feed.waiting
            events = run.events(run.seq)
            await pieces(events, await run.post("a", "go"))
            assert not run._runtime.feed.waiting
            assert not run._runtime.feed.said

    play(scene)


def test_a_model_may_speak_from_a_thread() -> None:
    async def scene() -> None:
        class Threaded(Writer):
            async def complete(self, request: ModelRequest, emit: Any) -> Reply:
                def speak() -> None:
                    for word in ("One ", "two"):
                        emit(Delta("text", word))

                thread = threading.Thread(target=speak)
                thread.start()
                thread.join()
                await self.go_on.wait()
                return Reply("One two")

        model = Threaded("")
        async with open_run([Agent("a", model=model)]) as run:
            events = run.events()
            found = await pieces(events, await run.post("a", "go"), model.go_on.set)
        assert "".join(each.text for each in found) == "One two"

    play(scene)


class Late(MemoryJournal):
    """Says that rows are durable when it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.late, self.waiting = False, list[Callable[[], None]]()

    def append(self, lease: Any, row: Any, blobs: Any, done: Any) -> None:
        if self.late:
            super().append(lease, row, blobs, lambda error: self.waiting.append(lambda: done(error)))
        else:
            super().append(lease, row, blobs, done)

    def release_rows(self) -> None:
        self.late, waiting = False, self.waiting
        self.waiting = []
        for each in waiting:
            each()


@pytest.mark.parametrize("watched", [False, True], ids=["who comes then", "who was there"])
def test_nobody_hears_what_an_effect_says_before_they_see_that_it_began(watched: bool) -> None:
    async def scene() -> None:
        model, journal = Writer("One"), Late()
        async with open_run([Agent("a", model=model)], journal=journal) as run:
            first = run.events() if watched else None
            journal.late = True
            call_id = await run.post("a", "go")
            await model.said.wait()
            events = run.events() if first is None else first
            found: list[Any] = []

            async def read() -> None:
                async with aclosing(events):
                    async for item in events:
                        found.append(item)
                        if isinstance(item, ReplyDelta):
                            model.go_on.set()
                        elif isinstance(item.event, EffectFinished) and item.event.id == call_id:
                            return

            reading = asyncio.create_task(read())
            for _ in range(50):
                await asyncio.sleep(0)
            assert not any(isinstance(each, ReplyDelta) for each in found)
            journal.release_rows()
            await reading
            (at,) = [place for place, each in enumerate(found) if isinstance(each, ReplyDelta)]
            seen = [each.event.id for each in found[:at] if isinstance(each.event, EffectStarted)]
            assert seen[-1] == found[at].effect_id

    play(scene)


@pytest.mark.parametrize("threaded", [False, True], ids=["async", "in a thread"])
def test_the_latest_progress_of_a_tool_is_kept_for_who_comes_late(threaded: bool) -> None:
    async def scene() -> None:
        told, go_on = asyncio.Event(), threading.Event()
        loop = asyncio.get_running_loop()

        def work(ctx: ToolContext) -> str:
            for number in range(1_000):
                ctx.report_progress(f"{number} " * MAX_TEXT)
            loop.call_soon_threadsafe(told.set)
            if threaded:
                go_on.wait(10)
            return "done"

        async def work_async(ctx: ToolContext) -> str:
            """Work."""
            work(ctx)
            await asyncio.get_running_loop().run_in_executor(None, go_on.wait, 10)
            return "done"

        used = tool(effect="read", name="work", description="Work.")(work if threaded else work_async)
        async with open_run([Agent("a", tools=[used], model=Script([call("work"), "done"]))]) as run:
            call_id = await run.post("a", "go")
            await told.wait()
            found = await pieces(run.events(), call_id, go_on.set)
        (progress,) = [each for each in found if each.kind == "progress"]
        assert progress.text == ("999 " * MAX_TEXT)[:MAX_TEXT]
        assert not run._runtime.feed.waiting

    play(scene)


async def why(run: Run, do: Callable[[], Awaitable[object]]) -> tuple[str, str]:
    """What a subscription says of its end before it and after `do`."""
    events = run.events()
    reading = asyncio.create_task(_all(events))
    await asyncio.sleep(0)
    before = events.ended
    await do()
    await reading
    return before, events.ended


async def _all(events: Any) -> list[Any]:
    return [item async for item in events]


def test_a_stream_says_why_it_ended() -> None:
    async def connected() -> None:
        async with (
            open_run([Agent("a", model=Script(["One."]))]) as run,
            connect(run._journal, run.run_id) as connection,
        ):
            events, left = connection.events(), connection.events()
            left.close()
            await run.close()
            await _all(events)
            assert (events.ended, left.ended) == ("closed", "")

    async def leaving() -> None:
        manager = open_run([Agent("a", model=Script(["One."]))])
        run = await manager.__aenter__()
        assert await why(run, lambda: manager.__aexit__(None, None, None)) == ("", "suspended")

    async def closing() -> None:
        manager = open_run([Agent("a", model=Script(["One."]))])
        run = await manager.__aenter__()
        # Inside the block: who reads to the end and leaves then does not wait for itself.
        assert await why(run, run.close) == ("", "closed")
        assert run.is_over
        await manager.__aexit__(None, None, None)

    async def failing() -> None:
        manager = open_run([Agent("a", model=Script(["One."]))])
        run = await manager.__aenter__()

        async def fail() -> None:
            run._runtime._suspend(RuntimeError("a fault"))

        assert await why(run, fail) == ("", "failed")
        await manager.__aexit__(None, None, None)

    play(connected)
    play(leaving)
    play(closing)
    play(failing)


class Count:
    """Counts how often readers are woken, and hears what they read."""

    def __init__(self, run: Run, many: int) -> None:
        self.readers = [run.events() for _ in range(many)]
        self.found: list[list[Any]] = [[] for _ in range(many)]

    async def read(self, which: int, call_id: str) -> None:
        async with aclosing(self.readers[which]) as items:
            async for item in items:
                self.found[which].append(item)
                if (
                    isinstance(item, Record)
                    and isinstance(item.event, EffectFinished)
                    and item.event.id == call_id
                ):
                    break


@pytest.mark.parametrize("many", [1, feed.FEW, feed.FEW + 1, 200])
def test_however_many_read_each_has_every_record_and_the_whole_reply(many: int) -> None:
    """And one that stands still takes nothing from the others."""

    async def scene() -> None:
        model = Writer("One two", " three.")
        async with open_run([Agent("a", model=model)]) as run:
            stalled, count = run.events(), Count(run, many)
            call_id = await run.post("a", "go")
            await model.said.wait()
            reading = [asyncio.create_task(count.read(each, call_id)) for each in range(many)]
            model.go_on.set()
            await asyncio.gather(*reading)
            records = await run.records()
            for found in count.found:
                assert [each.seq for each in found if isinstance(each, Record)] == [
                    each.seq for each in records if each.seq <= found[-1].seq
                ]
                said = "".join(each.text for each in found if isinstance(each, ReplyDelta))
                assert said == "One two three."
            assert stalled.position == 0

    play(scene)


def test_a_row_wakes_few_readers_at_once_and_many_by_the_timer(monkeypatch: pytest.MonkeyPatch) -> None:
    woken: list[object] = []
    monkeypatch.setattr(feed.Subscription, "wake", lambda self: woken.append(self))

    async def scene() -> None:
        async with open_run([Agent("a", model=Script(["One."] * 2))]) as run:
            live = run._runtime.feed
            few = [run.events(deltas=False) for _ in range(feed.FEW)]
            live.reached(live.durable)
            assert woken == few
            woken.clear()
            last = run.events(deltas=False)
            for _ in range(100):
                live.reached(live.durable)
            assert woken == []
            assert live.timer is not None
            while live.timer is not None:
                live.timer.cancel()
                live._look(asyncio.get_running_loop())
            assert woken == [*few, last], "each once, however many rows there were"

    play(scene)


def test_an_unwatched_run_is_looked_at_once_a_second_and_only_while_a_model_speaks() -> None:
    async def scene() -> None:
        model = Writer("One", "two")
        async with open_run([Agent("a", model=model)]) as run:
            live = run._runtime.feed
            call_id = await run.post("a", "go")
            await model.said.wait()
            assert live.timer is not None
            assert live.timer.when() > asyncio.get_running_loop().time() + feed.UNHEARD / 2
            model.go_on.set()
            await run.result(call_id)
            live._look(asyncio.get_running_loop())
            assert live.timer is None

    play(scene)


def test_the_first_reader_does_not_wait_for_the_look_of_an_unwatched_run() -> None:
    """A timer of a second that goes on from before is not what a delta is shown by."""

    async def scene() -> None:
        model = Writer("One", " two")
        async with open_run([Agent("b", model=Script(["Yes."])), Agent("a", model=model)]) as run:
            await run.result(await run.post("b", "go"))
            assert run._runtime.feed.timer is not None
            events = run.events()
            call_id = await run.post("a", "go")
            async with asyncio.timeout(feed.UNHEARD / 2):
                await pieces(events, call_id, model.go_on.set)

    play(scene)


def test_readers_of_many_runs_are_woken_as_seldom_as_many_readers_of_one() -> None:
    """What is said reaches each of them within LATEST, and the loop is not taken up by waking them."""

    async def reading() -> None:
        async with AsyncExitStack() as stack:
            journal = MemoryJournal()
            runs = [
                await stack.enter_async_context(open_run([Agent("a", model=Script([]))], journal=journal))
                for _ in range(50)
            ]
            alone = runs[0].events()
            assert runs[0]._runtime.feed._period == feed.SOON
            others = [run.events() for run in runs for _ in range(6)]
            assert runs[0]._runtime.feed._period == 301 * feed.SECONDS_PER_READER
            assert len(runs[0]._runtime.feed.subscribers) <= feed.FEW
            # They all move at once, and their readers are woken one run after the other.
            feeds = [each._runtime.feed for each in runs]
            for each in feeds:
                each.reached(each.durable)
            period = feeds[0]._period
            due = Counter(round(each.timer.when() % period / feed.GAP) % 15 for each in feeds if each.timer)
            assert len(due) == 15, "so many gaps has the period"
            assert max(due.values()) <= 4
            for each in (*others[6:], *others[6:]):
                each.close()
            assert runs[0]._runtime.feed._period == feed.SOON
            assert alone.ended == ""
        # What was never read to its end, or closed, counts no more once its run was left.
        async with open_run([Agent("a", model=Script([]))], journal=MemoryJournal()) as run:
            run.events()
            assert feed._readers_here()[0] == 1
        assert feed._readers_here()[0] == 0

    asyncio.run(reading())
