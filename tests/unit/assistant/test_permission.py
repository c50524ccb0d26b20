"""Modes, and rules in YAML: what the assistant does unasked, what it never does."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from antiphon import Message, UserError, run
from antiphon.assistant import coder
from antiphon.assistant.conventions.rules import read_rules
from antiphon.assistant.permission import MODES
from antiphon.models.script import Script, call
from tests.transcript import results_shown
from tests.unit.assistant.asked import lines


def rules(place: Path, text: str, *, own: bool = True) -> None:
    path = (place.parent / "config/antiphon" if own else place / ".agents") / "rules.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def became(place: Path, mode: Any, *calls: Any, policy: Any = "guarded", confined: bool = True) -> list[str]:
    """What became of each call: `done`, `asked` or `refused`."""
    (place / "old.txt").write_text("x")
    script = lines(*[[each] for each in calls], "done")
    team = coder(place, mode=mode, model=script)
    team.permission._confined = confined
    asked: list[str] = []

    async def refuse(message: Message) -> str:
        asked.append(message.data["arguments"])
        return "no"

    asyncio.run(run(team, "go", on_input=refuse, policy=policy))
    found = []
    for number, _ in enumerate(calls, 1):
        shown = results_shown(script.requests[number])[-1]
        refused = "permission denied" in shown
        found.append("asked" if refused and "by user" in shown else "refused" if refused else "done")
    assert len(asked) == found.count("asked")
    return found


LOOK = call("list_files")
WRITE = call("write_file", path="new.txt", content="x")
DELETE = call("delete_file", path="old.txt")
RUN = call("shell", command="true")
UNASKED = {
    "plan": ["done", "refused", "refused", "refused"],
    "ask": ["done", "asked", "asked", "asked"],
    "edits": ["done", "done", "asked", "asked"],
    "auto": ["done", "done", "done", "done"],
    "open": ["done", "done", "done", "done"],
}


@pytest.mark.parametrize("mode", MODES)
def test_what_a_mode_does_unasked(place: Path, mode: str) -> None:
    assert became(place, mode, LOOK, WRITE, DELETE, RUN) == UNASKED[mode]


def test_where_nothing_holds_commands_back_auto_asks_for_them(place: Path) -> None:
    assert became(place, "auto", WRITE, RUN, confined=False) == ["done", "asked"]


def test_ask_leaves_it_to_the_policy(place: Path) -> None:
    assert became(place, "ask", WRITE, policy="open") == ["done"]
    assert became(place, "ask", WRITE, policy="strict") == ["refused"]


def test_a_mode_that_there_is_not(place: Path) -> None:
    with pytest.raises(UserError, match="A mode is one of: plan, ask"):
        coder(place, mode="yolo")  # type: ignore[arg-type]


@pytest.mark.impure("the mode is changed while it works")
def test_a_mode_counts_from_the_next_call_on(place: Path) -> None:
    team = coder(place, mode="plan")

    def opening(request: Any) -> Any:
        team.permission.mode = "edits"
        return [WRITE]

    script = Script({"coder": [[WRITE], opening, "done"]})
    team._model = script
    asyncio.run(run(team, "go", model=script))
    assert results_shown(script.requests[2])[0].startswith("Error")
    assert (place / "new.txt").exists()


def test_in_plan_it_is_told_so(place: Path) -> None:
    for mode in ("plan", "auto"):
        script = lines("done")
        asyncio.run(run(coder(place, mode=mode, model=script), "go"))  # type: ignore[arg-type]
        assert ("The mode is plan" in script.requests[0].system) == (mode == "plan")


# -- rules ----------------------------------------------------------------------------------------


def test_rules_allow_ask_and_deny(place: Path) -> None:
    rules(place, "allow: [shell(echo *), edit(src/**)]\nask: [shell(git *)]\ndeny: ['edit(src/secret*)']\n")
    calls = [
        call("shell", command="echo a; echo b"),
        call("shell", command="echo a; true"),
        call("shell", command="git log"),
        call("write_file", path="src/a/b.py", content="x"),
        call("write_file", path="lib/a.py", content="x"),
        call("write_file", path="src/secrets.py", content="x"),
        call("move_file", path="old.txt", to="src/new.txt"),
        call("move_file", path="src/a/b.py", to="src/secret"),
    ]
    assert became(place, "ask", *calls) == [
        "done", "asked", "asked", "done", "asked", "refused", "asked", "refused",
    ]  # fmt: skip


@pytest.mark.parametrize("mode", ["edits", "auto", "open"])
def test_deny_wins_over_every_mode(place: Path, mode: str) -> None:
    rules(place, "deny: [shell, write_file]\nallow: [shell]\n")
    assert became(place, mode, WRITE, RUN, policy="open") == ["refused", "refused"]


def test_a_rule_asks_in_every_mode(place: Path) -> None:
    rules(place, "ask: ['shell(git push*)']\n")
    assert became(place, "open", call("shell", command="git push")) == ["asked"]


def test_reading_can_be_denied_to_those_that_it_gives_work_to(place: Path) -> None:
    rules(place, "deny: [read(old*)]\n")
    (place / "old.txt").write_text("x")
    delegated = call("delegate", tasks=[{"title": "a", "task": "read"}])
    script = Script({"coder": [delegated, "done"], "explorer": [call("read_lines", path="old.txt"), "no"]})
    asyncio.run(run(coder(place, model=script), "go"))
    assert any("permission denied" in each for one in script.requests for each in results_shown(one))


def test_what_the_project_allows_waits_for_trust_and_what_it_denies_does_not(place: Path) -> None:
    rules(place, "allow: [shell]\ndeny: [write_file]\n", own=False)
    assert became(place, "ask", RUN, WRITE) == ["asked", "refused"]
    coder(place).conventions.trust_all()
    assert became(place, "ask", RUN, WRITE) == ["done", "refused"]


def test_a_rule_on_an_argument_of_any_other_tool(place: Path) -> None:
    found, faults = read_rules("deny: [shop_buy(item=tea*)]\n", "rules.yaml")
    assert faults == ()
    assert (found[0].tool, found[0].grant.arguments) == ("shop_buy", (("item", "tea*"),))


WRONG = {
    "allow: x": ":1:8: allow: expected a list",
    "permit: []": ":1:1: rules: unknown key 'permit'",
    "allow: ['x(']": ":1:9: allow: 'x(' is no rule",
    "allow: [shell()]": ":1:9: allow: the brackets are empty",
    "allow: [todo(x)]": ":1:9: allow: todo takes no such pattern",
    "allow: [[x]]": ":1:9: allow: expected a text",
    "allow: {": "is not YAML",
}


@pytest.mark.parametrize("text", WRONG)
def test_a_wrong_file_says_where_and_what(text: str) -> None:
    found, faults = read_rules(text, "rules.yaml")
    assert found == ()
    assert WRONG[text] in str(faults[0])


def test_all_faults_of_a_file_are_told_at_once() -> None:
    _, faults = read_rules("allow:\n- 'x('\n- shell()\n", "rules.yaml")
    assert [each.line for each in faults] == [2, 3]
