"""Commands as the tools run them: what they find, how they end, what is kept of them."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

from antiphon import Agent, Policy, open_run, run_sync
from antiphon.errors import ConfigError, ToolError
from antiphon.kernel.facts.events import ApprovalEffect
from antiphon.models.script import Script, call
from antiphon.tools.shell import Workspace, commands, shell_tools
from antiphon.tools.shell.confinement import Confinement
from antiphon.tools.shell.keeping import place
from antiphon.values.tool import ToolContext
from tests.unit.tools.shell.running import living, ran, shell, told, until, written

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="what is left is looked for in /proc")


def test_a_command_runs_in_its_folder(workspace: Workspace) -> None:
    assert told(workspace, "pwd; echo said; exit 3").splitlines()[0].startswith("exit code 3")
    assert written(workspace, "pwd; echo said >&2; echo last").split() == [workspace.folder, "said", "last"]


def test_a_command_finds_no_terminal_no_input_and_no_secret(workspace: Workspace) -> None:
    assert written(workspace, "cat; test -t 0 || test -t 1 || echo none") == "none\n"
    assert "exit code 1" in told(workspace, "echo x > /dev/tty")
    assert "sk-secret" not in written(workspace, "env; cat /proc/$PPID/environ")
    home = written(workspace, "echo $HOME").strip()
    assert home.startswith(workspace.state)


def test_it_ends_with_its_process_and_not_with_its_pipes(workspace: Workspace) -> None:
    assert told(workspace, "sleep 86401 & echo out").splitlines()[1:] == ["out"]
    assert not living("86401")


@pytest.mark.slow
def test_it_ends_when_its_time_is_over_with_all_that_it_started(workspace: Workspace) -> None:
    found = told(workspace, "echo begun; (setsid sleep 86402 &); sleep 86402", 1)
    assert found.splitlines() == [
        "ended after 1 s, which is all it had; give more seconds, or say background=true", "begun",
    ]  # fmt: skip
    assert not living("86402")


@pytest.mark.slow
def test_of_a_long_output_the_beginning_and_the_end_are_kept(workspace: Workspace) -> None:
    lines = written(workspace, "seq 1 200000").partition("[from its beginning]\n")[2].splitlines()
    assert (lines[0], lines[-1]) == ("1", "200000")
    assert [each for each in lines if "left out" in each] == [
        "[… 1,157,823 bytes left out; write them into a file to see all of it …]"
    ]
    assert written(workspace, "seq 1 8000").splitlines() == [str(each) for each in range(1, 8_001)]


def test_what_is_no_text_is_shown_all_the_same(workspace: Workspace) -> None:
    assert written(workspace, r"printf 'a\377b\n'") == "a\ufffdb\n"


@pytest.mark.parametrize(("line", "said"), [("", "empty"), ("x" * 100_001, "100,000"), ("echo \0", "NUL")])
def test_what_is_no_command_is_refused(line: str, said: str, workspace: Workspace) -> None:
    with pytest.raises(ToolError, match=said):
        told(workspace, line)


def test_seconds_have_bounds(workspace: Workspace) -> None:
    for seconds in (0, -1, 10**9):
        with pytest.raises(ToolError, match="seconds is 1 to"):
            told(workspace, "true", seconds)


def test_only_listed_programs_are_run(workspace: Workspace) -> None:
    allow = ["echo *", "git status", "env FOO=1 true"]
    assert ran(workspace, ["echo", "a b; ls", "$HOME"], allow).endswith("\na b; ls $HOME\n")
    assert ran(workspace, ["env", "FOO=1", "true"], allow).startswith("exit code 0")
    for argv in (
        ["rm", "-rf", "."],
        ["env", "FOO=1", "rm"],
        ["env", "echo", "x"],
        ["/tmp/echo", "x"],
        [],
        [""],
    ):
        assert ran(workspace, argv, allow).startswith("refused: ")
    assert (
        ran(workspace, ["nosuch", "x"], ["nosuch *"])
        == "refused: There is no program 'nosuch'; nothing was run"
    )


def test_a_job_runs_on_is_read_and_is_stopped(workspace: Workspace) -> None:
    tools = {each.name: each.function for each in shell_tools(workspace)}
    begun = asyncio.run(shell(workspace, "echo ready; exec sleep 86403", background=True))
    job = begun.split()[1]
    assert tools["list_jobs"]() == f"{job}: runs: echo ready; exec sleep 86403"
    while "ready" not in (found := tools["read_job"](job)):
        assert found.startswith(f"{job} runs")
    assert living("86403")
    assert tools["stop_job"](ToolContext(), job) == "it was stopped\nready\n"
    assert tools["list_jobs"]() == f"{job}: it was stopped: echo ready; exec sleep 86403"
    assert not living("86403")
    with pytest.raises(ToolError, match="There is no job 'x'; there are: "):
        tools["read_job"]("x")


@pytest.mark.slow
def test_who_gives_up_a_call_ends_its_command(workspace: Workspace) -> None:
    async def given_up() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(2):
                await shell(workspace, "echo $$ > pid; exec sleep 86404")

    asyncio.run(given_up())
    until(lambda: not living("86404"))


@pytest.mark.slow
def test_a_keeper_that_is_killed_is_told_as_such(workspace: Workspace) -> None:
    async def killed() -> None:
        waiting = asyncio.ensure_future(shell(workspace, "sleep 86405"))
        begun = asyncio.get_running_loop().run_in_executor(None, until, lambda: bool(kept(workspace)))
        await begun
        os.kill(int(kept(workspace)[0][2]), 9)
        with pytest.raises(TimeoutError, match="its keeper was ended before"):
            await waiting

    asyncio.run(killed())
    assert not living("86405")


def kept(workspace: Workspace) -> list[list[str]]:
    """What is told of the commands that have begun."""
    told = [place.read(each, "begun") for each in workspace.places()]
    return [place.unpack(each)["command"] for each in told if each is not None]


def asked_of(workspace: Workspace, **policy: tuple[str, ...]) -> str:
    """What a person is asked before the tool runs a line."""

    async def asking() -> str:
        agent = Agent(
            "a", tools=shell_tools(workspace), model=Script([call("shell", command="true"), "done"])
        )
        async with open_run([agent], policy=Policy(**policy)) as run:
            await run.post("a", "go")
            async for item in run.events(0, deltas=False):
                if isinstance(detail := getattr(item.event, "detail", None), ApprovalEffect):
                    return detail.text
        raise AssertionError("nobody was asked")

    return asyncio.run(asking())


def test_a_keeper_that_does_not_start_has_run_nothing(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commands, "_PROGRAM", "raise SystemExit('no keeper today')")
    with pytest.raises(ToolError, match="Nothing was run: its keeper could not be started: no keeper today"):
        told(workspace, "touch made")
    assert not (Path(workspace.folder) / "made").exists()


@pytest.mark.slow
def test_a_keeper_that_has_not_begun_is_waited_for(workspace: Workspace) -> None:
    """Its agent was killed a moment ago, and another one comes."""
    folder = workspace.prepare("key", ["bash", "-c", "echo once >> log; cat log"], 20, {})

    async def both() -> list[str]:
        ctx = ToolContext(idempotency_key="key")
        outputs = await asyncio.gather(*(commands.carry_out(folder, ctx, background=False) for _ in range(4)))
        return [each.text for each in outputs]

    assert asyncio.run(both()) == ["once\n"] * 4


def test_what_is_not_confined_is_asked_for(workspace: Workspace) -> None:
    free = Workspace(workspace.folder, confined=Confinement("none"))
    assert [each.requires_approval for each in shell_tools(free) if each.name == "shell"] == [True]
    assert asked_of(free) == "shell needs approval; it is not confined"
    held = Workspace(workspace.folder, confined=Confinement("landlock", 7))
    assert asked_of(held, ask=("shell",)) == f"shell needs approval; it is {held.confined}"
    assert told(free, "echo free").endswith("\nfree\n")


def test_what_is_kept_of_commands_does_not_lie_where_they_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "place" / "state"))
    (tmp_path / "place").mkdir()
    with pytest.raises(ToolError, match="ANTIPHON_HOME"):
        told(Workspace(tmp_path / "place"), "true")
    with pytest.raises(ConfigError, match="is not a folder"):
        Workspace(tmp_path / "none")


@pytest.mark.slow
def test_a_long_output_is_cut_for_the_model_and_read_by_its_handle(workspace: Workspace) -> None:
    script = Script([call("shell", command="seq 1 20000"), "done"])
    agent = Agent("a", tools=shell_tools(workspace), model=script)
    assert run_sync(agent, "count").output == "done"
    last = script.requests[-1]
    assert "\n19999\n20000\n" in last.messages[-1].content
    assert "[from its beginning]\n1\n2\n" in last.messages[-1].content
    assert "read_output" in [each.name for each in last.tools]
