"""A child process is ended by its bounds, and by the death of its parent, however that dies."""

import os
import re
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import antiphon
from antiphon.tools.child import run_alone

PACKAGE = Path(antiphon.__file__).parent
PATIENCE = 20.0
SPINNING = "import re; at_work, text = re.compile('(a+)+$').search, 'a' * 64 + 'b'"
"""Lets no thread of its own run, for years."""
SLEEPING = "import time; at_work, text = time.sleep, 1e6"
STARTERS = {
    "assistant/worktrees/git.py": "asks git for worktrees and patches, with a timeout",
    "assistant/hooks/scripts.py": "runs what the user wrote, with a timeout that ends all of it",
    "tools/child.py": "bounded, as is proved here",
    "tools/folder/readers/apart.py": "names the errors of what `child` starts",
    "tools/folder/grep.py": "names the errors of what `child` starts",
    "tools/folder/listing.py": "asks `git ls-files`, with a timeout",
    "tools/outputs.py": "names the errors of what `child` starts",
    "kernel/run/tools/isolated.py": "an isolated tool's, killed at its timeout and with its parent",
    "journal/owner.py": "asks `ps` and `sysctl` on macOS, with a timeout",
    "tools/shell/commands.py": "starts a keeper, which outlives this process on purpose",
    "tools/shell/keeping/keeper.py": "starts the command, and ends it with all that it started",
    "tools/shell/keeping/processes.py": "asks `ps` on macOS",
    "tools/shell/changes.py": "asks `git cat-file`, with a timeout",
    "tools/shell/confinement.py": "tries whether `bwrap` works, with a timeout",
    "tools/shell/workspace.py": "asks git where its hooks are, with a timeout",
    "cli/screen/keys/outside.py": "starts the person's $EDITOR, and ends it with the conversation",
    "testing/crash.py": "forks the tests' own processes",
}


def child_of(parent, ready):
    """The process that another one has started, once it is at work."""
    while not ready.exists():
        assert parent.poll() is None
    tasks = Path(f"/proc/{parent.pid}/task").iterdir()
    (found,) = [each for task in tasks for each in (task / "children").read_text().split()]
    return int(found)


def ends(handle):
    return bool(select.select([handle], [], [], PATIENCE)[0])


def parent_of(program, first=""):
    code = f"from antiphon.tools import child\n{first}\nchild.run_alone({program!r}, '', seconds=600)"
    return subprocess.Popen([sys.executable, "-c", code])


OTHER_SYSTEMS = "child._PRELUDE = child._PRELUDE.replace('== \"linux\"', '== \"none\"')"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="looks for the child in /proc")
@pytest.mark.parametrize(("program", "first"), [(SPINNING, ""), (SLEEPING, ""), (SLEEPING, OTHER_SYSTEMS)])
def test_a_child_is_gone_when_its_parent_is_killed(program, first, tmp_path):
    ready = tmp_path / "ready"
    with parent_of(f"{program}; open({os.fspath(ready)!r}, 'w'); at_work(text)", first) as parent:
        handle = os.pidfd_open(child_of(parent, ready))
        try:
            assert not select.select([handle], [], [], 0)[0]
            parent.kill()
            assert ends(handle)
        finally:
            if not select.select([handle], [], [], 0)[0]:
                signal.pidfd_send_signal(handle, signal.SIGKILL)
            os.close(handle)


def test_its_bounds_are_those_that_were_given():
    told = run_alone(
        "import resource\n"
        "print([resource.getrlimit(each)[1] for each in (resource.RLIMIT_CPU, resource.RLIMIT_CORE)])",
        "",
        seconds=6.5,
    )
    assert told == "[7, 0]\n"


def test_it_gets_no_more_memory_than_it_may():
    with pytest.raises(subprocess.CalledProcessError) as ended:
        run_alone("x = bytearray(1 << 29)", "", seconds=PATIENCE, memory=1 << 28)
    assert "MemoryError" in ended.value.stderr


def test_it_is_ended_after_its_time_and_is_given_its_text():
    with pytest.raises(subprocess.TimeoutExpired):
        run_alone(f"{SLEEPING}; at_work(text)", "", seconds=0.5)
    assert run_alone("print(sys.stdin.read().upper())", "hello", seconds=PATIENCE) == "HELLO\n"


def test_processes_are_started_in_one_place():
    starts = re.compile(
        r"^\s*(import|from) (subprocess|multiprocessing|pty)\b|os\.(fork|spawn|posix_spawn|popen|system)",
        re.M,
    )
    found = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if starts.search(path.read_text("utf-8"))
    }
    assert found == set(STARTERS)
