"""undo and redo: files that a run changed are again what they were, and no others are touched."""

from __future__ import annotations

import asyncio
import os
import stat
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from antiphon import Agent, ToolContext, UserError, open_run, tool
from antiphon.errors import RunInUse, UnknownName
from antiphon.host.undo import UndoneRun, redo, undo
from antiphon.host.undo.file_history import history_of, undo_id
from antiphon.journal import open_journal
from antiphon.kernel.run.rows import read
from antiphon.models.script import Script, call
from antiphon.testing.invariants import check_journal
from antiphon.tools import edit_tools, folder_tools
from antiphon.tools.shell import shell_tools
from antiphon.values.message import FileChange, FileState, ToolResult
from antiphon.view import RunTree, export_file, fork

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="commands are run on Linux and macOS only")

Tree = dict[str, tuple[int, bytes]]


class Place:
    """A folder of files, and a journal beside it."""

    def __init__(self, top: Path) -> None:
        self.folder, self.journal = top / "files", f"sqlite:///{top / 'runs.db'}"
        self.folder.mkdir()
        self.write("a.md", "one\ntwo\n")
        self.write("b.md", "b\n")

    def write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def tools(self) -> list[Any]:
        return [*folder_tools(self.folder), *edit_tools(self.folder), *shell_tools(self.folder)]

    def play(self, *lines: Any, run_id: str | None = None, tools: list[Any] | None = None) -> str:
        """A run of these replies; its id."""

        async def main() -> str:
            agent = Agent("a", tools=self.tools() if tools is None else tools)
            model = Script([*lines, "done"])
            async with open_run([agent], journal=self.journal, model=model, run_id=run_id) as run:
                await run.result(await run.post("a", "go"))
                return run.run_id

        return asyncio.run(main())

    def undo(self, run_id: str, to: str = "", **options: Any) -> UndoneRun:
        return asyncio.run(undo(self.journal, run_id, to, **options))

    def redo(self, run_id: str, **options: Any) -> UndoneRun:
        return asyncio.run(redo(self.journal, run_id, **options))

    def tree(self) -> Tree:
        return {
            str(each.relative_to(self.folder)): (stat.S_IMODE(each.stat().st_mode), each.read_bytes())
            for each in self.folder.rglob("*") if each.is_file() and ".git" not in each.parts
        }  # fmt: skip

    def runs(self) -> list[str]:
        async def main() -> list[str]:
            store = open_journal(self.journal)
            try:
                return [each.run_id for each in await store.runs()]
            finally:
                await store.close()

        return asyncio.run(main())


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.delenv("ANTIPHON_HOME", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return Place(tmp_path)


def done(found: UndoneRun) -> dict[str, str]:
    return {each.path: each.done for each in found.files}


LINES = [
    call("read_lines", path="a.md"),
    call("edit_file", path="a.md", old="one", new="ONE"),
    call("shell", command="sed -i s/two/TWO/ a.md; rm b.md; chmod 700 a.md; mkdir n; echo c > n/c"),
    call("move_file", path="n/c", to="m/d/c"),
]


def test_all_that_a_run_changed_is_undone_and_redone(place: Place) -> None:
    before = place.tree()
    run_id = place.play(*LINES)
    after = place.tree()
    assert after.keys() == {"a.md", "m/d/c"}
    found = place.undo(run_id)
    assert done(found) == {"a.md": "changed", "b.md": "made", "m/d/c": "deleted"}
    assert (found.undoes, found.to, found.left, found.doubtful) == (run_id, "", (), ())
    assert place.tree() == before
    assert not (place.folder / "m").exists()
    assert place.redo(run_id).left == ()
    assert place.tree() == after
    with pytest.raises(UserError, match=r"Nothing of run .* is undone"):
        place.redo(run_id)


def test_each_turn_is_a_place_to_go_back_to(place: Place) -> None:
    start = place.tree()
    run_id = place.play(*LINES)
    end = place.tree()
    trees: dict[str, Tree] = {}
    for turn in ("1/5", "1/4", "3", "2", "1"):
        place.undo(run_id, turn)
        trees[turn] = place.tree()
    assert trees["1/5"] == end
    assert trees["1/4"].keys() == {"a.md", "n/c"}
    assert trees["3"]["a.md"][1] == b"ONE\ntwo\n"
    assert trees["2"] == trees["1"] == start
    # A turn that was taken back is as good a place.
    place.undo(run_id, "1/4")
    assert place.tree() == trees["1/4"]
    # And each of them is taken back in turn.
    for _ in range(4):
        place.redo(run_id)
    assert place.tree() == end
    with pytest.raises(UserError, match=r"has no turn 9; its last turns: .*1/5"):
        place.undo(run_id, "9")


def test_a_request_is_undone(place: Place) -> None:
    run_id = place.play(call("write_file", path="new.md", content="1\n"))
    between = place.tree()
    place.play(call("delete_file", path="b.md"), run_id=run_id)
    assert done(place.undo(run_id, "0/2")) == {"b.md": "made"}
    assert place.tree() == between
    # What the run does afterwards is undone with the rest.
    place.play(call("write_file", path="later.md", content="1\n"), run_id=run_id)
    assert done(place.undo(run_id)) == {"new.md": "deleted", "later.md": "deleted"}


def test_what_somebody_else_changed_is_left_and_shown(place: Place) -> None:
    run_id = place.play(*LINES[:3])
    place.write("a.md", "mine\n")
    place.write("b.md", "mine\n")
    found = place.undo(run_id)
    assert done(found) == {"a.md": "left", "b.md": "left", "n/c": "deleted"}
    (a, b) = found.left
    assert a.diff.splitlines()[-3:] == ["-ONE", "-TWO", "+mine"]
    assert b.diff.splitlines()[-1] == "+mine"
    assert place.tree() == {name: (place.tree()[name][0], b"mine\n") for name in ("a.md", "b.md")}
    # What is as it was is not told.
    place.write("b.md", "b\n")
    assert done(place.undo(run_id)) == {"a.md": "left"}
    place.redo(run_id)
    assert (place.folder / "n" / "c").read_text() == "c\n"


def test_a_mode_that_somebody_else_set_stays(place: Place) -> None:
    run_id = place.play(call("shell", command="echo x > a.md; chmod 755 b.md"))
    os.chmod(place.folder / "a.md", 0o600)
    os.chmod(place.folder / "b.md", 0o600)
    place.undo(run_id)
    assert place.tree() == {"a.md": (0o600, b"one\ntwo\n"), "b.md": (0o600, b"b\n")}


def test_a_file_that_is_read_only_is_restored(place: Place) -> None:
    run_id = place.play(call("shell", command="echo x > a.md; chmod 444 a.md"))
    place.undo(run_id)
    assert place.tree()["a.md"][1] == b"one\ntwo\n"
    assert place.tree()["a.md"][0] & 0o200


def test_a_file_and_a_folder_change_places(place: Place) -> None:
    before = place.tree()
    run_id = place.play(call("shell", command="rm a.md; mkdir a.md; echo x > a.md/b; mkdir c; mv b.md c"))
    after = place.tree()
    assert place.undo(run_id).left == ()
    assert place.tree() == before
    assert place.redo(run_id).left == ()
    assert place.tree() == after


def test_links_and_paths_that_lead_out_are_refused(place: Place, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "a").write_text("now\n")
    was, now = FileState.of(b"was\n"), FileState.of(b"now\n")

    @tool
    def odd() -> ToolResult:
        """Say that files were changed."""
        paths = ("../out/a", str(tmp_path / "out" / "a"), "link/a", "file", ".git/config", ".env", "hard", "")
        return ToolResult(
            "done", changes=tuple(FileChange(str(place.folder), each, was, now) for each in paths)
        )

    run_id = place.play(call("odd"), tools=[odd])
    (place.folder / "link").symlink_to("../out")
    (place.folder / "file").symlink_to("../out/a")
    os.link(tmp_path / "out" / "a", place.folder / "hard")
    (place.folder / ".git").mkdir()
    for name in (".git/config", ".env"):
        place.write(name, "now\n")
    found = place.undo(run_id)
    assert {each.done for each in found.files} == {"left"}
    assert len(found.files) == 8
    assert (tmp_path / "out" / "a").read_text() == (place.folder / ".env").read_text() == "now\n"
    assert (place.folder / ".git" / "config").read_text() == "now\n"


def test_what_is_not_on_record_is_left(place: Place) -> None:
    (place.folder / "large").write_bytes(b"x" * (2**20 + 1))
    line = "echo y >> large; head -c 2000000 /dev/zero > zeros; ln -s a.md link; echo KEY > .env"
    run_id = place.play(call("shell", command=line))
    before = place.tree()
    found = place.undo(run_id)
    assert {each.path: each.reason for each in found.files} == dict.fromkeys(
        ("large", "zeros", "link", ".env"), "what it held is not on record, before or after"
    )
    assert place.tree() == before


def test_git_and_its_index_are_not_touched(place: Place) -> None:
    def git(*words: str) -> str:
        given = ["git", "-C", str(place.folder), *words]
        return subprocess.run(given, check=True, capture_output=True, text=True).stdout

    git("init", "-q")
    # The command commits too, and nobody's own settings are needed for it.
    git("config", "user.name", "a")
    git("config", "user.email", "a@example.org")
    git("add", "-A")
    git("commit", "-qm", "x")
    run_id = place.play(
        call("shell", command="sed -i s/one/ONE/ a.md; git add a.md; git commit -qm y; rm b.md")
    )
    held = {each: each.read_bytes() for each in (place.folder / ".git").rglob("*") if each.is_file()}
    assert place.undo(run_id).left == ()
    assert held == {each: each.read_bytes() for each in (place.folder / ".git").rglob("*") if each.is_file()}
    assert git("status", "--porcelain") == " M a.md\n"
    assert place.tree()["a.md"][1] == b"one\ntwo\n"


def test_an_undo_is_a_run_like_any_other(place: Place) -> None:
    run_id = place.play(*LINES)
    found = place.undo(run_id, "2")
    assert found.run_id == undo_id(run_id, 0)

    async def main() -> None:
        store = open_journal(place.journal)
        try:
            records = await read(store, found.run_id)
            tree = RunTree.of(records)
            assert (tree.closed, tree.outcome, tree.totals.calls) == (True, "completed", 0)
            assert tree.data == {
                "antiphon_undo": {
                    "what": "undo", "run": run_id, "to": "2", "redoes": "", "at": "",
                    "seq": (await store.info(run_id)).seq,
                }
            }  # fmt: skip
            (changes,) = tree.files.values()
            assert [each.path for each in changes] == ["m/d/c", "a.md", "b.md"]
            called = [each for each in tree.effects.values() if each.is_tool]
            assert [(each.name, each.content) for each in called] == [
                ("restore_files", "deleted m/d/c\nrestored a.md\nmade again b.md")
            ]
            assert await check_journal(store) == 2
        finally:
            await store.close()

    asyncio.run(main())


def test_what_would_be_done_is_said(place: Place) -> None:
    run_id = place.play(*LINES)
    before = place.tree()
    found = place.undo(run_id, dry_run=True)
    assert done(found) == {"a.md": "changed", "b.md": "made", "m/d/c": "deleted"}
    assert (found.run_id, place.tree(), place.runs()) == ("", before, [run_id])
    assert place.undo(place.play(call("list_files"))) == UndoneRun("", place.runs()[0], "")
    assert len(place.runs()) == 2


def test_what_cannot_be_undone_is_refused(place: Place) -> None:
    with pytest.raises(UnknownName):
        place.undo("nobody")
    run_id = place.play(*LINES)
    made = place.undo(run_id).run_id
    with pytest.raises(UserError, match=f"was itself made to undo run {run_id}"):
        place.undo(made)
    with pytest.raises(UserError, match="nowhere is not a folder"):
        place.undo(run_id, folder="nowhere")


def test_a_run_at_work_is_not_undone(place: Place) -> None:
    @tool
    async def slow(ctx: ToolContext) -> str:
        """Undo the run in which this is called."""
        with pytest.raises(UserError, match=r"is at work \(1/1.c1\)"):
            await undo(place.journal, ctx.run_id)
        return "refused"

    place.play(call("slow"), tools=[slow])


def test_one_at_a_time_undoes(place: Place) -> None:
    run_id = place.play(*LINES)

    async def main() -> None:
        async with open_run(
            [Agent("undo", model=Script([]))], journal=place.journal, run_id=undo_id(run_id, 0), create=True
        ):
            with pytest.raises((RunInUse, UserError)):
                await undo(place.journal, run_id)

    asyncio.run(main())


def test_another_folder_may_be_said(place: Place, tmp_path: Path) -> None:
    run_id = place.play(*LINES)
    moved = tmp_path / "moved"
    place.folder.rename(moved)
    found = place.undo(run_id)
    assert {each.reason for each in found.files} == {f"its folder {place.folder} is not there"}
    assert place.undo(run_id, folder=moved).left == ()
    assert (moved / "a.md").read_text() == "one\ntwo\n"
    assert place.redo(run_id, folder=moved).left == ()
    assert (moved / "m" / "d" / "c").exists()


def test_a_run_from_elsewhere_needs_its_folder_said(place: Place, tmp_path: Path) -> None:
    run_id = place.play(*LINES)

    async def main() -> None:
        store, other = open_journal(place.journal), open_journal(f"sqlite:///{tmp_path / 'other.db'}")
        try:
            found, _ = await export_file.export_of(store, await store.info(run_id))
            await other.restore(export_file.stored(found, "run.json"))
            with pytest.raises(UserError, match="was taken in from elsewhere"):
                await undo(other, run_id)
            assert (await undo(other, run_id, folder=place.folder)).left == ()
        finally:
            await store.close()
            await other.close()

    asyncio.run(main())


def test_of_a_fork_its_own_changes_are_undone(place: Place) -> None:
    run_id = place.play(call("write_file", path="first.md", content="1\n"))
    made = asyncio.run(fork(place.journal, run_id)).run_id
    place.play(call("write_file", path="second.md", content="2\n"), run_id=made)
    assert done(place.undo(made)) == {"second.md": "deleted"}
    assert done(place.undo(made, "1")) == {"first.md": "deleted"}


def test_of_calls_side_by_side_each_change_is_undone_once(place: Place) -> None:
    """What one call made of a file while another ran is the first one's, though both saw it."""
    long = call("shell", command="until [ -e go ]; do sleep 0.02; done; echo long > long")
    run_id = place.play([long, call("shell", command="echo short > short; touch go")])

    async def main() -> list[str]:
        store = open_journal(place.journal)
        try:
            return sorted(each.change.path for each in (await history_of(store, run_id)).steps)
        finally:
            await store.close()

    before = place.tree().keys() - {"go", "long", "short"}
    assert asyncio.run(main()) == ["go", "long", "short"]
    assert place.undo(run_id).left == ()
    assert place.tree().keys() == before


def test_calls_of_which_nobody_knows_are_named(place: Place) -> None:
    @tool(timeout=0.05)
    async def shell(ctx: ToolContext) -> str:
        """Never end."""
        await asyncio.Event().wait()
        return ""

    async def main() -> str:
        agent = Agent("a", tools=[shell], model=Script([call("shell"), "done"]))
        async with open_run([agent], journal=place.journal) as run:
            request = await run.post("a", "go")
            async for item in run.events(0, deltas=False):
                if item.type == "EffectStarted" and getattr(item.event, "id", "") == "1/1.c1":
                    await run.cancel("1/1.c1")
                    break
            await run.result(request)
            return run.run_id

    run_id = asyncio.run(main())
    assert place.undo(run_id).doubtful == ("1/1.c1 shell ended cancelled",)


NAMES = st.sampled_from(["a.md", "b.md", "d/a", "d/b/c", "é"])
TEXTS = st.sampled_from(["one\n", "two\n", "", "x" * 5000, "\u00e9\r\n"])
CALLS = st.one_of(
    st.tuples(st.just("write"), NAMES, TEXTS),
    st.tuples(st.just("move"), NAMES, NAMES),
    st.tuples(st.just("delete"), NAMES, TEXTS),
    st.tuples(st.just("sh"), NAMES, st.sampled_from(["rm -rf {0}", "chmod 755 {0}", "printf '\\377' > {0}"])),
    st.tuples(st.just("sh"), NAMES, st.sampled_from(["sed -i s/o/0/ {0}", "cp -p {0} c; mv c {0}.new"])),
)


def line_of(kind: str, name: str, more: str) -> Any:
    if kind == "write":
        return [call("read_lines", path=name), call("write_file", path=name, content=more)]
    if kind == "move":
        return call("move_file", path=name, to=more)
    if kind == "delete":
        return call("delete_file", path=name)
    return call("shell", command=more.format(name))


@pytest.mark.slow
@settings(deadline=None, max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(CALLS, min_size=2, max_size=6), st.data())
def test_an_undo_to_any_turn_gives_its_tree(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch,
    deeds: list[tuple[str, str, str]], data: st.DataObject,
) -> None:  # fmt: skip
    """Byte for byte, with modes, in any order of turns; and redoing each leads back."""
    top = tmp_path_factory.mktemp("undo")
    monkeypatch.setenv("XDG_STATE_HOME", str(top / "state"))
    place = Place(top)
    trees: list[Tree] = []

    @tool(effect="read")
    def look() -> str:
        """Remember what the tree is at this turn."""
        trees.append(place.tree())
        return "seen"

    lines: list[Any] = [call("look")]
    for deed in deeds:
        found = line_of(*deed)
        lines += [*(found if isinstance(found, list) else [found]), call("look")]
    run_id = place.play(*lines, tools=[*place.tools(), look])
    end = place.tree()
    looks = [at for at, line in enumerate(lines, 1) if line.name == "look"]
    wanted = data.draw(st.lists(st.sampled_from(list(enumerate(looks))), min_size=1, max_size=3))
    for number, turn in wanted:
        assert place.undo(run_id, str(turn)).left == ()
        assert place.tree() == trees[number]
    made: list[str] = []
    while place.runs() != made:
        made = place.runs()
        with suppress(UserError):
            place.redo(run_id)
    assert place.tree() == end
