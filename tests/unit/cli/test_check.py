"""`antiphon runs check`: what resuming a run with another team would meet."""

import asyncio
import sys

import pytest

from antiphon import open_run
from antiphon.cli import exit_codes
from antiphon.cli.target import load_target
from antiphon.values.policy import Policy

TEAM = """
from antiphon import Agent, Hooks, tool
from antiphon.models.script import Script, call

@tool(effect="once", requires_approval=True)
def pay(amount: int{extra}) -> str:
    \"\"\"Pay.\"\"\"
    return "{paid}"

lead = Agent("lead", "{told}", context="continue", model=Script([{says}], name="{model}"), tools=[{tools}])
clerk = Agent("{clerk}", "You help.", context="continue", model=Script(["noted"]))
team = [{team}]
"""
PLAIN = {
    "extra": "", "told": "You lead.", "model": "small", "tools": "pay", "clerk": "clerk", "paid": "paid",
    "says": "call('call_agent', agent_name='clerk', message='note 7'), call('pay', amount=7), 'done'",
    "team": "lead, clerk",
}  # fmt: skip


@pytest.fixture(autouse=True)
def imports(monkeypatch, shell):
    """Targets are imported in this process: nothing of them stays."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield
    for name, module in list(sys.modules.items()):
        if (getattr(module, "__file__", None) or "").startswith(str(shell.folder)):
            del sys.modules[name]


@pytest.fixture
def paused(shell):
    """A run that was left; `answer`: what a person said of the payment before, None for nothing."""

    def play(answer):
        shell.write("first.py", TEAM.format(**PLAIN))
        journal = f"sqlite:///{shell.folder}/.antiphon/antiphon.db"
        (shell.folder / ".antiphon").mkdir(mode=0o700)

        async def main():
            agents = load_target("first.py:team").agents
            async with open_run(agents, journal=journal, policy=Policy("guarded")) as run:
                request = await run.post("lead", "go")
                async for record in run.events(deltas=False):
                    if record.asks is not None:
                        break
                if answer is not None:
                    await run.answer(record.event.id, answer)
                    await run.result(request)
            return run.run_id

        return asyncio.run(main())

    return play


def newest(shell):
    return shell("runs", "ls", "--json").value[0]["run_id"]


def checked(shell, name, **changes):
    """The differences that a target with these changes makes, and the exit code."""
    shell.write(f"{name}.py", TEAM.format(**{**PLAIN, **changes}))
    run_id = newest(shell)
    said = shell("runs", "check", run_id[:12], f"{name}.py:team", "--json")
    value = said.value
    assert (value["run_id"], value["known"]) == (run_id, True)
    assert value["blocked"] is (said.code != 0)
    assert said.code in (0, exit_codes.FAILED)
    found = [(each["agent"], each["what"], each["name"], each["change"]) for each in value["differences"]]
    blocks = [(each["name"], each["means"]) for each in value["differences"] if each["blocks"]]
    return found, blocks


def test_the_same_team_differs_in_nothing(shell, paused):
    paused("yes")
    before = shell("runs", "ls", "--json").out
    assert checked(shell, "same") == ([], [])
    said = shell("runs", "check", newest(shell), "same.py:team")
    assert (said.code, said.out) == (0, "the team is the same\n")
    assert shell("runs", "ls", "--json").out == before


def test_an_agent_that_rests_and_is_gone_is_named(shell, paused):
    paused("yes")
    found, blocks = checked(shell, "fewer", team="lead")
    assert ("clerk", "agent", "clerk", "gone") in found
    assert blocks == [
        ("clerk", "its conversation stays at rest, and whoever calls it is told that it is gone")
    ]
    found, blocks = checked(shell, "other", clerk="bookkeeper")
    assert ("bookkeeper", "agent", "bookkeeper", "new") in found
    assert [name for name, _ in blocks] == ["clerk"]
    said = shell("runs", "check", newest(shell), "fewer.py:team")
    assert said.code == exit_codes.FAILED
    assert said.out.startswith("! agent clerk gone: its conversation stays at rest")
    assert "runs cancel" in said.err


def test_an_agent_at_work_that_is_gone_is_named_with_its_call(shell, paused):
    paused(None)
    _, blocks = checked(shell, "gone", team="clerk")
    assert ("lead", "what it does ends failed with its name: 0/1.c1") in blocks


def test_a_permission_that_waits_was_asked_for_the_tool_as_it_was(shell, paused):
    paused(None)
    found, blocks = checked(shell, "wider", extra=", to: str = ''")
    assert ("lead", "tool", "pay", "changed") in found
    assert blocks == [("pay", "the permission that is waited for was asked for the tool as it was: 1/2.c1?")]
    assert checked(shell, "quieter", paid="sent")[1] == blocks
    assert checked(shell, "without", tools="")[1] == blocks


def test_a_remembered_permission_holds_for_the_tool_as_it_was(shell, paused):
    paused("always")
    _, blocks = checked(shell, "wider", extra=", to: str = ''")
    assert blocks == [("pay", "it was allowed for good as it was; now it is asked again")]
    found, blocks = checked(shell, "quieter", paid="sent")
    assert (found, blocks) == ([("lead", "tool", "pay", "changed")], [])


def test_what_only_matters_from_the_next_request_on_does_not_stand_in_the_way(shell, paused):
    paused("yes")
    found, blocks = checked(shell, "told", told="You lead well.", model="large")
    assert (sorted(found), blocks) == (
        [
            ("clerk", "prompt", "clerk", "changed"),
            ("lead", "model", "small", "changed"),
            ("lead", "prompt", "lead", "changed"),
        ],
        [],
    )


def test_a_target_or_run_that_is_not_there(shell, paused):
    paused("yes")
    assert shell("runs", "check", newest(shell), "nobody.py:team").code == exit_codes.CONFIG
    assert shell("runs", "check", "zzz", "first.py:team").code == exit_codes.NOT_FOUND


def resumed(shell, *options):
    """Resume the newest run with a team in which the clerk is called scribe."""
    says = "call('call_agent', agent_name='scribe', message='which note?'), 'done'"
    shell.write("after.py", TEAM.format(**{**PLAIN, "clerk": "scribe", "says": says}))
    return shell("runs", "resume", newest(shell)[:12], "after.py:team", *options)


def test_what_stands_in_the_way_is_told_with_the_options_that_remove_it(shell, paused):
    paused("yes")
    shell.write("fewer.py", TEAM.format(**{**PLAIN, "team": "lead"}))
    said = shell("runs", "check", newest(shell), "fewer.py:team")
    assert "--renamed OLD=NEW" in said.err
    assert "--missing drop" in said.err


def test_an_agent_with_another_name_keeps_its_conversation(shell, paused):
    paused("yes")
    said = resumed(shell, "--renamed", "clerk=scribe", "--missing", "refuse")
    assert (said.code, said.out) == (0, "done\n")
    assert "its agents are those of after.py:team now" in said.err
    again = shell("runs", "check", newest(shell), "after.py:team")
    assert (again.code, again.out) == (0, "the team is the same\n")
    # It is recorded: nobody has to say it again, and nobody can.
    assert resumed(shell, "--missing", "refuse").code == 0
    said = resumed(shell, "--renamed", "clerk=scribe")
    assert said.code == exit_codes.CONFIG
    assert "Unknown agent of the run in renamed: clerk. Known: lead, scribe" in said.err


def test_a_request_in_flight_goes_on_with_the_agents_of_another_name(shell, paused):
    paused(None)
    assert shell("answer", newest(shell), "1/2.c1?", "yes").code == 0
    said = resumed(shell, "--renamed", "clerk=scribe", "--missing", "refuse")
    assert (said.code, said.out) == (0, "done\n")
    assert shell("runs", "check", newest(shell), "after.py:team").out == "the team is the same\n"


def test_an_export_says_what_waits_and_is_not_in_it(shell, paused):
    paused(None)
    words = ("runs", "export", newest(shell))
    assert shell(*words).err == ""
    assert shell("answer", newest(shell), "1/2.c1?", "yes").code == 0
    said = shell(*words)
    assert (said.code, said.value["run_id"]) == (0, newest(shell))
    assert "note: 1 command waits for the run's owner and is not exported" in said.err
    assert shell("runs", "cancel", newest(shell), "1/2.c1?", "--yes").code == 0
    assert "2 commands wait" in shell(*words, "--out", "run.json").err
    assert resumed(shell, "--renamed", "clerk=scribe").code == 0
    assert shell(*words).err == ""


def test_missing_agents_are_refused_with_the_options_or_forgotten(shell, paused):
    paused("yes")
    said = resumed(shell, "--missing", "refuse")
    assert said.code == exit_codes.CONFIG
    assert "agents that after.py:team lacks: clerk" in said.err
    assert "--renamed OLD=NEW" in said.err
    assert "--missing drop" in said.err
    assert resumed(shell, "--missing", "drop").code == 0
    found, _ = checked(shell, "again", clerk="scribe")
    assert ("clerk", "agent", "clerk", "gone") not in found


@pytest.mark.parametrize(
    ("options", "code", "told"),
    [
        (["--renamed", "x"], exit_codes.USAGE, "'x' is not OLD=NEW"),
        (["--renamed", "=x"], exit_codes.USAGE, "'=x' is not OLD=NEW"),
        (["--renamed", "a=b", "--renamed", "a=c"], exit_codes.USAGE, "'a' is given two new names"),
        (["--missing", "forget"], exit_codes.USAGE, "'forget' is not one of"),
        (["--renamed", "clark=scribe"], exit_codes.CONFIG, "Unknown agent of the run in renamed: clark"),
        (["--renamed", "clerk=nobody"], exit_codes.CONFIG, "Unknown agent of the team in renamed: nobody"),
        (["--renamed", "clerk=lead"], exit_codes.CONFIG, "another agent of the run has that name"),
    ],
)
def test_names_that_cannot_be_mapped_are_refused(shell, paused, options, code, told):
    paused("yes")
    before = shell("runs", "ls", "--json").value[0]["records"]
    said = resumed(shell, *options)
    assert said.code == code
    assert told in said.err
    assert shell("runs", "ls", "--json").value[0]["records"] == before


def test_a_run_that_is_closed_takes_no_other_team(shell):
    assert shell("run", "team.yaml", "go", "--quiet").code == 0
    words = ("runs", "resume", newest(shell), "team.yaml")
    assert shell(*words).code == 0
    said = shell(*words, "--missing", "drop")
    assert said.code == exit_codes.CONFIG
    assert "is closed" in said.err
