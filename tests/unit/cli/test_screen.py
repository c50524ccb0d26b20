"""`antiphon chat` at a terminal that can be drawn on: in a pty, through pyte."""

import termios

import pytest

from tests.unit.cli.screen.terminals import Cropping
from tests.unit.cli.shell import Terminal

TEAM = """\
from antiphon import Agent, tool
from antiphon.models.script import Script, call

@tool(requires_approval=True)
def shell(command: str) -> str:
    "Run a command."
    return "ran " + command

lines = [call("shell", command="git diff HEAD"), "# Done\\n\\nAll is **well**.", "The second answer."]
team = Agent("coder", "You write code.", model=Script(lines, by="turn"), tools=[shell])
"""


class Seen(Terminal):
    """The command at a terminal whose screen and scrollback are looked at."""

    def __init__(self, shell, *words, columns=80, lines=24):
        shell.plain = False
        self.screen = Cropping(columns, lines)
        super().__init__(shell, *words, columns=columns, lines=lines)

    def resize(self, columns, lines):
        termios.tcsetwinsize(self._leader, (lines, columns))
        self.screen.resize(columns, lines)

    def until(self, text):
        came = super().until(text)
        self.screen.feed(came)
        return came

    def end(self):
        came = super().end()
        self.screen.feed(came)
        return came


@pytest.mark.slow
def test_a_conversation_is_had_approved_and_left_on_the_screen_once(shell):
    shell.write("code.py", TEAM)
    screen = Seen(shell, "chat", "code.py:team")
    screen.until("coder\x1b")
    screen.type("fix it\r")
    screen.until("no; why may be said")
    # Bold: from now on keys answer.
    screen.until("\x1b[1m  y  yes, once")
    screen.type("2")
    screen.until("well")
    screen.type("and more\r")
    screen.until("The second answer.")
    screen.type("/nothing\r")
    screen.until("There is no /nothing")
    screen.type("\x04")
    screen.end()
    assert screen.code == 0
    rows = screen.screen.text()
    for once in ("> fix it", "coder asks to use shell", "  command: git diff HEAD", "Done", "All is well.",
                 "> and more", "The second answer.", "> /nothing"):  # fmt: skip
        assert rows.count(once) == 1, (once, rows)
    assert not any("yes, once" in each or each == ">" for each in rows)
    # The pattern was remembered, and what is asked again under it is not asked again.
    (run,) = shell("runs", "ls", "--json").value
    tail = shell("runs", "tail", run["run_id"], "--json").out
    assert '"grant":{"arguments":[["command","git diff *"]]}' in tail
    # The terminal is as it was.
    assert screen.screen.cursor.hidden is False


@pytest.mark.slow
def test_another_size_leaves_nothing_behind(shell):
    shell.write("code.py", TEAM)
    screen = Seen(shell, "chat", "code.py:team")
    screen.until("coder\x1b")
    screen.type("one two three four five six seven eight nine ten")
    screen.until("ten")
    screen.resize(30, 12)
    screen.until("coder\x1b")
    screen.resize(70, 20)
    screen.until("coder\x1b")
    rows = [each for each in screen.screen.text() if each]
    assert rows == [
        "You talk with coder. /help lists what can be said; Ctrl-D leaves.",
        "> one two three four five six seven eight nine ten", "coder",
    ]  # fmt: skip
    screen.type("\x03\x04")
    screen.end()


@pytest.mark.slow
def test_what_is_written_is_not_lost_when_the_screen_is_left_by_control_c(shell):
    shell.write("code.py", TEAM)
    screen = Seen(shell, "chat", "code.py:team")
    screen.until("coder\x1b")
    screen.type("\x03")
    screen.until("Ctrl-C once more leaves")
    screen.type("\x03")
    assert screen.end().endswith("\x1b[?25h")
    assert screen.code == 0
