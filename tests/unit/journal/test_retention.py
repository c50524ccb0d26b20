"""What is deleted from an SQLite journal is gone, whenever the process dies, and its space is given back."""

import asyncio
import shutil
import signal
import subprocess
import sys
from collections import namedtuple
from itertools import pairwise

import apsw
import pytest

from antiphon.errors import JournalError, JournalFull, LeaseLost, RunInUse, UnknownName
from antiphon.journal.check.whole_runs import story
from antiphon.journal.port import blob_digest
from antiphon.journal.row_writer import RowWriter
from antiphon.journal.sqlite import file as sqlite_file
from antiphon.journal.sqlite import runs as sqlite_runs
from tests.unit.journal.writing import opened

TABLES = ("rows", "blobs", "run_blobs", "commands", "removed")


def counts(path):
    """How many rows each table has."""
    with apsw.Connection(str(path)) as file:
        # The names are those above.
        return {name: file.execute(f"select count(*) from {name}").fetchall()[0][0] for name in TABLES}


NOTHING = dict.fromkeys(TABLES, 0)


async def write_run(journal, run_id, results, size=1_000, release=True):
    """A run with so many results of so many bytes; its writer."""
    pen = RowWriter(journal, await journal.claim(run_id, create=True))
    for number in range(results):
        data = b"%s %d " % (run_id.encode(), number) * (size // 10)
        name = blob_digest(data)
        await pen.put(pen.row(b"result %d" % number, refs=(("/content", name),)), {name: data})
        await journal.post(run_id, f"key {number}", b"command")
    if release:
        await journal.release(pen.lease)
    return pen


def sizes(path):
    return sum(file.stat().st_size for file in path.parent.glob(path.name + "*"))


def test_a_large_file_is_small_again_when_its_runs_are_deleted_and_it_was_compacted(tmp_path):
    path = tmp_path / "journal.db"

    async def main():
        async with opened(path) as journal:
            empty = sizes(path)
            await write_run(journal, "large", 400, 20_000)
            await write_run(journal, "small", 2)
            large = sizes(path)
            assert large > 8_000_000
            await journal.delete("large")
            freed = await journal.compact()
            assert sizes(path) == large - freed < empty + 50_000
            assert len(await journal.read("small")) == 2
            await write_run(journal, "another", 2)

    asyncio.run(main())
    with apsw.Connection(str(path)) as file:
        assert file.pragma("integrity_check") == "ok"


LARGE_PIECE = (
    "with recursive counted(x) as (select 1 union all select x + 1 from counted where x < 200000)"
    " select count(*) from counted"
)
"""Takes as long as deleting many megabytes."""


@pytest.mark.slow
def test_it_is_deleted_in_pieces_so_that_others_write_meanwhile(tmp_path, monkeypatch):
    """Another process's commits come in between, however much a run holds."""
    path = tmp_path / "journal.db"
    monkeypatch.setattr(sqlite_runs, "ROWS", 7)
    monkeypatch.setattr(sqlite_runs, "BYTES", 5_000)
    left, clear = [], sqlite_runs.clear

    def noting(connection, job):
        left.append(
            connection.execute("select count(*) from rows where body like 'result%'").fetchall()[0][0]
        )
        connection.execute(LARGE_PIECE).fetchall()
        return clear(connection, job)

    monkeypatch.setattr(sqlite_runs, "clear", noting)

    async def main():
        async with opened(path) as journal, opened(path) as other:
            await write_run(journal, "long", 50)
            pen = RowWriter(other, await other.claim("beside", create=True))
            over, written = asyncio.Event(), []

            async def writing():
                while not over.is_set():
                    written.extend(await pen.write(b"beside"))

            beside = asyncio.ensure_future(writing())
            await journal.delete("long")
            came_between = len(written)
            over.set()
            await beside
            return came_between, len(written)

    came_between, written = asyncio.run(main())
    assert came_between > 0
    assert max(before - after for before, after in pairwise(left)) <= 7
    assert len(left) > 50 / 7 + 50 * 1_000 / 8_000
    assert counts(path) == {**NOTHING, "rows": written}


KILLED_AT = """
import asyncio, os, signal, sys
from antiphon.journal.sqlite import runs as sqlite_runs
from antiphon.journal.sqlite import SqliteJournal

left = int(sys.argv[2])
sqlite_runs.ROWS, sqlite_runs.BYTES = 3, 2_000

def trace(cursor, statement, bindings):
    global left
    left -= 1
    if not left:
        os.kill(os.getpid(), signal.SIGKILL)
    return True

async def main():
    journal = SqliteJournal(sys.argv[1])
    journal._writer.connection.exec_trace = trace
    await journal.delete("gone")
    await journal.close()

asyncio.run(main())
"""


@pytest.mark.slow
def test_a_process_killed_anywhere_in_it_leaves_the_run_or_nothing_of_it(tmp_path):
    """At statements all over the deletion; whoever compacts next clears away what is left."""
    template = tmp_path / "template.db"

    async def prepare():
        async with opened(template) as journal:
            await write_run(journal, "gone", 8)
            await write_run(journal, "kept", 1)

    async def look(path):
        async with opened(path) as journal:
            listed = {entry.run_id for entry in await journal.runs()}
            if "gone" in listed:
                assert len(await journal.read("gone")) == len(await journal.commands("gone")) == 8
                return listed
            await journal.compact()
            assert len(await journal.read("kept")) == 1
            return listed

    asyncio.run(prepare())
    seen = []
    for statement in range(1, 200, 9):
        path = tmp_path / f"{statement}.db"
        shutil.copy(template, path)
        command = [sys.executable, "-c", KILLED_AT, path, str(statement)]
        done = subprocess.run(command, timeout=60, check=False)
        listed = asyncio.run(look(path))
        seen.append(len(listed))
        if "gone" not in listed:
            assert counts(path) == {**NOTHING, "rows": 1, "blobs": 1, "run_blobs": 1, "commands": 1}
        if done.returncode == 0:
            break
        assert done.returncode == -signal.SIGKILL
    assert done.returncode == 0
    assert seen[0] == 2
    assert seen.count(1) > 5


def test_a_damaged_run_is_deleted_whole(tmp_path, monkeypatch):
    """Where it does not lead back to its first row, the whole log is looked through."""
    path = tmp_path / "journal.db"
    monkeypatch.setattr(sqlite_runs, "WINDOW", 5)
    for damage in (
        "update rows set step = 0 where seq = 7",
        "update rows set step = 5 where seq = 7",
        "update rows set step = -2 where seq = 7",
        "delete from rows where seq = 7",
        "update runs set last = last + 1000",
    ):

        async def main(damage=damage):
            async with opened(path) as journal:
                await write_run(journal, "gone", 10)
                with apsw.Connection(str(path)) as file:
                    file.execute(damage)
                await journal.delete("gone")
                await journal.compact()

        asyncio.run(main())
        assert counts(path) == NOTHING, damage


def test_who_was_away_too_long_writes_nothing_into_a_run_made_anew(tmp_path):
    """The key, epoch and number of its lease are those that the new run would have had."""
    now = [0.0]
    options = {"steady": lambda: now[0], "wall": lambda: now[0], "ttl": 15.0}

    async def main():
        path = tmp_path / "journal.db"
        async with opened(path, **options) as away, opened(path, **options) as here:
            pen = RowWriter(away, await away.claim("run", create=True))
            with pytest.raises(RunInUse):
                await here.delete("run")
            now[0] += 16
            await here.delete("run")
            lease = await here.claim("run", create=True)
            assert lease == pen.lease
            with pytest.raises(LeaseLost):
                await pen.write(b"zombie")
            assert len(await RowWriter(here, lease).write(b"mine")) == 1
            assert [row.body for row in await here.read("run")] == [b"mine"]

    asyncio.run(main())


def test_keys_of_runs_and_numbers_of_rows_are_never_used_again(tmp_path):
    """Whatever remembers one, an owner or a note outside the file, never meets another thing under it."""
    path, seen = tmp_path / "journal.db", set()

    async def main():
        async with opened(path) as journal:
            for run_id in ("one", "two", "two"):
                await write_run(journal, run_id, 3)
                with apsw.Connection(str(path)) as file:
                    found = {("run", key) for (key,) in file.execute("select key from runs")}
                    found |= {("row", n) for (n,) in file.execute("select n from rows where run != 1")}
                if run_id == "two":
                    assert not (found - {("run", 1)}) & seen
                    seen.update(found)
                    await journal.delete("two")
                    await journal.compact()
            await journal.restore(story("two"))
            with apsw.Connection(str(path)) as file:
                assert not {("run", k) for (k,) in file.execute("select key from runs where key > 1")} & seen
                assert not {("row", n) for (n,) in file.execute("select n from rows where run > 1")} & seen
            assert await journal.read("two") == story("two").rows

    asyncio.run(main())


def test_who_waits_in_another_process_is_told_that_the_run_is_gone(tmp_path):
    async def main():
        async with opened(tmp_path / "journal.db") as here, opened(tmp_path / "journal.db") as there:
            await write_run(here, "run", 1)
            waiter = asyncio.ensure_future(there.wait("run", 5, 5))
            await there.runs()
            await here.delete("run")
            with pytest.raises(UnknownName, match="Unknown run: run"):
                await asyncio.wait_for(waiter, 10)

    asyncio.run(main())


def test_it_is_not_compacted_while_anybody_holds_a_run(tmp_path):
    async def main():
        async with opened(tmp_path / "journal.db") as here, opened(tmp_path / "journal.db") as there:
            pen = await write_run(there, "run", 1, release=False)
            for journal in (here, there):
                with pytest.raises(RunInUse, match="Run run is owned by process"):
                    await journal.compact()
            await there.release(pen.lease)
            assert await here.compact() >= 0

    asyncio.run(main())


def test_it_is_not_compacted_without_room_for_a_copy(tmp_path, monkeypatch):
    usage = namedtuple("usage", "free")
    monkeypatch.setattr(sqlite_runs.shutil, "disk_usage", lambda path: usage(10_000))

    async def main():
        async with opened(tmp_path / "journal.db") as journal:
            await write_run(journal, "run", 10)
            with pytest.raises(JournalFull, match="free bytes, there are 10,000"):
                await journal.compact()
            assert len(await journal.read("run")) == 10

    asyncio.run(main())


def test_as_long_as_somebody_reads_the_file_stays_large_and_says_why(tmp_path, monkeypatch):
    monkeypatch.setattr(sqlite_file, "BUSY_MS", 20)
    path = tmp_path / "journal.db"

    async def main():
        async with opened(path) as journal:
            await write_run(journal, "run", 20, 20_000)
            await journal.delete("run")
            reader = apsw.Connection(str(path))
            reader.execute("begin")
            reader.execute("select count(*) from runs").fetchall()
            with pytest.raises(JournalError, match="another process read it all the time"):
                await journal.compact()
            reader.execute("rollback")
            reader.close()
            assert await journal.compact() > 300_000

    asyncio.run(main())
