"""A full or failing disk, at each of its operations: nothing acknowledged is lost or half there."""

import asyncio
import itertools
import tempfile
from pathlib import Path

import apsw
import pytest

from antiphon.errors import JournalError, JournalFull
from antiphon.journal.row_writer import RowWriter
from antiphon.journal.sqlite import SqliteJournal
from antiphon.journal.sqlite import writer as sqlite_writer
from antiphon.testing.power import CHANGES, FailingDisk, disk_error, disk_full
from tests.unit.journal.children import start
from tests.unit.journal.writing import facts, look, opened, write_story


async def fail_once(path, disk, fail_at, seen_by):
    """Write the story with one failure; returns what was acknowledged, and the error if one came."""
    disk.fail_at, disk.seen, disk.after = fail_at, 0, []
    said = []
    try:
        journal = SqliteJournal(path, vfs=disk.name)
    except JournalError as error:
        return said, error
    try:
        await write_story(journal, said.append)
    except JournalError as error:
        return said, await seen_by(journal, error)
    finally:
        try:
            await journal.close()
        except JournalError as error:
            return said, error
    return said, None


async def only_the_error(journal, error):
    return error


def play(folder, disk, seen_by, every):
    """k = 1, 2, 3 … until it runs clean; yields (k, path, acknowledged, error)."""
    for k in itertools.count(1, every):
        path = folder / str(k) / "journal.db"
        said, error = asyncio.run(fail_once(path, disk, k, seen_by))
        disk.fail_at = 0
        yield k, path, said, error
        if not disk.seen >= k:
            return


@pytest.fixture
def checkpoints(monkeypatch):
    monkeypatch.setattr(sqlite_writer, "CHECKPOINT_PAGES", 20)


each_or_all = pytest.mark.parametrize("every", [7, pytest.param(1, marks=pytest.mark.deep)])


@pytest.mark.slow
@each_or_all
@pytest.mark.parametrize(
    ("name", "error", "kinds"),
    [
        ("full", disk_full, {"write"}),
        ("broken", disk_error, CHANGES),
        ("fsync", disk_error, {"sync"}),
    ],
)
def test_every_operation_in_turn(name, error, kinds, every, tmp_path, checkpoints):
    disk = FailingDisk(name, error, frozenset(kinds))
    disk.name = name
    failures = 0
    for k, path, said, seen in play(tmp_path, disk, only_the_error, every):
        assert seen is None or isinstance(seen, JournalError), k
        failures += seen is not None
        if name == "full" and seen is not None:
            assert isinstance(seen, JournalFull), k
            assert str(path) in str(seen)
        found = look(path)
        assert not isinstance(found, Exception), (k, found)
        assert set(said) <= found, f"operation {k}: an acknowledged fact is gone"
    assert failures > (20 if name == "fsync" else 150) // every
    disk.unregister()


@pytest.mark.slow
@each_or_all
@pytest.mark.parametrize("kinds", [{"sync"}, {"write"}, CHANGES])
def test_a_connection_that_failed_is_never_written_with_again(kinds, every, tmp_path, checkpoints):
    """After a failed fsync the kernel may call the lost pages clean: trying again would succeed and lie."""
    disk = FailingDisk("final", disk_error, frozenset(kinds))
    disk.name = "final"
    opened_and_failed = []

    async def try_on(journal, error):
        opened_and_failed.append(error)
        for attempt in (journal.claim("run 0"), journal.post("run 0", "late", b""), journal.beat()):
            with pytest.raises(JournalError):
                await attempt
        return error

    for k, _, _, seen in play(tmp_path, disk, try_on, every):
        if seen in opened_and_failed:
            assert disk.after == [], f"operation {k}"
    assert len(opened_and_failed) > (15 if kinds == {"sync"} else 150) // every
    disk.unregister()


def test_a_full_disk_parks_the_run_and_the_same_journal_goes_on_when_there_is_space(tmp_path):
    disk = FailingDisk("filling", disk_full, frozenset({"write"}))

    async def filling():
        async with opened(tmp_path / "journal.db", vfs="filling") as journal:
            pen = RowWriter(journal, await journal.claim("run", create=True))
            kept = await pen.write(b"before")
            disk.fail_at, disk.seen, disk.lasting = 1, 0, True
            ends = []
            for n in range(3):
                journal.append(pen.lease, pen.row(b"%d" % n), {}, ends.append)
            with pytest.raises(JournalFull):
                await journal.post("run", "k", b"")
            assert [type(end) for end in ends] == [JournalFull] * 3
            disk.fail_at, disk.lasting = 0, False
            # The lease is broken also now: its next row would leave a gap.
            with pytest.raises(JournalFull):
                await pen.put(pen.row(b"late"))
            again = RowWriter(journal, await journal.claim("run"))
            kept += await again.write(b"after")
            assert list(await journal.read("run")) == kept

    asyncio.run(filling())
    disk.unregister()


def test_a_real_limit_of_the_system(tmp_path):
    with start("small_files", tmp_path / "journal.db", 400_000) as child:
        error, told = child.communicate(timeout=60)[0].splitlines()
    assert error.startswith("JournalError")
    assert str(tmp_path / "journal.db") in error
    assert "file-size limit" in error
    written, kept, end = (int(word) for word in told.split() if word.isdigit())
    assert 0 < written <= kept <= written + 1
    assert end == kept + 1


@pytest.mark.parametrize("exists", [True, False])
def test_a_place_that_may_not_be_written(exists):
    # Not below tmp_path: another user could not even look there.
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "journal.db"
        if exists:
            asyncio.run(write_and_close(path))
            path.chmod(0o444)
        Path(folder).chmod(0o555)
        with start("unprivileged", path) as child:
            told = child.communicate(timeout=60)[0]
        Path(folder).chmod(0o700)
    assert told.startswith("JournalFull ")
    assert str(path) in told
    assert "check the permissions" in told


async def write_and_close(path):
    async with opened(path) as journal:
        await write_story(journal, lambda fact: None)


def test_one_bad_row_does_not_fail_its_neighbours(tmp_path):
    async def writing():
        async with opened(tmp_path / "journal.db") as journal:
            pens = [RowWriter(journal, await journal.claim(f"run {n}", create=True)) for n in range(3)]
            ends = {n: [] for n in range(3)}
            for _ in range(5):
                for n, pen in enumerate(pens):
                    row = pen.row(b"body")
                    if n == 1 and row.seq == 3:
                        row = type(row)(row.seq, row.count, row.epoch, row.at, 2**70, row.refs, row.digest)
                    journal.append(pen.lease, row, {}, ends[n].append)
            await journal.runs()
            await journal.post("run 0", "after them", b"")
            assert ends[0] == ends[2] == [None] * 5
            assert ends[1][:2] == [None] * 2
            assert all(isinstance(end, JournalError) for end in ends[1][2:])
            assert len(await journal.read("run 1")) == 2
            assert await facts(journal)

    asyncio.run(writing())


def test_a_lock_that_another_process_keeps_is_told(tmp_path, monkeypatch):
    async def waiting():
        async with opened(tmp_path / "journal.db") as journal:
            pen = RowWriter(journal, await journal.claim("run", create=True))
            journal._writer.connection.set_busy_timeout(1)
            monkeypatch.setattr("antiphon.journal.sqlite.writer.BUSY_MS", 1)
            other = apsw.Connection(str(tmp_path / "journal.db"))
            other.execute("begin immediate")
            with pytest.raises(JournalError, match="kept it locked"):
                await pen.write(b"x")
            other.execute("rollback")
            other.close()
            await RowWriter(journal, await journal.claim("run")).write(b"x")

    asyncio.run(waiting())
