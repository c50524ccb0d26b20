"""What a tool reports while it runs: how far it is, where it works, what it changes; only the last word."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from antiphon import Agent, ReplyDelta, ToolContext, open_run, tool
from antiphon.kernel.facts.events import EffectFinished
from antiphon.models.script import Script, call
from antiphon.values.progress import (
    MAX_CHANGED,
    MAX_DIFFS,
    MAX_LOCATIONS,
    MAX_TEXT,
    FileDiff,
    FileLocation,
)
from antiphon.view import connect
from tests.unit.kernel.run.live.test_feed import pieces, play


def reported(say: Callable[[ToolContext], object], view: str = "run") -> tuple[ReplyDelta, str]:
    """What a tool reports as a reader who comes late is given it; how the call ended."""

    async def scene() -> tuple[ReplyDelta, str]:
        told, go_on = asyncio.Event(), asyncio.Event()

        @tool(effect="read")
        async def work(ctx: ToolContext) -> str:
            try:
                say(ctx)
            finally:
                told.set()
            await go_on.wait()
            return "done"

        async with open_run([Agent("a", tools=[work], model=Script([call("work"), "done"]))]) as run:
            call_id = await run.post("a", "go")
            await told.wait()
            async with connect(run._journal, run.run_id) as connection:
                events = run.events() if view == "run" else connection.events()
                found = await pieces(events, call_id, go_on.set)
            ends = [each.event for each in await run.records() if isinstance(each.event, EffectFinished)]
            reason = next(each.reason for each in ends if each.id == "1/1.c1")
        return next((each for each in found if each.kind == "progress"), None), reason  # type: ignore[return-value]

    return play(scene)  # type: ignore[no-any-return]


@pytest.mark.parametrize("view", ["run", "connection"])
def test_a_tool_says_where_it_works_and_what_it_changes(view: str) -> None:
    """The last report is all that it says: what that leaves out is not shown any more."""

    def say(ctx: ToolContext) -> None:
        ctx.report_progress("looking", locations=[FileLocation("old.py")])
        ctx.report_progress(
            "changing", locations=[FileLocation("a.py", 3)], diffs=[FileDiff("a.py", "x = 1", "x = 2")]
        )

    delta, _ = reported(say, view)
    assert (delta.text, delta.index) == ("changing", 2)
    assert delta.locations == (FileLocation("a.py", 3),)
    assert delta.diffs == (FileDiff("a.py", "x = 1", "x = 2"),)


def test_a_place_alone_is_a_report() -> None:
    delta, _ = reported(lambda ctx: ctx.report_progress(locations=[FileLocation("a.py")]))
    assert (delta.text, delta.locations) == ("", (FileLocation("a.py"),))


def test_a_report_is_bounded() -> None:
    """Whatever a tool says, readers are shown the first of it, and told what was cut."""

    def say(ctx: ToolContext) -> None:
        long = "y" * MAX_CHANGED
        ctx.report_progress(
            "z" * 2 * MAX_TEXT,
            locations=[FileLocation("p" * 2 * MAX_TEXT)] * (MAX_LOCATIONS + 1),
            diffs=[
                FileDiff("small", None, "new"),
                FileDiff("large", long, "after"),
                *[FileDiff("q" * 2 * MAX_TEXT, long, long)] * MAX_DIFFS,
            ],
        )

    delta, _ = reported(say)
    assert len(delta.text) == len(delta.locations[0].path) == len(delta.diffs[2].path) == MAX_TEXT
    assert (len(delta.locations), len(delta.diffs)) == (MAX_LOCATIONS, MAX_DIFFS)
    small, large, *rest = delta.diffs
    assert small == FileDiff("small", None, "new")
    assert (large.cut, large.after) == (True, "after")
    assert len(large.before or "") > 3_000
    shown = sum(len(each.before or "") + len(each.after or "") for each in delta.diffs)
    assert MAX_CHANGED - MAX_DIFFS <= shown <= MAX_CHANGED
    assert all(each.cut and each.before and each.after for each in rest)


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ({"locations": ["a.py"]}, "report_progress(locations=...)"),
        ({"diffs": [FileLocation("a.py")]}, "report_progress(diffs=...)"),
        ({"locations": [FileLocation("a.py", 0)]}, "FileLocation(line=...) is at least 1; got 0"),
    ],
)
def test_a_wrong_report_fails_the_tool(what: dict[str, Any], said: str) -> None:
    _, reason = reported(lambda ctx: ctx.report_progress(**what))
    assert said in reason
