"""Open runs: cancelling, leaving and coming back, closing; and what their user does wrong."""

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from antiphon import Agent, ToolCall, UserError, open_run, run, run_sync, tool
from antiphon.errors import RunSuspended, UnknownName
from antiphon.journal import open_journal
from antiphon.kernel.run.api import stream
from antiphon.kernel.run.rows import read
from antiphon.models.script import Script, call, finish
from tests.transcript import effects, lines, recorded, results_shown, shown

A, B = Agent("a", "You lead."), Agent("b", "You write.")
PAIR = (A, B)


def ask(name: str, message: str = "m", **more: Any) -> ToolCall:
    return call("call_agent", agent_name=name, message=message, **more)


async def never(request: object) -> str:
    """A reply that does not come."""
    await asyncio.Event().wait()
    return "never"


async def started(opened: Any, effect_id: str) -> None:
    """Wait until an effect has started."""
    async for item in opened.events(deltas=False):
        if getattr(getattr(item, "event", None), "id", "") == effect_id:
            return


# -- cancelling ---------------------------------------------------------------------------------


def test_cancel_a_request_and_all_under_it() -> None:
    async def main() -> None:
        async with open_run(PAIR, model=Script({"a": [ask("b")], "b": [never]})) as opened:
            call_id = await opened.post("a", "go")
            await started(opened, "2/1.m1")
            await opened.cancel(call_id, "not needed any more")
            result = await opened.result(call_id)
            assert (result.outcome, result.reason) == ("cancelled", "not needed any more")
            assert effects(await opened.records())[-3:] == [
                "2/1.m1 cancelled: the caller ended",
                "1/1.c1 cancelled: the caller ended",
                "0/1.c1 cancelled: not needed any more",
            ]

    asyncio.run(main())


def test_cancel_one_call_and_the_caller_goes_on() -> None:
    async def main() -> None:
        model = Script({"a": [[ask("b"), ask("b", "too")], "went on"], "b": [never, finish("r")]})
        async with open_run(PAIR, model=model) as opened:
            call_id = await opened.post("a", "go")
            await started(opened, "2/1.m1")
            await opened.cancel("1/1.c1", "too slow")
            assert (await opened.result(call_id)).output == "went on"
            assert results_shown(model.requests[-1]) == ["Error: too slow", "r"]

    asyncio.run(main())


def test_cancel_a_tool() -> None:
    ended: list[str] = []

    @tool
    async def hang() -> None:
        """Hang."""
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("cleaned up")

    async def main() -> None:
        model = Script([call("hang"), "went on"])
        async with open_run([Agent("a", tools=[hang])], model=model) as opened:
            call_id = await opened.post("a", "go")
            await started(opened, "1/1.c1")
            await asyncio.sleep(0)
            await opened.cancel("1/1.c1")
            assert (await opened.result(call_id)).output == "went on"
        assert ended == ["cleaned up"]

    asyncio.run(main())


def test_cancel_everything() -> None:
    async def main() -> None:
        async with open_run(PAIR, model=Script([never, never])) as opened:
            calls = [await opened.post(name, "go") for name in ("a", "b")]
            await opened.cancel()
            assert [(await opened.result(each)).outcome for each in calls] == ["cancelled", "cancelled"]
            assert await opened.open_requests() == ()

    asyncio.run(main())


def test_a_cancelled_request_keeps_its_best_partial_output() -> None:
    from antiphon.values.model import Reply

    async def main() -> None:
        model = Script([Reply("half of it", (ask("nobody"),), "calls"), never])
        async with open_run([A], model=model) as opened:
            call_id = await opened.post("a", "go")
            await started(opened, "1/2.m1")
            await opened.cancel(call_id)
            assert (await opened.result(call_id)).output == "half of it"

    asyncio.run(main())


# -- leaving and coming back --------------------------------------------------------------------


def test_a_run_that_was_left_goes_on_where_it_was(tmp_path: Path) -> None:
    journal = f"sqlite:///{tmp_path}/runs.db"
    searched: list[str] = []

    @tool
    async def search(query: str) -> str:
        """Search."""
        searched.append(query)
        return f"found {query}"

    agent = Agent("a", tools=[search])

    async def leave() -> tuple[str, str]:
        model = Script([call("search", query="x"), never])
        async with open_run([agent, B], model=model, journal=journal) as opened:
            call_id = await opened.post("a", "go")
            await started(opened, "1/2.m1")
            return opened.run_id, call_id

    async def come_back(run_id: str, call_id: str) -> list[str]:
        model = Script({"a": [ask("b"), "end"], "b": [finish("r")]})
        async with open_run([agent, B], model=model, journal=journal, run_id=run_id) as opened:
            live = [item async for item in stream_of(opened, call_id)]
            result = await opened.result(call_id)
            records = await opened.records()
            assert shown(model.requests[0]) == ["user: go", "assistant: [search]", "tool: found x"]
            assert result.output == "end"
            assert live == records[: len(live)], "who comes back is shown what happened before, too"
            assert {each.agent for each in live} == {"user", "a", "b"}
            return effects(records, "m", "c")

    run_id, call_id = asyncio.run(leave())
    found = asyncio.run(come_back(run_id, call_id))
    assert searched == ["x"]
    assert found[5:9] == [
        "1/2.m1 model started",
        "1/2.m1 interrupted: the process stopped during the call",
        "1/2.m2 model started",
        "1/2.m2 completed: [call_agent]",
    ]


async def stream_of(opened: Any, call_id: str) -> Any:
    async for item in opened.events(deltas=False):
        yield item
        if getattr(item.event, "id", "") == call_id and item.type == "EffectFinished":
            return


def test_an_open_question_survives(tmp_path: Path) -> None:
    journal = f"sqlite:///{tmp_path}/runs.db"

    async def leave() -> str:
        async with open_run([A], model=Script([ask("user", "tea?")]), journal=journal) as opened:
            await opened.post("a", "go")
            await started(opened, "1/1.c1")
            return opened.run_id

    async def come_back(run_id: str) -> None:
        async with open_run([A], model=Script(["thanks"]), journal=journal, run_id=run_id) as opened:
            await opened.answer("1/1.c1", "yes, please")
            result = await opened.result("0/1.c1")
            assert (result.output, result.messages[2].content) == ("thanks", "yes, please")

    asyncio.run(come_back(asyncio.run(leave())))


def test_a_resting_run_is_continued_by_another_request(tmp_path: Path) -> None:
    journal = f"sqlite:///{tmp_path}/runs.db"

    async def ask_once(run_id: str | None, text: str) -> str:
        async with open_run([A], model=Script([f"re: {text}"]), journal=journal, run_id=run_id) as opened:
            assert (await opened.result(await opened.post("a", text))).output == f"re: {text}"
            return opened.run_id

    run_id = asyncio.run(ask_once(None, "one"))
    assert asyncio.run(ask_once(run_id, "two")) == run_id


def test_options_are_those_the_run_was_started_with(tmp_path: Path) -> None:
    journal = f"sqlite:///{tmp_path}/runs.db"

    async def prompt(run_id: str | None, extra: str) -> tuple[str, str]:
        model = Script(["end"])
        async with open_run(
            [A], model=model, journal=journal, run_id=run_id, extra_instructions=extra
        ) as opened:
            await opened.result(await opened.post("a", "go"))
            return opened.run_id, model.requests[0].system

    run_id, first = asyncio.run(prompt(None, "Be brief."))
    _, second = asyncio.run(prompt(run_id, "Be long."))
    assert first == second
    assert first.endswith("Be brief.")


def test_a_team_that_lost_an_agent(tmp_path: Path) -> None:
    """Code may change between two turns; a call of an agent that is gone ends as a failure."""
    journal = f"sqlite:///{tmp_path}/runs.db"

    async def leave() -> str:
        async with open_run(PAIR, model=Script({"a": [ask("b")], "b": [never]}), journal=journal) as opened:
            await opened.post("a", "go")
            await started(opened, "2/1.m1")
            return opened.run_id

    async def come_back(run_id: str) -> None:
        model = Script(["went on"])
        async with open_run([A], model=model, journal=journal, run_id=run_id) as opened:
            assert (await opened.result("0/1.c1")).output == "went on"
        assert results_shown(model.requests[0]) == ["Error: the team has no agent b any more"]

    asyncio.run(come_back(asyncio.run(leave())))


# -- what cannot be -----------------------------------------------------------------------------


def test_an_unknown_run(tmp_path: Path) -> None:
    async def main(journal: str | None) -> None:
        async with open_run([A], model=Script([]), journal=journal, run_id="nowhere"):
            pytest.fail("there is no such run")

    for journal in (None, f"sqlite:///{tmp_path}/runs.db"):
        with pytest.raises(UnknownName, match="Unknown run: nowhere"):
            asyncio.run(main(journal))


def test_a_closed_run_cannot_be_opened(tmp_path: Path) -> None:
    journal = f"sqlite:///{tmp_path}/runs.db"
    result = run_sync(A, "go", model=Script(["end"]), journal=journal)

    async def main() -> None:
        async with open_run([A], model=Script([]), journal=journal, run_id=result.run_id):
            pytest.fail("it is closed")

    with pytest.raises(
        UserError, match=f"Run {result.run_id} is closed; nothing can follow. Start a new one"
    ):
        asyncio.run(main())


def test_nothing_follows_a_close() -> None:
    async def main() -> None:
        async with open_run([A], model=Script([never, "end"])) as opened:
            call_id = await opened.post("a", "go")
            await opened.close("enough")
            assert (await opened.result(call_id)).reason == "enough"
            with pytest.raises(UserError, match="is closed; nothing can follow"):
                await opened.post("a", "again")
            await opened.close()
            assert lines(await opened.records())[-1] == "run closed"

    asyncio.run(main())


def test_a_conversation_outside_its_block() -> None:
    async def main() -> None:
        async with open_run([A], model=Script([never])) as opened:
            call_id = await opened.post("a", "go")
            waiting = asyncio.ensure_future(opened.result(call_id))
            await asyncio.sleep(0)
        with pytest.raises(RunSuspended, match="its conversation was left; open_run"):
            await waiting
        with pytest.raises(RunSuspended, match="its conversation was left; open_run"):
            await opened.post("a", "again")

    asyncio.run(main())


def test_a_request_that_was_never_made() -> None:
    async def main() -> None:
        async with open_run([A], model=Script([])) as opened:
            with pytest.raises(Exception, match=r"has no request 0/9.c1"):
                await opened.result("0/9.c1")

    asyncio.run(main())


# -- looking on ---------------------------------------------------------------------------------


def test_a_view_of_an_activation() -> None:
    async def main() -> None:
        async with open_run(PAIR, model=Script({"a": [ask("b", "hello")], "b": [never]})) as opened:
            await opened.post("a", "go")
            await started(opened, "2/1.m1")
            view = opened.activation(2)
            assert (view.agent, view.phase, view.turn, view.in_flight) == ("b", "waiting", 1, ("2/1.m1",))
            assert [each.content for each in view.messages] == ["hello"]
            with pytest.raises(UnknownName, match=r"Unknown activation: 7. Known: 0, 1, 2"):
                opened.activation(7)

    asyncio.run(main())


def test_records_after_a_number_and_of_a_stored_run(tmp_path: Path) -> None:
    path = f"sqlite:///{tmp_path}/runs.db"
    result, streamed = recorded(A, "go", model=Script(["end"]), journal=path)

    async def stored() -> Any:
        journal = open_journal(path)
        try:
            return await read(journal, result.run_id), await read(journal, result.run_id, after=5)
        finally:
            await journal.close()

    everything, rest = asyncio.run(stored())
    assert everything[: len(streamed)] == streamed
    assert lines(everything)[len(streamed) :] == ["run closed"]
    assert rest == everything[5:]
    assert [record.seq for record in everything] == list(range(1, len(everything) + 1))


def test_a_stream_tells_pieces_and_whole_replies() -> None:
    async def main() -> None:
        async with stream(A, "go", model=Script(["one two three"])) as events:
            items = [item async for item in events]
            assert str(await events.result()) == "one two three"
        pieces = [item for item in items if type(item).__name__ == "ReplyDelta"]
        assert "".join(piece.text for piece in pieces) == "one two three"
        assert {piece.effect_id for piece in pieces} == {"1/1.m1"}

    asyncio.run(main())


def test_who_looks_away_from_a_stream_does_not_cancel() -> None:
    async def main() -> None:
        async with stream(A, "go", model=Script(["end"])) as events:
            async for _ in events:
                break
            assert (await events.result()).output == "end"

    asyncio.run(main())


def test_run_sync_is_run_without_a_loop() -> None:
    assert run_sync(A, "go", model=Script(["end"])).output == "end"
    assert run_sync("b", "go", agents=PAIR, model=Script(["end"])).messages[0].receiver == "b"

    async def inside() -> None:
        assert (await run(A, "go", model=Script(["end"]))).output == "end"

    thread = threading.Thread(target=lambda: asyncio.run(inside()))
    thread.start()
    thread.join()


def test_cancelling_says_whether_there_was_anything_to_stop() -> None:
    async def main() -> None:
        async with open_run([A], model=Script([never, "done"])) as opened:
            assert await opened.cancel() is False
            request = await opened.post("a", "go")
            await started(opened, "1/1.m1")
            assert await opened.cancel("1/7.c1") is False, "no such effect"
            assert await opened.cancel(request) is True
            assert (await opened.result(request)).outcome == "cancelled"
            assert await opened.cancel(request) is False, "it has ended"

    asyncio.run(main())
