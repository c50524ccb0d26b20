"""A journal with a key: somebody who can write its files, knows all of Antiphon, and lacks the key."""

import asyncio
import shutil
import time

import apsw
import pytest

from antiphon.errors import ConfigError, JournalCorrupt, JournalError, LeaseLost
from antiphon.journal import open_journal
from antiphon.journal.files.salvage import salvage
from antiphon.journal.files.seal import Seal
from antiphon.journal.listing import Labels, labels_digest, name_digest
from antiphon.journal.port import Row, StoredRun, chain, genesis
from antiphon.journal.row_writer import RowWriter
from antiphon.journal.sqlite import SqliteJournal
from antiphon.journal.sqlite.reader import command_digest
from tests.unit.journal.writing import facts, opened

KEY = "a key that nobody knows"
OTHER = "another key, as long"


async def written(path, key=KEY):
    """Two runs with rows, a command and a name each."""
    async with opened(path, key=key) as journal:
        for run_id in ("paid", "asked"):
            pen = RowWriter(journal, await journal.claim(run_id, create=True))
            await pen.write(b"one", b"two", b"three")
            await journal.post(run_id, "key 1", b"approve nothing")
            await journal.rename(run_id, f"{run_id} in June")
            await journal.release(pen.lease)


def attack(path, *statements):
    """What somebody with the file alone does; the anchor is taken away, as nobody need keep it."""
    with apsw.Connection(str(path)) as file:
        for sql, *bindings in statements:
            file.execute(sql, bindings)
    path.with_name(f"{path.name}-anchor").unlink(missing_ok=True)


def forged_rows(path):
    """The third row of `paid` says something else; digests are right."""
    digest = genesis("paid")
    with apsw.Connection(str(path)) as file:
        rows = file.execute("select n, seq, count, epoch, at, body, given from rows where run = 1").fetchall()
        for n, seq, count, epoch, at, body, given in rows:
            said = b"transferred" if body == b"three" else body
            digest = chain(digest, seq, count, epoch, at, said, (), (), given)
            file.execute("update rows set body = ?, digest = ? where n = ?", (said, digest, n))
    attack(path, ("update runs set digest = ? where key = 1", digest))


def made_up_run(path):
    """A run from scratch."""
    row = Row(1, 1, 1, 1.0, b"a permission", (), b"")
    digest = chain(genesis("new"), 1, 1, 1, 1.0, row.body, ())
    attack(
        path,
        (
            "insert into runs(key, run_id, created, updated, epoch, seq, last, digest, commands, summary)"
            " values(3, 'new', 1, 1, 1, 1, 100, ?, 0, x'')",
            digest,
        ),
        (
            "insert into rows(n, step, run, seq, count, epoch, at, digest, body)"
            " values(100, 0, 3, 1, 1, 1, 1.0, ?, ?)",
            digest,
            row.body,
        ),
    )


def shortened(path):
    """`paid` ends a row earlier, as it once did; nobody kept the seal of then."""
    with apsw.Connection(str(path)) as file:
        ((n, digest),) = file.execute("select n, digest from rows where run = 1 and seq = 2")
    attack(path, ("update runs set seq = 2, last = ?, digest = ? where key = 1", n, digest))


def seal_of_another(path):
    """`paid` becomes a copy of `asked`, seal and all."""
    attack(
        path,
        ("update runs set (seq, last, digest, seal) ="
         " (select seq, last, digest, seal from runs where key = 2), origin = 'asked' where key = 1",),
        ("update rows set run = 1 where run = 2",),
    )  # fmt: skip


def released_from_quarantine(path):
    attack(path, ("update runs set imported = 1 - imported where key = 1",))


ATTACKS_ON_RUNS = [forged_rows, made_up_run, shortened, seal_of_another, released_from_quarantine]


async def refusals(path, key=KEY):
    """What reading and claiming each run is refused with."""
    found = {}
    async with opened(path, key=key) as journal:
        for entry in await journal.runs():
            for what, doing in (("read", journal.read), ("claim", journal.claim), ("mail", journal.commands)):
                try:
                    await doing(entry.run_id)
                except JournalCorrupt as error:
                    found[entry.run_id, what] = str(error)
    return found


@pytest.mark.parametrize("attacking", ATTACKS_ON_RUNS)
def test_a_run_that_was_not_written_with_the_key_is_neither_read_nor_gone_on_with(attacking, tmp_path):
    asyncio.run(written(tmp_path / "runs.db"))
    attacking(tmp_path / "runs.db")
    found = asyncio.run(refusals(tmp_path / "runs.db"))
    victim = "new" if attacking is made_up_run else "paid"
    assert {(victim, "read"), (victim, "claim")} <= set(found)
    assert "the run's end was written by somebody without the journal's key" in found[victim, "read"]


@pytest.mark.parametrize("attacking", [forged_rows, made_up_run, shortened, released_from_quarantine])
def test_without_a_key_all_of_this_passes(attacking, tmp_path):
    """The control: what the key is for."""
    asyncio.run(written(tmp_path / "runs.db", key=""))
    attacking(tmp_path / "runs.db")
    assert asyncio.run(refusals(tmp_path / "runs.db", key="")) == {}


def test_a_command_that_was_not_posted_with_the_key_is_not_heard(tmp_path):
    path = tmp_path / "runs.db"
    asyncio.run(written(path))
    body = b"approve everything"
    digest = command_digest("asked", 2, "key 2", body)
    attack(
        path,
        ("insert into commands(run, number, key, digest, body) values(2, 2, 'key 2', ?, ?)", digest, body),
        ("update runs set commands = 2 where key = 2",),
    )
    found = asyncio.run(refusals(path))
    assert list(found) == [("asked", "mail")]
    assert "this command was posted by somebody without the journal's key" in found["asked", "mail"]


def test_labels_that_were_not_given_with_the_key_are_damage(tmp_path):
    path, labels = tmp_path / "runs.db", Labels("tides", "Ada", "shore")
    asyncio.run(written(path))

    async def labelled(owner):
        async with opened(path, key=KEY) as journal:
            await journal.relabel("paid", Labels(owner=owner))
            return (await journal.audit())[0]

    assert asyncio.run(labelled("Bo")) == ()
    forged = labels_digest("paid", labels)
    attack(
        path,
        (
            "update runs set label_project = 'tides', label_owner = 'Ada', label_team = 'shore', labels = ?"
            " where run_id = 'paid'",
            forged,
        ),
    )

    async def audited():
        async with opened(path, key=KEY) as journal:
            return (await journal.audit())[0]

    assert asyncio.run(audited()) == ("the labels of run paid are not those that it was given",)
    assert asyncio.run(labelled("Bo")) == ()


def test_a_name_that_was_not_given_with_the_key_is_damage(tmp_path):
    path = tmp_path / "runs.db"
    asyncio.run(written(path))
    given = name_digest("paid", "asked in June")
    attack(
        path,
        ("update runs set name = 'asked in June' where key = 1",),
        ("update meta set value = ? where name = 'name of paid'", given),
    )

    async def audited():
        async with opened(path, key=KEY) as journal:
            return (await journal.audit())[0]

    assert asyncio.run(audited()) == ("the name of run paid is not the one that it was given",)


def test_an_older_copy_of_all_files_passes(tmp_path):
    """What a key cannot know, as the documents say."""
    path = tmp_path / "runs.db"
    asyncio.run(written(path))
    for side in ("", "-anchor"):
        shutil.copy(f"{path}{side}", f"{tmp_path / 'old.db'}{side}")

    async def going_on():
        async with opened(path, key=KEY) as journal:
            await RowWriter(journal, await journal.claim("paid")).write(b"four")

    asyncio.run(going_on())
    for side in ("", "-anchor"):
        shutil.copy(f"{tmp_path / 'old.db'}{side}", f"{path}{side}")
    assert asyncio.run(refusals(path)) == {}


@pytest.mark.parametrize(
    ("key", "text"),
    [("", "sealed with a key, and none was given"), (OTHER, "sealed with another key than the given one")],
)
def test_a_sealed_journal_opens_with_its_key_only(key, text, tmp_path):
    asyncio.run(written(tmp_path / "runs.db"))
    before = (tmp_path / "runs.db").read_bytes()
    with pytest.raises(JournalError, match=text):
        SqliteJournal(tmp_path / "runs.db", key=key)
    assert (tmp_path / "runs.db").read_bytes() == before
    assert asyncio.run(refusals(tmp_path / "runs.db")) == {}


def test_a_journal_without_a_key_is_not_taken_for_a_sealed_one(tmp_path):
    """Else taking the seal away would be enough."""
    path = tmp_path / "runs.db"
    asyncio.run(written(path))
    attack(path, ("delete from meta where name = 'key'",), ("update runs set seal = x''",))
    with pytest.raises(JournalError, match=r"written without a key.*`antiphon journal seal`"):
        SqliteJournal(path, key=KEY)


def test_a_journal_is_sealed_later_and_with_another_key_and_with_none(tmp_path):
    path = tmp_path / "runs.db"
    asyncio.run(written(path, key=""))

    async def sealing():
        found = []
        async with opened(path) as journal:
            found.append(await facts(journal))
            assert await journal.seal_all(KEY) == 2
        for before, after in ((KEY, OTHER), (OTHER, "")):
            async with opened(path, key=before) as journal:
                assert journal.sealed
                found.append(await facts(journal))
                assert await journal.audit() == ((), ())
                await journal.seal_all(after)
        async with opened(path) as journal:
            assert not journal.sealed
            found.append(await facts(journal))
        return found

    first, *others = asyncio.run(sealing())
    assert others == [first] * 3
    assert len(first) == 8


def test_who_opened_the_journal_before_it_was_sealed_writes_nothing_into_it(tmp_path):
    """Else what it does in good faith would look forged."""
    path = tmp_path / "runs.db"
    asyncio.run(written(path, key=""))

    async def sealing():
        async with opened(path) as early, opened(path) as beside:
            await beside.seal_all(KEY)
            for doing in (
                early.claim("new", create=True), early.claim("paid"), early.post("paid", "key 2", b"x"),
                early.rename("paid", "June"), early.read("paid"), early.restore(StoredRun("moved", (), {})),
                early.seal_all(OTHER),
            ):  # fmt: skip
                with pytest.raises(JournalError, match="sealed with a key, and none was given"):
                    await doing

    asyncio.run(sealing())
    assert asyncio.run(refusals(path)) == {}


def test_an_owner_that_stood_still_while_it_was_sealed_has_lost_its_run(tmp_path):
    path = tmp_path / "runs.db"
    asyncio.run(written(path, key=""))

    async def sealing():
        async with opened(path) as early:
            pen = RowWriter(early, await early.claim("paid"))
            async with opened(path, steady=lambda: time.monotonic() + 60) as beside:
                await beside.seal_all(KEY)
            with pytest.raises(LeaseLost):
                await pen.write(b"four")

    asyncio.run(sealing())
    assert asyncio.run(refusals(path)) == {}


def test_who_opened_it_with_a_key_is_told_when_the_seal_was_taken_away(tmp_path):
    path = tmp_path / "runs.db"
    asyncio.run(written(path))

    async def unsealing():
        async with opened(path, key=KEY) as early, opened(path, key=KEY) as beside:
            await beside.seal_all("")
            with pytest.raises(JournalError, match="has no seal any more; open it anew"):
                await early.claim("paid")

    asyncio.run(unsealing())


def test_a_key_is_long_and_comes_from_the_environment(tmp_path, monkeypatch):
    assert Seal(KEY + "\udcff").mark != Seal(KEY + "\udcfe").mark, "what is no UTF-8 in the environment"
    with pytest.raises(ConfigError, match="at least 16"):
        SqliteJournal(tmp_path / "runs.db", key="short")
    assert not (tmp_path / "runs.db").exists()
    monkeypatch.setenv("ANTIPHON_JOURNAL_KEY", KEY)

    async def opening():
        journal = open_journal(f"sqlite:///{tmp_path}/runs.db")
        await journal.close()
        return journal.sealed

    assert asyncio.run(opening())
    asyncio.run(written(tmp_path / "runs.db"))


def test_what_is_salvaged_of_a_sealed_journal_was_written_with_its_key(tmp_path):
    path = tmp_path / "runs.db"
    asyncio.run(written(path))
    body = b"approve everything"
    digest = command_digest("asked", 2, "key 2", body)
    forged_rows(path)
    attack(
        path,
        ("insert into commands(run, number, key, digest, body) values(2, 2, 'key 2', ?, ?)", digest, body),
        ("update runs set commands = 2 where key = 2",),
    )
    with salvage(path, tmp_path, Seal(KEY)) as found:
        paid, asked = found.runs()
    assert paid.lost == "its seal: somebody without the journal's key wrote its end"
    assert asked.lost == "the commands from 2 to 2"
    assert [each.body for each in asked.commands] == [b"approve nothing"]
    with pytest.raises(JournalError, match="none was given"), salvage(path, tmp_path, Seal()):
        pass
