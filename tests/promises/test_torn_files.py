"""A file cut short opens at the last whole commit, or is refused: never a wrong fold."""

import asyncio
import shutil

import pytest

from tests.unit.journal.writing import look, opened, write, write_story


@pytest.fixture
def crashed(tmp_path):
    """The files of a journal whose process ended without closing it, and what it had said, in order."""
    said, folder = [], tmp_path / "crashed"
    folder.mkdir()

    async def writing():
        async with opened(tmp_path / "journal.db") as journal:
            await write_story(journal, said.append)
            for name in ("journal.db", "journal.db-wal"):
                shutil.copy(tmp_path / name, folder)

    asyncio.run(writing())
    return folder, said


def cut_short(folder, name, size, said):
    """Opens at some whole commit, or refuses; returns how many facts are left, -1 when refused."""
    place = folder.parent / "cut"
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(folder, place)
    with open(place / name, "r+b") as file:
        file.truncate(size)
    found = look(place / "journal.db")
    if isinstance(found, Exception):
        return -1
    assert found == set(said[: len(found)]), f"{name} cut to {size}"
    return len(found)


def sizes(file, frame, whole):
    """Every offset of the last page or frame when `whole`, and a sample of the others."""
    size = file.stat().st_size
    tail = max(0, size - frame)
    return sorted({*range(0, tail, 97 if whole else 4_099), *range(tail, size, 1 if whole else 311)})


@pytest.mark.slow
@pytest.mark.parametrize("whole", [False, pytest.param(True, marks=pytest.mark.deep)])
def test_a_log_cut_short_opens_at_a_whole_commit(crashed, whole):
    folder, said = crashed
    left = [
        cut_short(folder, "journal.db-wal", at, said) for at in sizes(folder / "journal.db-wal", 4_120, whole)
    ]
    assert -1 not in left
    assert left == sorted(left)
    assert left[0] == 0
    assert left[-1] >= len(said) - 1
    assert len(set(left)) > 3


@pytest.mark.parametrize("whole", [False, pytest.param(True, marks=pytest.mark.deep)])
def test_a_file_cut_short_is_refused(tmp_path, whole):
    folder = tmp_path / "closed"
    said = []
    write(folder / "journal.db", said.append)
    assert sorted(path.name for path in folder.iterdir()) == ["journal.db", "journal.db-anchor"]
    # What it takes without the anchor's help.
    (folder / "journal.db-anchor").unlink()
    left = {
        at: cut_short(folder, "journal.db", at, said) for at in sizes(folder / "journal.db", 4_096, whole)
    }
    # An empty file is an empty journal; anything else misses pages that something points to.
    assert left.pop(0) == 0
    assert set(left.values()) == {-1}
