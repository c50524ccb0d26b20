"""What a call changed is on record with its end: every file before and after, whole."""

from __future__ import annotations

import asyncio
import base64
import os
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

from antiphon import Agent, ToolContext, open_run, tool
from antiphon.errors import UserError
from antiphon.kernel.facts.events import EffectFinished, FilesChanged
from antiphon.models.script import Script, call
from antiphon.tools import edit_tools, folder_tools
from antiphon.values.message import MAX_KEPT_FILE, FileChange, FileState, ToolResult
from antiphon.view import RunTree
from tests.unit.journal.writing import opened

ODD = b"\xff\xfe\x00caf\xe9"


def changes_of(tools: Any, *calls: Any, journal: Any = None) -> list[tuple[str, tuple[FileChange, ...]]]:
    """Every event of changed files and every end of a call in a run that makes these calls."""

    async def main() -> list[tuple[str, tuple[FileChange, ...]]]:
        async with open_run(
            [Agent("a", tools=tools)], model=Script([*calls, "end"]), env={}, journal=journal
        ) as run:
            await run.result(await run.post("a", "go"))
            records = await run.records()
        tree, found = RunTree(), []
        for each in records:
            tree.add(each)
            if isinstance(each.event, FilesChanged):
                found.append((each.event.id, each.event.changes))
            elif isinstance(each.event, EffectFinished) and tree.effects[each.event.id].kind == "tool":
                found.append((each.event.id, each.event.outcome))
        assert tree.files == {place: held for place, held in found if isinstance(held, tuple)}
        return found

    return asyncio.run(main())


def test_the_end_of_a_call_comes_with_the_files_that_it_changed(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("one\n")
    found = changes_of(edit_tools(tmp_path), call("edit_file", path="./a.md", old="one", new="two"))
    before, after = FileState.of(b"one\n"), FileState.of(b"two\n")
    assert found == [
        ("1/1.c1", (FileChange(str(tmp_path), "a.md", before, after),)),
        ("1/1.c1", "completed"),
    ]


def test_made_moved_and_deleted(tmp_path: Path) -> None:
    found = changes_of(
        [*folder_tools(tmp_path), *edit_tools(tmp_path)],
        call("write_file", path="a.md", content="one\n"),
        call("move_file", path="a.md", to="new/b.md"),
        call("delete_file", path="new/b.md"),
    )
    here, one = str(tmp_path), FileState.of(b"one\n")
    assert [held for _, held in found if held != "completed"] == [
        (FileChange(here, "a.md", None, one),),
        (FileChange(here, "a.md", one, None), FileChange(here, "new/b.md", None, one)),
        (FileChange(here, "new/b.md", one, None),),
    ]


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nobody says what mode a new file gets")
def test_a_file_that_is_made_has_the_mode_on_record(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        found = changes_of(edit_tools(tmp_path), call("write_file", path="a.md", content="one\n"))
    finally:
        os.umask(before)
    assert found[0][1] == (FileChange(str(tmp_path), "a.md", None, FileState.of(b"one\n", 0o640)),)
    assert stat.S_IMODE((tmp_path / "a.md").stat().st_mode) == 0o640


def test_a_refused_change_is_none(tmp_path: Path) -> None:
    found = changes_of(edit_tools(tmp_path), call("edit_file", path="a.md", old="one", new="two"))
    assert found == [("1/1.c1", "failed")]


def test_a_call_that_failed_may_have_changed_files() -> None:
    change = FileChange("/work", "a", None, FileState.of(b"1"))

    @tool
    def half() -> ToolResult:
        """Do a half."""
        return ToolResult("exit code 1", is_error=True, changes=(change,))

    assert changes_of([half], call("half")) == [("1/1.c1", (change,)), ("1/1.c1", "failed")]


def test_a_file_is_named_once_and_only_if_it_is_another() -> None:
    one, two, three = (FileState.of(each) for each in (b"1", b"2", b"3"))

    @tool
    def often() -> ToolResult:
        """Change a file twice, one back, and another not at all."""
        named = [("a", one, two), ("a", two, three), ("b", one, two), ("b", two, one), ("c", one, one)]
        return ToolResult("done", changes=tuple(FileChange("/work", *each) for each in named))

    change = FileChange("/work", "a", one, three)
    assert changes_of([often], call("often")) == [("1/1.c1", (change,)), ("1/1.c1", "completed")]


def test_what_is_written_as_it_was_is_no_change(tmp_path: Path) -> None:
    tools = [*folder_tools(tmp_path), *edit_tools(tmp_path)]
    again = call("write_file", path="a.md", content="one\n")
    (first, _), *rest = changes_of(tools, again, again)
    assert rest == [(first, "completed"), ("1/2.c1", "completed")]


def test_a_tool_that_asked_ends_with_its_changes_too() -> None:
    change = FileChange("/work", "a", None, FileState.of(b"1"))

    @tool
    async def stepwise(ctx: ToolContext) -> ToolResult:
        """Do it in a step."""
        await ctx.step("one", lambda: 1)
        return ToolResult("done", changes=(change,))

    assert changes_of([stepwise], call("stepwise")) == [("1/1.c1", (change,)), ("1/1.c1", "completed")]


def test_large_files_are_kept_once_as_blobs(tmp_path: Path) -> None:
    """What a call found is what the call before it had left: one blob for both."""
    old, new = "x" * 200_000 + "\n", "y" * 200_000 + "\n"
    (tmp_path / "w").mkdir()
    tools = edit_tools(tmp_path / "w")

    async def main() -> int:
        async with opened(tmp_path / "journal.db") as journal:
            model = Script(
                [call("write_file", path="a", content=old), call("write_file", path="a", content=new), "end"]
            )
            async with open_run([Agent("a", tools=tools)], model=model, env={}, journal=journal) as run:
                await run.result(await run.post("a", "go"))
                events = [each.event for each in await run.records()]
            assert [each.changes[0].after for each in events if isinstance(each, FilesChanged)] == [
                FileState.of(old.encode()), FileState.of(new.encode())
            ]  # fmt: skip
            rows = await journal.read(run.run_id)
            return len({digest for row in rows for _, digest in row.refs})

    # The prompt, the arguments of two calls and two contents.
    assert asyncio.run(main()) <= 6


@pytest.mark.parametrize(
    ("data", "held"),
    [
        (b"text\r\n", {"text": "text\r\n"}),
        (b"\xef\xbb\xbfmark", {"text": "\ufeffmark"}),
        (b"a\x00b\x1b[31m", {"text": "a\x00b\x1b[31m"}),
        (ODD, {"data": base64.b64encode(ODD).decode()}),
        (b"", {}),
    ],
)
def test_a_file_comes_back_byte_for_byte(data: bytes, held: dict[str, str]) -> None:
    state = FileState.of(data, 0o755)
    assert (state.mode, state.text, state.data) == (0o755, held.get("text", ""), held.get("data", ""))
    assert state.content() == data


def test_of_a_large_file_only_its_version_is_known() -> None:
    state = FileState.of(b"x" * (MAX_KEPT_FILE + 1))
    assert (state.kept, state.content(), len(state.version)) == (False, None, 32)
    assert FileState.of(b"x" * MAX_KEPT_FILE).kept


@pytest.mark.parametrize("wrong", [{"folder": 1}, {"path": None}, {"before": "text"}])
def test_a_change_is_checked_where_it_is_made(wrong: dict[str, Any]) -> None:
    with pytest.raises(UserError, match=r"FileChange\(\w+=\.\.\.\)"):
        FileChange(**{"folder": "/", "path": "a"} | wrong)
