"""A run that waits for a person is left, with what it asks, where nobody is there to answer."""

import asyncio

import pytest

from antiphon import open_run
from tests.unit.cli.shell import Terminal
from tests.unit.cli.test_terminal import ALLOW, CODE, sent

JOURNAL = ".antiphon/antiphon.db"


@pytest.fixture
def asking(shell, monkeypatch):
    """The id of a run that waits for a permission and that nobody drives. entry: of the team code.py."""
    shell.write("code.py", CODE)
    monkeypatch.syspath_prepend(shell.folder)

    def asking(name, data="command_line"):
        space = {}
        exec(compile(CODE, "code.py", "exec"), space)

        async def work():
            kept = {data: {"target": f"code.py:{name}"}}
            async with open_run(
                [space[name]], journal=f"sqlite:///{JOURNAL}", data=kept, policy="guarded"
            ) as run:
                await run.post("sender", "go")
                async for record in run.events(deltas=False):
                    if record.asks is not None and record.last_of_row:
                        return run.run_id

        (shell.folder / ".antiphon").mkdir(exist_ok=True)
        return asyncio.run(work())

    return asking


def test_resume_says_what_is_asked_and_leaves_the_run(shell, asking):
    run_id = asking("one")
    for quiet in ([], ["--quiet"]):
        said = shell("runs", "resume", run_id, "code.py:one", *quiet)
        assert (said.code, said.out) == (8, "")
        assert f"run {run_id[:12]} waits for an answer, and nobody is here to give one:\n" in said.err
        assert "1/1.c1  sender asks to use send\n  to: ann␛[2J" in said.err
        assert f"answer {run_id[:12]} 1/1.c1 yes\n" in said.err
        assert said.err.splitlines()[-1].endswith(f"runs resume {run_id[:12]} code.py:one")
    assert sent(shell) == []
    # What was printed is what goes on with it.
    answer = next(each for each in said.err.splitlines() if "to answer: " in each)
    assert shell("answer", run_id, "1/1.c1", "yes").code == 0, answer
    said = shell("runs", "resume", run_id, "code.py:one")
    assert (said.code, said.out, sent(shell)) == (0, "done\n", ["ann\x1b[2J"])


def test_resume_with_json_gives_what_is_asked_as_data(shell, asking):
    run_id = asking("both")
    said = shell("runs", "resume", run_id, "code.py:both", "--json")
    assert said.code == 8
    last = said.events[-1]
    assert (last["type"], last["run_id"]) == ("RunSuspended", run_id)
    assert last["resume"].endswith(f"runs resume {run_id[:12]} code.py:both")
    assert last["asked"] == shell("answer", run_id, "--json").value
    assert [each["effect"] for each in last["asked"]] == ["1/1.c1?", "1/1.c2?"]
    # One of two is answered: it goes on with that, and is left again.
    assert shell("answer", run_id, "1/1.c2", "no").code == 0
    said = shell("runs", "resume", run_id, "code.py:both", "--json")
    assert (said.code, [each["effect"] for each in said.events[-1]["asked"]]) == (8, ["1/1.c1?"])


def test_a_chat_that_is_piped_is_left_too(shell, asking, monkeypatch):
    run_id = asking("one", "chat")
    shell.write("typed", "another\n")

    def chat():
        with (shell.folder / "typed").open() as typed, monkeypatch.context() as patch:
            patch.setattr("sys.stdin", typed)
            return shell("chat", "code.py:one", "--resume", run_id)

    said = chat()
    assert (said.code, said.out) == (8, "")
    assert "1/1.c1  sender asks to use send" in said.err
    assert said.err.splitlines()[-1].endswith(f"chat --resume {run_id[:12]} code.py:one")
    assert shell("answer", run_id, "yes").code == 0
    said = chat()
    assert (said.out.splitlines()[0], sent(shell)) == ("done", ["ann\x1b[2J"])


@pytest.mark.slow
def test_at_a_terminal_the_person_is_asked(shell, asking):
    run_id = asking("one")
    screen = Terminal(shell, "runs", "resume", run_id, "code.py:one")
    screen.until(ALLOW)
    screen.type("y\n")
    screen.end()
    assert (screen.code, sent(shell)) == (0, ["ann\x1b[2J"])
