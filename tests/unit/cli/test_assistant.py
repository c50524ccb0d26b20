"""`antiphon` without a command: the assistant of a folder, talked with, asked once, and gone on with."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from antiphon import Agent, Record, open_journal, open_run, tool
from antiphon.cli.session.talk import Talk
from antiphon.kernel.facts.events import RunResumed
from antiphon.models.script import Script
from antiphon.models.script import call as ask
from antiphon.tools.shell.confinement import confinement
from tests.unit.cli.shell import PATIENCE, Terminal
from tests.unit.cli.test_screen import Seen

MODE = ("--mode", "auto" if confinement().kind != "none" else "open")
BROKEN = "def price(tea):\n    return tea * 2\n"
CHECK = "from shop import price\nassert price(3) == 9, price(3)\nprint('all is well')\n"
# Without a cache: a file that is edited within a second, and is as long as before, would be taken from it.
TEST = f"{sys.executable} -B check.py"


@pytest.fixture
def repository(shell: Any, monkeypatch: Any) -> Any:
    """A small repository whose test fails, and folders of the user's own apart from it."""
    shell.folder = shell.folder / "repository"
    (shell.folder / ".git").mkdir(parents=True)
    own = shell.home
    own.mkdir()
    for name, value in {"HOME": own, "XDG_STATE_HOME": own / "state", "XDG_CONFIG_HOME": own}.items():
        monkeypatch.setenv(name, str(value))
    monkeypatch.delenv("ANTIPHON_HOME", raising=False)
    monkeypatch.chdir(shell.folder)
    shell.write("shop.py", BROKEN)
    shell.write("check.py", CHECK)
    environment = shell.environment
    model: dict[str, str] = {}
    shell.environment = lambda: environment() | model

    def says(*lines: Any) -> None:
        """What the model says from now on."""
        path = own / f"script-{len(list(own.glob('script-*')))}.yaml"
        path.write_text(json.dumps({"coder": list(lines)}))
        model["ANTIPHON_MODEL"] = f"script:{path}"
        monkeypatch.setenv("ANTIPHON_MODEL", model["ANTIPHON_MODEL"])

    shell.says = says
    return shell


def call(tool: str, **args: Any) -> dict[str, Any]:
    return {"call": tool, "args": args}


FIX = call("edit_file", path="shop.py", old="tea * 2", new="tea * 3")


@pytest.mark.slow
def test_it_fixes_a_failing_test(repository: Any) -> None:
    repository.says(
        call("shell", command=TEST), call("read_lines", path="shop.py"), FIX, call("shell", command=TEST),
        "price() takes it three times now (shop.py:2); check.py passes.",
    )  # fmt: skip
    # Nobody is asked: where something holds commands back, that is so without a word.
    words = MODE if confinement().kind == "none" else ()
    said = repository.apart("-p", "Fix the failing test", *words)
    assert said.code == 0, said
    assert said.out == "price() takes it three times now (shop.py:2); check.py passes.\n"
    assert "exit code 1" in said.err, said.err
    assert "exit code 0" in said.err, said.err
    assert (repository.folder / "shop.py").read_text() == BROKEN.replace("2", "3")
    assert not (repository.folder / ".antiphon").exists()


@pytest.mark.slow
def test_killed_while_the_test_runs_it_goes_on_with_its_end(repository: Any) -> None:
    for name in ("reached", "gate"):
        os.mkfifo(repository.folder / name)
    line = f"echo once >> runs; echo here > reached; cat gate; {TEST}"
    last = "It passes: I went on where I was.", "Nothing is left."
    repository.says(FIX, call("shell", command=line), *last)
    process = repository.start(
        "-p", "Fix it and test it", *MODE, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    assert (repository.folder / "reached").read_text() == "here\n"
    process.send_signal(signal.SIGKILL)
    process.wait(PATIENCE)
    (repository.folder / "gate").write_text("open\n")
    said = repository.apart("--continue", *MODE, stdin="What is left?\n")
    assert said.code == 0, said
    assert "all is well" in said.err + said.out
    assert "It passes: I went on where I was." in said.out
    assert said.out.endswith("Nothing is left.\n")
    assert (repository.folder / "runs").read_text() == "once\n"
    assert (repository.folder / "shop.py").read_text() == BROKEN.replace("2", "3")


def test_an_answer_for_a_script(repository: Any) -> None:
    repository.says(call("read_lines", path="shop.py"), "Two.")
    said = repository("-p", "How many?", "--json")
    assert said.code == 0
    assert said.events[0]["event"]["type"] == "run_started", said.events[0]
    assert (said.events[-1]["type"], said.events[-1]["output"]) == ("Result", "Two.")
    assert said.err == ""


def test_what_is_asked_comes_from_the_standard_input(repository: Any) -> None:
    repository.says("Hello.")
    assert repository.apart("-p", "-", "-q", stdin="hello\n").out == "Hello.\n"
    assert repository.apart("-p", "-", "-q", stdin="").code == 2


def test_it_goes_on_with_the_conversation_of_this_folder(repository: Any) -> None:
    repository.says("First.", "Second.")
    assert repository("-p", "one", "-q").out == "First.\n"
    other = repository.folder / "other"
    other.mkdir()
    assert repository("-p", "one", "-q", "--continue", "--folder", other).code == 4
    assert repository("-p", "two", "-q", "--continue").out == "Second.\n"
    listed = repository("runs", "ls", "--json", "--journal", repository.home / "state/antiphon/antiphon.db")
    assert len(listed.value["runs"] if isinstance(listed.value, dict) else listed.value) == 1


def test_in_a_pipe_each_line_is_a_message(repository: Any) -> None:
    repository.says("First.", "Second.")
    assert repository.apart("-q", stdin="one\ntwo\n").out == "First.\nSecond.\n"


def test_asked_once_it_edits_and_otherwise_asks(repository: Any) -> None:
    repository.says(FIX, "Done.")
    assert "permission denied" in repository.apart(stdin="go\n").err
    assert (repository.folder / "shop.py").read_text() == BROKEN
    repository.says(FIX, "Done.")
    assert repository("-p", "go", "--mode", "plan").code == 0
    assert (repository.folder / "shop.py").read_text() == BROKEN
    repository.says(FIX, "Done.")
    assert repository("-p", "go").code == 0
    assert (repository.folder / "shop.py").read_text() != BROKEN


def test_a_command_of_the_users_is_said(repository: Any) -> None:
    repository.write(".agents/commands/review.md", "Review $ARGUMENTS.")
    repository.says("Reviewed.", "Again.")
    said = repository("-p", "/review shop.py")
    assert "user calls coder: Review shop.py." in said.err


def test_what_can_run_code_is_shown_and_trusted_once(repository: Any) -> None:
    hook = {"hooks": {"UserPromptSubmit": [{"hooks": [{"command": "echo a hook ran; touch ran\x1b"}]}]}}
    repository.write(".agents/hooks.json", json.dumps(hook))
    repository.says("One.", "Two.")
    said = repository("-p", "go")
    assert "hooks.json: hooks, not trusted and so left out" in said.err
    said = repository("--trust")
    assert said.code == 0
    assert "echo a hook ran" in said.err
    assert "\x1b" not in said.err
    repository.says("One.", "Two.")
    assert "not trusted" not in repository("-p", "go").err
    assert list(repository.folder.glob("ran*"))


def test_at_a_terminal_whoever_sits_there_is_asked_for_trust(repository: Any) -> None:
    hook = {"hooks": {"UserPromptSubmit": [{"hooks": [{"command": "touch ran"}]}]}}
    repository.write(".agents/hooks.json", json.dumps(hook))
    repository.says("Hello.")
    terminal = Terminal(repository)
    terminal.until("[y/N]")
    terminal.type("y\n")
    terminal.until("> ")
    terminal.type("hi\n")
    terminal.until("Hello.")
    terminal.type("/quit\n")
    terminal.end()
    assert terminal.code == 0
    assert (repository.folder / "ran").exists()


@pytest.mark.slow
def test_a_pattern_that_is_allowed_for_good_is_not_asked_again_tomorrow(repository: Any) -> None:
    repository.says(call("shell", command="ls -l shop.py"), "Seen.")
    screen = Seen(repository)
    screen.until("coder\x1b")
    screen.type("look\r")
    screen.until("no; why may be said")
    screen.until("\x1b[1m  y  yes, once")
    screen.type("2")
    screen.until("allowed from now on, in this folder")
    screen.until("Seen.")
    screen.type("\x04")
    screen.end()
    assert screen.code == 0
    repository.says(call("shell", command="ls -l check.py; ls -l shop.py"), "Seen too.")
    said = repository.apart(stdin="look\n")
    assert "Seen too." in said.out
    assert "permission denied" not in said.err
    repository.says(call("shell", command="ls -l shop.py; touch made"), "Not seen.")
    assert "permission denied" in repository.apart(stdin="look\n").err
    elsewhere = repository.folder / "elsewhere"
    elsewhere.mkdir()
    repository.says(call("shell", command="ls -l shop.py"), "Not there.")
    assert "permission denied" in repository.apart("--folder", elsewhere, stdin="look\n").err


def test_files_are_undone_and_redone_in_a_conversation_and_its_agent_is_told(repository: Any) -> None:
    repository.says(FIX, "Done.", "I read it anew.")
    lines = "fix it\n/undo\n/undo\n/mode\n/mode plan\nand now?\n/undo 7\n/redo\n"
    said = repository.apart("--mode", "edits", stdin=lines)
    assert said.code == 0, said
    told = said.out + said.err
    for each in (
        "restored shop.py", "The mode is edits: files are changed unasked", "The mode is plan",
        "/undo takes the number of a message, 1 to 2", "No file was changed since",
    ):  # fmt: skip
        assert each in told, (each, told)
    assert (repository.folder / "shop.py").read_text() == BROKEN.replace("2", "3")
    journal = repository.home / "state/antiphon/antiphon.db"
    runs = repository("runs", "ls", "--json", "--journal", journal).value
    listed = [repository("runs", "show", each["run_id"], "--journal", journal).out for each in runs]
    noted = "I made these files again what they were before message 1: shop.py."
    assert any(noted in each for each in listed)


@pytest.mark.slow
def test_who_goes_back_has_the_files_of_then(repository: Any) -> None:
    repository.says(FIX, "Done.", "Never mind.")
    screen = Seen(repository, "--mode", "edits")
    screen.until("coder\x1b")
    screen.type("fix it\r")
    screen.until("Done.")
    screen.type("\x1b[Z")
    screen.until("The mode is auto")
    screen.type("/rewind 1\r")
    screen.until("1 file is as it was then")
    assert (repository.folder / "shop.py").read_text() == BROKEN
    screen.type("\x15\x04")
    screen.end()
    assert screen.code == 0


WRONG = {
    ("--json",): "--json goes with -p",
    ("--resume", "x", "--continue"): "exclude each other",
    ("-p", " "): "There is no message",
    ("--mode", "yolo"): "'yolo' is not one of",
    ("--model", "x", "runs", "ls"): "--model is for the assistant, which is opened without a command",
    ("--folder", "nowhere"): "does not exist",
}


@pytest.mark.parametrize("words", WRONG)
def test_options_that_cannot_be(repository: Any, words: tuple[str, ...]) -> None:
    repository.says("never")
    said = repository(*words)
    assert said.code == 2
    assert WRONG[words] in said.err


def test_without_a_conversation_there_is_none_to_go_on_with(repository: Any) -> None:
    repository.says("never")
    said = repository("-p", "x", "--continue")
    assert said.code == 4
    assert "no conversation to go on with" in said.err


def test_without_a_model_it_says_what_to_set(repository: Any, monkeypatch: Any) -> None:
    for name in ("ANTIPHON_MODEL", "OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_DEFAULT_MODEL"):
        monkeypatch.delenv(name, raising=False)
    said = repository("-p", "x")
    assert said.code == 3
    assert "No model is set" in said.err


def test_its_runs_lie_where_no_tool_of_it_reaches(repository: Any) -> None:
    repository.says("Hello.")
    said = repository("-p", "x")
    assert str(repository.home / "state/antiphon/antiphon.db") in said.err
    assert sorted(each.name for each in Path(repository.folder).iterdir()) == [".git", "check.py", "shop.py"]


def test_in_a_conversation_a_command_of_the_users_is_said(repository: Any) -> None:
    repository.write(".agents/commands/review.md", "Review $ARGUMENTS.")
    repository.write(".agents/commands/help.md", "never said")
    repository.says("Reviewed.", "Again.")
    said = repository.apart(stdin="/review shop.py\n/help\n/nothing\n")
    assert said.out == "Reviewed.\n"
    assert "what can be said here" in said.err
    assert "There is no /nothing" in said.err


def test_what_happened_since_a_run_was_taken_up_is_news(repository: Any) -> None:
    gate = asyncio.Event()

    @tool(effect="idempotent")
    async def wait() -> str:
        """Wait."""
        await gate.wait()
        return "it is open"

    agent = Agent("a", model=Script([ask("wait"), "done"], by="turn"), tools=[wait])

    async def left_and_gone_on() -> tuple[list[Record], list[Record]]:
        journal = open_journal()
        async with open_run([agent], journal=journal) as opened:
            request = await opened.post("a", "go")
            async for each in opened.events():
                if isinstance(each, Record) and "ToolEffect" in str(each.event):
                    break
        gate.set()
        async with open_run([agent], journal=journal, run_id=opened.run_id) as again:
            await again.result(request)
            known = await Talk._known(SimpleNamespace(run=again))  # type: ignore[arg-type]
            return known, await again.records()

    known, all_of_them = asyncio.run(left_and_gone_on())
    assert isinstance(known[-1].event, RunResumed)
    assert "it is open" in str(all_of_them[len(known) :])
