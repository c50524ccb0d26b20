"""Rules and grants judge what a call does, thing by thing: each must be allowed, or a person is asked."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from enum import StrEnum
from typing import Any

import pytest

from antiphon import Agent, ToolCall, open_run, tool
from antiphon.errors import ToolDefinitionError
from antiphon.kernel.facts.events import EffectFinished
from antiphon.models.script import Script, call
from antiphon.values.policy import MAX_SUBJECTS, CallSubject, Grant, Policy, StandingRule, Verbatim, covers
from tests.unit.kernel.rules.test_grants import asked_about

NOW = 1_000.0


def commands(line: str) -> list[str | Verbatim]:
    """The commands of a line; one with a substitution could be any."""
    return [Verbatim(each.strip()) if "$(" in each else each.strip() for each in line.split(";")]


@tool(requires_approval=True, subjects={"command": commands})
async def run(command: str, seconds: int = 5) -> str:
    """Run a line of commands."""
    return f"ran {command}"


@tool(
    requires_approval=True,
    subjects={"path": lambda path: [path.strip("/")], "to": lambda to: [to.strip("/")]},
)
async def move(path: str, to: str) -> str:
    """Move a file."""
    return f"moved {path}"


def line(text: str, **more: Any) -> ToolCall:
    return call("run", command=text, **more)


def asked(lines: Any, *answers: Any) -> list[str]:
    found = asked_about(lines, *answers, agents=[Agent("a", tools=[run, move])])
    return [each.partition('":"')[2].partition('"')[0] for each in found]


GIT = Grant((("command", "git *"),))


def test_all_that_a_call_does_must_be_granted() -> None:
    lines = [line("git status"), line("git log; git diff"), line("git status; rm -rf x"), "end"]
    assert asked(lines, GIT) == ["git status", "git status; rm -rf x"]


def test_several_grants_cover_one_call_together() -> None:
    lines = [line("git status"), line("make test"), line("git pull; make all"), "end"]
    assert asked(lines, GIT, Grant((("command", "make *"),))) == ["git status", "make test"]


def test_one_grant_may_have_several_reaches() -> None:
    both = Grant((("command", "git *"),), also=((("command", "make *"), ("seconds", "5")),))
    lines = [line("git status"), line("git pull; make all"), line("git pull; make all", seconds=9), "end"]
    assert asked(lines, both) == ["git status", "git pull; make all"]
    # Where only further ones are said, these are all; an empty one is none.
    only = Grant(also=((("command", "make *"),), ()))
    assert asked([line("make a"), line("git a"), "end"], only) == ["make a", "git a"]
    assert asked([line("make a"), line("git a"), "end"], Grant(also=((),))) == ["make a"]


def test_a_pattern_does_not_reach_over_what_nobody_can_take_apart() -> None:
    opaque = "git log $(rm -rf x)"
    lines = [line("git status"), line(opaque), line(opaque), line("git log; " + opaque), "end"]
    exactly = Grant((("command", opaque),))
    assert asked(lines, GIT, exactly) == ["git status", opaque]


def test_what_stands_for_itself_is_granted_as_it_stands_or_escaped() -> None:
    opaque = "git log $(ls *.py)"
    for pattern in (opaque, "git log $(ls [*].py)"):
        assert asked([line(opaque), line(opaque), "end"], Grant((("command", pattern),))) == [opaque]


def test_other_arguments_are_compared_with_every_part() -> None:
    quick = Grant((("command", "git *"), ("seconds", "5")))
    lines = [line("git a"), line("git a; git b"), line("git a; git b", seconds=50), "end"]
    assert asked(lines, quick) == ["git a", "git a; git b"]


def test_each_of_several_arguments_is_a_name_of_its_own() -> None:
    inside = Grant((("path", "src/*"), ("to", "src/*")))
    lines = [
        call("move", path="/src/a", to="src/b/"), call("move", path="src/a", to="/src/c"),
        call("move", path="src/a", to="etc/c"), "end",
    ]  # fmt: skip
    assert asked(lines, inside) == ["/src/a", "src/a"]


def decided(text: str, *rules: tuple[str, str]) -> str:
    """What became of a call in a run with these rules, that nobody watches."""

    async def main() -> str:
        given = [
            StandingRule(str(place), "run", "r", "run", verdict, Grant((("command", pattern),)))  # type: ignore[arg-type]
            for place, (verdict, pattern) in enumerate(rules)
        ]
        model = Script([line(text), "end"])
        async with open_run(
            [Agent("a", tools=[run])],
            model=model,
            env={},
            rules=given,
            policy=Policy("guarded"),
            interactive=False,
        ) as opened:
            await opened.result(await opened.post("a", "go"))
            ends = [each.event for each in await opened.records() if isinstance(each.event, EffectFinished)]
        (end,) = [each for each in ends if each.id == "1/1.c1"]
        return f"{end.outcome}: {end.reason or end.content}"

    return asyncio.run(main())


def test_a_rule_that_denies_one_part_denies_the_call() -> None:
    said = decided("git status; rm -rf x", ("allow", "*"), ("deny", "rm *"))
    assert said == "denied: permission denied: the rule 1 denies run"


def test_a_rule_denies_what_could_mean_more_too() -> None:
    assert decided("rm $(ls)", ("allow", "rm $(ls)"), ("deny", "rm *")).startswith("denied")


def test_rules_allow_a_call_together() -> None:
    rules = ("allow", "git *"), ("allow", "make *")
    assert decided("git pull; make", *rules) == (
        "denied: permission denied: run needs approval, and nobody is there to ask"
    )
    assert decided("git pull; make all", *rules) == "completed: ran git pull; make all"


def test_a_rule_that_asks_for_one_part_asks_for_the_call() -> None:
    said = decided("git pull; make all", ("allow", "git *"), ("ask", "make *"))
    assert said == "denied: permission denied: the rule 1 asks for run, and nobody is there to ask"


# -- a tool -----------------------------------------------------------------------------------------


def raising(value: Any) -> list[str]:
    raise ValueError("no idea")


class Named(StrEnum):
    STATUS = "git status"


def endless(value: Any) -> Iterator[str]:
    while True:
        yield "git status"


@pytest.mark.parametrize(
    "subjects",
    [
        raising,
        endless,
        lambda value: [],
        lambda value: ["git status", 5],
        lambda value: None,
        lambda value: ["\ud800"],
        lambda value: [Named.STATUS],
        lambda value: [*Named, "git log"],
    ],
)
def test_what_cannot_be_taken_apart_is_judged_as_it_stands(subjects: Any) -> None:
    @tool(subjects={"command": subjects})
    def odd(command: str) -> None:
        """Do something."""

    (found,) = odd.subjects('{"command":"git status"}')
    assert found == CallSubject('{"command":"git status"}', frozenset({"command"}))
    assert not covers(GIT, "a", found, NOW)
    assert covers(Grant((("command", "git status"),)), "a", found, NOW)
    assert covers(Grant(), "a", found, NOW)


def test_a_call_that_does_too_much_is_judged_as_a_whole() -> None:
    (found,) = run.subjects(f'{{"command":"{";".join(["git a"] * (MAX_SUBJECTS + 1))}"}}')
    assert found.verbatim == {"command"}
    assert len(run.subjects(f'{{"command":"{";".join(["git a"] * MAX_SUBJECTS)}"}}')) == MAX_SUBJECTS


def test_without_subjects_a_call_is_one_thing() -> None:
    @tool
    def plain(command: str) -> None:
        """Do something."""

    assert plain.subjects('{"command":"a; b"}') == (CallSubject('{"command":"a; b"}'),)


def test_subjects_are_of_arguments_that_there_are() -> None:
    with pytest.raises(
        ToolDefinitionError, match="subjects says what the argument 'line' does, and the tool takes command"
    ):

        @tool(subjects={"line": commands})
        def odd(command: str) -> None:
            """Do something."""


def test_subjects_are_functions() -> None:
    with pytest.raises(
        ToolDefinitionError, match=r"odd: subjects\['command'\] is a function of the argument; got 5"
    ):

        @tool(subjects={"command": 5})  # type: ignore[dict-item]
        def odd(command: str) -> None:
            """Do something."""


def test_how_it_is_taken_apart_does_not_change_what_was_granted() -> None:
    @tool(name="run", requires_approval=True)
    async def before(command: str, seconds: int = 5) -> str:
        """Run a line of commands."""
        return ""

    assert before.digest == run.digest
