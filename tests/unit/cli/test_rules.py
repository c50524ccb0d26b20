"""`antiphon rules`: what tools may do beyond one run."""

import asyncio

import pytest

from antiphon.journal.sqlite import SqliteJournal
from antiphon.kernel.run.rows import fold
from tests.unit.cli.test_terminal import CODE


@pytest.fixture
def stored(shell):
    """A run that asked for a permission and was denied; its id."""
    shell.write("code.py", CODE)
    shell("run", "code.py:one", "go")
    return shell("runs", "ls", "--json").value[0]["run_id"]


def test_rules_are_added_listed_and_dropped(shell, stored):
    reach = ("--match", "to=ann*", "--agent", "sender", "--expires-in", "2h", "--by", "eve")
    made = shell("rules", "add", "send*", "allow", "--project", "shop", *reach, "--json")
    (rule,) = made.value
    assert [rule[each] for each in ("tool", "verdict", "scope", "key")] == [
        "send*",
        "allow",
        "project",
        "shop",
    ]
    assert (rule["author"], rule["grant"]["agent"]) == ("eve", "sender")
    assert rule["grant"]["arguments"] == [["to", "ann*"]]
    assert rule["grant"]["until"] == pytest.approx(rule["created_at"] + 7200)
    assert shell("rules", "ls", "--json").value == [rule]
    denied = shell("rules", "add", "send", "deny", "--run", stored[:8], "--json").value[0]
    assert denied["key"] == stored
    listed = shell("rules", "ls").out
    assert f"{rule['id']}  allow  send*  for project shop  to=ann*  of sender  until 20" in listed
    assert f"{denied['id']}  deny  send  for run {stored[:12]}" in listed
    assert shell("rules", "ls", "--run", stored[:8], "--json").value == [denied]
    assert shell("rules", "ls", "--owner", "shop").out == "no rules\n"
    assert shell("rules", "rm", rule["id"], denied["id"]).code == 0
    assert shell("rules", "ls").out == "no rules\n"
    gone = shell("rules", "rm", rule["id"])
    assert (gone.code, "Unknown rule" in gone.err) == (4, True)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["pay", "allow"], 2, "give one of --run, --project and --owner"),
        (["pay", "allow", "--project", "a", "--owner", "b"], 2, "give one of --run, --project and --owner"),
        (["pay", "allow", "--project", " "], 2, "give one of --run, --project and --owner"),
        (["pay", "maybe", "--project", "a"], 2, "maybe"),
        (["pay", "allow", "--project", "a", "--match", "to"], 2, "--match is NAME=PATTERN"),
        (["pay", "allow", "--project", "a", "--expires-in", "soon"], 2, "--expires-in is a time"),
        ([" ", "allow", "--project", "a"], 3, "StandingRule(tool=...)"),
        (["pay", "allow", "--run", "nobody"], 4, "No run starts with"),
    ],
)
def test_what_is_no_rule_is_not_added(shell, stored, words, code, said):
    found = shell("rules", "add", *words)
    assert (found.code, said in found.err) == (code, True), found.err
    assert shell("rules", "ls").out == "no rules\n"


def test_a_rule_for_a_run_is_in_force_when_it_goes_on(shell):
    shell.write("code.py", CODE)
    shell.apart("chat", "code.py:one", stdin="go\n")
    stored = shell("runs", "ls", "--json").value[0]["run_id"]
    shell("rules", "add", "send", "deny", "--run", stored, "--by", "eve")
    shell.apart("chat", "code.py:one", "--resume", stored, stdin="go on\n")

    async def folded():
        journal = SqliteJournal(shell.folder / ".antiphon/antiphon.db")
        try:
            return await fold(journal, stored)
        finally:
            await journal.close()

    (rule,) = asyncio.run(folded()).owner.rules
    assert (rule.tool, rule.verdict, rule.author) == ("send", "deny", "eve")


def test_a_rule_for_a_project_holds_in_the_runs_of_that_project(shell, stored):
    shell("rules", "add", "send", "allow", "--project", "shop", "--by", "eve")

    def decided():
        sent = shell.folder / "sent"
        acted = sent.exists()
        sent.unlink(missing_ok=True)
        return shell("runs", "ls", "--json").value[0]["labels"]["project"], acted

    shell("run", "code.py:one", "go", "--project", "shop")
    assert decided() == ("shop", True)
    shell("run", "code.py:one", "go", "--project", "office")
    assert decided() == ("office", False)
    shell("run", "code.py:one", "go")
    assert decided() == ("", False)
    refused = shell("run", "code.py:one", "go", "--project", "no name")
    assert (refused.code, "A project is named by" in refused.err) == (2, True)
