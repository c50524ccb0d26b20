"""Writes the golden journal of a format: `python -m tests.golden.write_journal FILE.db`.

Run once, when a format is released. The file and what it held are kept for ever; the test reads them.
"""

import asyncio
import json
import sys
from pathlib import Path

from antiphon.journal.sqlite import SqliteJournal
from tests.journal.writing import write_story


def as_json(run_id, rows, mail, blobs):
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
            ]
            for row in rows
        ],
        "mail": [[letter.number, letter.key, letter.body.decode()] for letter in mail],
        "blobs": {digest: data.decode() for digest, data in sorted(blobs.items())},
    }


async def contents(journal):
    """Every run of a journal, newest first, as JSON can hold it."""
    found = []
    for entry in await journal.runs():
        rows = await journal.read(entry.run_id)
        names = {digest for row in rows for _, digest in row.refs}
        blobs = {digest: await journal.blob(entry.run_id, digest) for digest in names}
        told = as_json(entry.run_id, rows, await journal.mail(entry.run_id), blobs)
        told |= {"epoch": entry.epoch, "summary": entry.summary.decode()}
        # Names came with format 2.
        found.append({**told, "name": entry.name} if entry.name else told)
    return found


async def write(path):
    journal = SqliteJournal(path)
    await write_story(journal, lambda fact: None)
    await journal.rename("run 0", "the first")
    path.with_suffix(".json").write_text(json.dumps(await contents(journal), indent=1) + "\n")
    await journal.close()


if __name__ == "__main__":
    asyncio.run(write(Path(sys.argv[1])))
