"""`antiphon chat` at a terminal that can be drawn on: in a pty, through pyte."""

import pyte
import pytest

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
    """What is on the screen, and in its scrollback."""

    def __init__(self, shell, *words, columns=80, lines=24):
        shell.plain = False
        self.screen = pyte.HistoryScreen(columns, lines, history=1_000)
        self._stream = pyte.Stream(self.screen)
        super().__init__(shell, *words, columns=columns, lines=lines)

    def until(self, text):
        came = super().until(text)
        self._stream.feed(came.replace("\x1b[?2026h", "").replace("\x1b[?2026l", ""))
        return came

    def end(self):
        came = super().end()
        self._stream.feed(came.replace("\x1b[?2026h", "").replace("\x1b[?2026l", ""))
        return came

    def rows(self):
        above = ["".join(row[x].data for x in range(self.screen.columns)) for row in self.screen.history.top]
        return [each.rstrip() for each in (*above, *self.screen.display)]


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
    rows = screen.rows()
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
def test_what_is_written_is_not_lost_when_the_screen_is_left_by_control_c(shell):
    shell.write("code.py", TEAM)
    screen = Seen(shell, "chat", "code.py:team")
    screen.until("coder\x1b")
    screen.type("\x03")
    screen.until("Ctrl-C once more leaves")
    screen.type("\x03")
    assert screen.end().endswith("\x1b[?25h")
    assert screen.code == 0
