"""Records whose digests are right and which are no run are an error of the journal, whatever reads them.

Whoever can write the file can write an end of a call that never began, with a right digest. The commands are
found in the program: a new one must be sorted in here.
"""

import asyncio
import json
from typing import NamedTuple

import msgspec
import pytest
from msgspec.structs import replace

from antiphon import Agent, open_run, tool
from antiphon.cli import exit_codes
from antiphon.errors import JournalCorrupt
from antiphon.journal.memory import MemoryJournal
from antiphon.journal.port import chain, genesis
from antiphon.journal.row_writer import put
from antiphon.journal.sqlite import SqliteJournal
from antiphon.journal.transfer import named_blobs
from antiphon.kernel.run.rows import read
from antiphon.models.script import Script, call
from antiphon.view import RunTree
from tests.promises.test_hostile_terminal import COMMANDS
from tests.unit.cli.conftest import shell  # noqa: F401 - a fixture

JOURNAL = ".antiphon/antiphon.db"
READING = {
    ("runs", "show"): ([], ["--json"]),
    ("runs", "tail"): ([], ["--json"], ["-n", "1"]),
    ("runs", "request"): (["1/9.m9"], ["1/9.m9", "--json"]),
    ("runs", "resume"): (["team.yaml"], ["team.yaml", "--json"]),
    ("runs", "check"): (["team.yaml"],),
    ("runs", "fork"): ([],),
    ("runs", "undo"): ([], ["--to", "1"], ["--dry-run", "--json"]),
    ("runs", "redo"): ([],),
    ("runs", "cancel"): (["--yes"],),
    ("runs", "export"): ([], ["--out", "out.json", "--yes"]),
    ("answer",): ([], ["yes"]),
    ("runs", "verify"): ([],),
}
"""The commands that are given a run and read its records, with what stands after its id."""
LOOKING = {("runs", "show"), ("runs", "tail"), ("runs", "request"), ("runs", "export"), ("runs", "check")}
"""Those of them that change nothing."""
OTHERS = {
    ("run",), ("chat",), ("doctor",), ("graph",), ("models", "ls"), ("models", "show"), ("profiles", "check"),
    ("profiles", "schema"), ("journal", "vacuum"), ("journal", "salvage"), ("journal", "seal"),
    ("knowledge", "add"), ("knowledge", "ls"), ("knowledge", "search"), ("knowledge", "watch"),
    ("knowledge", "stats"), ("knowledge", "rm"),
    ("mcp", "ls"), ("mcp", "add"), ("mcp", "test"), ("mcp", "call"), ("mcp", "approve"),
    ("mcp", "serve"),
    ("rules", "add"), ("rules", "ls"), ("rules", "rm"),
    ("runs", "import"), ("runs", "ls"), ("runs", "move"), ("runs", "prune"),
    ("runs", "rename"), ("runs", "rm"), ("serve",), ("ui",),
}  # fmt: skip
"""Those that read no records, go over all runs whatever one holds, or delete one that is damaged."""


def test_every_command_is_sorted_in():
    assert READING.keys() | OTHERS == COMMANDS.keys()


class Change(NamedTuple):
    """One key of one event, and what it becomes."""

    row: int
    event: int
    key: str
    value: object


@tool(effect="read")
def look(word: str) -> str:
    """Look a word up."""
    return "found"


@tool(requires_approval=True)
def pay(amount: int) -> str:
    """Pay."""
    return "paid"


async def source():
    """A run of calls of tools and agents that waits for a person."""
    journal = MemoryJournal()
    team = [Agent("lead", tools=[look, pay]), Agent("clerk", tools=[look])]
    asked = call("call_agent", agent_name="clerk", message="b")
    model = Script([call("look", word="a"), asked, "noted", call("pay", amount=1)])
    async with open_run(team, journal=journal, run_id="source", create=True, model=model) as run:
        await run.post("lead", "go")
        async for item in run.events(deltas=False):
            if item.asks:
                return journal


def changes(rows):
    """Every event that names an effect or an activation, naming one that never began."""
    for place, row in enumerate(rows):
        for number, event in enumerate(json.loads(row.body)):
            if "id" in event and event["type"] != "RunStarted":
                yield from (Change(place, number, "id", other) for other in ("9/9.c9", "1/7.c7", "9/1.m1"))
            if "activation" in event:
                yield Change(place, number, "activation", 9)
            if "to" in event:
                yield Change(place, number, "to", 9)


async def forge(path):
    """A journal with a run for each change, its digests right; the changes by the run's id."""
    origin = await source()
    rows, journal, found = await origin.read("source"), SqliteJournal(path), {}
    for index, change in enumerate(changes(rows)):
        run_id = f"x{index:03}"
        found[run_id] = change
        lease, digest = await journal.claim(run_id, create=True, origin="o"), genesis(run_id, "o")
        for place, row in enumerate(rows):
            body = row.body
            if place == change.row:
                events = json.loads(body)
                events[change.event][change.key] = change.value
                body = json.dumps(events).encode()
            digest = chain(digest, row.seq, row.count, 1, row.at, body, row.refs, row.blobs, row.given)
            blobs = {name: await origin.blob("source", name) for name in named_blobs([row])}
            await put(journal, lease, replace(row, epoch=1, body=body, digest=digest), blobs)
        await journal.release(lease)
    await journal.close()
    return found


@pytest.fixture
def forged(shell):  # noqa: F811 - the fixture of that name
    (shell.folder / ".antiphon").mkdir(mode=0o700)
    return asyncio.run(forge(shell.folder / JOURNAL))


@pytest.mark.slow
def test_no_command_takes_them_for_a_run_or_for_a_fault_of_its_own(shell, forged):  # noqa: F811
    damaged = {each["run_id"] for each in shell("runs", "verify", "--json").value["runs"] if each["damage"]}
    assert len(damaged) > len(forged) / 2
    for run_id, change in forged.items():
        for path, forms in READING.items():
            if run_id not in damaged and path not in LOOKING:
                # It is a run, though not the one that was played; it would wait for its person.
                continue
            for words in forms:
                said = shell(*path, run_id, *words)
                assert said.code != exit_codes.FAULT, (path, words, change, said)
                if run_id in damaged:
                    assert said.code == exit_codes.JOURNAL, (path, words, change, said)
                    assert "is damaged at record" in said.out + said.err, (path, words, change, said)


async def stored():
    return await read(await source(), "source")


def meaningless(event):
    """An event whose effect is named by what is no id."""
    return msgspec.structs.replace(event, id="nothing")


def test_a_tree_of_records_says_which_one_does_not_follow():
    records, tree = asyncio.run(stored()), RunTree()
    for record in records:
        if hasattr(record.event, "id"):
            with pytest.raises(JournalCorrupt, match=f"at record {record.seq}: {record.type} does not"):
                tree.add(msgspec.structs.replace(record, event=meaningless(record.event)))
        tree.add(record)
