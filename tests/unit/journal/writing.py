"""What the journal's tests write, and how they look at what is left of it."""

import asyncio
from contextlib import asynccontextmanager

from antiphon.errors import JournalError, UnknownName
from antiphon.journal.port import blob_digest
from antiphon.journal.row_writer import RowWriter
from antiphon.journal.sqlite import SqliteJournal
from antiphon.testing.power import FailingDisk, disk_error


@asynccontextmanager
async def opened(path, durability="power", **options):
    journal = SqliteJournal(path, durability, **options)
    try:
        yield journal
    finally:
        await journal.close()


async def write_story(journal, acknowledged):
    """A few runs, blobs and mail; `acknowledged(fact)` is called when the journal has promised it."""
    pens = [RowWriter(journal, await journal.claim(f"run {n}", create=True)) for n in range(2)]
    for turn in range(4):
        for pen in pens:
            data = (b"%d " % turn) * 2_000
            name = blob_digest(data)
            rows = [pen.row(b"turn %d" % turn * 10), pen.row(b"blob", count=2, refs=(("/text", name),))]
            ends = [asyncio.get_running_loop().create_future() for _ in rows]
            for row, end in zip(rows, ends, strict=True):
                journal.append(pen.lease, row, {name: data} if row.refs else {}, end.set_result)
            for row, end in zip(rows, ends, strict=True):
                error = await end
                if error is not None:
                    raise error
                acknowledged(("row", pen.lease.run_id, row.seq, row.digest))
        await journal.post("run 0", f"key {turn}", b"mail %d" % turn)
        acknowledged(("mail", "run 0", turn + 1, b"mail %d" % turn))
    await journal.release(pens[1].lease, b"summary")
    acknowledged(("summary", "run 1", 0, b"summary"))


async def facts(journal, run_ids=()):
    """Everything a journal says, verified, in the form that `write_story` acknowledges."""
    found = {("summary", entry.run_id, 0, entry.summary) for entry in await journal.runs() if entry.summary}
    for run_id in run_ids or [entry.run_id for entry in await journal.runs()]:
        for row in await journal.read(run_id):
            found.add(("row", run_id, row.seq, row.digest))
            for _, digest in row.refs:
                await journal.blob(run_id, digest)
        for mail in await journal.commands(run_id):
            found.add(("mail", run_id, mail.number, mail.body))
    return found


QUIET = FailingDisk("quiet", disk_error)
"""The ordinary file layer without its syncs, for looking at many files."""


def look(path, run_ids=()):
    """The facts of the journal at `path`, or the error that says why there are none."""

    async def looking():
        async with opened(path, vfs="quiet") as journal:
            return await facts(journal, run_ids)

    try:
        return asyncio.run(looking())
    except (JournalError, UnknownName) as error:
        return error


def write(path, acknowledged=lambda fact: None, durability="power", **options):
    """Write the story into a journal at `path`, close it, and return its facts."""

    async def writing():
        async with opened(path, durability, **options) as journal:
            await write_story(journal, acknowledged)
            return await facts(journal)

    return asyncio.run(writing())
