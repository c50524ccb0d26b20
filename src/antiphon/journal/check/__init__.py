"""The conformance suite: what every journal must do, for ours and for yours.

    @pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
    def test_my_journal(case, tmp_path):
        asyncio.run(case(lambda: my_journal(tmp_path)))

`open_store()` returns an async context manager whose value is a journal; each call opens the same
store once more, and leaving the context closes the journal. Cases raise Nonconformant. Those that
need a second opening pass at once where durability is "none". Runs are named after their case,
so that all cases may share one store.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from functools import partial

from antiphon.errors import JournalCorrupt, JournalError, LeaseLost, RunInUse, UnknownName, UserError
from antiphon.journal.check.forks import CASES as FORKS
from antiphon.journal.check.listing import CASES as LISTING
from antiphon.journal.check.pages import CASES as PAGES
from antiphon.journal.check.snapshots import CASES as SNAPSHOTS
from antiphon.journal.check.whole_runs import CASES as WHOLE_RUNS
from antiphon.journal.check.whole_runs import Case, OpenStore
from antiphon.journal.listing import MAX_NAME
from antiphon.journal.port import (
    Lease,
    Row,
    StoredRun,
    blob_digest,
    chain,
    genesis,
)
from antiphon.journal.row_writer import PATIENCE_S, RowWriter, put
from antiphon.journal.row_writer import raises as _raises
from antiphon.journal.row_writer import same as _same


async def check_journal(open_store: OpenStore) -> None:
    """Run every case against one store. Raises Nonconformant at the first that fails."""
    for case in CASES:
        await case(open_store)


async def order(open_store: OpenStore) -> None:
    """Rows come back as they were appended, and `done` is called in their order."""
    async with open_store() as journal:
        pen = RowWriter(journal, await journal.claim("order", create=True))
        rows = [pen.row(b"body %d" % n, count=1 + n % 3) for n in range(500)]
        called: list[tuple[int, BaseException | None]] = []

        def note(seq: int, error: BaseException | None) -> None:
            called.append((seq, error))

        for row in rows[:-1]:
            journal.append(pen.lease, row, {}, partial(note, row.seq))
        await pen.put(rows[-1])
        _same(called, [(row.seq, None) for row in rows[:-1]], "done in order")
        _same(list(await journal.read("order")), rows, "rows read")


async def every_field(open_store: OpenStore) -> None:
    """A row is read as it was written: all fields, any bytes, any float."""
    async with open_store() as journal:
        lease = await journal.claim("every_field", create=True)
        digest, rows = lease.digest, []
        one, two = blob_digest(b"one"), blob_digest(b"two")
        bodies: Sequence[bytes] = (b"", bytes(range(256)), b"x" * 100_000)
        for seq, (body, at) in enumerate(zip(bodies, (0.1 + 0.2, 1e300, -1.5), strict=True), 1):
            refs = (("/a/0", one), ("/a~1b/\u00e4", two)) if seq == 2 else ()
            blobs = (two, one) if seq > 1 else ()
            digest = chain(digest, seq, 1, lease.epoch, at, body, refs, blobs, seq % 2)
            rows.append(Row(seq, 1, lease.epoch, at, body, refs, digest, blobs, seq % 2))
            await put(journal, lease, rows[-1], {one: b"one", two: b"two"})
        _same(list(await journal.read("every_field")), rows, "rows read")


async def read_after(open_store: OpenStore) -> None:
    """`after` leaves out the rows whose last event is not above it, and only those."""
    async with open_store() as journal:
        pen = RowWriter(journal, await journal.claim("read_after", create=True))
        rows = [pen.row(b"%d" % n, count=3) for n in range(5)]
        for row in rows:
            await pen.put(row)
        for after in range(17):
            got = [row.seq for row in await journal.read("read_after", after)]
            _same(got, [row.seq for row in rows if row.seq > after], f"read after {after}")


async def first_digest(open_store: OpenStore) -> None:
    """A new run starts at genesis with epoch 1; a later claim sees where the chain ends."""
    async with open_store() as journal:
        lease = await journal.claim("first_digest", create=True)
        _same(lease, Lease("first_digest", 1, 0, genesis("first_digest")), "first lease")
        _same(list(await journal.read("first_digest")), [], "rows of a new run")
        rows = await RowWriter(journal, lease).write(b"a", b"b")
        await journal.release(lease)
        _same(
            await journal.claim("first_digest"), Lease("first_digest", 2, 2, rows[-1].digest), "second lease"
        )


async def broken_chain(open_store: OpenStore) -> None:
    """A row that does not follow from those before it is never read as if it did."""
    async with open_store() as journal:
        pen = RowWriter(journal, await journal.claim("broken_chain", create=True))
        await pen.write(b"a", b"b")
        good = pen.row(b"c")
        bad = Row(good.seq, good.count, good.epoch, good.at, b"C", good.refs, good.digest)
        try:
            await pen.put(bad)
        except JournalError:
            return
        error = await _raises(JournalCorrupt, "reading a broken chain", _as(journal.read("broken_chain")))
        _same(
            (getattr(error, "run_id", ""), getattr(error, "seq", 0)),
            ("broken_chain", 3),
            "where it is damaged",
        )


async def given_events(open_store: OpenStore) -> None:
    """A row says how many of its events were given, in its digest too; one that cannot be is refused."""
    async with open_store() as journal:
        pen = RowWriter(journal, await journal.claim("given_events", create=True))
        rows = [pen.row(b"%d" % given, count=3, given=given) for given in (0, 1, 2, 3)]
        for row in rows:
            await pen.put(row)
        seq, digest = pen.seq, pen.digest
        for given in (-1, 4):
            await _raises(UserError, f"{given} of 3 events given", pen.put(pen.row(b"x", 3, given=given)))
            pen.seq, pen.digest = seq, digest
        # Nothing of it was queued: the lease is as good as before.
        rows.append(pen.row(b"y", given=1))
        await pen.put(rows[-1])
        _same(list(await journal.read("given_events")), rows, "rows read")
        good = pen.row(b"z", count=2, given=1)
        changed = Row(
            good.seq, 2, good.epoch, good.at, good.body, good.refs, good.digest, good.blobs, given=2
        )
        try:
            await pen.put(changed)
        except JournalError:
            return
        await _raises(JournalCorrupt, "reading a row that was given more", _as(journal.read("given_events")))


async def origins(open_store: OpenStore) -> None:
    """Runs of one origin have equal digests as long as they have equal rows; an origin never changes."""
    async with open_store() as journal:
        names = ("origins", "origins fork", "origins fork of the fork")
        pens = [
            RowWriter(journal, await journal.claim(name, create=True, origin=origin))
            for name, origin in zip(names, ("", "origins", "origins"), strict=True)
        ]
        _same({pen.digest for pen in pens}, {genesis("origins")}, "what their first rows follow")
        alike = [await pen.write(b"a", b"b") for pen in pens]
        _same(alike[1:], alike[:1] * 2, "their first rows")
        rows = [alike[0] + await pen.write(b"%d" % number) for number, pen in enumerate(pens)]
        _same(len({pen.digest for pen in pens}), 3, "digests of rows that differ")
        for name, origin, wrong in zip(names, ("", *names[:1] * 2), ("elsewhere", *names[1:]), strict=True):
            await journal.release(next(pen.lease for pen in pens if pen.lease.run_id == name))
            await _raises(UserError, f"{name} with another origin", journal.claim(name, origin=wrong))
            lease = await journal.claim(name, origin=origin)
            _same(lease.epoch, 2, f"epoch of {name}")
            await journal.release(lease)
        _same((await journal.claim(names[0], origin=names[0])).epoch, 3, "claimed with itself as its origin")
    async with open_store() as journal:
        if journal.durability == "none":
            return
        for name, origin, wanted in zip(names, ("", *names[:1] * 2), rows, strict=True):
            entry = next(entry for entry in await journal.runs() if entry.run_id == name)
            _same(entry.origin, origin, f"the origin of {name}, opened again")
            _same(list(await journal.read(name)), wanted, f"the rows of {name}")


async def gaps(open_store: OpenStore) -> None:
    """A row that leaves out or repeats a number is refused, and so is every later row of the lease."""
    for name, first, count in (
        ("gap", 4, 1),
        ("repeat", 2, 1),
        ("overlap", 3, 2),
        ("empty", 2, 0),
        ("backwards", 3, -1),
    ):
        async with open_store() as journal:
            pen = RowWriter(journal, await journal.claim(f"gaps {name}", create=True))
            rows, ends = [pen.row(b"a"), pen.row(b"b")], list[BaseException | None]()
            bad = Row(first, count, 1, 1.0, b"x", (), chain(pen.digest, first, count, 1, 1.0, b"x", ()))
            # Queued together, so that the refusal cannot rest on what was stored long ago.
            for row in (*rows, bad, pen.row(b"c")):
                journal.append(pen.lease, row, {}, ends.append)
            await _raises(JournalError, "a row after a refused one", pen.put(pen.row(b"d")))
            _same([type(end) for end in ends[:3]], [type(None)] * 2 + [LeaseLost], f"a row with a {name}")
            _same(isinstance(ends[3], JournalError), True, f"the row after one with a {name} is refused")
            _same(list(await journal.read(f"gaps {name}")), rows, "rows read after a refusal")
            again = RowWriter(journal, await journal.claim(f"gaps {name}"))
            late = Row(2, 1, 2, 1.0, b"x", (), chain(again.digest, 2, 1, 2, 1.0, b"x", ()))
            await _raises(LeaseLost, "a row numbered like one stored before", again.put(late))
            await RowWriter(journal, await journal.claim(f"gaps {name}")).write(b"c")


async def fencing(open_store: OpenStore) -> None:
    """A run has one owner; a claim fences every earlier lease, a row of another epoch is refused; other runs
    go on."""
    async with open_store() as journal:
        old = RowWriter(journal, await journal.claim("fencing", create=True))
        other = RowWriter(journal, await journal.claim("fencing other", create=True))
        kept = await old.write(b"a")
        await _raises(RunInUse, "claiming a run twice", journal.claim("fencing"))
        kept += await old.write(b"still mine")
        await journal.release(old.lease)
        new = RowWriter(journal, await journal.claim("fencing"))
        _same(new.lease.epoch, 2, "epoch after the second claim")
        refused, accepted = old.row(b"zombie"), other.row(b"unaffected")
        ends: list[BaseException | None] = []
        journal.append(old.lease, refused, {}, ends.append)
        await other.put(accepted)
        _same([type(end) for end in ends], [LeaseLost], "a fenced append")
        await _raises(LeaseLost, "the next fenced append", old.put(old.row(b"again")))
        forged = Row(3, 1, 1, 1.0, b"x", (), chain(new.digest, 3, 1, 1, 1.0, b"x", ()))
        await _raises(
            JournalError, "a row of an old epoch under a new lease", put(journal, new.lease, forged)
        )
        await journal.release(new.lease)
        newest = RowWriter(journal, await journal.claim("fencing"))
        kept += await newest.write(b"b")
        _same(list(await journal.read("fencing")), kept, "rows read")
        _same(list(await journal.read("fencing other")), [accepted], "rows of the other run")


async def unknown_run(open_store: OpenStore) -> None:
    """What does not exist is UnknownName for everything but a claim that may create."""
    async with open_store() as journal:
        for name, doing in (
            ("claim", journal.claim("nobody")),
            ("read", _as(journal.read("nobody"))),
            ("blob", journal.blob("nobody", blob_digest(b""))),
            ("post", journal.post("nobody", "k", b"")),
            ("command", _as(journal.commands("nobody"))),
            ("wait", journal.wait("nobody", 0, 0)),
        ):
            await _raises(UnknownName, name, doing)
        pen = RowWriter(journal, Lease("nobody", 1, 0, genesis("nobody")))
        await _raises(JournalError, "append", pen.put(pen.row(b"x")))


async def blobs_once(open_store: OpenStore) -> None:
    """A blob is kept for each run that names it, only for those, and verified."""
    data, elsewhere = b"\x00large\xff" * 2_000, b"other" * 1_000
    digest, other = blob_digest(data), blob_digest(elsewhere)
    async with open_store() as journal:
        one = RowWriter(journal, await journal.claim("blobs_once one", create=True))
        two = RowWriter(journal, await journal.claim("blobs_once two", create=True))
        await one.put(one.row(b"a", refs=(("/text", digest),)), {digest: data})
        await one.put(one.row(b"b", refs=(("/text", digest),), blobs=(other,)), {other: elsewhere})
        await two.put(two.row(b"c", blobs=(digest,)), {digest: data})
        for run_id in ("blobs_once one", "blobs_once two"):
            _same(await journal.blob(run_id, digest), data, f"the blob of {run_id}")
        _same(await journal.blob("blobs_once one", other), elsewhere, "a blob named in `blobs`")
        await _raises(JournalCorrupt, "a blob of another run", journal.blob("blobs_once two", other))
        await _raises(
            JournalCorrupt, "a blob nobody stored", journal.blob("blobs_once one", blob_digest(b"lost"))
        )


async def command_keys(open_store: OpenStore) -> None:
    """Commands are numbered from 1 in each run, taken once per key, and need no lease."""
    async with open_store() as journal:
        await journal.claim("command_keys", create=True)
        await journal.claim("command_keys other", create=True)
        first = await asyncio.gather(
            *(journal.post("command_keys", f"k{n % 10}", b"%d" % n) for n in range(100))
        )
        _same(first, [n < 10 for n in range(100)], "which posts were new")
        _same(await journal.post("command_keys other", "k1", b"mine"), True, "the same key in another run")
        got = await journal.commands("command_keys")
        _same(
            [(command.number, command.key, command.body) for command in got],
            [(n + 1, f"k{n}", b"%d" % n) for n in range(10)],
            "command",
        )
        _same(
            [command.number for command in await journal.commands("command_keys", 7)],
            [8, 9, 10],
            "commands after 7",
        )
        _same(
            [command.number for command in await journal.commands("command_keys", 10)],
            [],
            "commands after the last",
        )


async def waiting(open_store: OpenStore) -> None:
    """`wait` returns at once when there is something new, else when it comes: rows or commands."""
    async with open_store() as journal:
        pen = RowWriter(journal, await journal.claim("waiting", create=True))
        idle = asyncio.ensure_future(journal.wait("waiting", 10, 10))
        for seq, what in ((0, "row"), (1, "command"), (1, "row")):
            command = len(await journal.commands("waiting"))
            waiter = asyncio.ensure_future(journal.wait("waiting", seq, command))
            await journal.runs()
            _same(waiter.done(), False, f"waiting for a {what} that is not there")
            if what == "row":
                await pen.write(b"x")
            else:
                await journal.post("waiting", "k", b"")
            async with asyncio.timeout(PATIENCE_S):
                await waiter
                await journal.wait("waiting", seq, command)
        _same(idle.done(), False, "waiting for more than there is")
        idle.cancel()
        await _raises(asyncio.CancelledError, "a cancelled wait", idle)


async def list_of_runs(open_store: OpenStore) -> None:
    """Runs are listed newest first, with their end, epoch, owner and summary."""
    async with open_store() as journal:
        leases = [await journal.claim(f"list_of_runs {n}", create=True) for n in range(3)]
        row = (await RowWriter(journal, leases[1]).write(b"a", b"b"))[-1]
        journal.describe(leases[1], b'{"x":1}')
        await journal.release(leases[2])
        found = [entry for entry in await journal.runs() if entry.run_id.startswith("list_of_runs")]
        _same([entry.run_id for entry in found], [f"list_of_runs {n}" for n in (2, 1, 0)], "order of runs")
        _same([bool(entry.owner) for entry in found], [False, True, True], "who is owned")
        middle = found[1]
        _same(
            (middle.seq, middle.epoch, middle.summary, middle.updated_at),
            (2, 1, b'{"x":1}', row.at),
            "one entry",
        )
        _same(found[0].summary, b"", "no summary yet")


async def naming(open_store: OpenStore) -> None:
    """A run has no name until it is given one: any text, without a lease, beside the records."""
    async with open_store() as journal:
        lease = await journal.claim("naming", create=True)
        rows = await RowWriter(journal, lease).write(b"a")
        await _raises(UnknownName, "naming a run that is not there", journal.rename("nobody at all", "x"))
        for name in ("", "tides", "'; drop table runs; --", "\u00e4 \U0001f300", ""):
            await journal.rename("naming", name)
            entry = next(entry for entry in await journal.runs() if entry.run_id == "naming")
            _same((entry.name, entry.seq, entry.epoch), (name, 1, 1), "its entry")
        for name in ("two\nlines", "x" * (MAX_NAME + 1)):
            await _raises(UserError, "a name that is none", journal.rename("naming", name))
        await journal.rename("naming", "kept")
        await journal.release(lease, b"summary")
        place = journal.place
        _same((type(place), bool(place)), (str, True), "where its runs are: the type, and whether it says so")
    async with open_store() as journal:
        if journal.durability == "none":
            return
        _same(journal.place, place, "where its runs are, opened again")
        entry = next(entry for entry in await journal.runs() if entry.run_id == "naming")
        _same((entry.name, entry.summary, entry.seq), ("kept", b"summary", 1), "its entry, opened again")
        _same(list(await journal.read("naming")), rows, "its rows")


async def releasing(open_store: OpenStore) -> None:
    """Releasing waits for queued rows, ends the lease, keeps or sets the summary, harms no later owner."""
    async with open_store() as journal:
        pen = RowWriter(journal, await journal.claim("releasing", create=True))
        ends: list[BaseException | None] = []
        for n in range(50):
            journal.append(pen.lease, pen.row(b"%d" % n), {}, ends.append)
        await journal.release(pen.lease, b"summary")
        _same(ends, [None] * 50, "rows queued before a release")
        await _raises(JournalError, "an append after the release", pen.put(pen.row(b"late")))
        lease = await journal.claim("releasing")
        _same((lease.epoch, lease.seq), (2, 50), "the next lease")
        await journal.release(pen.lease, b"stale")
        journal.describe(pen.lease, b"stale")
        await RowWriter(journal, lease).write(b"still mine")
        entry = next(entry for entry in await journal.runs() if entry.run_id == "releasing")
        _same((entry.summary, bool(entry.owner)), (b"summary", True), "after a stale release")


async def closing(open_store: OpenStore) -> None:
    """Closing flushes, wakes who waits, may be repeated; afterwards everything is refused."""
    async with open_store() as journal:
        pen = RowWriter(journal, await journal.claim("closing", create=True))
        waiter = asyncio.ensure_future(journal.wait("closing", 99, 99))
        await journal.runs()
        ends: list[BaseException | None] = []
        for n in range(50):
            journal.append(pen.lease, pen.row(b"%d" % n), {}, ends.append)
        await journal.beat()
        await journal.close()
        await journal.close()
        _same(ends, [None] * 50, "rows queued before close")
        await _raises(JournalError, "a wait when the journal closes", waiter)
        await _raises(JournalError, "append after close", pen.put(pen.row(b"late")))
        await _raises(JournalError, "read after close", _as(journal.read("closing")))
        await _raises(JournalError, "claim after close", journal.claim("closing", create=True))
        await _raises(JournalError, "post after close", journal.post("closing", "k", b""))
        await _raises(JournalError, "restore after close", journal.restore(StoredRun("closing", [], {})))
        await _raises(JournalError, "delete after close", journal.delete("closing"))
        await _raises(JournalError, "compact after close", journal.compact())


async def reopening(open_store: OpenStore) -> None:
    """What was acknowledged is there when the store is opened again."""
    data = b"blob" * 3_000
    digest = blob_digest(data)
    async with open_store() as journal:
        if journal.durability == "none":
            return
        pen = RowWriter(journal, await journal.claim("reopening", create=True))
        rows = await pen.write(b"a", b"b")
        rows.append(pen.row(b"c", refs=(("/x", digest),)))
        await pen.put(rows[-1], {digest: data})
        await journal.post("reopening", "k", b"command")
        journal.describe(pen.lease, b"told")
    async with open_store() as journal:
        _same(list(await journal.read("reopening")), rows, "rows")
        _same(await journal.blob("reopening", digest), data, "the blob")
        _same([command.body for command in await journal.commands("reopening")], [b"command"], "the commands")
        _same(await journal.post("reopening", "k", b"command"), False, "a key used before")
        entry = next(entry for entry in await journal.runs() if entry.run_id == "reopening")
        _same((entry.seq, entry.epoch, entry.owner, entry.summary), (3, 1, "", b"told"), "its entry")
        lease = await journal.claim("reopening")
        _same(lease, Lease("reopening", 2, 3, rows[-1].digest), "the next lease")
        await RowWriter(journal, lease).write(b"d")


async def two_openings(open_store: OpenStore) -> None:
    """A living owner is respected until it lets go; its writes, and its commands, are seen from outside."""
    async with open_store() as one:
        if one.durability == "none":
            return
        async with open_store() as two:
            pen = RowWriter(one, await one.claim("two_openings", create=True))
            await _raises(RunInUse, "claiming a run of a living owner", two.claim("two_openings"))
            watcher = asyncio.ensure_future(two.wait("two_openings", 0, 0))
            rows = await pen.write(b"a")
            async with asyncio.timeout(PATIENCE_S):
                await watcher
            _same(list(await two.read("two_openings")), rows, "rows seen from outside")
            reader = asyncio.ensure_future(one.wait("two_openings", 1, 0))
            _same(await two.post("two_openings", "k", b"hello"), True, "a command from outside")
            async with asyncio.timeout(PATIENCE_S):
                await reader
            _same(await one.post("two_openings", "k", b"hello"), False, "the same key from inside")
            _same(
                [command.body for command in await one.commands("two_openings")],
                [b"hello"],
                "the owner's commands",
            )
            await one.release(pen.lease)
            taken = RowWriter(two, await two.claim("two_openings"))
            _same(taken.lease.epoch, 2, "epoch of the new owner")
            rows += await taken.write(b"b")
            await _raises(LeaseLost, "the old owner's append", pen.put(pen.row(b"zombie")))
            _same(list(await one.read("two_openings")), rows, "rows after the change of owner")


async def _as(doing: Awaitable[Sequence[object]]) -> Sequence[object]:
    return await doing


CASES: tuple[Case, ...] = (
    order,
    every_field,
    read_after,
    first_digest,
    broken_chain,
    given_events,
    origins,
    gaps,
    fencing,
    unknown_run,
    blobs_once,
    command_keys,
    waiting,
    list_of_runs,
    naming,
    releasing,
    closing,
    reopening,
    two_openings,
    *PAGES,
    *LISTING,
    *SNAPSHOTS,
    *WHOLE_RUNS,
    *FORKS,
)
