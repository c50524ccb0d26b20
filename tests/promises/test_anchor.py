"""How far each run must reach is kept outside SQLite: a journal behind its anchor is damaged, never fine."""

import asyncio
import shutil

import apsw
import pytest
from msgspec.structs import replace

from antiphon.errors import JournalCorrupt, JournalDamaged, UnknownName
from antiphon.journal.check.whole_runs import story
from antiphon.journal.row_writer import RowWriter
from antiphon.journal.sqlite import SqliteJournal
from antiphon.journal.sqlite import file as sqlite_file
from antiphon.testing.power import RecordingDisk
from tests.unit.journal.writing import opened

FRAME = 4_120
SIDES = ("", "-wal", "-anchor")


async def two_runs(journal, rows=3):
    """Two runs, written in turn, the second one last, and a command for each."""
    pens = [RowWriter(journal, await journal.claim(name, create=True)) for name in ("one", "two")]
    for n in range(rows):
        for pen in pens:
            await pen.write(b"row %d" % n)
    for pen in pens:
        await journal.post(pen.lease.run_id, "key", b"command")


def keep(path, folder):
    folder.mkdir(exist_ok=True)
    for side in SIDES:
        if path.with_name(path.name + side).exists():
            shutil.copy(path.with_name(path.name + side), folder / f"journal.db{side}")


@pytest.fixture
def killed(tmp_path):
    """A journal whose process ended without closing it."""

    async def writing():
        # The tables are in the file, the runs in the log.
        async with opened(tmp_path / "journal.db"):
            pass
        async with opened(tmp_path / "journal.db") as journal:
            await two_runs(journal)
            keep(tmp_path / "journal.db", tmp_path / "killed")

    asyncio.run(writing())
    return tmp_path / "killed" / "journal.db"


@pytest.fixture
def closed(tmp_path):
    async def writing():
        async with opened(tmp_path / "journal.db") as journal:
            await two_runs(journal)

    asyncio.run(writing())
    return tmp_path / "journal.db"


def sql(path, *statements):
    connection = apsw.Connection(str(path))
    for statement in statements:
        connection.execute(statement)
    connection.close()


def damage_of(path, doing, **options):
    """The error that `doing(journal)` ends with."""

    async def trying():
        async with opened(path, **options) as journal:
            with pytest.raises((JournalCorrupt, JournalDamaged)) as raised:
                await doing(journal)
            return raised.value

    return asyncio.run(trying())


def audit_of(path, **options):
    async def looking():
        async with opened(path, **options) as journal:
            return await journal.audit()

    return asyncio.run(looking())


WRITES = {
    "claim": lambda journal: journal.claim("one"),
    "a new run": lambda journal: journal.claim("three", create=True),
    "post": lambda journal: journal.post("one", "other", b""),
    "rename": lambda journal: journal.rename("one", "name"),
}


@pytest.mark.parametrize("write", WRITES)
def test_a_log_that_was_deleted_is_told_and_nothing_is_written_since(killed, write):
    killed.with_name("journal.db-wal").unlink()
    shutil.copy(killed, killed.with_name("before"))
    found = damage_of(killed, WRITES[write])
    assert isinstance(found, JournalDamaged)
    assert "run one is gone, and reached record 3" in str(found)
    assert killed.read_bytes() == killed.with_name("before").read_bytes()
    damage, _ = audit_of(killed)
    assert damage == tuple(f"run {name} is gone, and reached record 3" for name in ("one", "two"))


def test_an_older_copy_of_the_file_is_told_with_both_figures(tmp_path):
    async def writing():
        async with opened(tmp_path / "journal.db") as journal:
            await two_runs(journal)
            keep(tmp_path / "journal.db", tmp_path / "older")
        async with opened(tmp_path / "journal.db") as journal:
            pen = RowWriter(journal, await journal.claim("one"))
            await pen.write(*(b"more %d" % n for n in range(7)))

    asyncio.run(writing())
    shutil.copy(tmp_path / "journal.db-anchor", tmp_path / "older")
    found = damage_of(tmp_path / "older" / "journal.db", lambda journal: journal.claim("two"))
    assert "run one ends at record 3, and reached record 10" in str(found)
    read = damage_of(tmp_path / "older" / "journal.db", lambda journal: journal.read("one"))
    assert "damaged at record 3: it ends there, its anchor says that it reached 10" in str(read)


def test_a_changed_bit_in_the_last_commit_is_no_write_that_was_cut_off(killed):
    log = killed.with_name("journal.db-wal")
    data = bytearray(log.read_bytes())
    data[-100] ^= 1
    log.write_bytes(data)
    before = [killed.with_name(f"journal.db{side}").read_bytes() for side in SIDES]
    for _ in range(2):
        with pytest.raises(JournalDamaged, match="behind its anchor"):
            SqliteJournal(killed)
    assert [killed.with_name(f"journal.db{side}").read_bytes() for side in SIDES] == before


BACK = (
    "delete from rows where run = 1 and seq = 3",
    "update runs set (seq, last, digest) = (select seq, n, digest from rows where run = 1 and seq = 2)"
    " where key = 1",
)


@pytest.mark.parametrize("doing", ["claim", "read"])
def test_a_run_that_was_set_back_is_told_and_the_others_go_on(closed, doing):
    """Its digests are right: it is what the run was before its last record."""
    sql(closed, *BACK)
    found = damage_of(closed, lambda journal: getattr(journal, doing)("one"))
    assert "damaged at record 2: it ends there, its anchor says that it reached 3" in str(found)

    async def other():
        async with opened(closed) as journal:
            await RowWriter(journal, await journal.claim("two")).write(b"goes on")

    asyncio.run(other())


def test_a_run_that_was_taken_out_is_gone_and_not_unknown(closed):
    sql(closed, "delete from rows where run = 1", "delete from runs where key = 1")
    for doing in (
        lambda journal: journal.claim("one"),
        lambda journal: journal.read("one"),
        lambda journal: journal.commands("one"),
    ):
        assert "it is gone, its anchor says that it reached 3" in str(damage_of(closed, doing))
    assert audit_of(closed)[0] == ("run one is gone, and reached record 3",)

    async def unknown():
        async with opened(closed) as journal:
            with pytest.raises(UnknownName):
                await journal.read("three")

    asyncio.run(unknown())


def test_another_record_in_the_place_of_the_last_and_an_older_epoch_are_told(closed):
    sql(closed, "update runs set epoch = 0 where key = 2", "update rows set epoch = 0 where run = 2")
    found = damage_of(closed, lambda journal: journal.claim("two"))
    assert "it says that it had 0 owners, its anchor says 1" in str(found)


def test_a_command_that_was_taken_out_is_told(closed):
    sql(closed, "delete from commands where run = 1", "update runs set commands = 0 where key = 1")
    found = damage_of(closed, lambda journal: journal.commands("one"))
    assert "this command is lost, the run's anchor names it" in str(found)


def test_a_journal_without_an_anchor_gets_one_and_one_that_lost_it_says_so(closed, caplog):
    anchor = closed.with_name("journal.db-anchor")
    sql(closed, "delete from meta where name = 'anchor'")
    anchor.unlink()
    assert audit_of(closed) == ((), ())
    sql(closed, *BACK)
    assert "its anchor says that it reached 3" in str(damage_of(closed, lambda journal: journal.claim("one")))
    assert not caplog.records
    anchor.unlink()
    damage, unknown = audit_of(closed)
    assert damage == ()
    assert "made anew" in unknown[0]
    (told,) = caplog.records
    assert (told.name, told.levelname, told.run_id) == ("antiphon.journal", "WARNING", "")
    assert told.getMessage().startswith(f"Anchor {anchor} was lost or damaged")
    assert audit_of(closed)[1] == unknown


def test_a_file_that_is_gone_is_not_begun_anew(closed):
    closed.unlink()
    with pytest.raises(JournalDamaged, match="its anchor knows 2 runs"):
        SqliteJournal(closed)
    closed.with_name("journal.db-anchor").unlink()
    assert audit_of(closed) == ((), ())


@pytest.mark.parametrize("place", [0, 20, 40, 128, 140, 256 + 16])
def test_a_changed_bit_of_the_anchor_is_told_and_damages_no_run(closed, place):
    anchor = closed.with_name("journal.db-anchor")
    data = bytearray(anchor.read_bytes())
    data[place] ^= 8
    anchor.write_bytes(data)

    async def looking():
        async with opened(closed) as journal:
            return [len(await journal.read(name)) for name in ("one", "two")], await journal.audit()

    rows, (damage, unknown) = asyncio.run(looking())
    assert (rows, damage, len(unknown)) == ([3, 3], (), 1)


@pytest.mark.parametrize("durability", ["process", "power"])
def test_after_a_power_cut_only_what_was_synced_binds(tmp_path, durability, monkeypatch):
    path = tmp_path / "journal.db"

    async def writing():
        async with opened(path, durability):
            pass
        async with opened(path, durability) as journal:
            await two_runs(journal)
            keep(path, tmp_path / "cut")

    asyncio.run(writing())
    # The power took what was in the log, and the machine started again.
    (tmp_path / "cut" / "journal.db-wal").unlink()
    me = sqlite_file.this_process()
    monkeypatch.setattr(
        sqlite_file, "this_process", lambda: type(me)(me.host, "another boot", me.pid, me.started)
    )
    if durability == "power":
        assert "commits are lost" in str(
            damage_of(tmp_path / "cut" / "journal.db", lambda journal: journal.claim("one"))
        )
    else:
        assert audit_of(tmp_path / "cut" / "journal.db", durability=durability) == ((), ())


def test_it_is_as_large_as_there_are_runs_and_synced_less_often_than_the_journal(tmp_path):
    disk = RecordingDisk("syncs of the anchor")

    async def writing():
        async with opened(tmp_path / "journal.db", vfs="syncs of the anchor") as journal:
            pen = RowWriter(journal, await journal.claim("run", create=True))
            begun = len(disk.log)
            for n in range(50):
                await pen.write(b"%d" % n)
            return [each.name for each in disk.log[begun:] if each.kind == "sync"]

    syncs = asyncio.run(writing())
    disk.unregister()
    assert syncs.count("journal.db-wal") == 50
    assert syncs.count("journal.db-anchor") <= 5
    assert (tmp_path / "journal.db-anchor").stat().st_size <= 8_192


@pytest.mark.parametrize("gone", [("one",), ("two",), ("one", "two")], ids=["the older", "the newer", "all"])
def test_runs_that_are_deleted_are_unknown_and_never_gone(closed, gone):
    async def deleting():
        async with opened(closed) as journal:
            for name in gone:
                await journal.rename(name, "called")
                await journal.delete(name)
                with pytest.raises(UnknownName):
                    await journal.read(name)
                with pytest.raises(UnknownName):
                    await journal.claim(name)
            await journal.compact()

    asyncio.run(deleting())
    assert audit_of(closed) == ((), ())

    async def beginning():
        async with opened(closed) as journal:
            await RowWriter(journal, await journal.claim(gone[0], create=True)).write(b"anew")

    asyncio.run(beginning())
    assert audit_of(closed) == ((), ())


def test_what_was_noted_of_a_run_in_the_commit_that_deletes_it_is_not_written(tmp_path):
    """Its last row, its release and its deletion are queued while another process writes: one commit."""
    path = tmp_path / "journal.db"

    async def deleting():
        async with opened(path) as journal:
            pen = RowWriter(journal, await journal.claim("run", create=True))
            other = apsw.Connection(str(path))
            other.execute("begin immediate")
            journal.append(pen.lease, pen.row(b"last"), {}, lambda error: None)
            queued = asyncio.gather(
                journal.post("run", "key", b""),
                journal.release(pen.lease),
                journal.claim("another", create=True),
                journal.delete("run"),
            )
            await asyncio.sleep(0)
            other.execute("commit")
            other.close()
            await queued

    asyncio.run(deleting())
    assert audit_of(path) == ((), ())


def test_a_run_that_is_deleted_while_all_are_compared_is_not_gone(closed):
    class LateConnection:
        """What it is asked is read when another process has deleted a run."""

        def execute(self, statement):
            async def deleting():
                async with opened(closed) as journal:
                    await journal.delete("one")

            asyncio.run(deleting())
            return found.connection.execute(statement)

    found = sqlite_file.open_file(closed, "power")
    assert found.anchor.lost(LateConnection()) == []
    found.anchor.close()
    found.connection.close()


def test_a_run_that_was_taken_in_is_anchored_before_anybody_claims_it(closed):
    async def taking():
        async with opened(closed) as journal:
            await journal.restore(story("moved"))

    asyncio.run(taking())
    assert audit_of(closed) == ((), ())
    sql(closed, "delete from rows where run = 3", "delete from runs where key = 3")
    assert audit_of(closed)[0] == ("run moved is gone, and reached record 6",)


def test_a_file_that_was_rewritten_is_still_bound_by_its_anchor(tmp_path):
    """An older file beside the same anchor is told, and so is a run that is taken out of the new one."""
    path = tmp_path / "journal.db"

    async def writing():
        async with opened(path) as journal:
            await two_runs(journal)
            await journal.restore(replace(story("moved"), commands=4))
        keep(path, tmp_path / "older")
        async with opened(path) as journal:
            await journal.delete("one")
            await journal.compact()
            assert (await journal.claim("moved")).seq == 6
            await journal.post("moved", "key", b"command")

    asyncio.run(writing())
    assert audit_of(path) == ((), ())
    with apsw.Connection(str(path)) as file:
        file.execute("delete from runs where run_id = 'moved'")
    file.close()
    assert audit_of(path)[0] == ("run moved is gone, and reached record 6",)
    shutil.copy(path.with_name("journal.db-anchor"), tmp_path / "older")
    found = damage_of(tmp_path / "older" / "journal.db", lambda journal: journal.claim("moved"))
    assert "it says that it had 3 owners, its anchor says 4" in str(found)
