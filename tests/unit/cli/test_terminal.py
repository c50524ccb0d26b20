"""The command at a real terminal: the live tree, questions, Ctrl-C."""

import os
import re
import signal

import pytest

from tests.unit.cli.shell import Terminal, plain

pytestmark = pytest.mark.slow

CODE = '''
import asyncio
import os
from antiphon import Agent
from antiphon.values.model import Delta, Reply
from antiphon import tool
from antiphon.models.script import Script, call, finish


@tool
def send(to: str, text: str) -> str:
    """Send a letter."""
    with open("sent", "a") as box:
        box.write(to + "\\n")
    return "sent to " + to


@tool(effect="read")
async def stand() -> str:
    """Stand still for ever."""
    await asyncio.Event().wait()


def sender(*lines):
    return Agent("sender", "You send.", tools=[send, stand], model=Script(list(lines), by="turn"))


first, second = call("send", to="ann\\x1b[2J", text="one\\ntwo"), call("send", to="bob", text="x")
one = sender(first, finish("done"))
two = sender(first, second, finish("done"))
both = sender([first, second], finish("done"))
long = sender(call("send", to="ann", text="\\n".join(f"line {n}" for n in range(60))), finish("done"))
asks = sender(call("call_agent", agent_name="user", message="Which colour?"), finish("Thanks"))
stands = sender(call("stand"), finish("never"))
chooser = Agent("sender", can_call=["user"], model=Script([
    call("call_agent", agent_name="user", message="Which?", timeout_seconds=900,
         options=["red\x1b[2J", "Blue"]),
    call("call_agent", agent_name="user", message="How old?", schema={"type": "integer"}),
    finish("Thanks"),
], by="turn"))


@tool(effect="read")
async def cling() -> str:
    """Hold on, whatever happens."""
    while True:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            continue


class Late:
    """A model that says something after all, once there is a file."""

    name = "late"

    async def complete(self, request, emit):
        emit(Delta("queued", "3", 1))
        while not os.path.exists("queued"):
            await asyncio.sleep(0.01)
        emit(Delta("queued", "0", 2))
        while not os.path.exists("asked"):
            await asyncio.sleep(0.01)
        emit(Delta("text", "At last"))
        while not os.path.exists("said"):
            await asyncio.sleep(0.01)
        return Reply("At last it is here")


late = Agent("late", model=Late())
clings = Agent("sender", tools=[cling], model=Script([call("cling"), finish("never")], by="turn"))
'''
ALLOW = "[a]lways for this run: "


@pytest.fixture
def at_terminal(shell):
    shell.write("code.py", CODE)
    return lambda name, **size: Terminal(shell, "run", f"code.py:{name}", "go", **size)


def sent(shell):
    path = shell.folder / "sent"
    return path.read_text().splitlines() if path.exists() else []


def test_what_is_waited_for_is_seen_until_the_reply_begins(shell, at_terminal):
    screen = at_terminal("late")
    assert "waiting for the model" not in screen.until("waiting for its turn, 2 before it")
    shell.write("queued", "")
    screen.until("waiting for the model, ")
    screen.until("waiting for the model, ")
    shell.write("asked", "")
    screen.until("At last")
    shell.write("said", "")
    rest = screen.end()
    assert screen.code == 0
    assert "waiting for" not in plain(rest).split("At last")[-1]


def test_a_question_with_form_shows_it_and_takes_a_number(shell, at_terminal):
    screen = at_terminal("chooser")
    asked = plain(screen.until("your answer: "))
    assert "1  red␛[2J" in asked
    assert "2  Blue" in asked
    assert "(one of these, or its number)" in asked
    assert "(until 20" in asked
    screen.type("green\n")
    assert "at $ expected one of red" in plain(screen.until("your answer: "))
    screen.type("2\n")
    assert '(JSON that fits {"type":"integer"})' in plain(screen.until("your answer: "))
    screen.type("old\n")
    assert "at $ expected integer, got string" in plain(screen.until("your answer: "))
    screen.type("7\n")
    assert "Thanks" in plain(screen.end())
    assert screen.code == 0


def test_yes_lets_the_tool_act(shell, at_terminal):
    screen = at_terminal("one")
    asked = plain(screen.until(ALLOW))
    assert "sender asks to use send" in asked
    assert "to: ann␛[2J" in asked
    assert "text: one\r\n      two" in asked
    assert "(send acts on the world)" in asked
    assert sent(shell) == []
    screen.type("y\n")
    rest = plain(screen.end())
    assert screen.code == 0
    assert sent(shell) == ["ann\x1b[2J"]
    assert "\ndone\r\n" in rest
    assert "✓ sender  go" in rest
    assert "completed" in rest


def test_no_and_what_is_neither(shell, at_terminal):
    screen = at_terminal("one")
    screen.until(ALLOW)
    screen.type("perhaps\n")
    screen.until(ALLOW)
    screen.type("n\n")
    rest = plain(screen.end())
    assert screen.code == 0
    assert sent(shell) == []
    assert "denied" in rest


@pytest.mark.parametrize("name", ["two", "both"])
def test_always_is_asked_once_per_run(shell, at_terminal, name):
    screen = at_terminal(name)
    screen.until(ALLOW)
    screen.type("a\n")
    rest = screen.end()
    assert screen.code == 0
    assert ALLOW not in rest
    assert sorted(sent(shell)) == ["ann\x1b[2J", "bob"]


def test_long_arguments_are_never_cut_silently(at_terminal):
    screen = at_terminal("long")
    asked = plain(screen.until(ALLOW))
    assert "line 20" in asked
    assert "line 59" not in asked
    assert "37 more lines: v shows them" in asked
    screen.type("v\n")
    assert "line 59" in plain(screen.until(ALLOW))
    screen.type("n\n")
    screen.end()


def test_an_agent_asks_the_user(at_terminal):
    screen = at_terminal("asks")
    asked = plain(screen.until("your answer: "))
    assert "sender asks you:\r\nWhich colour?" in asked
    screen.type("\n")  # an empty answer is none
    screen.until("your answer: ")
    screen.type("blue\n")
    assert "asked you" in plain(screen.end())
    assert screen.code == 0


def test_a_question_survives_the_process(shell, at_terminal):
    screen = at_terminal("one")
    screen.until(ALLOW)
    screen.process.kill()
    screen.end()
    (listed,) = shell("runs", "ls", "--json").value
    # Whether it came to say that it asks somebody, before it was killed, is nobody's promise.
    assert listed["state"] in ("suspended", "waiting")
    screen = Terminal(shell, "runs", "resume", listed["run_id"], "code.py:one")
    assert "to: ann␛[2J" in plain(screen.until(ALLOW))
    screen.type("y\n")
    screen.end()
    assert screen.code == 0
    assert sent(shell) == ["ann\x1b[2J"]


def test_ctrl_c_parks_also_while_a_question_is_open(shell, at_terminal):
    screen = at_terminal("one")
    screen.until(ALLOW)
    screen.type("\x03")
    rest = plain(screen.end())
    assert screen.code == 8
    assert "is suspended; nothing is lost" in rest
    assert sent(shell) == []


def test_a_second_ctrl_c_leaves_at_once(shell, at_terminal):
    screen = at_terminal("clings")
    screen.until("cling()")
    screen.type("\x03")
    screen.until("once more")
    screen.type("\x03")
    rest = plain(screen.end())
    assert screen.code == 8
    assert "is suspended; nothing is lost" in rest
    (listed,) = shell("runs", "ls", "--json").value
    assert listed["state"] == "suspended"


def test_the_end_of_the_input_parks_too(at_terminal):
    screen = at_terminal("asks")
    screen.until("your answer: ")
    screen.type("\x04")
    screen.end()
    assert screen.code == 8


def test_what_was_typed_before_the_question_is_no_answer(shell, at_terminal):
    screen = at_terminal("both")
    screen.until(ALLOW)
    screen.type("n\ny\ny\n")
    screen.until(ALLOW)
    screen.type("n\n")
    screen.end()
    assert sent(shell) == []


def test_a_question_that_is_settled_elsewhere_is_taken_back(shell, at_terminal):
    screen = at_terminal("one")
    screen.until(ALLOW)
    run_id = shell("runs", "ls", "--json").value[0]["run_id"]
    assert shell("runs", "ls", "--json").value[0]["state"] == "waiting"
    assert shell("runs", "cancel", run_id, "--yes").code == 0
    rest = plain(screen.end())
    assert "settled elsewhere" in rest
    assert screen.code == 7


@pytest.mark.parametrize("columns", [20, 40, 200])
def test_no_line_is_wider_than_the_terminal(at_terminal, columns):
    screen = at_terminal("stands", columns=columns)
    screen.until("stand")
    os.kill(screen.process.pid, signal.SIGINT)
    came = screen.until("once more")
    os.kill(screen.process.pid, signal.SIGINT)
    came += screen.end()
    drawn = [plain(line) for line in re.split(r"[\r\n]", came) if "●" in line]
    assert drawn
    assert max(map(len, drawn)) < columns


def test_no_colour_where_none_is_wanted(shell, at_terminal, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    screen = at_terminal("asks")
    seen = screen.until("your answer: ")
    screen.type("blue\n")
    seen += screen.end()
    assert not [code for code in ("\x1b[31m", "\x1b[32m", "\x1b[36m", "\x1b[33m") if code in seen]
    assert "\x1b]" not in seen


def test_message_is_asked_for_at_a_terminal(shell):
    shell.write("code.py", CODE)
    screen = Terminal(shell, "run", "code.py:asks")
    screen.until("What do you want from sender? ")
    screen.type("something\n")
    screen.until("your answer: ")
    screen.type("blue\n")
    screen.end()
    assert shell("runs", "ls", "--json").value[0]["title"] == "something"
