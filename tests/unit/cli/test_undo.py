"""`antiphon runs undo` and `redo`: files that a run changed are again what they were."""

import asyncio

import pytest

from antiphon import Agent, open_run
from antiphon.cli import exit_codes
from antiphon.models.script import Script, call
from antiphon.tools import edit_tools, folder_tools

LINES = [
    call("read_lines", path="a.md"),
    call("edit_file", path="a.md", old="one", new="ONE"),
    call("write_file", path="b.md", content="b\n"),
    "Done.",
]


@pytest.fixture
def run_id(shell):
    """A run that changed two files of the folder."""
    shell.write("files/a.md", "one\ntwo\n")
    assert shell("run", "team.yaml", "Hello", "--quiet").code == 0
    assert shell("runs", "rm", shell("runs", "ls", "--json").value[0]["run_id"], "--yes").code == 0

    async def work():
        tools = [*folder_tools("files"), *edit_tools("files")]
        agent = Agent("clerk", model=Script(LINES), tools=tools)
        async with open_run([agent], journal="sqlite:///.antiphon/antiphon.db") as run:
            await run.result(await run.post("clerk", "Write."))
            return run.run_id

    return asyncio.run(work())


def held(shell, name):
    path = shell.folder / "files" / name
    return path.read_text() if path.exists() else None


def test_a_run_is_undone_and_redone(shell, run_id):
    said = shell("runs", "undo", run_id[:6])
    assert (said.code, said.out) == (0, "deleted b.md\nrestored a.md\n")
    assert f"run {run_id[:12]}: 2 files restored, 0 left; run " in said.err
    assert (held(shell, "a.md"), held(shell, "b.md")) == ("one\ntwo\n", None)
    made = shell("runs", "ls", "--json").value[0]
    assert made["run_id"][:12] in said.err
    assert "restore_files" in shell("runs", "show", made["run_id"]).out
    assert shell("runs", "verify").code == 0
    assert shell("runs", "undo", run_id).out == f"run {run_id[:12]}: nothing to undo\n"
    said = shell("runs", "redo", run_id)
    assert (said.code, said.out) == (0, "restored a.md\nmade again b.md\n")
    assert (held(shell, "a.md"), held(shell, "b.md")) == ("ONE\ntwo\n", "b\n")
    assert "is undone that could be redone" in shell("runs", "redo", run_id).err


def test_what_somebody_else_changed_is_shown(shell, run_id):
    shell.write("files/a.md", "ONE\nmine\n")
    said = shell("runs", "undo", run_id)
    assert said.code == exit_codes.FAILED
    assert said.out.splitlines() == [
        "deleted b.md", "left a.md: it is not as it was left", "    --- as it was left", "    +++ as it is",
        "    @@ -1,2 +1,2 @@", "     ONE", "    -two", "    +mine",
    ]  # fmt: skip
    assert "1 file restored, 1 left" in said.err
    assert held(shell, "a.md") == "ONE\nmine\n"


def test_a_turn_is_undone_to_and_said_first(shell, run_id):
    said = shell("runs", "undo", run_id, "--to", "3", "--dry-run", "--json")
    assert said.code == 0
    assert said.value["run_id"] == ""
    assert [(each["path"], each["done"]) for each in said.value["files"]] == [("b.md", "deleted")]
    assert "nothing was done (--dry-run)" in shell("runs", "undo", run_id, "--dry-run").err
    assert len(shell("runs", "ls", "--json").value) == 1
    assert shell("runs", "undo", run_id, "--to", "1/3").code == 0
    assert (held(shell, "a.md"), held(shell, "b.md")) == ("ONE\ntwo\n", None)
    assert "has no turn 9/9" in shell("runs", "undo", run_id, "--to", "9/9").err
    assert shell("runs", "undo", run_id, "--folder", "nowhere").code == exit_codes.CONFIG
    assert shell("runs", "undo", "nobody").code == exit_codes.NOT_FOUND


def test_a_run_from_elsewhere_needs_its_folder_said(shell, run_id):
    shell.write("run.json", shell("runs", "export", run_id).out)
    assert shell("runs", "import", "run.json", "--journal", "other.db").code == 0
    said = shell("runs", "undo", run_id, "--journal", "other.db")
    assert said.code == exit_codes.CONFIG
    assert "was taken in from elsewhere" in said.err
    assert shell("runs", "undo", run_id, "--journal", "other.db", "--folder", "files").code == 0
    assert held(shell, "b.md") is None
