"""Any bit of the file or its log, changed after a SIGKILL, is noticed, or lies where nothing is kept."""

import asyncio
import random
from collections import Counter

import pytest

from antiphon.errors import JournalError
from antiphon.journal.row_writer import RowWriter
from tests.unit.journal import children
from tests.unit.journal.writing import facts, opened

RUNS = ["run 0", "run 1", "run 2"]
SIDES = ("", "-wal", "-anchor")


def killed(folder, pages, said):
    """The files of a journal whose process was killed after so many acknowledgements, and those."""
    child = children.start("endless", folder / "journal.db", pages)
    acknowledged = set()
    for line in child.stdout:
        if line.endswith("\n"):
            kind, run_id, number, value = line.rstrip("\n").split("|")
            acknowledged.add((kind, run_id, int(number), bytes.fromhex(value)))
        if len(acknowledged) == said:
            child.kill()
    child.communicate()
    return {side: (folder / f"journal.db{side}").read_bytes() for side in SIDES}, acknowledged


async def acknowledged_and_left(path):
    """The files as they are when all that was written is acknowledged, and nothing is closed."""
    async with opened(path) as journal:
        pens = [RowWriter(journal, await journal.claim(run_id, create=True)) for run_id in RUNS]
        for pen in pens * 3:
            await pen.write(b"a row")
        return {side: path.with_name(f"{path.name}{side}").read_bytes() for side in SIDES}


async def looked(path):
    """(what is damaged, everything that is read, and the names)."""
    async with opened(path, vfs="quiet") as journal:
        damage, _ = await journal.audit()
        if damage:
            return damage, None
        found = await facts(journal, RUNS)
        return (), (found, [(each.run_id, each.name) for each in await journal.runs()])


def look(folder, files):
    for side, data in files.items():
        (folder / f"journal.db{side}").write_bytes(data)
    (folder / "journal.db-shm").unlink(missing_ok=True)
    try:
        return asyncio.run(looked(folder / "journal.db"))
    except JournalError as error:
        return (str(error),), None


def flipped(files, side, place, bit):
    data = bytearray(files[side])
    data[place] ^= 1 << bit
    return {**files, side: bytes(data)}


@pytest.mark.parametrize(
    ("pages", "said", "flips"),
    [
        pytest.param(40, 60, 200, id="quick", marks=pytest.mark.slow),
        pytest.param(40, 60, 4_000, id="file and log", marks=pytest.mark.deep),
        pytest.param(10_000, 60, 4_000, id="log", marks=pytest.mark.deep),
        pytest.param(40, 300, 2_000, id="long", marks=pytest.mark.deep),
    ],
)
def test_every_flipped_bit_is_noticed_or_holds_nothing(tmp_path, pages, said, flips):
    (tmp_path / "written").mkdir()
    (tmp_path / "looked").mkdir()
    files, acknowledged = killed(tmp_path / "written", pages, said)
    damage, whole = look(tmp_path / "looked", files)
    assert not damage
    assert acknowledged <= whole[0]
    chance = random.Random(said + flips)
    noticed, silent = Counter(), Counter()
    for _ in range(flips):
        side = chance.choices(("", "-wal"), [max(1, len(files[each])) for each in ("", "-wal")])[0]
        place, bit = chance.randrange(len(files[side])), chance.randrange(8)
        damage, found = look(tmp_path / "looked", flipped(files, side, place, bit))
        if damage:
            noticed[side] += 1
            continue
        # What was committed and not acknowledged any more may be there or not.
        assert acknowledged <= found[0] <= whole[0], f"bit {bit} of byte {place} of journal.db{side}"
        assert found[1] == whole[1]
        silent[side] += 1
    # What is not noticed is read by nobody: free room, earlier versions of a page, what was moved already.
    # How much of the log that is depends on when the process was killed.
    assert noticed.total() > flips / 40
    assert noticed.total() + silent.total() == flips


def test_control_without_an_anchor_the_last_commit_is_lost_in_silence(tmp_path):
    """It looks like one that was cut off."""
    (tmp_path / "looked").mkdir()
    files = asyncio.run(acknowledged_and_left(tmp_path / "journal.db"))
    _, whole = look(tmp_path / "looked", files)
    damaged = flipped(files, "-wal", len(files["-wal"]) - 40, 0)
    assert look(tmp_path / "looked", damaged)[0]
    (tmp_path / "looked" / "journal.db-anchor").unlink()
    damage, found = look(tmp_path / "looked", {side: damaged[side] for side in ("", "-wal")})
    assert not damage
    assert found[0] < whole[0]
