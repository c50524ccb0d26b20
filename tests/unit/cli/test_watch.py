"""Several terminals see one run: any of them is told and answers, and one that watches goes on with it."""

import pytest

from tests.unit.cli.test_screen import Seen

pytestmark = pytest.mark.slow

CODE = """\
import asyncio, os
from antiphon import Agent, tool
from antiphon.models.script import Script, call
from antiphon.values.model import Reply

@tool(requires_approval=True)
def shell(command: str) -> str:
    "Run a command."
    with open("ran", "a") as file:
        file.write(command)
    return "ran " + command

@tool(effect="read")
async def stand() -> str:
    "Stand until there is a file."
    while not os.path.exists("go"):
        await asyncio.sleep(0.01)
    return "gone"

class Model:
    name = "model"
    async def complete(self, request, emit):
        last = request.messages[-1]
        if last.role != "user":
            return Reply("Done: " + last.content)
        if last.content == "run":
            return Reply("", (call("shell", command="ls"),), "calls")
        if last.content == "stand":
            return Reply("", (call("stand"),), "calls")
        return Reply("I heard " + last.content)

team = Agent("coder", model=Model(), tools=[shell, stand])
"""


@pytest.fixture
def two(shell):
    """The terminal that drives a run, and one that watches it."""
    shell.write("code.py", CODE)
    owner = Seen(shell, "chat", "code.py:team")
    owner.until("coder\x1b")
    owner.type("one\r")
    owner.until("I heard one")
    (run,) = shell("runs", "ls", "--json").value
    watcher = Seen(shell, "chat", "code.py:team", "--watch", run["run_id"])
    watcher.until("coder\x1b")
    yield owner, watcher
    for each in (owner, watcher):
        if not hasattr(each, "code"):
            each.process.kill()
            each.end()


def leave(*screens):
    for each in screens:
        each.type("\x04")
        each.end()
        assert each.code == 0


def test_what_is_said_in_one_is_seen_in_the_other(two):
    owner, watcher = two
    assert any("is driven by another process" in each for each in watcher.screen.text())
    assert "I heard one" in watcher.screen.text()
    owner.type("two\r")
    watcher.until("I heard two")
    watcher.type("three\r")
    watcher.until("I heard three")
    owner.until("I heard three")
    leave(watcher, owner)
    for each in two:
        rows = each.screen.text()
        assert [rows.count(f"I heard {text}") for text in ("one", "two", "three")] == [1, 1, 1]
    assert "(asked elsewhere)" in owner.screen.text()
    assert "> three" in owner.screen.text()


@pytest.mark.parametrize("answers", [0, 1])
def test_any_of_them_answers(shell, two, answers):
    two[0].type("run\r")
    for each in two:
        each.until("\x1b[1m  y  yes, once")
    two[answers].type("y")
    for each in two:
        each.until("Done: ran ls")
    leave(*reversed(two))
    assert (shell.folder / "ran").read_text() == "ls"
    assert "(it was settled elsewhere)" in two[1 - answers].screen.text()


def test_who_watches_goes_on_when_the_owner_was_killed(shell, two):
    owner, watcher = two
    owner.type("stand\r")
    owner.until("stand()")
    watcher.until("stand()")
    owner.process.kill()
    owner.end()
    watcher.until("it goes on here")
    shell.write("go", "")
    watcher.until("Done: gone")
    watcher.type("more\r")
    watcher.until("I heard more")
    leave(watcher)
    rows = watcher.screen.text()
    assert rows.count("Done: gone") == 1
    (run,) = shell("runs", "ls", "--json").value
    assert shell("runs", "verify", run["run_id"]).code == 0


def test_who_watches_and_leaves_changes_nothing(two):
    owner, watcher = two
    leave(watcher)
    assert any("goes on where it is driven" in each for each in watcher.screen.text())
    owner.type("two\r")
    owner.until("I heard two")
    leave(owner)
