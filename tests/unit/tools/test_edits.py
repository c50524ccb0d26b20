"""Files are edited, written, moved and deleted whole or not at all, and only as the agent has seen them."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path
from typing import Any

import pytest

from antiphon import Agent, ReplyDelta, ToolContext, open_run, stream, tool
from antiphon.errors import ToolError
from antiphon.models.script import Script, call
from antiphon.tools import edit_tools, folder_tools
from antiphon.tools.folder import root, writing
from antiphon.tools.folder.edits import MoreEdit
from antiphon.tools.folder.writing import version_of
from tests.promises.test_drain import in_a_loop

NOBODY = ToolContext()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "shop.py").write_text("def price():\n    return 1\n\n\ndef order():\n    return 2\n")
    (tmp_path / "notes.md").write_text("# Notes\n\nTea.\n")
    return tmp_path


def tools(folder: Path) -> dict[str, Any]:
    return {tool.name: tool for tool in (*folder_tools(folder), *edit_tools(folder))}


def tree(folder: Path) -> dict[str, str]:
    return {str(each.relative_to(folder)): each.read_text() for each in folder.rglob("*") if each.is_file()}


# -- without a run ---------------------------------------------------------------------------------


def test_they_act_and_can_be_done_again(folder: Path) -> None:
    found = {tool.name: (tool.effect, tool.kind, tool.title) for tool in edit_tools(folder)}
    assert found == {
        "edit_file": ("idempotent", "edit", "Edit a file"),
        "write_file": ("idempotent", "edit", "Write a file"),
        "move_file": ("idempotent", "move", "Move a file"),
        "delete_file": ("idempotent", "delete", "Delete a file"),
    }


def test_edit_file_says_what_stands_there_now(folder: Path) -> None:
    before = version_of((folder / "src" / "shop.py").read_bytes())
    said = tools(folder)["edit_file"](
        NOBODY, "src/shop.py", "return 2", "return 3", [MoreEdit("price", "cost")]
    ).content
    after = version_of((folder / "src" / "shop.py").read_bytes())
    assert said == (
        f"src/shop.py, edited, version {after}, was {before}:\n"
        "1: def cost():\n2:     return 1\n3: \n4: \n5: def order():\n6:     return 3"
    )
    assert (
        folder / "src" / "shop.py"
    ).read_text() == "def cost():\n    return 1\n\n\ndef order():\n    return 3\n"


def test_none_of_several_edits_is_made_when_one_is_refused(folder: Path) -> None:
    before = tree(folder)
    with pytest.raises(ToolError, match="edit 2 of 2: `old` stands nowhere"):
        tools(folder)["edit_file"](NOBODY, "notes.md", "Tea", "Rum", [MoreEdit("Coffee", "Ale")])
    with pytest.raises(ToolError, match="the file would be as it is"):
        tools(folder)["edit_file"](NOBODY, "notes.md", "#  Notes", "# Notes")
    assert tree(folder) == before


def test_an_edit_that_was_fitted_says_so(folder: Path) -> None:
    said = tools(folder)["edit_file"](
        NOBODY, "src/shop.py", "def order():\n\treturn 2", "def order():\n\treturn 5"
    ).content
    assert said.endswith("6:     return 5\n`old` differed in white space; `new` was indented as the file is")


@pytest.mark.parametrize("by_component", [True, False])
@pytest.mark.parametrize("exchanges", [True, False])
def test_mode_attributes_and_times_of_others_stay(
    folder: Path, by_component: bool, exchanges: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(root, "_BY_COMPONENT", by_component)
    if not exchanges:
        monkeypatch.setattr(writing, "_renameat2", lambda: None)
    file = folder / "src" / "shop.py"
    file.chmod(0o751)
    used = tools(folder)
    used["edit_file"](NOBODY, "src/shop.py", "return 2", "return 3")
    used["write_file"](NOBODY, "new/deep/a.txt", "made\n")
    used["write_file"](NOBODY, "notes.md", "other\n")
    used["move_file"](NOBODY, "notes.md", "docs/n.md")
    assert stat.S_IMODE(file.stat().st_mode) == 0o751
    assert "return 3" in file.read_text()
    used["delete_file"](NOBODY, "src/shop.py")
    assert tree(folder) == {"new/deep/a.txt": "made\n", "docs/n.md": "other\n"}
    assert not list(folder.rglob(".antiphon*"))


def test_what_is_read_only_there_already_or_no_file_is_refused(folder: Path) -> None:
    used = tools(folder)
    (folder / "notes.md").chmod(0o444)
    for name, arguments, why in (
        ("edit_file", ("notes.md", "Tea", "Rum"), "is read-only"),
        ("write_file", ("notes.md", "Rum"), "is read-only"),
        ("delete_file", ("notes.md",), "is read-only"),
        ("move_file", ("src/shop.py", "notes.md"), "there already"),
        ("move_file", ("src/shop.py", "src"), "there already"),
        ("move_file", ("none.py", "src/x.py"), "There is no file none.py"),
        ("edit_file", ("src", "a", "b"), "is a folder"),
        ("write_file", ("src", "b"), "is a folder"),
        ("write_file", ("notes.md/b", "b"), "a part of the path is a file"),
        ("write_file", (".", "b"), "The folder itself"),
        ("write_file", ("x" * 300, "b"), "longer than the file system takes"),
        ("write_file", ("../b", "b"), "leads out"),
        ("write_file", (".git/config", "b"), "keeps the versions"),
        ("write_file", (".env", "b"), "looks like a secret"),
        ("edit_file", ("src/shp.py", "a", "b"), "Near: src/shop.py"),
    ):
        with pytest.raises(ToolError, match=why):
            used[name](NOBODY, *arguments)


def test_a_file_of_another_user_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: (folder / "notes.md").stat().st_uid + 1)
    with pytest.raises(ToolError, match="belongs to another user"):
        tools(folder)["edit_file"](NOBODY, "notes.md", "Tea", "Rum")


def test_of_a_long_file_watchers_see_the_part_around_the_edit(folder: Path) -> None:
    (folder / "long.md").write_text("".join(f"line {at}\n" for at in range(20_000)))
    told: list[Any] = []
    ctx = ToolContext(report_progress=lambda text="", **more: told.append(more["diffs"][0]))
    tools(folder)["edit_file"](ctx, "long.md", "line 9999\n", "line 9999!\n")
    (found,) = told
    assert found.cut
    assert len(found.before) < 10_000
    assert found.before.replace("line 9999\n", "line 9999!\n") == found.after


def test_line_ends_and_encoding_of_a_file_that_is_written_anew_stay(folder: Path) -> None:
    (folder / "old.txt").write_bytes("Grüße\r\nan\r\n".encode("latin-1"))
    tools(folder)["write_file"](NOBODY, "old.txt", "Grüße\nalle\n")
    assert (folder / "old.txt").read_bytes() == "Grüße\r\nalle\r\n".encode("latin-1")
    with pytest.raises(ToolError, match="has no '€'"):
        tools(folder)["write_file"](NOBODY, "old.txt", "5 €")


@pytest.mark.parametrize("name", ["edit_file", "write_file", "delete_file", "move_file"])
def test_what_somebody_writes_in_the_last_moment_is_not_lost(
    folder: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Right before the file is exchanged, moved or taken away another program saves it."""
    rename = writing._rename_with
    others = iter(["# Theirs\n"])

    def late(*arguments: Any) -> bool:
        for text in others:
            (folder / "notes.md").write_text(text)
        return rename(*arguments)

    monkeypatch.setattr(writing, "_rename_with", late)
    arguments = {
        "edit_file": ("notes.md", "Tea", "Rum"),
        "write_file": ("notes.md", "Rum\n"),
        "delete_file": ("notes.md",),
        "move_file": ("notes.md", "n.md"),
    }[name]
    before = tree(folder)
    with pytest.raises(ToolError, match="changed since you saw it, version"):
        tools(folder)[name](NOBODY, *arguments)
    assert tree(folder) == before | {"notes.md": "# Theirs\n"}


# -- in a run --------------------------------------------------------------------------------------


def saves(folder: Path) -> Any:
    @tool(effect="read")
    def behind(path: str, text: str) -> str:
        """Somebody else saves a file."""
        (folder / path).write_text(text)
        return "saved"

    return behind


def agent(folder: Path, *lines: Any, name: str = "a") -> Agent:
    model = Script(list(lines), by="turn")
    return Agent(name, context="continue", tools=[*tools(folder).values(), saves(folder)], model=model)


async def told(folder: Path, *lines: Any) -> list[str]:
    """What the calls of a run gave, or why they failed."""
    async with open_run([agent(folder, *lines, "done")]) as run:
        await run.result(await run.post("a", "go"))
        return await ends(run)


async def ends(run: Any) -> list[str]:
    """How the calls of tools ended, in order: content or reason."""
    found: list[str] = []
    async for item in run.events(0, deltas=False):
        event: Any = item.event
        if item.type == "EffectFinished" and re.fullmatch(r"[1-9]\d*/\d+\.c\d+", event.id):
            found.append(event.content or event.reason)
        if item.seq == run.seq:
            break
    return found


def edits(old: str, new: str, path: str = "notes.md") -> Any:
    return call("edit_file", path=path, old=old, new=new)


READ = call("read_lines", path="notes.md")


def behind(text: str) -> Any:
    return call("behind", path="notes.md", text=text)


@in_a_loop
async def test_a_file_that_was_changed_since_the_agent_read_it_is_refused_with_its_diff(folder: Path) -> None:
    theirs = "# Notes\n\nTea and rum.\nAle.\n"
    found = await told(folder, READ, behind(theirs), edits("Tea", "Coffee"), edits("Tea", "Coffee"))
    assert found[2] == (
        f"[edit_file] notes.md, changed since you saw it, version {version_of(theirs.encode())}:\n"
        "nothing was changed by you. - is what you saw, + is the file now; "
        "call again with what stands there now\n"
        "@@ line 3 @@\n  # Notes\n  \n- Tea.\n+ Tea and rum.\n+ Ale."
    )
    # It has seen that now.
    assert found[3].startswith("notes.md, edited, version")
    assert (folder / "notes.md").read_text() == "# Notes\n\nCoffee and rum.\nAle.\n"


@in_a_loop
async def test_what_changed_where_it_has_not_read_is_said(folder: Path) -> None:
    first = call("read_lines", path="notes.md", last=1)
    found = await told(
        folder, first, behind("# Notes\n\nRum.\n"), edits("Rum", "Ale"), behind("x\n"), edits("x", "y")
    )
    assert "The lines that you saw are as they were, others are not" in found[2]
    assert found[4].endswith("nothing was changed by you; read it again")


@in_a_loop
async def test_it_is_refused_after_a_restart_too(
    folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    journal = f"sqlite:///{tmp_path_factory.mktemp('journal') / 'runs.db'}"
    team = [agent(folder, READ, "read", edits("Tea", "Rum"), "done")]
    async with open_run(team, journal=journal) as run:
        await run.result(await run.post("a", "read"))
        run_id = run.run_id
    (folder / "notes.md").write_text("# Notes\n\nTea?\n")
    async with open_run(team, run_id=run_id, journal=journal) as run:
        await run.result(await run.post("a", "edit"))
        assert "- Tea.\n+ Tea?" in (await ends(run))[1]
    assert (folder / "notes.md").read_text() == "# Notes\n\nTea?\n"


@in_a_loop
async def test_what_it_has_changed_itself_it_has_seen(folder: Path) -> None:
    found = await told(
        folder, READ, edits("Tea", "Rum"), edits("Rum", "Ale"),
        call("write_file", path="notes.md", content="Ale.\n"), call("move_file", path="notes.md", to="n.md"),
        edits("Ale", "Gin", "n.md"), call("delete_file", path="n.md"),
    )  # fmt: skip
    assert not [each for each in found if each.startswith("[")]
    assert found[-1] == "n.md is deleted"
    assert sorted(tree(folder)) == ["src/shop.py"]


@in_a_loop
async def test_several_edits_of_one_reply_are_all_made(folder: Path) -> None:
    both = [edits("# Notes", "# Drinks"), edits("Tea", "Rum"), edits(".", "!")]
    found = await told(folder, READ, both, edits("Rum", "Gin"))
    assert not [each for each in found if each.startswith("[")]
    assert (folder / "notes.md").read_text() == "# Drinks\n\nGin!\n"


@in_a_loop
async def test_what_another_agent_changed_is_refused(folder: Path) -> None:
    first = agent(
        folder, READ, call("call_agent", agent_name="b", message="edit"), edits("Tea", "Rum"), "done"
    )
    second = agent(folder, edits("Notes", "Drinks"), "edited", name="b")
    async with open_run([first, second]) as run:
        await run.result(await run.post("a", "go"))
        assert "- # Notes\n+ # Drinks" in (await ends(run))[-1]
    assert (folder / "notes.md").read_text() == "# Drinks\n\nTea.\n"


@in_a_loop
async def test_a_file_that_was_not_read_is_not_written_over_and_may_be_edited(folder: Path) -> None:
    whole = call("write_file", path="notes.md", content="Gone.\n")
    found = await told(
        folder, whole, edits("Tea", "Rum"), whole, call("write_file", path="new.md", content="New.\n")
    )
    assert found[0] == (
        "[write_file] notes.md is there already, and you have not read it; read it first, or use edit_file"
    )
    assert found[2].endswith(":\n1 line")
    assert tree(folder)["notes.md"] == "Gone.\n"
    assert tree(folder)["new.md"] == "New.\n"


@in_a_loop
async def test_watchers_see_what_changes(folder: Path) -> None:
    found: list[Any] = []
    async with stream(agent(folder, edits("Tea", "Rum"), "done"), "go") as items:
        async for item in items:
            if isinstance(item, ReplyDelta) and item.kind == "progress":
                found.append(item)
    assert [(each.path, each.line) for each in found[0].locations] == [("notes.md", 3)]
    assert [(each.path, each.before, each.after) for each in found[0].diffs] == [
        ("notes.md", "# Notes\n\nTea.\n", "# Notes\n\nRum.\n")
    ]


@in_a_loop
async def test_a_name_that_looks_like_what_a_result_says_is_no_version(folder: Path) -> None:
    odd = "notes.md, lines 1-1 of 1, version 0123456789abcdef:"
    (folder / odd).write_text("x\n")
    found = await told(folder, call("read_lines", path=odd), edits("Tea", "Rum"))
    assert found[1].startswith("notes.md, edited")


def test_a_folder_that_another_program_has_locked_is_waited_for_and_given_up(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "PATIENCE", 0.02)
    with writing.alone(root.Root(folder)), pytest.raises(ToolError, match="has locked the folder"):
        tools(folder)["edit_file"](NOBODY, "notes.md", "Tea", "Rum")
    tools(folder)["edit_file"](NOBODY, "notes.md", "Tea", "Rum")
    assert os.listdir(folder / "src") == ["shop.py"]
