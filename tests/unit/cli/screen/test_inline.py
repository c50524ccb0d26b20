"""What a person sees on an inline screen, and what their keys do."""

import asyncio
import json
import re

import pytest
from prompt_toolkit.input import DummyInput
from prompt_toolkit.input.vt100_parser import Vt100Parser
from prompt_toolkit.key_binding.key_processor import _Flush

from antiphon import Agent
from antiphon.cli.screen.approval import reaches
from antiphon.cli.screen.given import Given
from antiphon.cli.screen.inline import InlineScreen
from antiphon.cli.screen.prose import Prose
from antiphon.cli.session.questions import Question, does
from antiphon.tools.shell import shell_tools
from antiphon.values.policy import Grant, covers
from tests.promises.test_hostile_terminal import HOSTILE
from tests.unit.cli.screen.terminals import Reflowing


class Seat:
    """A screen on a terminal, played without waiting: frames are drawn when they are looked at."""

    def __init__(self, tools=None, columns=60, rows=24):
        self.terminal = Reflowing(columns, rows)
        self.frames, self.stops, self.breaks = [], 0, 0
        self.screen = InlineScreen(
            lambda: None, self.broke_off, self.stopped, write=self.write, keys=DummyInput(), plain=True,
            size=lambda: (self.terminal.columns, self.terminal.rows), tools=tools,
        )  # fmt: skip
        self.screen.listen()

    def write(self, frame):
        self.frames.append(frame)
        self.terminal.feed(frame)

    def broke_off(self):
        self.breaks += 1

    def stopped(self):
        self.stops += 1

    def keys(self, text):
        found = []
        parser = Vt100Parser(found.append)
        parser.feed(text)
        parser.flush()
        if text.endswith("\x1b"):
            # As after a moment: it is the key, and not the beginning of another.
            found.append(_Flush)
        self.screen._editor.feed(found)

    def seen(self):
        self.screen._frame()
        return self.terminal.text()

    def ask(self, tool="shell", arguments='{"command":"git diff HEAD"}'):
        self.screen.ask(tool, arguments, offers=True)
        self.screen._settled()

    async def leave(self):
        self.screen.close()
        await self.screen._editor._application.cancel_and_wait_for_background_tasks()
        await asyncio.sleep(0)


def seated(play, tools=None):
    async def main():
        seat = Seat(tools)
        play(seat)
        await seat.leave()

    asyncio.run(main())


def test_what_is_finished_is_above_and_what_goes_on_below():
    def play(seat):
        seat.screen.look(lambda: ["writer: writing…"], lambda: "desk · $0.01")
        seat.screen.say("First.\n\nSecond")
        assert seat.seen() == ["First.", "", "Second", "writer: writing…", ">", "desk · $0.01"]
        seat.screen.say(" goes on.")
        seat.screen.note("  5 tokens")
        assert seat.seen()[:4] == ["First.", "", "Second goes on.", "  5 tokens"]

    seated(play)


def test_each_frame_is_one_write_between_marks_and_never_the_other_screen():
    def play(seat):
        for number in range(50):
            seat.screen.say(f"Line {number}.\n\n")
            seat.seen()
        frames = seat.frames[1:]
        assert all(each.startswith("\x1b[?2026h") and each.endswith("\x1b[?2026l") for each in frames)
        assert not any("1049" in each or "\x1b[2J" in each for each in seat.frames)

    seated(play)


def test_a_frame_writes_what_changed():
    def play(seat):
        seat.screen.look(lambda: [f"agent {n}: thinks" for n in range(8)], lambda: "facts")
        seat.seen()
        count = len(seat.frames)
        seat.seen()
        assert len(seat.frames) == count
        seat.keys("x")
        seat.seen()
        assert len(seat.frames[-1]) < 100

    seated(play)


def test_keys_write_send_queue_and_take_back():
    def play(seat):
        seat.keys("one\r")
        seat.keys("\x1b[200~two\nthree\x1b[201~")
        assert list(seat.screen.messages) == ["one"]
        seat.keys("\r")
        assert list(seat.screen.messages) == ["one", "two\nthree"]
        seat.keys("later\x1b\r")
        assert "queued: later" in seat.seen()
        seat.keys("\x1b[A")
        assert (list(seat.screen.later), seat.screen._editor.buffer.text) == ([], "later")
        seat.keys("\x03")
        assert (seat.breaks, seat.screen._editor.buffer.text) == (0, "")
        seat.keys("\x03")
        assert seat.breaks == 1
        seat.keys("\x04")
        assert seat.screen.messages[-1] is None

    seated(play)


def test_what_was_sent_while_something_is_said_follows_that_block():
    def play(seat):
        seat.screen.say("A block that")
        seat.keys("and more\r")
        seat.screen.say(" goes on.\n\nAnother")
        assert seat.seen()[:3] == ["A block that goes on.", "", "> and more"]

    seated(play)


@pytest.mark.parametrize(
    ("keys", "given"),
    [
        ("y", Given("yes")),
        ("a", Given("always", grant=Grant())),
        ("1", Given("always", grant=Grant((("command", "git diff HEAD"),)))),
        ("2", Given("always", grant=Grant((("command", "git diff *"),)))),
        ("n\r", Given("no")),
        ("nnot now\r", Given("no", reason="not now")),
        ("e\x05 \r", Given("yes", arguments='{"command":"git diff HEAD"} ')),
    ],
)
def test_an_approval_is_answered_by_keys(keys, given):
    def play(seat):
        seat.ask()
        seat.keys(keys)
        assert list(seat.screen.messages) == [given]

    seated(play)


def test_what_was_typed_before_answers_nothing_and_is_there_afterwards():
    def play(seat):
        seat.keys("yes, and then")
        seat.screen.ask("shell", '{"command":"rm x"}', offers=True)
        seat.keys(" n")
        assert not seat.screen.messages
        seat.screen._settled()
        assert "  y  yes, once" in seat.seen()
        seat.keys("y")
        assert list(seat.screen.messages) == [Given("yes")]
        seat.screen.put_away()
        assert seat.screen._editor.buffer.text == "yes, and then n"

    seated(play)


def test_a_question_is_answered_by_a_text_and_one_that_is_over_keeps_it():
    def play(seat):
        seat.ask("")
        seat.keys("blue\r")
        assert list(seat.screen.messages) == [Given("blue")]
        seat.screen.put_away()
        seat.ask("")
        seat.keys("half")
        seat.screen.put_away()
        assert seat.screen._editor.buffer.text == "half"

    seated(play)


def test_another_conversation_begins_without_the_question_of_the_last():
    def play(seat):
        seat.keys("draft")
        seat.ask()
        seat.screen.look(list, lambda: "another")
        assert seat.seen() == ["> draft", "another"]

    seated(play)


def test_arguments_that_are_none_are_said_and_stay():
    def play(seat):
        seat.ask()
        seat.keys("e\x15{broken\r")
        assert not seat.screen.messages
        assert any("no JSON" in each for each in seat.seen())
        assert seat.screen._editor.buffer.text == "{broken"

    seated(play)


def test_hostile_texts_move_nothing():
    """The terminal of this test refuses everything that the painter itself would not write."""

    def play(seat):
        for text in (HOSTILE, f"```\n{HOSTILE}\n```\n", f"# {HOSTILE}\n\n- {HOSTILE}\n"):
            seat.screen.say(text)
            seat.seen()
            seat.screen.note(text)
            seat.screen.status(text)
            seat.seen()
        seat.screen.look(lambda: [HOSTILE], lambda: HOSTILE)
        seat.keys(f"\x1b[200~{HOSTILE}\x1b[201~")
        seat.seen()
        seat.ask(HOSTILE, '{"x":"\\u001b[2J"}')
        seat.seen()
        shown = re.sub(r"\x1b\[(\?[0-9]+[hl]|[0-9;]*[AJKm])", "", "".join(seat.frames))
        assert not re.search(r"[\x00-\x09\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", shown)

    seated(play)


def test_prose_comes_in_blocks_and_code_in_lines():
    prose = Prose(plain=True)
    assert prose.take("One\nparagraph", 40) == []
    assert prose.unfinished(40) == ["One", "paragraph"]
    assert prose.take("\n\n```python\na = 1\nb", 40) == ["One", "paragraph", "", "a = 1"]
    assert prose.unfinished(40) == ["b"]
    assert prose.take(" = 2\n```\nAfter.", 40) == ["b = 2"]
    assert prose.end(40) == ["", "After."]


def test_markdown_is_laid_out():
    rows = Prose().take("# Title\n\nIt is **bold**.\n\n- one\n- two\n\nend", 40)
    text = [re.sub(r"\x1b\[[0-9;]*m", "", each) for each in rows]
    assert text == ["Title", "", "It is bold.", "", " • one", " • two"]


@pytest.mark.parametrize(
    ("arguments", "patterns"),
    [
        ('{"command":"git diff HEAD"}', ["git diff HEAD", "git diff *", "git *"]),
        ('{"command":"ls"}', ["ls"]),
        ('{"path":"src/a.py"}', ["src/a.py", "src/*"]),
        ('{"path":"../a.py"}', ["../a.py"]),
        ('{"path":"a*.py"}', []),
        ('{"command":"ls -la; wc x"}', []),
        ('{"command":"git log | head"}', []),
        ('{"n":1}', []),
        ("[1", []),
    ],
)
def test_what_may_be_allowed_for_good_reaches_from_this_call_to_every_one(arguments, patterns):
    found = reaches("tool", arguments)
    assert [each.grant.arguments[0][1] for each in found[:-1]] == patterns
    assert found[-1].grant == Grant()


@pytest.mark.parametrize(
    ("line", "patterns"),
    [
        ("git log -3; git diff", [["git log -3", "git diff"], ["git log *", "git diff"], ["git *"]]),
        ("git log -3 | head -5", [["git log -3", "head -5"], ["git log *", "head -5"], ["git *", "head *"]]),
        ("git status && env ls", [["git status", "env ls"], ["git *", "env ls"]]),
        ("ls; ls -a 'b c'", [["ls", "ls -a 'b c'"], ["ls", "ls -a *"], ["ls", "ls *"]]),
        ("make 'a b' c; ls", [["make 'a b' c", "ls"], ["make *", "ls"]]),
        ("rm $(cat list)", [["rm $(cat list)"]]),
        ("rm *.py", [["rm [*].py"]]),
        ("rm 'a*'; ls", [["rm 'a[*]'", "ls"]]),
        ("; ".join(f"make {number}" for number in range(7)), [["make *"]]),
    ],
)
def test_of_several_commands_each_is_allowed_for_good(tmp_path, line, patterns):
    (shell, *_) = shell_tools(tmp_path)
    subjects = shell.subjects(json.dumps({"command": line}))
    found = reaches("shell", json.dumps({"command": line}), subjects)
    grants = [each.grant for each in found]
    assert [[pattern for ((_, pattern),) in each.reaches] for each in grants[:-1]] == patterns
    for grant in grants:
        assert all(covers(grant, "a", each, 0.0) for each in subjects), grant


@pytest.mark.parametrize(
    ("agent", "tool", "arguments", "commands"),
    [
        ("coder", "shell", '{"command":"git log; git diff"}', ["git log", "git diff"]),
        ("coder", "shell", '{"command":"rm *.py"}', ["rm *.py"]),
        ("coder", "shell", '{"command":"git log"}', []),
        ("coder", "shell", "[1", []),
        ("coder", "else", '{"command":"git log; git diff"}', []),
        ("other", "shell", '{"command":"git log; git diff"}', []),
    ],
)
def test_what_a_call_does_is_known_where_its_tool_is_here(tmp_path, agent, tool, arguments, commands):
    here = [object(), Agent("coder", tools=shell_tools(tmp_path)), Agent("other")]
    found = does(here, Question("1/1.c1?", agent, "", tool, arguments))
    assert [json.loads(each.arguments)["command"] for each in found] == commands
