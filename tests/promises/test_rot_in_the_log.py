"""A bit that changed in the write-ahead log is refused before SQLite cuts the log there."""

import asyncio
import shutil

import pytest
from msgspec.structs import replace

from antiphon.errors import JournalDamaged
from antiphon.journal.row_writer import RowWriter
from antiphon.journal.sqlite import file as sqlite_file
from antiphon.journal.sqlite import writer as sqlite_writer
from tests.unit.journal.writing import facts, look, opened, write_story

FRAME = 4_120


@pytest.fixture
def killed(tmp_path):
    """The files of a journal whose process ended without closing it, and what it had said, in order."""
    said, folder = [], tmp_path / "killed"
    folder.mkdir()

    async def writing():
        async with opened(tmp_path / "journal.db") as journal:
            await write_story(journal, said.append)
            shutil.copy(tmp_path / "journal.db", folder)
            shutil.copy(tmp_path / "journal.db-wal", folder)
            shutil.copy(tmp_path / "journal.db-anchor", tmp_path / "killed-anchor")

    asyncio.run(writing())
    return folder, said


def flip(folder, place, bit=0):
    log = folder / "journal.db-wal"
    data = bytearray(log.read_bytes())
    data[place] ^= 1 << bit
    log.write_bytes(data)


def files(folder):
    return {name: (folder / name).read_bytes() for name in ("journal.db", "journal.db-wal")}


def in_frame(number, offset):
    return 32 + (number - 1) * FRAME + offset


@pytest.mark.parametrize("frame", [1, 2, 7, 20])
@pytest.mark.parametrize("offset", [0, 9, 17, 24, 2_000], ids=["page", "salt", "checksum", "first", "middle"])
def test_a_changed_frame_with_commits_behind_it_is_refused_and_left_as_it_is(killed, frame, offset):
    folder, _ = killed
    flip(folder, in_frame(frame, offset))
    before = files(folder)
    found = look(folder / "journal.db")
    assert isinstance(found, JournalDamaged)
    assert found.path == str(folder / "journal.db")
    assert f"frame {frame} of its log does not verify" in str(found)
    assert "commits lie behind" in str(found)
    assert "antiphon journal salvage" in str(found)
    assert files(folder) == before
    # And once more: looking did not change what the next one sees.
    assert isinstance(look(folder / "journal.db"), JournalDamaged)


@pytest.mark.parametrize("place", [0, 9, 16, 25])
def test_a_changed_header_with_frames_behind_it_is_refused(killed, place):
    folder, _ = killed
    flip(folder, place)
    before = files(folder)
    found = look(folder / "journal.db")
    assert isinstance(found, JournalDamaged)
    assert "the header of its log is damaged" in str(found)
    assert files(folder) == before


@pytest.mark.parametrize("gone", ["missing", "empty"])
def test_a_log_whose_file_is_gone_is_kept_and_told(killed, gone):
    """SQLite would delete it."""
    folder, _ = killed
    log = (folder / "journal.db-wal").read_bytes()
    if gone == "empty":
        (folder / "journal.db").write_bytes(b"")
    else:
        (folder / "journal.db").unlink()
    found = look(folder / "journal.db")
    assert isinstance(found, JournalDamaged)
    assert "gone or empty" in str(found)
    assert (folder / "journal.db-wal").read_bytes() == log


def test_a_commit_that_was_cut_off_is_no_damage_and_leaves_nothing_behind(killed):
    """Any part of the last commit may be missing after a power cut, its first frame alone too."""
    folder, said = killed
    frames = ((folder / "journal.db-wal").stat().st_size - 32) // FRAME
    data = bytearray((folder / "journal.db-wal").read_bytes())
    ends = [n for n in range(1, frames + 1) if any(data[in_frame(n, 4) : in_frame(n, 8)])]
    first_of_last = ends[-2] + 1
    assert first_of_last < ends[-1]
    flip(folder, in_frame(first_of_last, 500))

    async def going_on():
        async with opened(folder / "journal.db") as journal:
            pen = RowWriter(journal, await journal.claim("run 1"))
            await pen.write(b"goes on")
            shutil.copytree(folder, folder.parent / "again")
            return {row.digest for row in await journal.read("run 1")}

    digests = asyncio.run(going_on())
    found = look(folder.parent / "again" / "journal.db")
    assert digests == {fact[3] for fact in found if fact[:2] == ("row", "run 1")}
    assert set(said[:-1]) <= found


def test_what_was_cut_off_for_the_first_opening_is_no_rot_for_the_second(killed, monkeypatch):
    """The first one knows that the power went, and those that follow in its boot do not."""
    folder, said = killed
    shutil.copy(folder.parent / "killed-anchor", folder / "journal.db-anchor")
    me = sqlite_file.this_process()
    monkeypatch.setattr(sqlite_file, "this_process", lambda: replace(me, boot="a later boot"))
    frames = ((folder / "journal.db-wal").stat().st_size - 32) // FRAME
    data = (folder / "journal.db-wal").read_bytes()
    ends = [n for n in range(1, frames + 1) if any(data[in_frame(n, 4) : in_frame(n, 8)])]
    flip(folder, in_frame(ends[-2] + 1, 500))

    async def opening():
        async with opened(folder / "journal.db"), opened(folder / "journal.db") as second:
            return await facts(second)

    assert set(said[:-1]) <= asyncio.run(opening())


@pytest.mark.slow
def test_a_reader_beside_a_living_writer_sees_no_damage(tmp_path, monkeypatch):
    """The log is read while it is written, moved into the file and begun anew."""
    monkeypatch.setattr(sqlite_writer, "CHECKPOINT_PAGES", 200)

    async def racing():
        async with opened(tmp_path / "journal.db", "process") as journal:
            pen = RowWriter(journal, await journal.claim("run", create=True))
            for _ in range(60):
                for _ in range(20):
                    journal.append(pen.lease, pen.row(b"x" * 3_000), {}, lambda error: None)
                async with opened(tmp_path / "journal.db", "process") as beside:
                    await beside.read("run")
            await pen.write(b"last")
            return len(await journal.read("run"))

    assert asyncio.run(racing()) == 60 * 20 + 1
