"""Cases of the conformance suite about forks: runs that begin as others of the same store did."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from antiphon.errors import JournalCorrupt, RunInUse, UnknownName, UserError
from antiphon.journal.check.whole_runs import DATA, Case, OpenStore, story
from antiphon.journal.listing import NO_LABELS, Labels
from antiphon.journal.port import (
    Journal,
    Lease,
    Row,
    StoredRule,
    StoredRun,
    blob_digest,
    chain,
)
from antiphon.journal.row_writer import RowWriter, raises, same

OWN = b"its own \x00" * 2_000


async def forking(open_store: OpenStore) -> None:
    """A fork has the rows of the other run and its blobs, and goes on by itself; the other is as it was."""
    async with open_store() as journal:
        pen = await _told(journal, "forking")
        rows = list(await journal.read("forking"))
        await journal.post("forking", "k", b"for the other one")
        rule = StoredRule("forking rule", "run", "forking fork", b"{}", 1_700_000_000.0)
        fork = _fork("forking fork", "forking", rows[:2], Labels("p", "o", "t"))
        # Somebody drives the other one meanwhile.
        await journal.fork("forking", fork, [rule])
        entry = await journal.info("forking fork")
        same(
            (entry.seq, entry.epoch, entry.owner, entry.summary, entry.name, entry.origin, entry.imported),
            (3, 2, "", b"summary", "", "forking", False),
            "its entry",
        )
        same(
            (entry.labels, entry.posted, entry.updated_at),
            (fork.labels, False, fork.rows[-1].at),
            "beside it",
        )
        same(list(await journal.read("forking fork")), fork.rows, "its rows")
        same(await journal.blob("forking fork", blob_digest(DATA)), DATA, "a blob of both")
        same(await journal.blob("forking fork", blob_digest(OWN)), OWN, "a blob of its own")
        await raises(JournalCorrupt, "its blob in the other run", journal.blob("forking", blob_digest(OWN)))
        same(list(await journal.commands("forking fork")), [], "its commands")
        same([each for each in await journal.rules() if each.id == rule.id], [rule], "its rule")
        same(await journal.post("forking fork", "k", b"for it"), True, "a key of the other one")
        same([each.number for each in await journal.commands("forking fork")], [1], "its first command")
        same(list(await journal.read("forking")), rows, "the rows of the other one")
        rows += await pen.write(b"on")
        await journal.release(pen.lease)
        lease = await journal.claim("forking fork")
        same(lease, Lease("forking fork", 3, 3, fork.rows[-1].digest), "its lease")
        own = [*fork.rows, *await RowWriter(journal, lease).write(b"another way")]
        await journal.release(lease)
        await journal.fork("forking fork", _fork("forking again", "forking", own))
        same((await journal.info("forking again")).origin, "forking", "the origin of a fork of a fork")
        await journal.delete("forking")
        same(await journal.blob("forking fork", blob_digest(DATA)), DATA, "a blob, the other run deleted")
    async with open_store() as journal:
        if journal.durability == "none":
            return
        same(list(await journal.read("forking fork")), own, "its rows, opened again")
        same((await journal.info("forking fork")).labels, fork.labels, "its labels, opened again")
        await journal.delete("forking fork")
        same([each for each in await journal.rules() if each.id == rule.id], [], "its rule, deleted with it")
        same(await journal.blob("forking again", blob_digest(DATA)), DATA, "a blob of the last one")


async def refused_forks(open_store: OpenStore) -> None:
    """What cannot begin like the other run is refused, and nothing of it is stored."""
    async with open_store() as journal:
        await _told(journal, "refused_forks")
        rows = list(await journal.read("refused_forks"))
        good = _fork("refused_forks fork", "refused_forks", rows)
        lost = replace(good, blobs={})
        broken = replace(good, rows=[*rows[:1], *good.rows[2:]])
        alone = replace(story("refused_forks fork"), blobs={})
        rule = StoredRule("refused_forks rule", "nobody", "x", b"{}", 1.0)
        for error, what, doing in (
            (UnknownName, "a fork of nobody", journal.fork("nobody at all", good)),
            (
                UserError,
                "a fork under its own id",
                journal.fork("refused_forks", replace(good, run_id="refused_forks")),
            ),
            (UserError, "rows that are no chain", journal.fork("refused_forks", broken)),
            (UserError, "a chain from elsewhere", journal.fork("refused_forks", alone)),
            (UserError, "another origin", journal.fork("refused_forks", replace(good, origin="x"))),
            (UserError, "a rule that is none", journal.fork("refused_forks", good, [rule])),
            (
                UserError,
                "an id that is none",
                journal.fork("refused_forks", replace(good, run_id="two\nlines")),
            ),
            (JournalCorrupt, "a blob that nobody keeps", journal.fork("refused_forks", lost)),
        ):
            await raises(error, what, doing)
        await raises(UnknownName, "what was refused", journal.info("refused_forks fork"))
        same([each for each in await journal.rules() if each.id == rule.id], [], "rules of what was refused")
        await journal.fork("refused_forks", good)
        await raises(UserError, "the same fork once more", journal.fork("refused_forks", good))
        lease = await journal.claim("refused_forks fork")
        await raises(RunInUse, "deleting a fork that is held", journal.delete("refused_forks fork"))
        await journal.release(lease)


async def foreign_forks(open_store: OpenStore) -> None:
    """A fork of a run that came from elsewhere came from elsewhere too."""
    async with open_store() as journal:
        run = story("foreign_forks")
        await journal.restore(run)
        last = run.rows[-1]
        digest = chain(last.digest, 7, 1, 4, last.at, b"x", (), (), 1)
        rows = [*run.rows, Row(7, 1, 4, last.at, b"x", (), digest, (), 1)]
        await journal.fork("foreign_forks", StoredRun("foreign_forks fork", rows, {}, "foreign_forks"))
        same((await journal.claim("foreign_forks fork")).imported, True, "imported")
        same((await journal.info("foreign_forks fork")).imported, True, "imported, as it is listed")


async def _told(journal: Journal, run_id: str) -> RowWriter:
    """A run of two rows, the second with a blob, that somebody holds."""
    pen = RowWriter(journal, await journal.claim(run_id, create=True))
    await pen.write(b"a")
    await pen.put(pen.row(b"b", refs=(("/text", blob_digest(DATA)),)), {blob_digest(DATA): DATA})
    return pen


def _fork(run_id: str, origin: str, rows: Sequence[Row], labels: Labels = NO_LABELS) -> StoredRun:
    """A run that begins with these rows, and goes on with one of its own that names a blob."""
    last, own = rows[-1], blob_digest(OWN)
    seq, epoch, at = last.seq + 1, last.epoch + 1, last.at + 60
    digest = chain(last.digest, seq, 1, epoch, at, b"fork", (), (own,), 1)
    row = Row(seq, 1, epoch, at, b"fork", (), digest, (own,), 1)
    return StoredRun(run_id, [*rows, row], {own: OWN}, origin, summary=b"summary", labels=labels)


CASES: tuple[Case, ...] = (forking, refused_forks, foreign_forks)
