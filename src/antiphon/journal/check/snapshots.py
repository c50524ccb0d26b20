"""Cases of the conformance suite about snapshots: a cache beside each run, that is right or not there."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence

from antiphon.errors import UnknownName
from antiphon.journal.check.whole_runs import Case, OpenStore
from antiphon.journal.port import Journal, Row, RunSnapshot, StoredRun
from antiphon.journal.row_writer import RowWriter, raises, same


def _of(row: Row, data: bytes) -> RunSnapshot:
    return RunSnapshot(row.seq, row.digest, b"a fold", data)


async def snapshots(open_store: OpenStore) -> None:
    """The last one that was kept is read, whole; it goes when it is taken away, and with its run."""
    async with open_store() as journal:
        pen = RowWriter(journal, await journal.claim("snapshots", create=True))
        same(await journal.snapshot("snapshots"), None, "the snapshot of a new run")
        one, two = await pen.write(b"one", b"two")
        journal.keep_snapshot(pen.lease, _of(one, bytes(range(256))))
        kept = _of(two, b"x" * 100_000)
        journal.keep_snapshot(pen.lease, kept)
        await journal.release(pen.lease)
        same(await journal.snapshot("snapshots"), kept, "what is read of a run with two snapshots")
    async with open_store() as journal:
        if journal.durability == "none":
            return
        same(await journal.snapshot("snapshots"), kept, "a snapshot, opened again")
        lease = await journal.claim("snapshots")
        journal.keep_snapshot(lease, None)
        await journal.release(lease)
        same(await journal.snapshot("snapshots"), None, "a snapshot that was taken away")
        await journal.delete("snapshots")
        await raises(UnknownName, "the snapshot of a run that is gone", _as(journal.snapshot("snapshots")))


async def snapshots_of_owners(open_store: OpenStore) -> None:
    """Nothing is kept for a record that is not there, or for whoever holds the run no more."""
    async with open_store() as journal:
        pen = RowWriter(journal, await journal.claim("snapshots_of_owners", create=True))
        (row,) = await pen.write(b"a row")
        journal.keep_snapshot(pen.lease, _of(pen.row(b"never written"), b"ahead"))
        await journal.release(pen.lease)
        same(await _kept(journal), None, "a snapshot of a record that the run does not have")
        lease = await journal.claim("snapshots_of_owners")
        journal.keep_snapshot(pen.lease, _of(row, b"of an earlier owner"))
        await journal.release(lease)
        same(await _kept(journal), None, "a snapshot of an earlier owner")


async def snapshots_stay(open_store: OpenStore) -> None:
    """A run that comes from elsewhere has none, and of a run's name none either that another had before."""
    async with open_store() as journal:
        pen = RowWriter(journal, await journal.claim("snapshots_stay", create=True))
        (row,) = await pen.write(b"a row")
        journal.keep_snapshot(pen.lease, _of(row, b"of the first"))
        await journal.release(pen.lease)
        await journal.delete("snapshots_stay")
        await journal.restore(StoredRun("snapshots_stay", [row], {}))
        same(await journal.snapshot("snapshots_stay"), None, "the snapshot of a run that was taken in")


async def _kept(journal: Journal) -> RunSnapshot | None:
    return await journal.snapshot("snapshots_of_owners")


async def _as(doing: Awaitable[object]) -> object:
    return await doing


CASES: Sequence[Case] = (snapshots, snapshots_of_owners, snapshots_stay)
