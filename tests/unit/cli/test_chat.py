"""`antiphon chat`: conversations that are piped in, kept, gone on with, and led at a terminal."""

import subprocess

import pytest

from antiphon import ReplyDelta
from antiphon.cli.display.reply_printer import ReplyPrinter
from tests.unit.cli.shell import Terminal, plain

CODE = '''
import asyncio, os
from antiphon import Agent
from antiphon import tool
from antiphon.errors import ModelError
from antiphon.values.message import ToolCall
from antiphon.values.model import Delta, Reply, Usage


@tool
def send(to: str) -> str:
    """Send a letter."""
    with open("sent", "a") as box:
        box.write(to + "\\n")
    return "sent to " + to


class Echo:
    """Says what it was told, and how much it remembers."""

    name = "openai:gpt-4.1"
    cut = False

    async def complete(self, request, emit):
        told = [each.content for each in request.messages if each.role == "user"]
        last = request.messages[-1]
        if last.role == "user" and last.content == "stand" and not os.path.exists("open"):
            emit(Delta("text", "I stand"))
            await asyncio.Event().wait()
        if last.role == "user" and last.content == "stumble" and not self.cut:
            self.cut = True
            emit(Delta("text", "I stum"))
            await asyncio.sleep(0.1)
            raise ModelError("rate_limit", "slow down", retry_after=0.01)
        if last.role == "user" and last.content == "fail":
            raise ModelError("auth", "no such key")
        if last.role == "user" and last.content == "send":
            return Reply("", (ToolCall("1", "send", '{"to":"ann"}'),), "calls", Usage(10, 2))
        if last.role == "user" and last.content == "finish":
            call = '{"message": "all \\\\"done\\\\" \\\\ud83d\\\\ude00"}'
            emit(Delta("call_name", "finish", 0))
            for at in range(0, len(call), 3):
                emit(Delta("call_arguments", call[at : at + 3], 0))
            return Reply("", (ToolCall("1", "finish", call),), "calls", Usage(10, 2))
        if "<summary>" in last.content:
            return Reply("<summary>They talked.</summary>", usage=Usage(10, 2))
        text = f"{last.content}! I heard {len(told)}: {' / '.join(told)}"
        for word in text.split(" "):
            emit(Delta("text", word + " "))
        return Reply(text, usage=Usage(1000, 100, 500, 40))


bot = Agent("bot", "You\\necho.", tools=[send], model=Echo())
'''
PROMPT = "\x1b[1m> \x1b[0m"


@pytest.fixture
def piped(shell, monkeypatch):
    """Call `chat` in this process with a text on the standard input."""
    shell.write("code.py", CODE)

    def piped(text, *words):
        shell.write("input", text)
        with (shell.folder / "input").open() as file, monkeypatch.context() as patch:
            patch.setattr("sys.stdin", file)
            return shell("chat", *words)

    return piped


def newest(shell):
    return shell("runs", "ls", "--json").value[0]


def test_each_line_is_a_message_and_the_run_stays_open(shell, piped):
    said = piped("one\ntwo\n", "code.py:bot")
    assert (said.code, said.out) == (0, "one! I heard 1: one\ntwo! I heard 2: one / two\n")
    assert "2,000 tokens" not in said.err
    assert "1,100 tokens (1,000 in, 100 out, 500 cached, 40 reasoning), $0.0021" in said.err
    run = newest(shell)
    assert (run["state"], run["closed"], run["title"]) == ("completed", False, "two")
    assert (run["cost_usd"], run["unpriced_calls"]) == (0.0041, 0)
    shown = shell("runs", "show", run["run_id"]).out
    assert f"to go on with it: {line_of(said)}" in shown
    assert "openai:gpt-4.1: 2,000 in, 200 out, 1,000 cached, 80 reasoning, $0.0041" in shown


def line_of(said):
    """The command that goes on, as it was printed."""
    return said.err.splitlines()[-1].partition("to go on: ")[2]


@pytest.mark.slow
def test_it_is_gone_on_with_in_another_process(shell, piped):
    said = piped("one\n", "code.py:bot")
    words = line_of(said).split()
    assert words[-4:] == ["chat", "--resume", newest(shell)["run_id"][:12], "code.py:bot"]
    again = shell.apart("chat", *words[-3:], stdin="two\n")
    assert again.out == "two! I heard 2: one / two\n"
    assert "> one" in again.err
    third = piped("three", "code.py:bot", "--continue", "--quiet")
    assert (third.out, third.err) == ("three! I heard 3: one / two / three\n", "")
    assert len(shell("runs", "ls", "--json").value) == 1


def test_lines_that_go_on(piped):
    assert piped("one\\\ntwo\\\nthree\n", "code.py:bot").out.startswith("one\ntwo\nthree! I heard 1")
    assert piped("/quit\n//quit\n", "code.py:bot").out == ""
    assert piped("//quit", "code.py:bot").out.startswith("/quit! I heard 1")


def test_the_conversation_must_be_named_with_its_target(shell, piped):
    piped("one\n", "code.py:bot")
    run_id = newest(shell)["run_id"]
    said = piped("two\n", "team.yaml", "--resume", run_id)
    assert said.code == 4
    assert "is a conversation with code.py:bot: " in said.err
    assert f"chat --resume {run_id[:12]} code.py:bot" in said.err
    assert piped("", "code.py:bot", "--resume", "zzz").code == 4
    assert piped("", "code.py:bot", "--resume", run_id, "--continue").code == 2


def test_nothing_to_go_on_with(piped):
    said = piped("one\n", "code.py:bot", "--continue")
    assert said.code == 4
    assert "no conversation to go on with" in said.err


def test_commands(shell, piped):
    lines = ["one", "/cost", "/tools", "/agents", "/model", "/history", "/help", "/nope", "/resume"]
    said = piped("\n".join(lines), "code.py:bot")
    assert said.code == 0
    assert "openai:gpt-4.1: 1,000 in, 100 out, 500 cached, 40 reasoning, $0.0021" in said.err
    assert "context left: 100 %" in said.err
    assert "bot: send (acts)  Send a letter." in said.err
    assert "bot  You echo.  you talk with it" in said.err
    assert "bot: openai:gpt-4.1  (window 1,047,576 tokens)" in said.err
    assert "> one\none! I heard 1: one" in said.err
    assert "/compact" in said.err
    assert "There is no /nope" in said.err
    assert f"This is run {newest(shell)['run_id'][:12]}" in said.err


def test_every_command_is_told_in_the_documentation():
    from pathlib import Path

    from antiphon.cli.session.slash.commands import COMMANDS

    text = (Path(__file__).resolve().parents[3] / "docs/cli.md").read_text("utf-8")
    assert [name for name in COMMANDS if f"`/{name}" not in text] == []


def test_clear_begins_anew_and_resume_goes_back(shell, piped):
    piped("one\n", "code.py:bot")
    first = newest(shell)["run_id"]
    said = piped(f"two\n/clear\nthree\n/resume {first}\nfour\n/resume zzz\nfive\n", "code.py:bot")
    heard = [line.partition("I heard ")[2] for line in said.out.splitlines()]
    assert heard == ["1: two", "1: three", "2: one / four", "3: one / four / five"]
    assert "No run starts with 'zzz'" in said.err


def test_another_model_from_now_on(shell, piped):
    shell.write("script.yaml", "bot:\n- {text: first}\n- {text: second, }\n")
    said = piped("one\n/model script:script.yaml\ntwo\n/model nope.yaml:\nthree\n", "code.py:bot")
    assert said.out.splitlines()[1] == "second"
    assert "From now on script:script.yaml is asked." in said.err


def test_compact_shortens_what_is_remembered(shell, piped):
    said = piped("/compact\none\ntwo\n/compact\nthree\n", "code.py:bot")
    assert "Nothing was said yet" in said.err
    assert "The conversation was compacted." in said.err
    last = said.out.partition("three! ")[2]
    assert "They talked." in last
    assert "two! I heard" not in last


def test_a_failed_request_is_the_exit_code_and_the_next_one_is_asked(piped):
    said = piped("fail\n", "code.py:bot")
    assert said.code == 1
    assert "(failed: auth: no such key)" in said.err
    said = piped("fail\none\n", "code.py:bot")
    assert said.code == 0
    assert said.out.startswith("one! I heard 2")


def test_where_nobody_is_at_a_terminal_asking_means_no(shell, piped):
    said = piped("send\n", "code.py:bot")
    assert "bot gets send: denied" in said.err
    assert not (shell.folder / "sent").exists()


def test_an_empty_conversation_is_closed(shell, piped):
    assert piped("", "code.py:bot").code == 0
    assert newest(shell)["state"] == "closed"
    assert piped("", "code.py:bot", "--journal", "memory").err == ""


def test_a_plain_assistant(shell, piped, monkeypatch):
    shell.write("script.yaml", "- {text: Hello.}\n- {text: Again.}\n")
    said = piped("hi\n", "--model", "script:script.yaml")
    assert said.out == "Hello.\n"
    assert line_of(said).endswith("--model script:script.yaml")
    # The model is remembered; what code is loaded is not.
    assert piped("hi\n", "--continue").out == "Again.\n"


def test_without_a_model_the_tiny_one_says_so(shell, piped, monkeypatch):
    from antiphon.cli.commands import chat

    monkeypatch.setattr(chat, "TINY", "script:script.yaml")
    shell.write("script.yaml", "- {text: Hello.}\n")
    said = piped("hi\n")
    assert said.out == "Hello.\n"
    assert "No model is set, so this is script:script.yaml: tiny" in said.err


def test_a_result_is_read_before_it_is_whole():
    voice, said = ReplyPrinter(), []
    whole = '{"message": "a\\"b\\u00e4\\ud83d\\ude00\\n", "more": "no"}'
    for kind, text in [("call_name", "finish"), *(("call_arguments", each) for each in whole)]:
        said.append(voice.take(ReplyDelta("1/1.m1", 1, "bot", kind, text, 0)))
    assert "".join(said) == voice.said == 'a"bä😀\n'
    other = ReplyPrinter()
    for kind, text in [("call_name", "send"), ("call_arguments", whole)]:
        assert other.take(ReplyDelta("1/1.m1", 1, "bot", kind, text, 0)) == ""
    assert other.take(ReplyDelta("1/1.m1", 1, "bot", "text", "x", 0)) == "x"


@pytest.mark.parametrize("size", [1, 3, 100])
def test_a_result_with_an_escape_that_json_does_not_have_ends_no_conversation(size):
    voice, whole = ReplyPrinter(), '{"message": "as in \\q it is"}'
    voice.take(ReplyDelta("1/1.m1", 1, "bot", "call_name", "finish", 0))
    for at in range(0, len(whole), size):
        voice.take(ReplyDelta("1/1.m1", 1, "bot", "call_arguments", whole[at : at + size], 0))
    # The rest is shown once the reply is whole, with what was made of it.
    assert "as in ".startswith(voice.said)


def test_a_reply_that_is_seen_from_its_middle_says_so():
    voice = ReplyPrinter()
    assert voice.take(ReplyDelta("1/1.m1", 1, "bot", "text", "and so on", 0, 70_000, True)) == "…and so on"
    assert voice.take(ReplyDelta("1/1.m1", 1, "bot", "text", ".", 0, 70_009)) == "."


# -- at a terminal ------------------------------------------------------------------------------


@pytest.fixture
def at_terminal(shell):
    shell.write("code.py", CODE)
    screens = []

    def at_terminal(*words, **size):
        screens.append(Terminal(shell, "chat", *words, **size))
        screens[-1].until(PROMPT)
        return screens[-1]

    yield at_terminal
    for screen in screens:
        if not hasattr(screen, "code"):
            screen.process.kill()
            screen.end()


@pytest.mark.slow
def test_text_streams_and_the_prompt_comes_back(shell, at_terminal):
    screen = at_terminal("code.py:bot")
    screen.type("one\n")
    came = plain(screen.until("\n" + PROMPT))
    assert came.count("one! I heard 1: one") == 1
    assert "1,100 tokens" in came
    screen.type("two \\\n")
    screen.until("… ")
    screen.type("lines\n")
    assert "two \r\nlines! I heard 2" in plain(screen.until("\n" + PROMPT))
    screen.type("pasted\nat once\n")
    assert "pasted\r\nat once! I heard 3" in plain(screen.until("\n" + PROMPT))
    screen.type("finish\n")
    assert plain(screen.until("\n" + PROMPT)).count('all "done" 😀') == 1
    screen.type("stumble\n")
    came = plain(screen.until("\n" + PROMPT))
    assert "I stum" in came
    assert "bot waits 0.0 s: rate limit (attempt 2 of 3)" in came
    assert "that answer was cut off" in came
    screen.type("\x04")
    rest = plain(screen.end())
    assert screen.code == 0
    assert f"chat --resume {newest(shell)['run_id'][:12]} code.py:bot" in rest.replace("\r\n", "")


PROGRESS = """
import asyncio, os
from antiphon import Agent, ToolContext, tool
from antiphon.models.script import Script, call
from antiphon.values.model import Reply

@tool(effect="read")
async def work(ctx: ToolContext) -> str:
    "Work."
    ctx.report_progress("half\\x1b[2J way")
    while not os.path.exists("done"):
        await asyncio.sleep(0.01)
    return "ok"

worker = Agent("worker", tools=[work], model=Script([Reply("I work.", (call("work"),), "calls"), "Done."]))
"""


@pytest.mark.slow
def test_how_far_a_tool_has_come_is_seen(shell, at_terminal):
    shell.write("worker.py", PROGRESS)
    screen = at_terminal("worker.py:worker")
    screen.type("go\n")
    came = screen.until(" way")
    assert "half␛[2J way" in plain(came)
    shell.write("done", "")
    came += screen.until(PROMPT)
    assert "cut off" not in came
    assert plain(came).count("I work.") == 1
    screen.type("\x04")
    screen.end()


LATE = """
import asyncio, os
from antiphon import Agent
from antiphon.values.model import Delta, Reply

class Late:
    name = "late"
    async def complete(self, request, emit):
        emit(Delta("queued", "3", 1))
        while not os.path.exists("queued"):
            await asyncio.sleep(0.01)
        emit(Delta("queued", "0", 2))
        while not os.path.exists("asked"):
            await asyncio.sleep(0.01)
        emit(Delta("text", "At last"))
        return Reply("At last")

late = Agent("late", model=Late())
"""


@pytest.mark.slow
def test_what_is_waited_for_is_seen_until_the_reply_begins(shell, at_terminal):
    shell.write("late.py", LATE)
    screen = at_terminal("late.py:late")
    screen.type("go\n")
    screen.until("thinking…")
    came = screen.until("waiting for its turn, 2 before it")
    assert "waiting for the model" not in came
    # What is typed meanwhile stays on the screen: only what has changed is written over.
    shell.write("queued", "")
    screen.until("waiting for the model, ")
    screen.type("and")
    screen.until("and")
    came = screen.until("waiting for the model, ") + screen.until("\x1b8")
    assert "\x1b[2K" not in came
    shell.write("asked", "")
    came = screen.until(PROMPT)
    # Erased, and the answer stands where it stood.
    before = came[: came.index("At last")]
    assert before.rindex("\r\x1b[2K") > before.rfind("waiting for")
    # Ctrl-U takes back what was typed, Ctrl-D leaves.
    screen.type("\x15\x04")
    screen.end()
    assert screen.code == 0


@pytest.mark.slow
def test_ctrl_c_stops_the_request_first_and_leaves_then(shell, at_terminal):
    screen = at_terminal("code.py:bot")
    screen.type("stand\n")
    screen.until("I stand")
    screen.type("\x03")
    came = plain(screen.until("\n" + PROMPT))
    assert "(cancelled: stopped by the user)" in came
    screen.type("one\n")
    assert "I heard 2: stand / one" in plain(screen.until("\n" + PROMPT))
    screen.type("\x03")
    assert "once more leaves" in plain(screen.until("\n" + PROMPT))
    screen.type("\x03")
    screen.end()
    assert screen.code == 0


@pytest.mark.slow
def test_what_is_typed_meanwhile_is_told_and_leaving_parks(shell, at_terminal):
    screen = at_terminal("code.py:bot")
    screen.type("stand\n")
    screen.until("I stand")
    screen.type("and this\n")
    screen.until("user tells bot: and this")
    screen.type("/quit\n")
    screen.until("once more")
    screen.type("\x03")
    screen.end()
    assert screen.code == 8
    assert newest(shell)["state"] == "suspended"
    shell.write("open", "")
    screen = Terminal(shell, "chat", "--continue", "code.py:bot")
    screen.until("and this! I heard 2: stand / and this")
    screen.type("\x04")
    screen.end()
    assert screen.code == 0


@pytest.mark.slow
def test_questions_are_asked_inline(shell, at_terminal):
    screen = at_terminal("code.py:bot")
    screen.type("send\n")
    asked = plain(screen.until("[a]lways for this run: "))
    assert "bot asks to use send" in asked
    screen.type("perhaps\n")
    screen.until("[a]lways for this run: ")
    screen.type("\x03")
    came = plain(screen.until("\n" + PROMPT))
    assert "stopped by the user" in came
    screen.type("send\n")
    screen.until("[a]lways for this run: ")
    assert not (shell.folder / "sent").exists()
    screen.type("a\n")
    came = plain(screen.until("\n" + PROMPT))
    assert 'bot uses send(to="ann")' in came
    assert "sent to ann! I heard 2" in came
    screen.type("send\n")
    assert "asks to use" not in plain(screen.until("\n" + PROMPT))
    assert (shell.folder / "sent").read_text() == "ann\nann\n"
    screen.type("\x04")
    screen.end()


@pytest.mark.slow
def test_killed_while_it_asks_it_asks_again(shell, at_terminal):
    screen = at_terminal("code.py:bot")
    screen.type("send\n")
    screen.until("[a]lways for this run: ")
    screen.process.kill()
    screen.end()
    screen = Terminal(shell, "chat", "--continue", "code.py:bot")
    screen.until("[a]lways for this run: ")
    assert shell("answer", newest(shell)["run_id"], "yes").code == 0
    came = plain(screen.until("\n" + PROMPT))
    assert "settled elsewhere" in came
    assert "sent to ann!" in came
    screen.process.terminate()
    screen.end()
    assert screen.code == 0
    assert (shell.folder / "sent").read_text() == "ann\n"


@pytest.mark.slow
def test_a_pipe_is_read_as_it_comes(shell):
    shell.write("code.py", CODE)
    process = shell.start(
        "chat", "code.py:bot", "-q", stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    )
    for number, text in enumerate(("one", "two"), 1):
        process.stdin.write(text + "\n")
        assert process.stdout.readline().startswith(f"{text}! I heard {number}")
    process.stdin.close()
    assert process.wait() == 0
    process.stdout.close()


@pytest.mark.slow
def test_a_command_of_ones_own_where_lines_are_read(at_terminal):
    screen = at_terminal("code.py:bot")
    screen.type("!echo $((20 + 3))\n")
    assert "23\r\n" in plain(screen.until("(exit code 0)"))
    screen.type("go\n")
    # It is told so, and says again what it heard.
    screen.until("I ran a command myself")
    screen.type("\x04")
    screen.end()


def test_piped_in_no_line_is_a_command(shell, piped):
    assert piped("!touch made\n", "code.py:bot").out.startswith("!touch made! I heard 1")
    assert not (shell.folder / "made").exists()
