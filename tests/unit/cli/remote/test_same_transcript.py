"""Every command on runs says the same of a journal and of a server that serves it."""

import asyncio
import json
import re

import click
import pytest

from antiphon import Agent, open_run, tool
from antiphon.cli.app import antiphon
from antiphon.cli.serving.serve import TeamOptions, hosted_teams
from antiphon.models.script import Script, call
from tests.unit.cli.conftest import shell  # noqa: F401 - a fixture
from tests.unit.cli.remote.serving import TOKEN, serving

JOURNAL = ".antiphon/antiphon.db"
TEAM = """\
entry: lead
model: script:script.yaml
agents:
  - name: lead
    instructions: You lead.
    tools: [calculate]
"""
SCRIPT = """\
lead:
- {call: calculate, args: {expression: 2+3}}
- {finish: The result is 5.}
"""
OWN_JOURNAL = {("serve",), ("mcp", "serve"), ("doctor",)}
"""Commands with a journal of their own: the servers', and the one that is looked after."""
FILE_ONLY = {
    ("ui",), ("runs", "verify"), ("runs", "prune"), ("journal", "vacuum"), ("journal", "seal"),
    ("journal", "salvage"), ("runs", "undo"), ("runs", "redo"),
}  # fmt: skip
"""Commands that need the journal's file, and say so."""
READING = {
    ("runs", "ls"): (
        [], ["--json"], ["--limit", "1"], ["--before", "SECOND"], ["--before", "nobody"],
        ["--state", "closed"], ["--state", "waiting"], ["--state", "running"], ["--text", "second"],
        ["--project", "tides"], ["--project", ""], ["--owner", ""], ["--owner", "ada"], ["--team", "x"],
    ),
    ("runs", "show"): (["FIRST"], ["FIRST", "--json"], ["named"], ["nobody"], [""], ["ASKS"]),
    ("runs", "tail"): (["FIRST"], ["FIRST", "--json"], ["FIRST", "-n", "2"], ["FIRST", "-f"], ["nobody"]),
    ("runs", "request"): (["FIRST", "1/1.m1"], ["FIRST", "1/2.m1", "--json"], ["FIRST", "9/9.m9"]),
    ("runs", "export"): (["FIRST"], ["nobody"]),
    ("runs", "resume"): (["FIRST", "team.yaml"], ["FIRST", "team.yaml", "--json"], ["nobody", "team.yaml"]),
    ("runs", "check"): (
        ["FIRST", "team.yaml"], ["FIRST", "team.yaml", "--json"], ["FIRST", "other.yaml"],
        ["nobody", "team.yaml"],
    ),
    ("answer",): ([], ["--json"], ["FIRST"], ["ASKS"], ["ASKS", "maybe"], ["FIRST", "yes"]),
    ("runs", "cancel"): (["FIRST", "--yes"], ["ASKS", "9/9.c9", "--yes"], ["nobody", "--yes"], ["ASKS"]),
    ("runs", "rename"): (["FIRST", "first"], ["FIRST", ""], ["nobody", "x"], ["FIRST", "x" * 200]),
    ("runs", "move"): (["FIRST", "tides"], ["FIRST", ""], ["nobody", "x"], ["FIRST", "x/y"]),
    ("runs", "rm"): (["FIRST"], ["FIRST", "--json"], ["nobody"]),
    ("rules", "ls"): (
        [], ["--json"], ["--run", "FIRST"], ["--run", "nobody"], ["--project", "tides"], ["--owner", "ada"],
        ["--run", "SECOND", "--project", "tides", "--json"],
    ),
}  # fmt: skip
"""What is said of one journal, here and by a server that serves it: the same, to the letter."""
DRIVING = {
    ("run",), ("chat",), ("runs", "import"), ("runs", "fork"), ("rules", "add"), ("rules", "rm"),
}  # fmt: skip
"""Commands that make a run or a rule: what they show is looked at below."""


@tool(requires_approval=True)
def pay(who: str) -> str:
    """Pay somebody."""
    return "paid " + who


def commands(group=antiphon, path=()):
    context = click.Context(group)
    found = {}
    for name in group.list_commands(context):
        each = group.get_command(context, name)
        found |= commands(each, (*path, name)) if isinstance(each, click.Group) else {(*path, name): each}
    return found


def options(command):
    return {each.name: each for each in command.params if isinstance(each, click.Option)}


def test_every_command_with_a_journal_works_with_a_server_or_says_why_not():
    found = {path: options(each) for path, each in commands().items()}
    with_journal = {path for path, each in found.items() if "journal" in each}
    with_server = {path for path, each in found.items() if "server" in each and not each["server"].hidden}
    says_why = {path for path, each in found.items() if "server" in each and each["server"].hidden}
    assert with_journal == with_server | says_why | OWN_JOURNAL
    assert says_why == FILE_ONLY
    assert with_server == READING.keys() | DRIVING


@pytest.fixture
def runs(shell):  # noqa: F811
    """Two runs that have ended, one of them in a project, by what tests call them."""
    shell.write("team.yaml", TEAM)
    shell.write("script.yaml", SCRIPT)
    shell.write("other.yaml", "model: script:script.yaml\nagents:\n  - name: another\n")
    assert shell("run", "team.yaml", "How much is 2+3?", "--quiet", "--project", "tides").code == 0
    assert shell("run", "team.yaml", "second", "--quiet").code == 0
    second, first = [each["run_id"] for each in shell("runs", "ls", "--json").value]
    assert shell("runs", "rename", second, "named").code == 0
    return {"FIRST": first, "SECOND": second}


@pytest.fixture
def asking(shell, runs):  # noqa: F811
    """The same with a run that waits for a person and that nobody drives."""

    async def work():
        agent = Agent("clerk", model=Script([call("pay", who="ann"), "paid"], by="turn"), tools=[pay])
        async with open_run([agent], journal=f"sqlite:///{JOURNAL}") as run:
            await run.post("clerk", "Pay.")
            async for record in run.events(deltas=False):
                if record.asks is not None:
                    break
            return run.run_id

    assert shell("rules", "add", "pay*", "deny", "--project", "tides", "--match", "who=ann").code == 0
    assert shell("rules", "add", "pay", "ask", "--run", runs["FIRST"]).code == 0
    return {**runs, "ASKS": asyncio.run(work())}


def on_server(shell, server, monkeypatch, *words):  # noqa: F811
    with monkeypatch.context() as patch:
        patch.setenv("ANTIPHON_SERVER", server.url)
        patch.setenv("ANTIPHON_SERVER_TOKEN", TOKEN)
        return shell(*words)


AGES = re.compile(r"\b\d+ (s|min)\b *|(?m:^.* runs resume \w+.*\n)")


def plain(said):
    """What was said, without how long ago things were, and what resumes a run: another command there."""
    return said.code, AGES.sub("", said.out), AGES.sub("", said.err)


@pytest.mark.slow
def test_what_is_read_is_said_alike(shell, asking, monkeypatch):  # noqa: F811
    # A team of the server may be called as a file is.
    names = ("team.yaml=team.yaml", "other.yaml=other.yaml")
    with serving(JOURNAL, hosted_teams(names, None, TeamOptions())) as server:
        for path, cases in READING.items():
            for case in cases:
                words = [*path, *(asking.get(word, word) for word in case)]
                here = shell(*words)
                there = on_server(shell, server, monkeypatch, *words)
                assert plain(there) == plain(here), words
        # What nobody has read yet is in no record.
        assert shell("answer", asking["ASKS"], "yes").code == 0
        exported = [
            shell("runs", "export", asking["ASKS"]),
            on_server(shell, server, monkeypatch, "runs", "export", asking["ASKS"]),
        ]
        assert plain(exported[0]) == plain(exported[1])
        assert "1 command waits for the run's owner" in exported[1].err
        there = on_server(shell, server, monkeypatch, "answer", asking["ASKS"], "no")
        assert (there.code, "which waits to be read: 'yes' by outsider" in there.err) == (10, True)


@pytest.mark.slow
def test_a_run_is_shown_alike(shell, runs, monkeypatch):  # noqa: F811
    teams = {"team": Agent("lead", "You lead.", model=Script(["Five."], by="turn"))}
    shell.write("one.py", "from antiphon import Agent\nfrom antiphon.models.script import Script\n"
                "team = Agent('lead', 'You lead.', model=Script(['Five.'], by='turn'))\n")  # fmt: skip
    hints = re.compile(r"(?m)^(run \w{12}[;,] |  .* runs ).*\n")
    with serving(JOURNAL, teams) as server:
        here = shell("run", "one.py:team", "How much?", "--project", "sums")
        there = on_server(shell, server, monkeypatch, "run", "team", "How much?", "--project", "sums")
        assert there.code == here.code == 0
        assert there.out == here.out == "Five.\n"
        spent = re.compile(r"\d+(\.\d+)? (ms|s)|\b\w{12}(?=:)")
        assert spent.sub("N", hints.sub("", there.err)) == spent.sub("N", hints.sub("", here.err))
        assert ", driven by the server; Ctrl-C leaves it going there" in there.err
        listed = on_server(shell, server, monkeypatch, "runs", "ls", "--json", "--project", "sums").value
        assert [(each["closed"], each["labels"]["team"]) for each in listed] == [(True, "team"), (True, "")]
        json_here = shell("run", "one.py:team", "How much?", "--json").events
        json_there = on_server(shell, server, monkeypatch, "run", "team", "How much?", "--json").events
        kinds = [[(each.get("event") or each)["type"] for each in every] for every in (json_here, json_there)]
        assert kinds[0] == kinds[1]
        assert json_there[-1]["output"] == "Five."


@pytest.mark.slow
def test_a_run_that_waits_for_a_person_is_left_and_goes_on_when_it_is_answered(shell, monkeypatch):  # noqa: F811
    clerk = Agent("clerk", model=Script([call("pay", who="ann"), "paid"], by="turn"), tools=[pay])
    with serving("runs.db", {"clerk": clerk}) as server:
        # Nobody sits at this one: it says what is asked and how to answer, and leaves the run there.
        said = on_server(shell, server, monkeypatch, "run", "clerk", "Pay.")
        assert (said.code, said.out) == (8, "")
        assert (
            "waits for an answer, and nobody is here to give one:\n1/1.c1  clerk asks to use pay\n"
            in said.err
        )
        (line,) = [each for each in said.err.splitlines() if each.startswith("to answer: ")]
        words = line.split()
        run_id, effect = words[words.index("answer", 3) + 1 :][:2]
        again = on_server(shell, server, monkeypatch, "runs", "resume", run_id, "--json")
        asked = on_server(shell, server, monkeypatch, "answer", "--json").value
        assert (again.code, again.events[-1]["type"], again.events[-1]["asked"]) == (8, "RunSuspended", asked)
        assert [(each["effect"], each["tool"], each["arguments"]) for each in asked] == [
            (f"{effect}?", "pay", {"who": "ann"})
        ]
        refused = on_server(shell, server, monkeypatch, "answer", run_id, effect, "yes", "--by", "eve")
        assert (refused.code, "--by is for a journal" in refused.err) == (2, True)
        said = on_server(shell, server, monkeypatch, "answer", run_id, effect, "yes")
        assert said.code == 0
        assert "answered 'yes' by outsider local, taken in by" in said.out
        said = on_server(shell, server, monkeypatch, "runs", "resume", run_id)
        assert (said.code, said.out) == (0, "paid\n")
        late = on_server(shell, server, monkeypatch, "answer", run_id, effect, "no")
        assert (late.code, "settled already: answered 'yes'" in late.err) == (10, True)
        # Piped words to a conversation do not wait for ever either.
        shell.write("typed", "Pay.\nMore.\n")
        with (shell.folder / "typed").open() as typed, monkeypatch.context() as patch:
            patch.setattr("sys.stdin", typed)
            said = on_server(shell, server, monkeypatch, "chat", "clerk")
        assert (said.code, said.out, "clerk asks to use pay" in said.err) == (8, "", True)


@pytest.mark.slow
def test_a_conversation_remembers_and_goes_on_later(shell, monkeypatch):  # noqa: F811
    class Counts:
        """Says how many messages it is shown."""

        name = "counts"

        async def complete(self, request, emit):
            from antiphon.values.model import Reply

            return Reply(f"I was shown {len(request.messages)}.")

    with serving("runs.db", {"desk": Agent("desk", model=Counts())}) as server:

        def talk(text, *words):
            shell.write("typed", text)
            with (shell.folder / "typed").open() as typed, monkeypatch.context() as patch:
                patch.setattr("sys.stdin", typed)
                return on_server(shell, server, monkeypatch, "chat", *words)

        said = talk("One\nTwo\n", "desk")
        assert (said.code, said.out) == (0, "I was shown 1.\nI was shown 3.\n")
        run_id = re.search(r"run (\w+); to go on: .* chat --resume (\w+)", said.err)[2]
        assert talk("Three\n", "--resume", run_id, "-q").out == "I was shown 5.\n"
        assert talk("Four\n", "--continue", "-q").out == "I was shown 7.\n"
        gone = talk("Five\n/resume nobody\nSix\n/model x\nSeven\n", "--resume", run_id)
        assert (gone.code, gone.out) == (0, "I was shown 9.\nI was shown 11.\nI was shown 13.\n")
        assert "error: No run starts with 'nobody'" in gone.err
        assert "(the server says which models are asked)" in gone.err
        assert gone.err.count("> Four") == 1
        (line,) = on_server(shell, server, monkeypatch, "runs", "ls", "--json").value
        assert (line["closed"], line["labels"]["team"]) == (False, "desk")
        assert talk("Hi\n").code == 2
        assert talk("Hi\n", "nobody").code == 3


@pytest.mark.slow
def test_a_run_is_taken_out_of_one_server_and_into_another(shell, runs, monkeypatch):  # noqa: F811
    with serving(JOURNAL, {"desk": Agent("desk", model=Script(["x"]))}) as server:
        exported = on_server(shell, server, monkeypatch, "runs", "export", runs["FIRST"], "--out", "run.json")
        assert exported.code == 0
        assert shell("runs", "verify", "./run.json").code == 0
        again = on_server(shell, server, monkeypatch, "runs", "import", "run.json")
        assert (again.code, "Run" in again.err) == (3, True)
        assert on_server(shell, server, monkeypatch, "runs", "rm", runs["FIRST"], "--yes").code == 0
        assert on_server(shell, server, monkeypatch, "runs", "import", "run.json").code == 0
        shown = on_server(shell, server, monkeypatch, "runs", "show", runs["FIRST"], "--json").value
        assert shown["requests"][0]["result"] == "The result is 5."


@pytest.mark.slow
def test_rules_are_kept_on_the_server_for_whoever_has_its_token(shell, runs, monkeypatch):  # noqa: F811
    with serving(JOURNAL, {"desk": Agent("desk", model=Script(["x"]))}) as server:

        def rules(*words):
            return on_server(shell, server, monkeypatch, "rules", *words)

        made = rules("add", "pay", "deny", "--run", "named", "--match", "who=ann*", "--json")
        (rule,) = made.value
        assert (rule["key"], rule["verdict"], rule["author"]) == (runs["SECOND"], "deny", "local")
        assert rule["grant"]["arguments"] == [["who", "ann*"]]
        assert shell("rules", "ls", "--json").value == [rule], "in the server's journal"
        refused = rules("add", "pay", "deny", "--project", "tides", "--by", "eve")
        assert (refused.code, "--by is for a journal" in refused.err) == (2, True)
        assert (rules("rm", rule["id"]).out, rules("ls").out) == (f"dropped {rule['id']}\n", "no rules\n")
        gone = rules("rm", rule["id"])
        assert (gone.code, "Unknown rule" in gone.err) == (4, True)
        nobody = rules("add", "pay", "deny", "--run", "nobody")
        assert (nobody.code, "No run starts with 'nobody'" in nobody.err) == (4, True)
        blank = rules("add", " ", "deny", "--project", "tides")
        assert (blank.code, blank.out) == (3, "")


def test_a_command_that_needs_the_file_says_so(shell, monkeypatch):  # noqa: F811
    given = {
        ("journal", "salvage"): ["--out", "x.db"], ("runs", "prune"): ["--keep", "1"],
        ("runs", "undo"): ["x"], ("runs", "redo"): ["x"],
    }  # fmt: skip
    for path in FILE_ONLY:
        said = shell(*path, *given.get(path, []), "--server", "http://127.0.0.1:1")
        assert (said.code, said.out) == (2, ""), path
        assert f"`{path[-1]}` needs the journal's file" in said.err
        monkeypatch.setenv("ANTIPHON_SERVER", "http://127.0.0.1:1")
        assert shell(*path, *given.get(path, [])).code == 2
        monkeypatch.delenv("ANTIPHON_SERVER")
    both = shell("runs", "ls", "--journal", "x.db", "--server", "http://127.0.0.1:1")
    assert (both.code, "exclude each other" in both.err) == (2, True)
    assert "go with --server" in shell("runs", "ls", "--plain-http").err
    model = shell("run", "desk", "Hi", "--server", "http://127.0.0.1:1", "--model", "x")
    assert (model.code, "--model is for a team that runs here" in model.err) == (2, True)


def test_json_of_the_list_is_whole(shell, runs, monkeypatch):  # noqa: F811
    with serving(JOURNAL, {"desk": Agent("desk", model=Script(["x"]))}) as server:
        there = on_server(shell, server, monkeypatch, "runs", "ls", "--json").out
    assert json.loads(there) == shell("runs", "ls", "--json").value


@pytest.mark.slow
def test_a_run_is_forked_alike(shell, asking, monkeypatch):  # noqa: F811
    names, ids = ("team.yaml=team.yaml",), re.compile(r"(?<=^run )\w{12}")
    with serving(JOURNAL, hosted_teams(names, None, TeamOptions())) as server:
        for case in (["FIRST"], ["ASKS", "--at", "6"], ["FIRST", "--at", "999"], ["nobody"], ["named"]):
            words = ["runs", "fork", *(asking.get(word, word) for word in case)]
            here, there = shell(*words), on_server(shell, server, monkeypatch, *words)
            said = [(each.code, ids.sub("", each.out), each.err) for each in (here, there)]
            assert said[0] == said[1], words
        made = on_server(shell, server, monkeypatch, "runs", "fork", asking["ASKS"], "--json").value
        shown = shell("runs", "show", made["run_id"], "--json").value
        assert shown["fork"] == {"origin": asking["ASKS"], "record": made["seq"]}
        # Whose token it was has made it.
        assert shown["labels"]["owner"] == "local"
        seen = [shell("runs", "show", made["run_id"]),
                on_server(shell, server, monkeypatch, "runs", "show", made["run_id"])]  # fmt: skip
        assert plain(seen[0]) == plain(seen[1])
