"""`antiphon chat` at a terminal that can be drawn on: in a pty, through pyte."""

import sys
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


WORKER = """\
from antiphon import Agent, tool
from antiphon.models.script import Script, call

@tool(effect="read")
def count() -> str:
    "Count."
    return "\\n".join(f"line {n}" for n in range(40))

class Echo:
    name = "echo"
    async def complete(self, request, emit):
        from antiphon.values.model import Reply
        last = request.messages[-1]
        if last.content == "count":
            return Reply("", (call("count"),), "calls")
        files = [each.name for each in last.attachments]
        return Reply(f"I heard {last.content!r} {files}" if last.role == "user" else "Counted.")

team = Agent("coder", model=Echo(), tools=[count], context="continue")
"""
EDITOR = """\
#!{python}
import os, sys
path = sys.argv[1]
written = open(path).read()
assert oct(os.stat(path).st_mode & 0o777) == "0o600"
sys.stdout.write("\\x1b[?1049hEDITING " + written)
sys.stdout.flush()
said = sys.stdin.readline().strip()
sys.stdout.write("\\x1b[?1049l")
if said == "fail":
    sys.exit(3)
with open(path, "w") as file:
    file.write(written + " and " + said + "\\nmore\\n")
"""


def opened(shell, **size):
    shell.write("code.py", WORKER)
    screen = Seen(shell, "chat", "code.py:team", **size)
    screen.until("coder\x1b")
    return screen


def left(screen):
    screen.type("\x04")
    screen.end()
    assert screen.code == 0
    return screen.screen.text()


@pytest.mark.slow
def test_what_a_tool_gave_back_is_folded_and_shown_whole_when_it_is_asked_for(shell):
    screen = opened(shell)
    screen.type("count\r")
    screen.until("Counted.")
    rows = screen.screen.text()
    assert "    line 5" in rows
    assert "    line 6" not in rows
    assert "    … 34 more lines; Ctrl-O shows all" in rows
    screen.type("\x0f")
    screen.until("line 39")
    screen.type("\x0f")
    screen.until("nothing more was folded")
    rows = left(screen)
    assert rows.count("line 39") == 1


@pytest.mark.slow
def test_the_editor_of_ones_choice_has_the_terminal_and_gives_it_back(shell, monkeypatch):
    shell.write("editor", EDITOR.format(python=sys.executable))
    (shell.folder / "editor").chmod(0o700)
    monkeypatch.setenv("VISUAL", f"{shell.folder / 'editor'}")
    screen = opened(shell)
    screen.type("one")
    screen.until("one")
    screen.type("\x07")
    # No frame of ours meanwhile; Ctrl-C is for it.
    screen.until("EDITING one")
    screen.type("two\n")
    screen.until("more")
    screen.type("\r")
    screen.until("I heard 'one and two\\nmore'")
    screen.type("half\x07")
    screen.until("EDITING half")
    screen.type("fail\n")
    screen.until("ended with code 3")
    screen.type("\r")
    screen.until("I heard 'half'")
    rows = left(screen)
    assert rows.count("> one and two") == 1
    assert rows.count("> half") == 1
    assert screen.screen.cursor.hidden is False


@pytest.mark.slow
def test_an_editor_that_is_not_there_loses_nothing(shell, monkeypatch):
    monkeypatch.setenv("VISUAL", "no-such-editor")
    screen = opened(shell)
    screen.type("text\x07")
    screen.until("no-such-editor: No such file or directory; $EDITOR names another program")
    screen.type("\r")
    screen.until("I heard 'text'")
    left(screen)


@pytest.mark.slow
def test_who_is_told_to_end_ends_the_editor_too(shell, monkeypatch):
    shell.write("editor", EDITOR.format(python=sys.executable))
    (shell.folder / "editor").chmod(0o700)
    monkeypatch.setenv("VISUAL", f"{shell.folder / 'editor'}")
    screen = opened(shell)
    screen.type("one\x07")
    screen.until("EDITING")
    screen.process.terminate()
    screen.end()
    assert screen.code == 0


@pytest.mark.slow
def test_a_command_of_ones_own_runs_and_is_told_with_the_next_message(shell):
    screen = opened(shell, columns=100)
    screen.type("!echo $((20 + 3)); exit 4\r")
    screen.until("(exit code 4)")
    screen.type("!!echo secret\r")
    screen.until("(exit code 0)")
    screen.type("go\r")
    came = screen.until("go'")
    assert "$ echo $((20 + 3)); exit 4" in came
    assert "secret" not in came.partition("I heard")[2]
    screen.type("next\r")
    screen.until("I heard 'next'")
    # One at a time; Esc ends it.
    screen.type("!!sleep 1000\r")
    screen.until("$ sleep 1000")
    screen.type("!!echo two\r")
    screen.until("still runs")
    screen.type("\x1b")
    screen.until("(stopped)")
    rows = left(screen)
    assert "    23" in rows
    assert "    secret" in rows


@pytest.mark.slow
def test_files_are_mentioned_by_some_of_their_letters(shell):
    shell.write("src/deep/module_of_mine.py", "")
    shell.write(".git/HEAD", "")
    screen = opened(shell)
    screen.type("See @modmi")
    screen.until("src/deep/module_of_mine.py")
    screen.type("\t")
    screen.until("> See @src/deep/module_of_mine.py")
    screen.type("\r")
    screen.until("I heard 'See @src/deep/module_of_mine.py '")
    left(screen)


@pytest.mark.slow
def test_an_image_is_taken_along_by_its_path(shell):
    (shell.folder / "shot.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    screen = opened(shell)
    screen.type(f"\x1b[200~{shell.folder / 'shot.png'}\x1b[201~")
    screen.until("[image 1: shot.png]")
    screen.type("\r")
    screen.until("['shot.png']")
    left(screen)


@pytest.mark.slow
def test_what_was_sent_is_found_in_the_next_conversation(shell):
    screen = opened(shell)
    screen.type("a message to be found\r")
    screen.until("I heard")
    left(screen)
    kept = shell.home / "state/antiphon/history"
    assert kept.read_text() == '"a message to be found"\n'
    assert kept.stat().st_mode & 0o777 == 0o600
    screen = opened(shell)
    screen.type("\x12FOUND")
    screen.until("sent before, with 'FOUND': a message to be found")
    screen.type("\r\r")
    screen.until("I heard")
    screen.type("\x1b[A")
    screen.until("> a message to be found")
    screen.type("\x03")
    left(screen)


@pytest.mark.slow
def test_keys_are_those_of_the_users_file_and_what_is_wrong_in_it_is_said(shell):
    (shell.home / "antiphon").mkdir(parents=True)
    (shell.home / "antiphon/keys.yaml").write_text("editing: vi\nkeys:\n  send: ctrl-x ctrl-s\n  sned: f1\n")
    screen = opened(shell, columns=120)
    screen.type("one two\x1b")
    screen.type("0dwi")
    screen.type("\x18\x13")
    screen.until("I heard 'two'")
    rows = left(screen)
    said = "keys.yaml:4:3: there is nothing called 'sned'; did you mean 'send'?"
    assert said.replace(" ", "") in "".join(rows).replace(" ", "")
