"""What was acknowledged is on the disk: the power may go at any write, sync, truncation or deletion."""

import asyncio

import apsw
import pytest
from msgspec.structs import replace

from antiphon.journal.check.whole_runs import story
from antiphon.journal.port import blob_digest
from antiphon.journal.row_writer import RowWriter
from antiphon.journal.sqlite import file as sqlite_file
from antiphon.journal.sqlite import runs as sqlite_runs
from antiphon.journal.sqlite import writer as sqlite_writer
from antiphon.journal.transfer import named_blobs
from antiphon.testing.power import RecordingDisk
from tests.unit.journal.writing import facts, look, opened, write_story


@pytest.fixture
def rebooted(monkeypatch):
    """What a machine says of itself that has started again: called between writing and looking."""
    me = sqlite_file.this_process()
    again = replace(me, boot="another boot")
    return lambda: monkeypatch.setattr(sqlite_file, "this_process", lambda: again)


def play(folder, durability, every, seeds, rebooted):
    """Cut the power at every operation; returns (cuts, cuts that lost an acknowledged fact, refusals)."""
    name = f"recording {folder}"
    disk = RecordingDisk(name)
    everything = asyncio.run(two_lives(folder / "journal.db", disk, durability, name))
    rebooted()
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
def test_no_acknowledged_fact_is_lost(checkpoint, every, seeds, tmp_path, monkeypatch, rebooted):
    monkeypatch.setattr(sqlite_writer, "CHECKPOINT_PAGES", checkpoint)
    cuts, lost, refused = play(tmp_path, "power", every, range(seeds), rebooted)
    assert cuts > 200 * seeds // every
    assert not refused
    assert not lost


@pytest.mark.slow
@pytest.mark.parametrize(("every", "seeds"), [(5, 1), pytest.param(1, 5, marks=pytest.mark.deep)])
def test_control_the_weaker_setting_does_lose_them(every, seeds, tmp_path, rebooted):
    """Were this test to pass with synchronous=NORMAL as well, the one above would prove nothing."""
    cuts, lost, refused = play(tmp_path, "process", every, range(seeds), rebooted)
    assert not refused, refused[:3]
    assert len(lost) > cuts / 4


async def moved_and_deleted(path, disk, vfs):
    """Two runs are written, one is taken in, one deleted, and the file is compacted."""
    async with opened(path, vfs=vfs) as journal:
        for run_id in ("kept", "gone"):
            pen = RowWriter(journal, await journal.claim(run_id, create=True))
            for number in range(4):
                data = (b"%d " % number) * 2_000 + run_id.encode()
                await pen.put(pen.row(b"x", blobs=(blob_digest(data),)), {blob_digest(data): data})
            await journal.release(pen.lease)
            disk.mark(run_id)
        await journal.restore(story("moved"))
        disk.mark("moved")
        await journal.delete("gone")
        disk.mark("deleted")
        await journal.compact()
        disk.mark("compacted")


async def whole_runs(path):
    """The ids of the runs that are there, each read with all it holds, before and after it is compacted."""
    async with opened(path, vfs="quiet") as journal:
        for _ in range(2):
            listed = {entry.run_id: entry.seq for entry in await journal.runs()}
            for run_id, seq in listed.items():
                rows = await journal.read(run_id)
                assert [row.seq for row in rows][-1:] == ([seq] if seq else [])
                for name in named_blobs(rows):
                    await journal.blob(run_id, name)
            await journal.compact()
    with apsw.Connection(str(path)) as file:
        assert file.pragma("integrity_check") == "ok"
        assert file.execute("select count(*) from removed").fetchall() == [(0,)]
        orphans = "select count(*) from rows where run not in (select key from runs)"
        assert file.execute(orphans).fetchall() == [(0,)]
        nobodys = "select count(*) from blobs where key not in (select blob from run_blobs)"
        assert file.execute(nobodys).fetchall() == [(0,)]
    return listed


@pytest.mark.slow
@pytest.mark.parametrize(("every", "seeds"), [(5, 1), pytest.param(1, 3, marks=pytest.mark.deep)])
def test_a_run_is_taken_in_and_deleted_whole_or_not_at_all(every, seeds, tmp_path, monkeypatch, rebooted):
    """A run that was promised is there, one whose deletion was promised is not, and no part is left."""
    monkeypatch.setattr(sqlite_runs, "ROWS", 2)
    disk = RecordingDisk(f"recording {tmp_path}")
    asyncio.run(moved_and_deleted(tmp_path / "journal.db", disk, f"recording {tmp_path}"))
    rebooted()
    seen = set()
    for cut in range(0, disk.operations + 1, every):
        for seed in range(seeds):
            place = tmp_path / f"cut {cut} {seed}"
            place.mkdir()
            disk.restore(cut, seed, place)
            listed = asyncio.run(whole_runs(place / "journal.db"))
            promised = set(disk.marked(cut))
            assert promised & {"kept", "moved"} <= listed.keys(), (cut, seed)
            assert ("gone" in listed) <= ("deleted" not in promised), (cut, seed)
            if "gone" in promised and "gone" not in listed:
                # Its deletion began when the other one had been taken in, and not before.
                assert "moved" in promised, (cut, seed)
            assert listed.get("moved", 6) == 6
            seen.add(frozenset(listed))
    disk.unregister()
    assert {frozenset(), frozenset({"kept", "moved"}), frozenset({"kept", "gone", "moved"})} <= seen
