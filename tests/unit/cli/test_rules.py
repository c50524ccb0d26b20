"""`antiphon rules`: what tools may do beyond one run."""

import asyncio

import pytest

from antiphon import Agent, open_run
from antiphon.journal.listing import Labels
from antiphon.journal.sqlite import SqliteJournal
from antiphon.kernel.run.rows import fold
from antiphon.models.script import Script
from antiphon.values.policy import Grant, StandingRule
from antiphon.view import keep_rule
from tests.unit.cli.test_terminal import CODE

JOURNAL = "sqlite:///.antiphon/antiphon.db"


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


def test_each_of_the_reaches_of_one_rule_is_listed(shell, stored):
    async def keep():
        journal = SqliteJournal(shell.folder / ".antiphon/antiphon.db")
        reach = Grant((("command", "git *"),), also=((("command", "make *"), ("seconds", "5")),))
        await keep_rule(journal, StandingRule("r1", "project", "shop", "shell", "allow", reach))
        await journal.close()

    asyncio.run(keep())
    listed = "r1  allow  shell  for project shop  command=git *  or  command=make *  seconds=5\n"
    assert shell("rules", "ls").out == listed


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

    (rule,) = rules_in_force(shell, stored)
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


@pytest.fixture
def tides(shell):
    """A project whose file allows what asks first; a function that says whether the tool ran since."""
    shell.write("code.py", CODE)
    shell.write("projects/tides/project.yaml", "rules:\n- {tool: send, verdict: allow}\n")

    def has_sent():
        box = shell.folder / "sent"
        acted = box.exists()
        box.unlink(missing_ok=True)
        return acted

    return has_sent


def test_the_rules_of_a_projects_file_hold_as_those_of_the_journal_do(shell, tides, monkeypatch):
    in_tides = ("run", "code.py:one", "go", "--project", "tides")
    shell(*in_tides)
    assert not tides()
    said = shell(*in_tides, "--projects", "projects")
    assert tides()
    assert said.err.splitlines()[-1].endswith("--projects projects")  # the printed command repeats it
    monkeypatch.setenv("ANTIPHON_PROJECTS", "projects")
    shell(*in_tides)
    assert tides()
    shell("run", "code.py:one", "go")
    assert not tides()
    # Both kinds are in force, and a deny beats an allow.
    shell("rules", "add", "send", "deny", "--project", "tides")
    shell(*in_tides)
    assert not tides()


def test_a_chat_and_a_resumed_run_take_the_rules_of_the_file_in(shell, tides):
    shell.apart("chat", "code.py:one", stdin="go\n")
    stored = shell("runs", "ls", "--json").value[0]["run_id"]
    assert shell("runs", "move", stored, "tides").code == 0
    shell.apart("chat", "code.py:one", "--resume", stored, "--projects", "projects", stdin="again\n")
    (rule,) = rules_in_force(shell, stored)
    assert (rule.id, rule.tool, rule.author) == ("project.yaml:2", "send", "tides/project.yaml")
    # The team may be changed with nothing to do: the rules are those of now, too.
    shell.write("projects/tides/project.yaml", "rules:\n- {tool: send, verdict: deny}\n")
    changed = ("runs", "resume", stored, "code.py:one", "--missing", "drop", "--projects", "projects")
    assert "its agents are those of code.py:one now" in shell(*changed).err
    assert [each.verdict for each in rules_in_force(shell, stored)] == ["deny"]


def test_a_file_that_cannot_be_read_starts_nothing(shell, tides):
    shell.write("projects/tides/project.yaml", "rules:\n- {tool: send}\n")
    refused = shell("run", "code.py:one", "go", "--project", "tides", "--projects", "projects")
    assert (refused.code, "nobody knows what they deny: tides/project.yaml:2:3" in refused.err) == (3, True)
    unknown = shell("run", "code.py:one", "go", "--project", "tide", "--projects", "projects")
    assert (unknown.code, unknown.err) == (3, "error: Unknown project: tide. Known: tides\n")
    nowhere = shell("run", "code.py:one", "go", "--project", "tides", "--projects", "nowhere")
    assert (nowhere.code, "nowhere: is no folder of projects" in nowhere.err) == (3, True)
    assert not (shell.folder / "nowhere").exists()
    assert shell("runs", "ls", "--json").value == []


def test_who_resumes_a_servers_run_without_its_projects_is_told(shell, tides):
    async def work():
        labels = Labels("tides", "ada", "desk")
        async with open_run([Agent("sender", model=Script([]))], journal=JOURNAL, labels=labels) as run:
            return run.run_id

    (shell.folder / ".antiphon").mkdir()
    stored = asyncio.run(work())
    resume = ("runs", "resume", stored, "code.py:one", "--missing", "drop")
    assert "note: of the rules for project tides only those in the journal hold here" in shell(*resume).err
    assert "note:" not in shell(*resume, "--projects", "projects").err


def rules_in_force(shell, run_id):
    async def folded():
        journal = SqliteJournal(shell.folder / ".antiphon/antiphon.db")
        try:
            return await fold(journal, run_id)
        finally:
            await journal.close()

    return asyncio.run(folded()).owner.rules
