"""A run that waits for a person is left, with what it asks, where nobody is there to answer."""

import asyncio

import pytest

from antiphon import Agent, open_run
from antiphon.models.script import Script, call
from antiphon.values.tool import tool_from
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


def test_the_call_of_a_tool_that_a_person_is_to_do(shell):
    see = tool_from("see", "See a page.", {"type": "object"}, result={"type": "integer"})
    model = Script([[call("see", page=1), call("see", page=2)], "end"])

    async def work():
        async with open_run([Agent("a", tools=[see], model=model)], journal=f"sqlite:///{JOURNAL}") as run:
            await run.post("a", "go")
            async for record in run.events(deltas=False):
                if record.asks is not None and record.event.id == "1/1.c2":
                    return run.run_id

    (shell.folder / ".antiphon").mkdir(exist_ok=True)
    run_id = asyncio.run(work())
    listed = shell("answer", run_id).out
    assert "1/1.c1  a asks:\n    Do see, and answer with its result. See a page.\n    page: 1\n" in listed
    (first, _) = shell("answer", run_id, "--json").value
    assert (first["kind"], first["tool"], first["arguments"]) == ("question", "see", {"page": 1})
    assert shell("answer", run_id, "--failed", "no light").code == 4  # which one?
    assert shell("answer", run_id, "1/1.c1", "7", "--failed", "no light").code == 2
    assert "The answer does not fit" in shell("answer", run_id, "1/1.c1", "many").err
    assert shell("answer", run_id, "1/1.c1", "--failed", "no light").code == 0
    assert shell("answer", run_id, "1/1.c2", "7").code == 0

    async def goes_on():
        team = [Agent("a", tools=[see], model=model)]
        async with open_run(team, journal=f"sqlite:///{JOURNAL}", run_id=run_id) as run:
            return await run.result("0/1.c1")

    assert asyncio.run(goes_on()).output == "end"
    shown = [each.content for each in model.requests[-1].messages if each.role == "tool"]
    assert shown == ["Error: [see] no light", "7"]
