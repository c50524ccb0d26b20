"""A command does nothing of what its confinement claims to stop; what is not stopped is named."""

from __future__ import annotations

import os
import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from antiphon.tools.shell import Workspace
from antiphon.tools.shell.confinement import Confinement, confinement, in_bwrap, readable
from tests.unit.tools.shell.running import told, written

WORD = "outside-of-the-folder"
PYTHON = f"{sys.executable} -I -S -c"
KINDS = [
    pytest.param(
        Confinement("landlock", confinement().landlock),
        marks=pytest.mark.skipif(
            confinement().landlock < 6, reason="this kernel has no Landlock of version 6"
        ),
        id="landlock",
    ),
    pytest.param(
        confinement(),
        marks=pytest.mark.skipif(
            confinement().kind != "bwrap", reason="bwrap is not installed, or may not work"
        ),
        id="bwrap",
    ),
]
"""What may hold commands back here."""
READS = [
    "cat OUT/word.txt",
    "cat ../out/word.txt",
    "ln -s OUT/word.txt own; cat own",
    "ln -s OUT away; cat away/word.txt",
    "ln OUT/word.txt hard; cat hard",
    "cp OUT/word.txt .; cat word.txt",
    "mv OUT/word.txt .; cat word.txt",
    "cp -r OUT all; cat all/word.txt",
    "cat /proc/self/root/OUT/word.txt",
    "cat /proc/self/cwd/../out/word.txt",
    "cat /proc/$PPID/root/OUT/word.txt",
    "cat /proc/$PPID/cwd/OUT/word.txt",
    "cat /proc/AGENT/root/OUT/word.txt",
    "cat /proc/AGENT/environ",
    "strings /proc/AGENT/mem; head -c 10 /proc/AGENT/mem",
    "cat /proc/AGENT/fd/*",
    "cat /proc/AGENT/maps",
    "ls OUT",
    "ls -d OUT/*",
    "find OUT -type f",
    "tar cf - OUT",
    "dd if=OUT/word.txt",
    "bash < OUT/word.txt",
    "source OUT/word.txt",
    "OUT/run",
    "bash OUT/run",
    "/lib64/ld-linux-x86-64.so.2 OUT/run",
    "while read line; do echo $line; done < OUT/word.txt",
    "grep -r . OUT",
    "cd OUT; cat word.txt",
    "cat STATE/*/asked",
    "ls STATE",
    f"{PYTHON} 'print(open(\"OUT/word.txt\").read())'",
    f"{PYTHON} 'import os; print(os.listdir(\"OUT\"))'",
    f"{PYTHON} 'import os; print(os.read(os.open(\"OUT/word.txt\", os.O_RDONLY), 99))'",
    "git diff --no-index /dev/null OUT/word.txt",
    "git --git-dir=OUT/.git status; cat OUT/.git/config",
    "unshare -m cat OUT/word.txt",
    "unshare -r cat OUT/word.txt",
    "mkdir bound; mount --bind OUT bound; cat bound/word.txt",
    "chroot / cat OUT/word.txt",
    "mknod disk b 259 0; mknod disk c 1 1; head -c 1 disk && echo outside-of-the-folder",
    "env -i /bin/cat OUT/word.txt",
    "setsid cat OUT/word.txt",
    "xargs -a OUT/word.txt echo",
    "diff OUT/word.txt /dev/null",
]
WRITES = [
    "echo x > OUT/new",
    "echo x >> OUT/word.txt",
    ": > OUT/word.txt",
    "truncate -s 0 OUT/word.txt",
    "rm -f OUT/word.txt",
    "rm -rf OUT",
    "mv OUT/word.txt OUT/other",
    "mv OUT ../elsewhere",
    "mkdir OUT/folder",
    "ln -s / OUT/link",
    "ln OUT/word.txt OUT/hard",
    "mkfifo OUT/pipe",
    "mknod OUT/null c 1 3",
    "cp /etc/hostname OUT/word.txt",
    "tee OUT/word.txt < /etc/hostname",
    "sed -i s/o/x/ OUT/word.txt",
    "ln -s OUT/word.txt through; echo x > through",
    "ln -s OUT/made beyond; echo x > beyond",
    "cd OUT && echo x > new",
    "cd .. && echo x > out/new",
    "install /etc/hostname OUT/word.txt",
    "touch OUT/new",
    "dd if=/dev/zero of=OUT/word.txt count=1",
    "echo x > /proc/self/cwd/../out/new",
    "echo x > /proc/sys/kernel/hostname-of-nobody",
    "git init OUT/repository",
    "git config --file OUT/.git/config a.b c",
    "tar cf OUT/made.tar .",
    "unshare -m sh -c 'echo x > OUT/new'",
    "mount -t tmpfs none OUT; echo x > OUT/new",
    "(trap '' TERM HUP; setsid sh -c 'sleep 0.2; echo x > OUT/late' &)",
    f'{PYTHON} \'open("OUT/word.txt", "w")\'',
    f"{PYTHON} 'import os; os.truncate(\"OUT/word.txt\", 0)'",
    f'{PYTHON} \'import os; os.rename("OUT/word.txt", "OUT/renamed")\'',
]
OTHERS = {
    "kill -0 AGENT": "not permitted",
    "kill -CONT AGENT": "not permitted",
    "kill -CONT $PPID": "not permitted",
    "exec 3<> /dev/tcp/127.0.0.1/PORT && echo through": "denied",
    f"{PYTHON} 'import socket; socket.create_connection((\"127.0.0.1\", PORT))'": "Permission",
    f"{PYTHON} 'import socket; socket.socket().bind((\"127.0.0.1\", 0))'": "Permission",
    f"{PYTHON} 'import socket; socket.socket(1).connect(\"\\0antiphon-AGENT\")'": "not permitted",
    f"{PYTHON} 'import ctypes; print(ctypes.CDLL(None).ptrace(16, AGENT, 0, 0))'": "-1",
    "grep NoNewPrivs /proc/self/status": "1",
}
OF_GIT = [
    "printf '#!/bin/sh\\n' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit",
    "git config core.pager 'touch evil'",
    "git config alias.status '!touch evil'",
    "git config --worktree core.fsmonitor 'touch evil' || echo x > .git/config.worktree",
    "rm .git/config",
    "rm -r .git/hooks; ln -s ../evil .git/hooks",
    "rm -r .git/hooks; mkdir -p .git/hooks/deep; echo x > .git/hooks/post-checkout",
    "ln -sf ../evil .git/config",
    "ln -sf ../evil .git/hooks/post-merge",
    "rm .git/hooks/post-commit",
    "chmod +x .git/hooks/post-commit",
    "echo x >> .git/hooks/post-commit",
    "echo ../evil > .git/commondir",
    "cd .git; mkdir -p modules/a/hooks; echo x > modules/a/hooks/post-merge; echo x > modules/a/config",
    "mv .git .g2; mkdir .git; cp -r .g2/* .git; git config core.pager evil",
    "(sleep 0.1; git config core.pager evil) & sleep 0.4",
    "head -c 2000000 /dev/zero > .git/hooks/pre-push",
    "mkfifo .git/hooks/pre-push",
    "mv .git .g2; echo 'gitdir: .g2' > .git; git config core.pager evil",
]


@pytest.fixture
def held(workspace: Workspace, request: pytest.FixtureRequest) -> Workspace:
    return Workspace(workspace.folder, confined=request.param)


@pytest.fixture
def out(workspace: Workspace) -> Path:
    """What lies outside of the folder."""
    found = Path(workspace.folder).parent / "out"
    (found / ".git").mkdir(parents=True)
    for name in ("word.txt", "run", ".git/config"):
        (found / name).write_text(f"#!/bin/sh\necho {WORD}\n")
        (found / name).chmod(0o755)
    return found


@pytest.fixture
def listening() -> Iterator[tuple[int, list[object]]]:
    """A port of this machine, and who connects to it; an abstract socket beside it."""
    came: list[object] = []
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as named:
        named.bind(f"\0antiphon-{os.getpid()}")
        named.listen()
        for each in (server, named):
            threading.Thread(target=_take, args=(each, came), daemon=True).start()
        yield server.getsockname()[1], came
        for each in (server, named):
            each.shutdown(socket.SHUT_RDWR)


def _take(server: socket.socket, came: list[object]) -> None:
    while True:
        try:
            connection, address = server.accept()
            connection.close()
            came.append(address)
        except OSError:
            return


def tree(folder: Path) -> dict[str, object]:
    return {
        str(each): (each.lstat().st_mode, each.is_file() and each.read_bytes()) for each in folder.rglob("*")
    }


def filled(line: str, workspace: Workspace, out: Path, port: int = 0) -> str:
    given = {"OUT": str(out), "STATE": workspace.state, "AGENT": str(os.getpid()), "PORT": str(port)}
    for name, value in given.items():
        line = line.replace(name, value)
    return line


def of_git(folder: Path) -> dict[str, object]:
    """What git would run there, or is led by."""
    hooks = folder / ".git" / "hooks"
    found: dict[str, object] = {"link": hooks.is_symlink()}
    for each in [
        *hooks.iterdir(),
        *(folder / ".git").glob("co*"),
        *(folder / ".git").glob("modules/*/[ch]*/*"),
    ]:
        if not each.name.endswith(".sample") and "antiphon" not in each.name:
            found[str(each.relative_to(folder))] = (each.lstat().st_mode, each.read_bytes())
    return found


@pytest.mark.slow
@pytest.mark.parametrize("held", KINDS, indirect=True)
class TestConfined:
    def test_nothing_outside_is_read(self, held: Workspace, out: Path) -> None:
        for line in READS:
            found = written(held, filled(line, held, out))
            assert WORD not in found.replace(line, ""), line
            assert "sk-secret" not in found, line

    def test_nothing_outside_is_changed(self, held: Workspace, out: Path) -> None:
        before = tree(out)
        for line in WRITES:
            told(held, filled(line, held, out))
            assert tree(out) == before, line
        assert sorted(each.name for each in out.parent.iterdir()) == ["out", "place", "state"]

    def test_others_are_not_reached(
        self, held: Workspace, out: Path, listening: tuple[int, list[object]]
    ) -> None:
        port, came = listening
        for line, answer in OTHERS.items():
            found = written(held, filled(line, held, out, port))
            # Behind bwrap there are no others.
            assert answer in found or held.confined.kind == "bwrap", line
            assert "through" not in found.replace(line, ""), line
        assert came == []

    def test_a_folder_that_is_listed_is_open(self, held: Workspace, out: Path) -> None:
        other = Workspace(held.folder, confined=held.confined, read=[str(out)])
        assert written(other, f"cat {out}/word.txt; echo x > {out}/word.txt").count(WORD) == 1
        other = Workspace(held.folder, confined=held.confined, write=[str(out)])
        assert written(other, f"echo written > {out}/word.txt; cat {out}/word.txt") == "written\n"

    def test_with_a_network_it_connects(self, held: Workspace, listening: tuple[int, list[object]]) -> None:
        other = Workspace(held.folder, confined=held.confined, network=True)
        assert told(other, f"exec 3<> /dev/tcp/127.0.0.1/{listening[0]}") == "exit code 0"

    def test_its_own_folder_is_all_its_own(self, held: Workspace) -> None:
        line = (
            "mkdir a && echo x > a/b && mv a/b c && ln c d && ln -s c e && chmod +x c && rm d && cat e "
            "&& cat > $TMPDIR/t <<< y && rm -r a $TMPDIR/t && echo > $HOME/.rc"
        )
        assert told(held, line) == "exit code 0\nx\n"


@pytest.mark.slow
@pytest.mark.parametrize("held", KINDS, indirect=True)
class TestGit:
    def test_what_git_would_run_is_put_back_and_told(self, held: Workspace) -> None:
        assert told(held, "git init -q; git commit -q --allow-empty -m x || true").startswith("exit code 0")
        folder = Path(held.folder)
        (folder / ".git" / "hooks").mkdir(exist_ok=True)
        (folder / ".git" / "hooks" / "post-commit").write_text("#!/bin/sh\n")
        before = of_git(folder)
        for line in OF_GIT:
            found = told(held, line)
            assert of_git(folder) == before, (line, found)
            assert "\nnote: .git" in found or held.confined.kind == "bwrap", (line, found)

    def test_what_git_keeps_of_a_project_stays(self, held: Workspace) -> None:
        told(held, "git init -q; git config user.name a; git config user.email a@b")
        line = "echo x > f; git add f; git commit -qm x; git checkout -q -b other; git log --oneline | wc -l"
        assert told(held, line) == "exit code 0\n1\n"

    def test_two_commands_share_what_stood_there_before_the_first(self, held: Workspace) -> None:
        told(held, "git init -q")
        folder = Path(held.folder)
        before = of_git(folder)
        line = "echo x > .git/hooks/pre-commit; echo ready > ready; sleep 1"
        other = threading.Thread(target=told, args=(held, line))
        other.start()
        while not (folder / "ready").exists():
            assert other.is_alive()
        told(held, "sleep 1.5")
        other.join()
        assert of_git(folder) == before


def test_what_holds_and_what_does_not_is_said() -> None:
    old, new = Confinement("landlock", 1), Confinement("landlock", 7)
    assert [each for each in new.holds if each not in old.holds] == ["no TCP", "no signal to other processes"]
    assert {"use TCP", "empty its user's files", "end other processes of its user"} <= set(old.missing)
    assert "use UDP" in new.missing
    assert "use TCP" not in new.missing
    assert "no network" in Confinement("bwrap", 7, "/usr/bin/bwrap").holds
    assert str(Confinement("none")) == "not confined"
    assert Confinement("none").missing == ("all that its user can do",)


def test_what_is_not_stopped_is_in_the_documentation() -> None:
    said = Path("docs/safety.md").read_text()
    for kind in (Confinement("landlock", 1), Confinement("bwrap", 7, "/usr/bin/bwrap"), Confinement("none")):
        assert [each for each in kind.missing if each not in said] == []


def test_no_home_is_readable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for each in (".local/bin", ".pyenv/shims", ".nvm/versions/node/v20/bin", "bin"):
        (tmp_path / each).mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path))
    path = ":".join(str(tmp_path / each) for each in (".local/bin", "bin", ".nvm/versions/node/v20/bin"))
    found = [each.removeprefix(f"{tmp_path}/") for each in readable(path, ()) if str(tmp_path) in each]
    assert sorted(found) == [
        ".local/bin",
        ".nvm",
        ".nvm/versions/node/v20",
        ".nvm/versions/node/v20/bin",
        ".pyenv",
        "bin",
    ]


def test_bwrap_mounts_the_repository_read_only_behind_the_folder() -> None:
    words = in_bwrap("bwrap", ["ls"], "/p", ["/usr"], ["/p", "/h"], network=False)
    text = " ".join(words)
    assert text.index("--bind /p /p") < text.index("--ro-bind-try /p/.git/hooks /p/.git/hooks")
    assert [each for each in words if "share" in each] == ["--unshare-all"]
    assert text.endswith("--chdir /p -- ls")
