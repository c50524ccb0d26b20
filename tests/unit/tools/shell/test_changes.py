"""What a command changed, whatever it was: known byte for byte, also of `sed -i`."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import stat
import struct
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from antiphon.tools.shell import Workspace, changes, commands, shell_tools
from antiphon.values.message import MAX_KEPT_FILE, FileChange, FileState, ToolResult
from antiphon.values.tool import ToolContext

if sys.platform != "win32":
    from antiphon.tools.shell.keeping import git_index, scan

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="commands are run on Linux and macOS only")

GIT = ("git", "-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main")


def result_of(workspace: Workspace, line: str, *, background: bool = False) -> ToolResult:
    tools = {each.name: each.function for each in shell_tools(workspace)}
    found = asyncio.run(tools["shell"](ToolContext(), line, 20, background))
    assert isinstance(found, ToolResult)
    return found


def changed(workspace: Workspace, line: str) -> dict[str, tuple[FileState | None, FileState | None]]:
    found = result_of(workspace, line)
    assert found.content.startswith("exit code 0"), found.content
    assert {each.folder for each in found.changes} <= {workspace.folder}
    return {each.path: (each.before, each.after) for each in found.changes}


def committed(folder: Path) -> None:
    for words in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "x", "--allow-empty")):
        subprocess.run([*GIT, "-C", str(folder), *words], check=True, capture_output=True)


def copies_of(workspace: Workspace) -> list[str]:
    return [each for each in os.listdir(Path(workspace.state) / "copies") if len(each) == 32]


def test_what_a_command_changed_is_known(workspace: Workspace) -> None:
    folder = Path(workspace.folder)
    (folder / "a b.md").write_text("one\n")
    (folder / "gone").write_bytes(b"\xff\0")
    (folder / "same").write_text("same\n")
    (folder / "run.sh").write_text("true\n")
    (folder / "old").write_text("moved\n")
    line = "sed -i s/one/two/ 'a b.md'; rm gone; touch same; chmod 755 run.sh; mkdir -p d/e; mv old d/e/new"
    moved = FileState.of(b"moved\n")
    assert changed(workspace, f"{line}; : > nul") == {
        "a b.md": (FileState.of(b"one\n"), FileState.of(b"two\n")),
        "d/e/new": (None, moved),
        "gone": (FileState.of(b"\xff\0"), None),
        "nul": (None, FileState.of(b"")),
        "old": (moved, None),
        "run.sh": (FileState.of(b"true\n"), FileState.of(b"true\n", 0o755)),
    }
    assert changed(workspace, "cat same; sed -i s/two/two/ 'a b.md'; echo x > y; rm y") == {}


def test_a_change_that_leaves_size_and_time_is_seen(workspace: Workspace) -> None:
    (Path(workspace.folder) / "a").write_text("one\n")
    line = "touch -r a ../place/t; printf 'two\\n' > a; touch -r t a; rm t"
    assert changed(workspace, line) == {"a": (FileState.of(b"one\n"), FileState.of(b"two\n"))}


def test_what_git_holds_is_not_copied(workspace: Workspace) -> None:
    folder = Path(workspace.folder)
    (folder / "sub").mkdir()
    for name in ("a", "sub/b", "c"):
        (folder / name).write_text(f"{name}\n")
    committed(folder)
    index = (folder / ".git" / "index").read_bytes()
    (folder / "new").write_text("new\n")
    assert changed(workspace, "true") == {}
    assert len(copies_of(workspace)) == 1
    found = changed(workspace, "echo more >> a; rm sub/b; echo more >> new")
    assert found == {
        "a": (FileState.of(b"a\n"), FileState.of(b"a\nmore\n")),
        "new": (FileState.of(b"new\n"), FileState.of(b"new\nmore\n")),
        "sub/b": (FileState.of(b"sub/b\n"), None),
    }
    assert (folder / ".git" / "index").read_bytes() == index
    # The files of a folder inside are known by their names in the repository.
    inside = Workspace(folder / "sub")
    subprocess.run([*GIT, "-C", str(folder), "checkout", "-q", "sub"], check=True)
    assert changed(inside, "rm b") == {"b": (FileState.of(b"sub/b\n"), None)}


@pytest.mark.parametrize("told", ["a.txt text eol=lf", "*.txt ident"])
def test_what_git_holds_in_another_form_is_kept_as_it_is(workspace: Workspace, told: str) -> None:
    folder = Path(workspace.folder)
    (folder / ".gitattributes").write_text(f"{told}\n")
    written = b"one\r\n" if "eol" in told else b"$Id: mine$\n"
    (folder / "a.txt").write_bytes(written)
    committed(folder)
    assert changed(workspace, "echo two > a.txt") == {
        "a.txt": (FileState.of(written), FileState.of(b"two\n"))
    }


def test_attributes_that_were_looked_at_before_count_for_new_files(workspace: Workspace) -> None:
    folder = Path(workspace.folder)
    inside = folder / "d"
    inside.mkdir()
    (inside / ".gitattributes").write_text("*.txt text eol=lf\n")
    committed(folder)
    time_long_ago(inside / ".gitattributes")
    assert changed(workspace, "true") == {}
    (inside / "a.txt").write_bytes(b"one\r\n")
    time_long_ago(inside / "a.txt")
    subprocess.run([*GIT, "-C", str(folder), "add", "d/a.txt"], check=True, capture_output=True)
    assert changed(workspace, "rm d/a.txt") == {"d/a.txt": (FileState.of(b"one\r\n"), None)}


def test_attributes_that_git_does_not_hold_count_too(workspace: Workspace) -> None:
    folder = Path(workspace.folder)
    (folder / "d").mkdir()
    (folder / "d" / ".gitattributes").write_text("*.txt text eol=lf\n")
    (folder / "d" / "a.txt").write_bytes(b"one\r\n")
    subprocess.run([*GIT, "-C", str(folder), "init", "-q"], check=True)
    subprocess.run([*GIT, "-C", str(folder), "add", "d/a.txt"], check=True, capture_output=True)
    time_long_ago(folder / "d" / "a.txt")
    subprocess.run([*GIT, "-C", str(folder), "add", "d/a.txt"], check=True, capture_output=True)
    assert changed(workspace, "rm d/a.txt") == {"d/a.txt": (FileState.of(b"one\r\n"), None)}


def time_long_ago(path: Path) -> None:
    os.utime(path, (1_000_000_000, 1_000_000_000))


def test_a_copy_is_not_taken_for_what_git_holds(workspace: Workspace) -> None:
    """A command cannot say of a file that git holds it otherwise: what was known of it before counts."""
    folder = Path(workspace.folder)
    (folder / "a").write_text("mine\n")
    committed(folder)
    assert changed(workspace, "true") == {}
    forged = "git replace $(git rev-parse :a) $(echo other | git hash-object -w --stdin); echo x > a"
    assert changed(workspace, forged) == {"a": (FileState.of(b"mine\n"), FileState.of(b"x\n"))}


def test_secrets_caches_and_links_are_not_kept(workspace: Workspace) -> None:
    folder = Path(workspace.folder)
    (folder / ".env").write_text("KEY=1\n")
    (folder / "key.pem").write_text("KEY=1\n")
    line = (
        "echo KEY=2 > .env; rm key.pem; echo x > .coverage; mkdir -p .cache node_modules/a; ln -s .env link"
    )
    found = result_of(workspace, f"{line}; echo x | tee .cache/a node_modules/a/b > .gitignore")
    assert {each.path: (each.before is not None, each.after is not None) for each in found.changes} == {
        ".env": (True, True), ".gitignore": (False, True), "key.pem": (True, False), "link": (False, True),
    }  # fmt: skip
    kept = {
        each.path for each in found.changes for state in (each.before, each.after) if state and state.kept
    }
    assert kept == {".gitignore"}
    assert "KEY" not in str(found.changes)
    assert "note: changed, and cannot be undone: .env, key.pem" in found.content
    copies = Path(workspace.state) / "copies"
    assert not any(b"KEY" in (copies / each).read_bytes() for each in copies_of(workspace))


def test_what_is_too_large_to_be_copied_is_told(workspace: Workspace) -> None:
    folder = Path(workspace.folder)
    (folder / "large").write_bytes(b"x" * (MAX_KEPT_FILE + 1))
    (folder / "fits").write_bytes(b"x" * MAX_KEPT_FILE)
    assert workspace.lost == "changes of 1 files cannot be undone, which are too large to be copied"
    cautions = {each.name: each._shown.caution for each in shell_tools(workspace)}
    assert cautions["shell"].endswith(f"; {workspace.lost}")
    found = result_of(workspace, "echo y >> large; echo y >> fits")
    assert "note: changed, and cannot be undone: large" in found.content
    (fits, large) = found.changes
    assert fits.before == FileState.of(b"x" * MAX_KEPT_FILE)
    assert fits.after is not None
    assert not fits.after.kept
    assert large.after == FileState.of(b"x" * (MAX_KEPT_FILE + 1) + b"y\n")
    assert scan.MAX_FILE == MAX_KEPT_FILE


def test_copies_have_a_bound_together(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Path(workspace.folder)
    for name in ("a", "b", "c"):
        (folder / name).write_text(name * 10)
    monkeypatch.setattr(scan, "MAX_COPIES", 25)
    asked = changes.scan_fields(str(folder), str(tmp_path / "copies"))
    watch = scan.FolderWatch(asked)
    assert len(list((tmp_path / "copies").glob("?" * 32))) == 2
    (tmp_path / "c").mkdir()
    for name in ("a", "b", "c"):
        (folder / name).unlink()
    watch.finish(str(tmp_path / "c"))
    found, notes = changes.changes_of(str(tmp_path / "c"), str(folder))
    lost = [each.path for each in found if each.before is not None and not each.before.kept]
    assert len(found) == 3
    assert notes == (f"changed, and cannot be undone: {lost[0]}",)
    assert not list((tmp_path / "copies").glob("?" * 32))
    for name in ("a", "b", "c"):
        (folder / name).write_text(name * 10)
    assert changes.lost(asked) == "changes of 1 files cannot be undone, which are too large to be copied"


def test_what_goes_on_record_has_a_bound(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Small files first."""
    monkeypatch.setattr(scan, "MAX_RECORDED", 25)
    watch = scan.FolderWatch(changes.scan_fields(workspace.folder, str(tmp_path / "copies")))
    for name, size in (("a", 20), ("b", 5), ("c", 3)):
        (Path(workspace.folder) / name).write_text(name * size)
    (tmp_path / "c").mkdir()
    watch.finish(str(tmp_path / "c"))
    found, _ = changes.changes_of(str(tmp_path / "c"), workspace.folder)
    assert [(each.path, each.after and each.after.kept) for each in found] == [
        ("a", False), ("b", True), ("c", True),
    ]  # fmt: skip


def test_a_folder_of_too_many_files_is_not_looked_at(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for at in range(4):
        (Path(workspace.folder) / str(at)).touch()
    monkeypatch.setattr(scan, "MAX_FILES", 3)
    asked = changes.scan_fields(workspace.folder, str(tmp_path / "copies"))
    with pytest.raises(scan.TooLarge):
        scan.FolderWatch(asked)
    assert changes.lost(asked) == "what it changes cannot be undone, for there are more than 3 files"


def test_a_folder_that_is_swapped_for_a_link_is_not_entered(workspace: Workspace, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "secret").write_text("outside\n")
    found = changed(workspace, "mkdir d; ln -s ../../out d/out; ln -s ../out out; echo in > d/a")
    assert {name: state for name, (_, state) in found.items() if state and state.kept} == {
        "d/a": FileState.of(b"in\n")
    }
    assert "outside" not in str(found)


def test_a_database_that_is_open_is_let_alone(workspace: Workspace) -> None:
    """The journal of the run may lie there; and of any other a copy of its files would be none."""
    folder = Path(workspace.folder)
    with closing(sqlite3.connect(folder / "runs.db", isolation_level=None)) as database:
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("CREATE TABLE t(x)")
        assert (folder / "runs.db-wal").exists()
        (folder / "runs.db-anchor").write_text("1")
        assert changed(workspace, "echo 2 > runs.db-anchor; echo x > a") == {
            "a": (None, FileState.of(b"x\n"))
        }
        assert not any(
            b"SQLite" in (Path(workspace.state) / "copies" / each).read_bytes()
            for each in copies_of(workspace)
        )
        asked = changes.scan_fields(str(folder), str(folder.parent / "copies"))
        watch = scan.FolderWatch(asked)
    assert not (folder / "runs.db-wal").exists()
    (folder.parent / "c").mkdir()
    watch.finish(str(folder.parent / "c"))
    assert changes.changes_of(str(folder.parent / "c"), str(folder)) == ((), ())


def test_names_that_are_no_text_are_counted(workspace: Workspace) -> None:
    found = result_of(workspace, r"echo x > $'a\377'; echo x > $'b\nc'; echo x > d")
    assert [each.path for each in found.changes] == ["d"]
    assert "note: 2 more files were changed, of which nothing is on record" in found.content


def test_of_a_job_nothing_is_on_record(workspace: Workspace) -> None:
    begun = result_of(workspace, "echo x > made; exec sleep 86410", background=True)
    tools = {each.name: each.function for each in shell_tools(workspace)}
    job = begun.content.split()[1]
    while not (Path(workspace.folder) / "made").exists():
        assert tools["read_job"](job).startswith(f"{job} runs")
    assert begun.changes == ()
    assert tools["stop_job"](ToolContext(), job) == "it was stopped"


def test_commands_side_by_side_share_copies(workspace: Workspace) -> None:
    folder = Path(workspace.folder)
    (folder / "a").write_text("a\n")

    async def both() -> list[ToolResult]:
        tools = {each.name: each.function for each in shell_tools(workspace)}
        lines = ("echo b > b; until [ -e c ]; do :; done", "until [ -e b ]; do :; done; rm a; echo c > c")
        return await asyncio.gather(*(tools["shell"](ToolContext(), each, 20, False) for each in lines))

    first, second = asyncio.run(both())
    gone = FileChange(workspace.folder, "a", FileState.of(b"a\n"), None)
    for found in (first, second):
        assert gone in found.changes
        assert all(each.before is None or each.before.kept for each in found.changes)


def test_copies_that_nobody_needs_go(workspace: Workspace) -> None:
    changed(workspace, "echo one > a")
    changed(workspace, "echo two > a")
    changed(workspace, "rm a")
    assert copies_of(workspace) == []
    assert sum(len(list(Path(each).glob("?" * 32))) for each in workspace.places()) == 4
    workspace.clear()
    assert sum(len(list(Path(each).glob("?" * 32))) for each in workspace.places()) == 4


def test_of_what_ended_commands_changed_the_last_is_kept(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    for at in range(3):
        changed(workspace, f"echo {at} > a{at}")
    ended = sorted(workspace.places(), key=lambda each: os.stat(Path(each) / "ended").st_mtime_ns)
    for at, each in enumerate(ended):
        os.utime(Path(each) / "ended", (time.time() - 100 + at,) * 2)
    monkeypatch.setattr("antiphon.tools.shell.workspace.KEPT_COPIES", 4)
    workspace.clear()
    assert [len(list(Path(each).glob("?" * 32))) for each in ended] == [0, 1, 1]
    (change,) = changes.changes_of(ended[0], workspace.folder)[0]
    assert change.after is not None
    assert not change.after.kept
    assert change.after.version == FileState.of(b"0\n").version


@pytest.mark.parametrize("version", [2, 3, 4])
def test_an_index_is_read_as_git_does(tmp_path: Path, version: int) -> None:
    names = ["a", "a b", "d/e/f", "d/e/fg", "d/ü.md", "x" * 250]
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
        time_long_ago(tmp_path / name)
    committed(tmp_path)
    if version == 3:
        (tmp_path / "later").write_text("later")
        subprocess.run([*GIT, "-C", str(tmp_path), "add", "-N", "later"], check=True)
        names.append("later")
    subprocess.run([*GIT, "-C", str(tmp_path), "update-index", "--index-version", str(version)], check=True)
    index = tmp_path / ".git" / "index"
    assert struct.unpack_from(">I", index.read_bytes(), 4)[0] == version
    told = subprocess.run(
        [*GIT, "-C", str(tmp_path), "ls-files", "-s", "-z"], check=True, capture_output=True
    ).stdout.decode()
    expected = {line.split("\t")[1]: line.split()[1] for line in told.split("\0") if line}
    found = git_index.held(str(index), b"")
    assert {name: blob for name, (blob, _) in found.items()} == expected
    assert sorted(expected) == sorted(names)
    for name in set(names) - {"later"}:
        assert found[name][1] == git_index.told(os.stat(tmp_path / name)), name
    assert set(git_index.held(str(index), b"d/")) == {"e/f", "e/fg", "ü.md"}


def test_what_is_no_index_holds_nothing(tmp_path: Path) -> None:
    path = tmp_path / "index"
    assert git_index.held(str(path), b"") == {}
    for data in (
        b"",
        b"DIRC",
        b"DIRC" + struct.pack(">2I", 2, 9),
        b"DIRC" + struct.pack(">2I", 9, 0),
        b"x" * 99,
    ):
        path.write_bytes(data)
        assert git_index.held(str(path), b"") == {}


def test_a_keeper_loads_little() -> None:
    """Each command starts one, and would wait for what it loads."""
    begin = commands._PROGRAM.partition("os.setsid()\n")[2].rpartition("main(")[0]
    program = f"import os, sys\n{begin}print(*sys.modules)"
    given = [sys.executable, "-I", "-S", "-c", program, "", commands._PACKAGE]
    told = subprocess.run(given, capture_output=True, text=True, check=True).stdout.split()
    assert "antiphon.tools.shell.keeping.scan" in told
    assert not {"collections", "hashlib", "json", "re", "subprocess", "typing"} & set(told)


Tree = dict[str, tuple[int, bytes]]
NAMES = st.sampled_from(["a", "b", "d/a", "d/b", "d/e/a", "b/a"])
DEEDS = st.one_of(
    st.tuples(st.just("write"), NAMES, st.sampled_from(["one", "two", "one\n", "", "\\377", "x" * 5000])),
    st.tuples(st.sampled_from(["rm", "exec", "plain"]), NAMES, st.just("")),
    st.tuples(st.just("mv"), NAMES, NAMES),
)


def tree_of(folder: Path) -> Tree:
    return {
        str(each.relative_to(folder)): (stat.S_IMODE(each.stat().st_mode), each.read_bytes())
        for each in folder.rglob("*") if each.is_file() and ".git" not in each.parts
    }  # fmt: skip


def line_of(deed: tuple[str, str, str]) -> str:
    kind, name, more = deed
    if kind == "write":
        return f"mkdir -p $(dirname {name}) && printf '{more}' > {name}"
    if kind == "mv":
        return f"mkdir -p $(dirname {more}) && mv -n {name} {more}"
    return {"rm": f"rm -rf {name}", "exec": f"chmod 755 {name}", "plain": f"chmod 600 {name}"}[kind]


@pytest.mark.slow
@settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.lists(DEEDS, min_size=1, max_size=4), min_size=1, max_size=4), st.booleans())
def test_what_changed_leads_back(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch,
    commands: list[list[tuple[str, str, str]]], in_git: bool,
) -> None:  # fmt: skip
    """Each command's changes, taken back from the tree behind it, give the tree before it."""
    top = tmp_path_factory.mktemp("trees")
    monkeypatch.setenv("XDG_STATE_HOME", str(top / "state"))
    folder = top / "place"
    (folder / "d").mkdir(parents=True)
    (folder / "a").write_text("begun\n")
    (folder / "d" / "b").write_bytes(b"\xff\xfe")
    if in_git:
        committed(folder)
    workspace, before = Workspace(folder), tree_of(folder)
    for deeds in commands:
        found = result_of(workspace, "; ".join(map(line_of, deeds)))
        after = back = tree_of(folder)
        back = dict(after)
        for each in found.changes:
            assert each.before != each.after
            held = (each.after.mode, each.after.content()) if each.after else None
            assert after.get(each.path) == held
            back.pop(each.path, None)
            if each.before is not None:
                back[each.path] = each.before.mode, each.before.content() or b""
        assert back == before
        before = after


@pytest.mark.slow
def test_a_look_at_many_files_is_quick(tmp_path: Path) -> None:
    """60 ms for 7,000 files is what is wanted; here only that it is no matter of seconds."""
    folder = tmp_path / "place"
    for at in range(70):
        (folder / f"d{at}").mkdir(parents=True)
        for number in range(100):
            (folder / f"d{at}" / f"{number}.py").touch()
    asked = changes.scan_fields(str(folder), "")
    look = scan.FolderLook(asked, {}, "")
    look.run()
    taken = []
    for _ in range(3):
        again, begun = scan.FolderLook(asked, look.files, ""), time.process_time()
        again.run()
        taken.append(time.process_time() - begun)
        assert {name: known[1] for name, known in again.files.items()} == {
            name: known[1] for name, known in look.files.items()
        }
        look = again
    assert again.read < 7_000
    assert min(taken) < 0.5
