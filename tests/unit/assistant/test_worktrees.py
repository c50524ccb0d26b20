"""Work that changes files, given away: done in a git worktree, handed over as a patch, applied if allowed."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from antiphon import Message, Record, ToolError, open_journal, open_run, run
from antiphon.assistant import coder
from antiphon.assistant.worktrees.patches import apply_tool, paths_of
from antiphon.assistant.worktrees.slots import SLOTS, Worktrees
from antiphon.errors import ConfigError
from antiphon.models.script import Script, call
from antiphon.values.policy import Verbatim
from antiphon.view import RunTree
from tests.transcript import results_shown

EDIT = call("edit_file", path="prices.py", old="TEA = 3", new="TEA = 4")


def git(place: Path, *words: str) -> str:
    done = subprocess.run(["git", "-C", str(place), *words], capture_output=True, text=True, check=True)
    return done.stdout


@pytest.fixture
def repository(place: Path) -> Iterator[Path]:
    (place / "prices.py").write_text("TEA = 3\nRUM = 7\n")
    git(place, "init", "-q")
    git(place, "config", "user.name", "ada")
    git(place, "config", "user.email", "ada@example.org")
    git(place, "add", ".")
    git(place, "commit", "-q", "-m", "first")
    yield place
    # Whatever came of it, nothing is left behind.
    assert len(git(place, "worktree", "list").splitlines()) == 1


def test_a_place_that_cannot_be_made_is_named_with_what_says_where(repository: Path, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    with pytest.raises(ConfigError, match=r"taken/.*cannot be made \(Not a directory\); ANTIPHON_HOME or"):
        coder(repository, env={"ANTIPHON_HOME": str(tmp_path / "taken")})


def writing(*titles: str) -> Any:
    return call("delegate", tasks=[{"title": each, "task": f"Do {each}", "writes": True} for each in titles])


def ask(place: Path, script: Script, answers: list[str] | None = None, mode: Any = "ask") -> list[Message]:
    """Ask it; what a person was asked meanwhile, who answers in turn."""
    asked: list[Message] = []
    said = iter(answers or ())

    async def answer(message: Message) -> str:
        asked.append(message)
        return next(said)

    team = coder(place, mode=mode, model=script)
    asyncio.run(run(team, "go", on_input=answer, policy="guarded"))
    return asked


def last_shown(script: Script) -> str:
    asked = [each for each in script.requests if each.system.startswith('You are "coder"')]
    return results_shown(asked[-1])[-1]


def test_one_call_is_asked_for_and_shows_all_of_the_patch(repository: Path) -> None:
    (repository / "prices.py").write_text("TEA = 3\nRUM = 8\n")  # Not committed.
    worker = [
        call("read_lines", path="prices.py"),
        EDIT,
        call("write_file", path="new.txt", content="x\n"),
        "Did it.",
    ]
    script = Script({"coder": [writing("tea"), "done"], "worker-1": worker})
    (asked,) = ask(repository, script, ["yes"])
    assert asked.data["tool"] == "apply_patch"
    assert "+TEA = 4" in asked.data["arguments"]
    assert "RUM" in asked.data["arguments"]
    assert "-RUM = 7" not in asked.data["arguments"]
    assert (repository / "prices.py").read_text() == "TEA = 4\nRUM = 8\n"
    assert (repository / "new.txt").read_text() == "x\n"
    assert last_shown(script) == "Did it.\n\n[its patch: applied: new.txt, prices.py]"


def test_what_is_refused_is_not_applied(repository: Path) -> None:
    script = Script({"coder": [writing("tea"), "done"], "worker-1": [EDIT, "Did it."]})
    ask(repository, script, ["no"])
    assert "TEA = 3" in (repository / "prices.py").read_text()
    assert "permission denied" in last_shown(script)


def test_in_edits_nobody_is_asked_and_in_plan_nothing_is_changed(repository: Path) -> None:
    script = Script({"coder": [writing("tea"), "done"], "worker-1": [EDIT, "I could not."]})
    assert ask(repository, script, mode="plan") == []
    assert last_shown(script) == "I could not.\n\n[it changed no file]"
    script = Script({"coder": [writing("tea"), "done"], "worker-1": [EDIT, "Did it."]})
    assert ask(repository, script, mode="edits") == []
    assert "TEA = 4" in (repository / "prices.py").read_text()


def test_a_rule_denies_a_patch_that_touches_its_files(repository: Path) -> None:
    rules = repository.parent / "config/antiphon/rules.yaml"
    rules.parent.mkdir(parents=True)
    rules.write_text("deny: [edit(secret*)]\n")
    patch = new_file("secret.txt")
    team = coder(repository, mode="open")
    patcher = next(each for each in team.agents() if each.name == "patcher")
    (apply,) = patcher.tools
    judged = team.permission.authorize(apply, apply.prepare(_arguments(patch)))  # type: ignore[arg-type, union-attr]
    assert judged is not None
    assert judged[0] == "deny"


def new_file(name: str) -> str:
    """A patch that makes a file."""
    head = f"diff --git a/{name} b/{name}\nnew file mode 100644\n--- /dev/null\n+++ b/{name}\n"
    return f"{head}@@ -0,0 +1 @@\n+x\n"


def _arguments(patch: str) -> str:
    return json.dumps({"title": "x", "patch": patch})


def test_two_write_at_once_each_in_its_own(repository: Path) -> None:
    rum = call("edit_file", path="prices.py", old="RUM = 7", new="RUM = 9")
    script = Script(
        {
            "coder": [writing("tea", "rum"), "done"],
            "*": lambda request: _by_task(request, {"Do tea": EDIT, "Do rum": rum}),
        }
    )
    ask(repository, script, mode="edits")
    shown = last_shown(script)
    assert shown.count("applied: prices.py") == 1
    # Both changed what stands side by side: the second finds other lines than it began with, and says so.
    assert "## 1. tea" in shown
    assert "## 2. rum" in shown
    assert "patch does not apply" in shown


def _by_task(request: Any, edits: dict[str, Any]) -> Any:
    return "Did it." if request.messages[-1].role == "tool" else edits[request.messages[0].content]


def test_what_a_patch_changed_can_be_undone(repository: Path) -> None:
    script = Script({"coder": [writing("tea"), "done"], "worker-1": [EDIT, "Did it."]})

    async def files() -> list[tuple[str, str]]:
        async with open_run([coder(repository, mode="edits", model=script)]) as opened:
            await opened.result(await opened.post("coder", "go"))
            tree = RunTree.of(await opened.records())
            changes = [each for one in tree.files.values() for each in one]
            return [(each.folder, each.path) for each in changes if each.folder == str(repository)]

    assert asyncio.run(files()) == [(str(repository), "prices.py")]


def test_it_goes_on_in_the_same_worktree_after_it_was_left(repository: Path) -> None:
    script = Script({"coder": [writing("tea"), "done"], "worker-1": [EDIT, "Did it."]}, by="turn")

    async def left() -> str:
        journal = open_journal()
        asks: Any = {"journal": journal, "interactive": True, "policy": "guarded"}
        async with open_run([coder(repository, model=script)], **asks) as opened:
            request = await opened.post("coder", "go")
            async for each in opened.events():
                if isinstance(each, Record) and "ApprovalEffect" in str(each.event):
                    break
        assert len(git(repository, "worktree", "list").splitlines()) == 2
        team = coder(repository, model=script)
        async with open_run([team], journal=journal, run_id=opened.run_id, interactive=True) as again:
            tree = RunTree.of(await again.records())
            await again.answer(next(iter(tree.human_inputs)), "yes")
            return (await again.result(request)).output

    assert asyncio.run(left()) == "done"
    assert "TEA = 4" in (repository / "prices.py").read_text()


def test_too_many_write(repository: Path) -> None:
    script = Script({"coder": [writing(*"abcde"), "done"]})
    ask(repository, script)
    assert f"At most {SLOTS} tasks write at once" in last_shown(script)


def test_without_a_repository_nobody_writes(place: Path) -> None:
    script = Script({"coder": [writing("a"), "done"]})
    ask(place, script)
    assert "Nobody writes here" in last_shown(script)


def test_a_repository_without_a_commit_says_so(place: Path) -> None:
    git(place, "init", "-q")
    script = Script({"coder": [writing("a"), "done"]})
    ask(place, script)
    assert "git " in last_shown(script)


# -- the places -----------------------------------------------------------------------------------


def test_a_place_is_one_works_own_until_it_is_dropped(repository: Path, tmp_path: Path) -> None:
    trees = Worktrees(repository, tmp_path / "state")
    made = [trees.make(f"run{each}", "1/1.c1:1") for each in range(SLOTS)]
    assert [each.slot for each in made] == [1, 2, 3, 4]
    assert trees.make("run2", "1/1.c1:1").slot == 3
    with pytest.raises(ToolError, match="4 agents write in this repository already"):
        trees.make("another", "1/1.c1:1")
    # What that run gave away before is over.
    assert trees.make("run1", "1/2.c1:1").slot == 2
    for each in made:
        trees.drop(each)
    assert trees.make("another", "1/1.c1:1").slot == 1
    trees.drop(made[0])


def test_a_hook_of_the_repository_is_not_run(repository: Path, tmp_path: Path) -> None:
    hook = repository / ".git/hooks/post-checkout"
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    hook.chmod(0o755)
    trees = Worktrees(repository, tmp_path / "state")
    trees.drop(trees.make("run", "1/1.c1:1"))
    assert not (tmp_path / "ran").exists()


# -- patches --------------------------------------------------------------------------------------

PATHS = {
    "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n": ["x"],
    "diff --git a/a b/b\nrename from a\nrename to b\n": ["a", "b"],
    "diff --git a/a b b/a b\nold mode 100644\nnew mode 100755\n": ["a b"],
    "diff --git a/x b/x\nnew file mode 100644\n--- /dev/null\n+++ b/x\n": ["x"],
    "--- a/x\n+++ b/y\n": ["x", "y"],
    'diff --git "a/\\303" "b/\\303"\n': None,
    "nonsense": None,
    "": None,
}


@pytest.mark.parametrize("patch", PATHS)
def test_the_files_that_a_patch_names(patch: str) -> None:
    found = paths_of(patch)
    assert list(found) == PATHS[patch] if PATHS[patch] is not None else isinstance(found[0], Verbatim)


@pytest.mark.parametrize(
    "name",
    ["../outside", ".git/config", "/etc/passwd", ".env", "link/x"],
    ids=lambda name: name.replace("/", "_"),
)
def test_what_no_tool_sees_no_patch_changes(repository: Path, tmp_path: Path, name: str) -> None:
    (tmp_path / "far").mkdir()
    (repository / "link").symlink_to(tmp_path / "far")
    patch = new_file(name)
    with pytest.raises(ToolError):
        apply_tool(repository)("x", patch)
    assert not (tmp_path / "outside").exists()
    assert not (tmp_path / "far/x").exists()
