"""`antiphon runs import`: a run from elsewhere is the same run here."""

import asyncio
import json

import pytest

from antiphon import Agent, open_journal, open_run, tool
from antiphon.journal.listing import Labels
from antiphon.journal.port import chain, genesis
from antiphon.journal.sqlite import SqliteJournal
from antiphon.kernel.facts.events import ApprovalEffect
from antiphon.kernel.run.commands import AnswerInput, encode
from antiphon.models.script import Script, call
from antiphon.view import export_file
from tests.unit.journal.writing import opened

TEAM = """
entry: bot
agents: [{name: bot, instructions: You answer., model: "script:said.yaml"}]
"""
SAID = '- "{}"\n- "and more"\n'.format("long " * 1000)


def exported(shell, resumed=True):
    """A run of two owners and a large reply, written to a file; its whole id."""
    shell.write("team.yaml", TEAM)
    shell.write("said.yaml", SAID)
    assert shell("run", "team.yaml", "go", "--journal", "there.db").code == 0
    run_id = shell("runs", "ls", "--json", "--journal", "there.db").value[0]["run_id"]
    if resumed:
        assert shell("runs", "resume", run_id, "team.yaml", "--journal", "there.db").code in (0, 1)
    assert shell("runs", "export", run_id, "--out", "run.json", "--journal", "there.db").code == 0
    return run_id


def test_an_imported_run_is_record_by_record_what_it_was(shell):
    run_id = exported(shell)
    said = shell("runs", "import", "run.json", "--journal", "here.db")
    assert (said.code, said.out.startswith(f"run {run_id[:12]}: ")) == (0, True)
    there = shell("runs", "tail", run_id, "--journal", "there.db", "--json").out
    here = shell("runs", "tail", run_id, "--journal", "here.db", "--json").out
    assert here == there
    assert shell("runs", "verify", run_id, "--journal", "here.db").code == 0
    assert shell("runs", "ls", "--journal", "here.db").out.count(run_id[:12]) == 1
    assert shell("runs", "export", run_id, "--out", "again.json", "--journal", "here.db").code == 0
    first, again = (json.loads((shell.folder / name).read_text()) for name in ("run.json", "again.json"))
    assert (first["rows"], first["blobs"]) == (again["rows"], again["blobs"])


def test_a_run_takes_its_name_along(shell):
    run_id = exported(shell)
    assert shell("runs", "rename", run_id, "June", "--journal", "there.db").code == 0
    assert shell("runs", "export", "June", "--out", "named.json", "--journal", "there.db").code == 0
    assert shell("runs", "import", "named.json", "--journal", "here.db").code == 0
    assert shell("runs", "ls", "--json", "--journal", "here.db").value[0]["name"] == "June"


def test_a_file_of_export_format_1_is_read(shell):
    """Its rows do not say what was given, and their digests do not cover it."""
    run_id = exported(shell)
    found = json.loads((shell.folder / "run.json").read_text())
    digest = genesis(run_id)
    for row in found["rows"]:
        del row["given"]
        refs = tuple(map(tuple, row["refs"]))
        fields = (row["seq"], row["count"], row["epoch"], row["at"], row["body"].encode(), refs)
        digest = chain(digest, *fields, tuple(row["blobs"]))
        row["digest"] = digest.hex()
    old = {**found, "antiphon_export": 1}
    del old["origin"]
    (shell.folder / "old.json").write_text(json.dumps(old))
    assert shell("runs", "import", "old.json", "--journal", "here.db").code == 0
    assert shell("runs", "verify", run_id, "--journal", "here.db").code == 0
    assert shell("runs", "resume", run_id, "team.yaml", "--journal", "here.db").code in (0, 1)


def test_a_run_takes_its_origin_along(shell):
    """A fork's chain starts where its origin's does; without the origin it does not verify."""
    run_id = exported(shell, resumed=False)
    found = json.loads((shell.folder / "run.json").read_text())
    forked = {**found, "run_id": "fork", "origin": run_id}
    (shell.folder / "fork.json").write_text(json.dumps(forked))
    assert shell("runs", "import", "fork.json", "--journal", "here.db").code == 0
    assert shell("runs", "verify", "fork", "--journal", "here.db").code == 0
    assert shell("runs", "export", "fork", "--journal", "here.db").value["origin"] == run_id
    (shell.folder / "fork.json").write_text(json.dumps({**forked, "origin": ""}))
    assert shell("runs", "verify", "fork.json").code == 5


def test_a_row_that_says_otherwise_what_was_given_is_damaged(shell):
    exported(shell, resumed=False)
    path = shell.folder / "run.json"
    for given in (0, 2, -1, 1 << 70):
        found = json.loads(path.read_text())
        found["rows"][1]["given"] = given
        (shell.folder / "bad.json").write_text(json.dumps(found))
        assert shell("runs", "verify", "./bad.json").code == 5


def test_a_run_takes_its_labels_along(shell):
    run_id = exported(shell)

    async def labelled():
        async with opened(shell.folder / "there.db") as journal:
            await journal.relabel(run_id, Labels("tides", "Ada"))

    asyncio.run(labelled())
    assert shell("runs", "export", run_id, "--out", "labelled.json", "--journal", "there.db").code == 0
    assert shell("runs", "import", "labelled.json", "--journal", "here.db").code == 0
    (found,) = shell("runs", "ls", "--json", "--journal", "here.db", "--owner", "Ada").value
    assert found["labels"] == {"project": "tides", "owner": "Ada", "team": ""}


def test_a_name_that_is_none_is_refused_before_anything_is_taken_in(shell):
    exported(shell, resumed=False)
    found = json.loads((shell.folder / "run.json").read_text())
    (shell.folder / "run.json").write_text(json.dumps({**found, "name": "x" * 121}))
    said = shell("runs", "import", "run.json", "--journal", "here.db")
    assert said.code != 0
    assert "at most 120 characters" in said.err
    assert not (shell.folder / "here.db").exists()


def test_a_run_that_is_here_already_is_refused(shell):
    exported(shell)
    assert shell("runs", "import", "run.json", "--journal", "here.db").code == 0
    said = shell("runs", "import", "run.json", "--journal", "here.db")
    assert said.code != 0
    assert "is in this journal already" in said.err


def test_a_damaged_file_is_not_taken_in(shell):
    exported(shell, resumed=False)
    path = shell.folder / "run.json"
    found = json.loads(path.read_text())
    found["rows"][1]["body"] = found["rows"][1]["body"].replace("bot", "bat", 1)
    path.write_text(json.dumps(found))
    said = shell("runs", "import", "run.json", "--journal", "here.db")
    assert said.code == 5
    assert "is damaged and was not taken in" in said.err
    assert not (shell.folder / "here.db").exists()


def test_what_is_no_export_is_told_apart(shell):
    shell.write("notes.json", "[1, 2]")
    assert "is no exported run" in shell("runs", "import", "notes.json").err
    assert "cannot be read" in shell("runs", "import", "nothing.json").err


def sealed(found):
    """The export with every digest made right: what somebody who means harm would send."""
    digest = genesis(found["run_id"], found["origin"])
    for row in found["rows"]:
        refs = tuple(map(tuple, row["refs"]))
        fields = (row["seq"], row["count"], row["epoch"], row["at"], row["body"].encode(), refs)
        digest = chain(digest, *fields, tuple(row["blobs"]), row["given"])
        row["digest"] = digest.hex()
    return found


def first_row(**changes):
    def change(found):
        found["rows"][0] |= changes

    return change


def replaced(old, new):
    def change(found):
        for row in found["rows"]:
            row["body"] = row["body"].replace(old, new)

    return change


FORGED = {
    "an id with an escape sequence": lambda found: found.update(run_id="\x1b]0;owned\x07"),
    "an id of many characters": lambda found: found.update(run_id="x" * 201),
    "an id of none": lambda found: found.update(run_id=""),
    "an id that turns the direction": lambda found: found.update(run_id="\u202eabc"),
    "an origin with an escape sequence": lambda found: found.update(origin="\x1b[2J"),
    "a name of two lines": lambda found: found.update(name="two\nlines"),
    "an epoch no run had": first_row(epoch=2**62),
    "an epoch of zero": first_row(epoch=0),
    "a time that no calendar has": first_row(at=1e308),
    "a time before all others": first_row(at=-1.0),
    "an effect id with an escape sequence": replaced("1/1.m1", "1/1.\\u001b[31mm1"),
    "an effect id that is none": replaced("1/1.m1", "m1"),
    "an activation that is not there": replaced("1/1.m1", "7/1.m1"),
    "a row that is no JSON": first_row(body="[{"),
    "a row that is no list of events": first_row(body="7"),
    "a row of no kind": first_row(body='[{"type":"no such event"}]'),
    "deep JSON": first_row(body="[" * 100_000 + "]" * 100_000),
}


@pytest.mark.parametrize("what", FORGED)
def test_what_no_journal_could_have_written_is_refused_before_anything_is_written(what, shell):
    exported(shell, resumed=False)
    found = json.loads((shell.folder / "run.json").read_text())
    FORGED[what](found)
    (shell.folder / "forged.json").write_text(json.dumps(sealed(found)))
    said = shell("runs", "import", "forged.json", "--journal", "here.db")
    assert (said.code, said.out) == (5, "")
    assert "was not taken in" in said.err
    assert "\x1b" not in said.err
    assert not (shell.folder / "here.db").exists()
    assert shell("runs", "verify", "forged.json").code == 5


def test_the_same_without_a_fault_is_taken_in(shell):
    """What was forged above was refused for its fault, and not because it was sealed anew."""
    exported(shell, resumed=False)
    found = json.loads((shell.folder / "run.json").read_text())
    (shell.folder / "sealed.json").write_text(json.dumps(sealed(found)))
    assert shell("runs", "import", "sealed.json", "--journal", "here.db").code == 0


@pytest.mark.parametrize(
    "text", ['{"antiphon_export": 2, "run_id": "\\ud800"', "[" * 100_000, "\xff\x00", ""]
)
def test_what_is_no_json_is_no_export(text, shell):
    (shell.folder / "bad.json").write_bytes(text.encode("latin-1"))
    said = shell("runs", "import", "bad.json")
    assert said.code == 5
    assert "is no exported run, or is damaged" in said.err


def test_a_file_without_end_is_not_read_to_it(shell, monkeypatch):
    monkeypatch.setattr(export_file, "MAX_FILE", 1_000_000)
    said = shell("runs", "import", "/dev/zero")
    assert said.code == 5
    assert "is larger than" in said.err


def test_an_imported_run_says_so_as_long_as_it_is_there(shell):
    """Whoever opens it is told, also when it has gone on here; a run made here is none."""
    run_id = exported(shell)
    assert shell("runs", "import", "run.json", "--journal", "here.db").code == 0
    assert shell("runs", "resume", run_id, "team.yaml", "--journal", "here.db").code in (0, 1)

    async def imported(path):
        journal = SqliteJournal(path)
        lease = await journal.claim(run_id)
        await journal.close()
        return lease.imported

    assert asyncio.run(imported("here.db"))
    assert not asyncio.run(imported("there.db"))


def test_a_run_that_was_imported_hears_what_is_posted_to_it(shell):
    """Its records name commands of the journal that it comes from; this one counts on from them."""
    paid = []

    @tool(requires_approval=True)
    def pay(item: int) -> str:
        """Pay for an item.

        Args:
            item: Its number.
        """
        paid.append(item)
        return f"paid {item}"

    def clerk(*given):
        return Agent("clerk", "You pay.", tools=[pay], model=Script([*given, "All paid."]))

    async def answer(path, run_id, number):
        journal = open_journal(f"sqlite:///{shell.folder}/{path}")
        command = encode(AnswerInput(f"1/{number}.c1?", "yes"))
        assert await journal.post(run_id, f"answer {number}", command)
        await journal.close()

    async def there():
        calls = [call("pay", item=n) for n in range(3)]
        async with (
            asyncio.timeout(20),
            open_run([clerk(*calls)], journal=f"sqlite:///{shell.folder}/there.db") as run,
        ):
            await run.post("clerk", "Pay all")
            asked = 0
            async for item in run.events():
                detail = getattr(getattr(item, "event", None), "detail", None)
                if isinstance(detail, ApprovalEffect):
                    asked += 1
                    if asked == 3:
                        return run.run_id
                    await answer("there.db", run.run_id, asked)

    run_id = asyncio.run(there())
    assert shell("runs", "export", run_id, "--out", "run.json", "--journal", "there.db").code == 0
    assert shell("runs", "import", "run.json", "--journal", "here.db").code == 0
    assert shell("runs", "verify", "--journal", "here.db").code == 0

    async def here():
        await answer("here.db", run_id, 3)
        here = f"sqlite:///{shell.folder}/here.db"
        async with asyncio.timeout(20), open_run([clerk()], run_id=run_id, journal=here) as run:
            return (await run.result(*await run.open_requests())).output

    assert asyncio.run(here()) == "All paid."
    assert paid == [0, 1, 2]
    assert shell("runs", "verify", "--journal", "here.db").code == 0
    said = shell("journal", "salvage", "--journal", "here.db", "--out", "saved.db")
    assert "0 of them not whole" in said.out
    assert shell("runs", "verify", "--journal", "saved.db").code == 0
