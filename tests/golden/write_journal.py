"""Writes the golden journal of the newest format, beside this file: `python -m tests.golden.write_journal`.

Run again for every change of a format until it is released; from then on the file and what it held (the
.json) are kept for ever, and the tests read them. Take the two files into the commit that changes the format.
"""

import asyncio
import json
from pathlib import Path

import apsw
import msgspec

from antiphon import Agent, Hooks, Limits, Policy, open_run, tool
from antiphon.journal.listing import Labels
from antiphon.journal.memory import MemoryJournal
from antiphon.journal.port import StoredRule, StoredRun
from antiphon.journal.row_writer import put
from antiphon.journal.sqlite import SqliteJournal
from antiphon.journal.sqlite.file import MIGRATIONS
from antiphon.models.script import Script, call
from tests.unit.journal.writing import write_story

TALK = "a talk"
"""The run whose rows are events; those of the others are any text."""
QUESTIONS = ("What is on in June?", "And " + "much " * 1_000 + "later?")
ANSWERS = ("A concert; booked.", "Nothing.")


@tool(effect="read")
def dates(month: str) -> list[str]:
    """Look up what is on.

    Args:
        month: A month's name.
    """
    return [f"{month} {day}" for day in (3, 17)]


@tool(requires_approval=True)
def book(date: str) -> str:
    """Book one.

    Args:
        date: The day.
    """
    return f"booked for {date}"


async def acts(ctx):
    """What an agent without a model does: a durable step, and data that it keeps."""
    found = await ctx.step("weather", lambda day: f"{day} will be dry", "June 3")
    ctx.set("days", {"June 3": 1.5})
    return found


def team():
    """The agents of the talk; the models of the first say what is scripted, and then no more."""
    clerk = Agent("clerk", instructions="You know dates.", tools=[dates, book], can_call=["oracle"])
    guide = Agent("guide", instructions="You answer.", can_call=["clerk"], context="continue")
    return [guide, clerk, Agent("oracle", hooks=Hooks(act=acts))]


def scripted():
    """Every reply of the talk, in order."""
    return Script(
        [
            call("call_agent", agent_name="clerk", message="June?"),
            call("dates", month="June"),
            [call("call_agent", agent_name="oracle", message="Weather?"), call("book", date="June 3")],
            "booked",
            *ANSWERS,
        ]
    )


async def talk(journal):
    """A run with calls, tools, an approval, an action, a large message and a change of owner."""
    model, approving = scripted(), asyncio.Event()

    async def approve(message):
        approving.set()
        return "yes"

    for number, question in enumerate(QUESTIONS):
        async with open_run(
            team(), journal=journal, run_id=TALK, create=not number, model=model, data={"n": [1, 2.5, None]},
            limits=Limits(usd=None, timeout_seconds=3600), policy=Policy(ask=("nothing",)),
        ) as run:  # fmt: skip
            run.on_input(approve)
            request = await run.post("guide", question, data={"n": number})
            result = await run.result(request)
            assert str(result) == ANSWERS[number], result
    assert approving.is_set()


async def fork(journal):
    """A run that begins like another one."""
    lease = await journal.claim("fork of run 0", create=True, origin="run 0")
    for row in (await journal.read("run 0"))[:4]:
        blobs = {digest: await journal.blob("run 0", digest) for _, digest in row.refs}
        await put(journal, lease, row, blobs)


async def moved(journal):
    """A run that was taken in from elsewhere, as it is after it was opened here once."""
    there = MemoryJournal()
    await write_story(there, lambda fact: None)
    rows = await there.read("run 1")
    blobs = {digest: await there.blob("run 1", digest) for row in rows for _, digest in row.refs}
    await journal.restore(StoredRun("moved", rows, blobs, "run 1", "from elsewhere", b"summary"))
    await journal.release(await journal.claim("moved"))


def as_json(run_id, rows, commands, blobs):
    """What a run holds, in plain text."""
    return {
        "run_id": run_id,
        "rows": [
            [
                row.seq,
                row.count,
                row.epoch,
                row.at,
                row.body.decode(),
                [list(ref) for ref in row.refs],
                row.digest.hex(),
                list(row.blobs),
                # What was given came with format 3.
                *([row.given] if row.given else []),
            ]
            for row in rows
        ],
        "commands": [[each.number, each.key, each.body.decode()] for each in commands],
        "blobs": {digest: data.decode() for digest, data in sorted(blobs.items())},
    }


async def contents(journal):
    """Every run of a journal, newest first, as JSON can hold it."""
    found = []
    for entry in await journal.runs():
        rows = await journal.read(entry.run_id)
        names = {digest for row in rows for digest in (*row.blobs, *(each for _, each in row.refs))}
        blobs = {digest: await journal.blob(entry.run_id, digest) for digest in names}
        told = as_json(entry.run_id, rows, await journal.commands(entry.run_id), blobs)
        told |= {"epoch": entry.epoch, "summary": entry.summary.decode()}
        # Names came with format 2, origins with 3, imported runs with 5, labels with 7.
        told |= {"name": entry.name} if entry.name else {}
        told |= {"origin": entry.origin} if entry.origin else {}
        told |= {"labels": msgspec.to_builtins(entry.labels)} if entry.labels != Labels() else {}
        found.append(told | ({"imported": True} if entry.imported else {}))
    return found


RULE = StoredRule("rule-1", "project", "shop", b'{"tool":"pay","verdict":"deny"}', 1_700_000_000.0)


async def write(path):
    """Write the file, and what it holds."""
    journal = SqliteJournal(path)
    await write_story(journal, lambda fact: None)
    await journal.rename("run 0", "the first")
    await journal.relabel("run 0", Labels("tides", "Ada", "shore"))
    await fork(journal)
    await moved(journal)
    await talk(journal)
    await journal.add_rule(RULE)
    path.with_suffix(".json").write_text(json.dumps(await contents(journal), indent=1) + "\n")
    await journal.close()
    # Free pages still name the machine that wrote them.
    file = apsw.Connection(str(path))
    file.execute("vacuum")
    file.close()


if __name__ == "__main__":
    golden = Path(__file__).parent / f"journal_format_{len(MIGRATIONS)}.db"
    golden.unlink(missing_ok=True)
    asyncio.run(write(golden))
