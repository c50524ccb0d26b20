"""A changed bit is noticed: always in what a fold rests on; elsewhere it is, or changes nothing."""

import asyncio
import random
import struct

import apsw
import pytest

from antiphon.errors import JournalError, UnknownName
from antiphon.journal.port import blob_digest
from antiphon.journal.row_writer import RowWriter
from tests.unit.journal.writing import facts, look, opened

DATA = b"a blob of some length " * 5
CELLS = {
    "rows": ("n", "step", "seq", "count", "epoch", "at", "digest", "blobs", "body"),
    "runs": ("seq", "last", "digest", "commands"),
    "commands": ("number", "key", "digest", "body"),
    "blobs": ("digest", "data"),
}


async def small_story(journal):
    """One run of two epochs, with a blob and mail."""
    name = blob_digest(DATA)
    pen = RowWriter(journal, await journal.claim("run", create=True))
    await pen.write(b"first body")
    await pen.put(pen.row(b"second body", count=3, refs=(("/text", name),)), {name: DATA})
    await journal.release(pen.lease)
    pen = RowWriter(journal, await journal.claim("run"))
    await pen.write(b"third body", b"fourth body")
    for n in range(3):
        await journal.post("run", f"key {n}", b"mail %d" % n)
    return await facts(journal)


def flips(cell):
    """The cell with each of its bits (of numbers: the low 40) changed in turn."""
    if isinstance(cell, float):
        for flipped in flips(struct.pack("<d", cell)):
            yield struct.unpack("<d", flipped)[0]
    elif isinstance(cell, int):
        yield from (cell ^ 1 << bit for bit in range(40))
    elif isinstance(cell, str):
        yield from (flipped.decode("latin-1") for flipped in flips(cell.encode()))
    elif cell is not None:
        for place in range(len(cell)):
            for bit in range(8):
                yield cell[:place] + bytes([cell[place] ^ 1 << bit]) + cell[place + 1 :]


async def detects(journal, whole):
    try:
        return await facts(journal) != whole and "something else was read"
    except (JournalError, UnknownName) as error:
        return error


@pytest.mark.slow
@pytest.mark.parametrize(("table", "column"), [(table, column) for table in CELLS for column in CELLS[table]])
def test_every_bit_of_what_a_fold_rests_on_is_watched(table, column, tmp_path):
    async def checking():
        async with opened(tmp_path / "journal.db", "process") as journal:
            whole = await small_story(journal)
            rot = apsw.Connection(str(tmp_path / "journal.db"))
            rot.execute("pragma synchronous = off")
            key = "number" if table == "commands" else "n" if table == "rows" else "key"
            cells = rot.execute(f"select {key}, {column} from {table}").fetchall()
            tried = 0
            for at, cell in cells:
                for flipped in flips(cell):
                    changed = rot.execute(
                        f"update or ignore {table} set {column} = ? where {key} = ?", (flipped, at)
                    )
                    changed.fetchall()
                    if not rot.changes():
                        continue
                    tried += 1
                    error = await detects(journal, whole)
                    assert isinstance(error, JournalError), (
                        f"{table}.{column} {at}: {cell!r} as {flipped!r}: {error}"
                    )
                    new = flipped if key == column else at
                    rot.execute(f"update {table} set {column} = ? where {key} = ?", (cell, new))
            assert tried >= 8
            assert await facts(journal) == whole
            rot.close()

    asyncio.run(checking())


@pytest.mark.slow
@pytest.mark.parametrize("part", [20, pytest.param(1, marks=pytest.mark.deep)])
def test_a_changed_bit_anywhere_in_the_file_is_noticed_or_changes_nothing(part, tmp_path):
    async def writing():
        async with opened(tmp_path / "journal.db") as journal:
            return await small_story(journal)

    whole = asyncio.run(writing())
    file = tmp_path / "journal.db"
    image = file.read_bytes()
    chance = random.Random(6)
    used = [place for place, byte in enumerate(image) if byte] + list(range(0, len(image), 64))
    noticed = 0
    for place in used[::part]:
        bit = chance.randrange(8)
        file.write_bytes(image[:place] + bytes([image[place] ^ 1 << bit]) + image[place + 1 :])
        for side in ("-wal", "-shm"):
            (tmp_path / f"journal.db{side}").unlink(missing_ok=True)
        found = look(file, run_ids=["run"])
        if isinstance(found, Exception):
            noticed += 1
        else:
            assert found == whole, f"bit {bit} of byte {place}"
    assert noticed > len(used) / part / 4


def test_a_number_of_the_file_that_became_a_text_is_damage(tmp_path):
    """One bit of a cell's type is enough."""
    asyncio.run(closed(tmp_path / "journal.db"))
    with apsw.Connection(str(tmp_path / "journal.db")) as file:
        file.execute("update meta set value = 'x' where name = 'newest_removed_run'")
    found = look(tmp_path / "journal.db")
    assert isinstance(found, JournalError)
    assert "what it says of deleted runs is no number" in str(found)


async def closed(path):
    async with opened(path) as journal:
        await small_story(journal)
