"""Questions and the live tree in this process: a pseudo terminal, and somebody who types what fits."""

import os
import pty
import select
import termios
import threading

import pytest

from antiphon.cli.session.drive import WakeSignal
from tests.unit.cli.shell import PATIENCE, plain
from tests.unit.cli.test_terminal import ALLOW, CODE


@pytest.fixture
def interactive(shell, monkeypatch):
    """Call the command with the follower of a pseudo terminal as input and error output.

    `answers`: pairs of a text to wait for and what is typed then.
    """
    shell.write("code.py", CODE)
    monkeypatch.setenv("TERM", "xterm")

    def interactive(*words, answers=()):
        leader, follower = pty.openpty()
        termios.tcsetwinsize(follower, (30, 100))
        seen = []

        def person():
            waiting, new = list(answers), ""
            while select.select([leader], [], [], PATIENCE)[0]:
                try:
                    data = os.read(leader, 65536).decode("utf-8", "replace")
                except OSError:
                    return
                seen.append(data)
                new += data
                if waiting and waiting[0][0] in new:
                    new = ""
                    os.write(leader, waiting.pop(0)[1].encode())

        thread = threading.Thread(target=person)
        thread.start()
        with open(follower, closefd=False) as stdin, open(follower, "w", closefd=False) as stderr:
            monkeypatch.setattr("sys.stdin", stdin)
            with monkeypatch.context() as patch:
                said = shell(*words, stderr=(patch, stderr))
        os.close(follower)
        thread.join(PATIENCE)
        os.close(leader)
        return said, plain("".join(seen))

    return interactive


def test_every_kind_of_answer(shell, interactive):
    answers = [(ALLOW, "what\n"), (ALLOW, "v\n"), (ALLOW, "n\n")]
    said, screen = interactive("run", "code.py:long", "go", answers=answers)
    assert (said.code, said.out) == (0, "done\n")
    assert "37 more lines: v shows them" in screen
    assert "line 59" in screen
    assert "denied" in screen
    said, screen = interactive("run", "code.py:both", "go", answers=[(ALLOW, "a\n")])
    assert said.code == 0
    assert sorted((shell.folder / "sent").read_text().splitlines()) == ["ann\x1b[2J", "bob"]
    said, screen = interactive(
        "run", "code.py:asks", "go", answers=[("answer: ", "\n"), ("answer: ", "blue\n")]
    )
    assert said.code == 0
    assert "asked you" in screen


def test_the_end_of_the_input_parks(interactive):
    said, screen = interactive("run", "code.py:one", "go", answers=[(ALLOW, "\x04")])
    assert said.code == 8
    assert "is suspended" in screen


def test_the_message_is_asked_for(interactive):
    said, screen = interactive("run", "team.yaml", answers=[("What do you want from lead? ", "this\n")])
    assert (said.code, said.out) == (0, "The result is 5.\n")
    assert "lead  this" in screen


def test_cancel_asks_first(shell, interactive):
    said, _ = interactive("run", "code.py:one", "go", answers=[(ALLOW, "\x04")])
    assert said.code == 8
    run_id = shell("runs", "ls", "--json").value[0]["run_id"]
    said, screen = interactive("runs", "cancel", run_id, answers=[("[y/N]", "n\n")])
    assert (said.code, said.out) == (0, "not cancelled\n")
    assert f"cancel run {run_id[:12]}?" in screen
    said, _ = interactive("runs", "cancel", run_id, answers=[("[y/N]", "y\n")])
    assert "is cancelled" in said.out


def test_a_bell_that_rang_before_is_heard():
    import asyncio

    async def ring():
        bell = WakeSignal()
        bell.ring()
        first = await bell.listen(asyncio.sleep(0))
        second = await bell.listen(asyncio.sleep(0))
        asyncio.get_running_loop().call_soon(bell.ring)
        asyncio.get_running_loop().call_soon(bell.ring)
        third = await bell.listen(asyncio.Event().wait())
        return first, second, third

    assert asyncio.run(ring()) == (False, True, False)


def test_a_timeout_of_somebody_else_is_no_bell():
    import asyncio

    async def late():
        raise TimeoutError("other")

    with pytest.raises(TimeoutError, match="other"):
        asyncio.run(WakeSignal().listen(late()))
