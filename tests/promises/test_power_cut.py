"""What was acknowledged is on the disk: the power may go at any write, sync, truncation or deletion."""

import asyncio

import pytest

from antiphon.journal import sqlite_writer
from antiphon.journal.row_writer import RowWriter
from antiphon.testing.power import RecordingDisk
from tests.unit.journal.writing import facts, look, opened, write_story


def play(folder, durability, every, seeds):
    """Cut the power at every operation; returns (cuts, cuts that lost an acknowledged fact, refusals)."""
    name = f"recording {folder}"
    disk = RecordingDisk(name)
    everything = asyncio.run(two_lives(folder / "journal.db", disk, durability, name))
    cuts, lost, refused = 0, [], []
    for cut in range(0, disk.operations + 1, every):
        for seed in seeds:
            place = folder / f"cut {cut} {seed}"
            place.mkdir()
            disk.restore(cut, seed, place)
            found = look(place / "journal.db")
            cuts += 1
            if isinstance(found, Exception):
                refused.append((cut, seed, found))
                continue
            assert found <= everything, f"cut {cut} seed {seed} invented something"
            if not set(disk.marked(cut)) <= found:
                lost.append((cut, seed))
    disk.unregister()
    return cuts, lost, refused


async def two_lives(path, disk, durability, vfs):
    """Write, close, open and write again, so that the end and the beginning of a log are part of it."""
    async with opened(path, durability, vfs=vfs) as journal:
        await write_story(journal, disk.mark)
    async with opened(path, durability, vfs=vfs) as journal:
        pen = RowWriter(journal, await journal.claim("run 1"))
        for n in range(6):
            (row,) = await pen.write(b"more %d" % n)
            disk.mark(("row", "run 1", row.seq, row.digest))
        everything = await facts(journal)
    assert everything == set(disk.marked(disk.operations))
    return everything


@pytest.mark.slow
@pytest.mark.parametrize("checkpoint", [10, 4_000])
@pytest.mark.parametrize(("every", "seeds"), [(5, 1), pytest.param(1, 5, marks=pytest.mark.deep)])
def test_no_acknowledged_fact_is_lost(checkpoint, every, seeds, tmp_path, monkeypatch):
    monkeypatch.setattr(sqlite_writer, "CHECKPOINT_PAGES", checkpoint)
    cuts, lost, refused = play(tmp_path, "power", every, range(seeds))
    assert cuts > 200 * seeds // every
    assert not refused
    assert not lost


@pytest.mark.slow
@pytest.mark.parametrize(("every", "seeds"), [(5, 1), pytest.param(1, 5, marks=pytest.mark.deep)])
def test_control_the_weaker_setting_does_lose_them(every, seeds, tmp_path):
    """Were this test to pass with synchronous=NORMAL as well, the one above would prove nothing."""
    cuts, lost, refused = play(tmp_path, "process", every, range(seeds))
    assert not refused
    assert len(lost) > cuts / 4
