"""D4. What was acknowledged is on the disk: the power may go at any write, sync, truncation or deletion."""

import pytest

from antiphon.journal import sqlite_writer
from antiphon.testing.power import RecordingDisk
from tests.journal.writing import look, write

SEEDS = range(3)


def play(folder, durability, seeds):
    """Cut the power at every operation; returns (cuts, cuts that lost an acknowledged fact, refusals)."""
    disk = RecordingDisk(f"recording {folder}")
    said = []

    def acknowledged(fact):
        said.append(fact)
        disk.mark(fact)

    everything = write(folder / "journal.db", acknowledged, durability, vfs=f"recording {folder}")
    assert everything == set(said)
    # Opened again, so that the life of a log that is already there is part of it.
    again = write_more(folder / "journal.db", acknowledged, durability, f"recording {folder}")
    everything |= again
    cuts, lost, refused = 0, [], []
    for cut in range(disk.operations + 1):
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


def write_more(path, acknowledged, durability, vfs):
    import asyncio

    from antiphon.journal.check import Pen
    from tests.journal.writing import facts, opened

    async def writing():
        async with opened(path, durability, vfs=vfs) as journal:
            pen = Pen(journal, await journal.claim("run 1"))
            for n in range(6):
                (row,) = await pen.write(b"more %d" % n)
                acknowledged(("row", "run 1", row.seq, row.digest))
            return await facts(journal)

    return asyncio.run(writing())


@pytest.mark.parametrize("checkpoint", [10, 4_000])
def test_no_acknowledged_fact_is_lost(checkpoint, tmp_path, monkeypatch):
    monkeypatch.setattr(sqlite_writer, "CHECKPOINT_PAGES", checkpoint)
    cuts, lost, refused = play(tmp_path, "power", SEEDS)
    assert cuts > 300
    assert not refused
    assert not lost


def test_control_the_weaker_setting_does_lose_them(tmp_path):
    cuts, lost, refused = play(tmp_path, "process", SEEDS)
    assert not refused
    assert len(lost) > cuts / 4
