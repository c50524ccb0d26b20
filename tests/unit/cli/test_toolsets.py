"""What a person is told of tools whose provider lives and dies."""

import pytest
from rich.console import Console

from antiphon import Record
from antiphon.cli import exit_codes
from antiphon.cli.display.record_line import progress, told
from antiphon.cli.display.tree import CallTree
from antiphon.cli.display.watch import LiveTree
from antiphon.kernel.facts.events import RunStarted, ToolsetOffered
from antiphon.kernel.facts.options import Options
from antiphon.values.tool.offer import ToolOffer

CODE = """
from antiphon import Agent, tool
from antiphon.models.script import Script, call
from antiphon.testing.provider import ScriptedProvider

@tool(effect="read")
def find() -> str:
    "Find."
    return "found"

def agent(**fields):
    provider = ScriptedProvider(find, opens=fields.pop("opens", ()))
    model = Script([call("find"), "done"], by="turn")
    return Agent("a", tools=[provider.toolset("web", **fields)], model=model)

refused = (OSError("connection refused"),) * 9
up, down, needed = agent(), agent(opens=refused), agent(opens=refused, required=True)
"""


@pytest.fixture
def team(shell):
    (shell.folder / "team.py").write_text(CODE)
    return shell


def test_a_provider_that_never_came_up_is_told_at_the_start(team):
    said = team("run", "team.py:down", "go")
    assert (said.code, said.out) == (0, "done\n")
    line = "toolset web is down: it was not reached: connection refused"
    assert line in said.err.splitlines()
    assert said.err.index(line) < said.err.index("a gets find")
    assert "toolset" not in team("run", "team.py:up", "go").err


def test_without_one_that_is_required_nothing_starts(team):
    said = team("run", "team.py:needed", "go")
    assert (said.code, said.out) == (exit_codes.FAILED, "")
    assert "the toolset 'web' is required and cannot be used: it was not reached" in said.err
    assert "connection refused" in said.err
    assert team("runs", "ls", "--json").value == []


@pytest.mark.parametrize(("target", "state"), [("up", "1 tools"), ("down", "down: it was not reached")])
def test_a_run_is_shown_with_its_toolsets(team, target, state):
    run_id = team("run", f"team.py:{target}", "go", "--json").events[-1]["run_id"]
    assert f"  toolset web: {state}" in team("runs", "show", run_id).out
    (shown,) = team("runs", "show", run_id, "--json").value["toolsets"]
    assert (shown["name"], shown["tools"]) == ("web", ["find"] if target == "up" else [])


def records(*events):
    for seq, event in enumerate((RunStarted("r", Options()), *events), 1):
        yield Record(seq, 1.0, "r", 0, "user", 0, event)


def test_what_is_told_of_each_change_and_what_of_it_is_no_routine():
    offer, tree, lines = ToolOffer("find", "Find.", {}), CallTree(), []
    changes = [
        ToolsetOffered("web", (offer,)), ToolsetOffered("web", None, "gone \x1b[31m"), ToolsetOffered("web"),
        ToolsetOffered("web", (offer, offer)),
    ]  # fmt: skip
    for record in list(records(*changes)):
        tree.take(record)
        lines.append((told(record, tree), bool(progress(record, tree))))
    assert [line for line, _ in lines[1:]] == [
        "toolset web is up, tools: 1",
        "toolset web is down: gone ␛[31m",
        "toolset web is up again, tools: 1",
        "toolset web is up, tools: 2",
    ]
    assert [notable for _, notable in lines[1:]] == [False, True, True, False]


def test_the_live_tree_shows_what_is_down():
    tree = CallTree()
    for record in records(ToolsetOffered("web", None, "refused"), ToolsetOffered("shop", ())):
        tree.take(record)
    console = Console(record=True, width=60, height=20)
    console.print(LiveTree(tree, console)._picture())
    shown = console.export_text()
    assert "web is down: refused" in shown
    assert "shop" not in shown
