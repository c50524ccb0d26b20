"""What only the SQLite journal promises."""

import asyncio
import os
import subprocess
import threading
from pathlib import Path

import apsw
import pytest

from antiphon.errors import ConfigError, JournalError, JournalFull
from antiphon.journal.port import blob_digest
from antiphon.journal.row_writer import RowWriter
from antiphon.journal.sqlite import SqliteJournal
from tests.unit.journal.writing import opened

TURNS = 2_000


def test_files_are_for_the_owner_alone(tmp_path):
    async def modes():
        path = tmp_path / "a" / "b" / "journal.db"
        async with opened(path) as journal:
            await journal.claim("run", create=True)
            found = {each.name: each.stat().st_mode & 0o777 for each in path.parent.iterdir()}
            assert found == {f"journal.db{side}": 0o600 for side in ("", "-wal", "-shm", "-anchor")}
            assert [each.stat().st_mode & 0o777 for each in (path.parent, path.parent.parent)] == [0o700] * 2
        assert sorted(each.name for each in path.parent.iterdir()) == ["journal.db", "journal.db-anchor"]

    asyncio.run(modes())


@pytest.mark.parametrize("mode", [0o644, 0o660, 0o604])
def test_files_that_others_may_use_are_tightened_when_they_are_opened(mode, tmp_path, caplog):
    async def modes():
        path = tmp_path / "journal.db"
        async with opened(path) as journal:
            await journal.claim("run", create=True)
            files = [path, Path(f"{path}-wal"), Path(f"{path}-shm")]
            for each in files:
                each.chmod(mode)
            async with opened(path):
                assert [each.stat().st_mode & 0o777 for each in files] == [0o600] * 3

    asyncio.run(modes())
    assert {(each.name, each.levelname) for each in caplog.records} == {("antiphon.journal", "WARNING")}
    assert f"others could use it (mode {mode:o})" in caplog.text


def test_a_wide_file_of_somebody_else_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "journal.db"
    path.touch(mode=0o600)
    path.chmod(0o644)
    monkeypatch.setattr(os, "geteuid", lambda: path.stat().st_uid + 1)
    with pytest.raises(JournalFull, match=r"others may use it \(mode 644\).*have its owner `chmod 600` it"):
        SqliteJournal(path)


def test_the_folder_of_a_project_keeps_itself_out_of_git(tmp_path):
    async def make(path):
        async with opened(path):
            pass

    asyncio.run(make(tmp_path / ".antiphon" / "antiphon.db"))
    found = tmp_path / ".antiphon" / ".gitignore"
    assert found.read_text().splitlines()[-1] == "*"
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    status = ["git", "-C", tmp_path, "status", "--porcelain", "--untracked-files=all"]
    assert subprocess.run(status, check=True, capture_output=True).stdout == b""
    # Whoever takes it out wants it so; a folder of another name is none of ours.
    found.unlink()
    asyncio.run(make(tmp_path / ".antiphon" / "antiphon.db"))
    asyncio.run(make(tmp_path / "runs" / "antiphon.db"))
    assert [*tmp_path.glob("*/.gitignore")] == []


@pytest.mark.parametrize(("durability", "synchronous"), [("power", 2), ("process", 1)])
def test_the_settings_are_those_it_says(durability, synchronous, tmp_path):
    async def asking():
        async with opened(tmp_path / "journal.db", durability) as journal:
            connection = journal._writer.connection
            assert journal.durability == durability
            assert connection.pragma("synchronous") == synchronous
            assert connection.pragma("journal_mode") == "wal"
            assert connection.pragma("mmap_size") == 0

    asyncio.run(asking())


def test_a_setting_that_does_not_take_is_told(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("antiphon.journal.sqlite.file", fromlist=["x"]).SYNCHRONOUS, "power", 77)
    with pytest.raises(JournalError, match="asked for synchronous=77, SQLite keeps"):
        SqliteJournal(tmp_path / "journal.db")
    with pytest.raises(ConfigError, match="power, process"):
        SqliteJournal(tmp_path / "journal.db", "maybe")


@pytest.mark.parametrize("runs", [1, 50])
def test_a_turn_takes_at_most_600_bytes(runs, tmp_path):
    """The whole file, two rows of 470 bytes together per turn; the tables themselves left out."""

    async def size(turns, path):
        async with opened(path, "process") as journal:
            pens = [RowWriter(journal, await journal.claim(f"run-{n:026}", create=True)) for n in range(runs)]
            for turn in range(turns // runs):
                for pen in pens:
                    for _ in range(2):
                        journal.append(pen.lease, pen.row(b"%235d" % turn), {}, lambda error: None)
            await journal.release(pens[0].lease)
        return path.stat().st_size

    few = asyncio.run(size(200, tmp_path / "few.db"))
    many = asyncio.run(size(200 + TURNS, tmp_path / "many.db"))
    assert (many - few) / TURNS <= 600


def test_a_blob_is_stored_once_and_referred_to_once_per_run(tmp_path):
    data = os.urandom(100_000)
    name = blob_digest(data)

    async def writing():
        async with opened(tmp_path / "journal.db", "process") as journal:
            for run_id in ("one", "two", "three"):
                pen = RowWriter(journal, await journal.claim(run_id, create=True))
                for _ in range(5):
                    await pen.put(pen.row(b"x", refs=(("/text", name),), blobs=(name,)), {name: data})

    asyncio.run(writing())
    with apsw.Connection(str(tmp_path / "journal.db")) as file:
        counts = [
            file.execute(f"select count(*) from {table}").fetchall()[0][0] for table in ("blobs", "run_blobs")
        ]
        assert counts == [1, 3]
    assert (tmp_path / "journal.db").stat().st_size < 250_000


def test_many_appends_are_few_commits(tmp_path):
    async def writing():
        commits = 0

        def count():
            nonlocal commits
            commits += 1
            return False

        async with opened(tmp_path / "journal.db") as journal:
            pens = [RowWriter(journal, await journal.claim(f"run {n}", create=True)) for n in range(100)]
            journal._writer.connection.set_commit_hook(count)
            for _ in range(20):
                for pen in pens:
                    journal.append(pen.lease, pen.row(b"x"), {}, lambda error: None)
            await journal.release(pens[0].lease)
            journal._writer.connection.set_commit_hook(None)
        assert commits <= 40

    asyncio.run(writing())


def test_a_callback_that_raises_is_reported_and_the_others_are_called(tmp_path):
    async def writing():
        told, ends = [], []
        asyncio.get_running_loop().set_exception_handler(
            lambda loop, context: told.append(context["exception"])
        )

        def fail(error):
            raise RuntimeError("mine")

        async with opened(tmp_path / "journal.db") as journal:
            pen = RowWriter(journal, await journal.claim("run", create=True))
            for done in (ends.append, fail, ends.append):
                journal.append(pen.lease, pen.row(b"x"), {}, done)
            await journal.release(pen.lease)
        assert ends == [None, None]
        assert [str(error) for error in told] == ["mine"]

    asyncio.run(writing())


def test_threads_end_with_the_journal(tmp_path):
    before = threading.active_count()

    async def opening():
        async with opened(tmp_path / "journal.db") as journal:
            await journal.claim("run", create=True)
            assert threading.active_count() == before + 2
        assert threading.active_count() == before

    asyncio.run(opening())


@pytest.mark.slow
def test_a_loop_that_ended_without_closing_does_not_stop_the_process(tmp_path):
    journals = []

    async def forgetting():
        journal = SqliteJournal(tmp_path / "journal.db", ttl=0)
        journals.append(journal)
        pen = RowWriter(journal, await journal.claim("run", create=True))
        await pen.write(b"kept")
        journal.append(pen.lease, pen.row(b"unasked"), {}, lambda error: None)

    asyncio.run(forgetting())

    async def later():
        async with opened(tmp_path / "journal.db", ttl=0) as journal:
            rows = await journal.read("run")
            assert rows[0].body == b"kept"
            await journal.claim("run")
        journals[0]._writer.stop(after=journals[0]._reader.thread, gone=lambda error: None)
        journals[0]._reader.put(None)
        journals[0]._writer.thread.join()

    asyncio.run(later())


def test_waiting_for_this_process_does_not_wait_for_a_look(tmp_path, monkeypatch):
    monkeypatch.setattr("antiphon.journal.sqlite.reader.POLL_S", 3600.0)

    async def waiting():
        async with opened(tmp_path / "journal.db") as journal:
            pen = RowWriter(journal, await journal.claim("run", create=True))
            for seq, mail in ((0, 0), (1, 0), (1, 1)):
                waiter = asyncio.ensure_future(journal.wait("run", seq, mail))
                await journal.runs()
                assert not waiter.done()
                if (seq, mail) == (1, 0):
                    await journal.post("run", "key", b"")
                else:
                    await pen.write(b"x")
                async with asyncio.timeout(10):
                    await waiter

    asyncio.run(waiting())
