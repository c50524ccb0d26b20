"""Cases of the conformance suite about whole runs: their ids, and taking them in from elsewhere."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager

from msgspec.structs import replace

from antiphon.errors import JournalError, RunInUse, UnknownName, UserError
from antiphon.journal.listing import MAX_NAME, RunInfo
from antiphon.journal.port import (
    MAX_ID,
    Journal,
    Lease,
    Row,
    StoredRule,
    StoredRun,
    blob_digest,
    chain,
    genesis,
)
from antiphon.journal.row_writer import PATIENCE_S, RowWriter, raises, same

OpenStore = Callable[[], AbstractAsyncContextManager[Journal]]
Case = Callable[[OpenStore], Awaitable[None]]

DATA = b"large \x00" * 2_000
BAD_IDS = (
    "",
    "x" * (MAX_ID + 1),
    "two\nlines",
    "\x1b]0;title\x07",
    "nul\0",
    "c1\x9b",
    "half\ud800",
    "\u202eturned",
)


async def ids(open_store: OpenStore) -> None:
    """What cannot be an id is refused before anything is stored, for runs, commands and names."""
    longest = "ids " + "x" * (MAX_ID - 4)
    async with open_store() as journal:
        for bad in BAD_IDS:
            await raises(UserError, f"claiming {bad[:20]!a}", journal.claim(bad, create=True))
        await journal.claim("ids", create=True)
        await journal.claim(longest, create=True)
        await journal.claim("ids '; drop table runs; -- \u00e4 \U0001f300", create=True)
        for bad in BAD_IDS:
            await raises(UserError, f"posting under {bad[:20]!a}", journal.post("ids", bad, b""))
            if bad:
                await raises(UserError, f"naming {bad[:20]!a}", journal.rename("ids", bad + "x" * MAX_NAME))
        same(await journal.post("ids", longest, b"x"), True, "a command under the longest key")
        same([each.key for each in await journal.commands("ids")], [longest], "keys")
        known = {entry.run_id for entry in await journal.runs()}
        same(sorted(known & set(BAD_IDS)), [], "runs whose ids are none")


def story(run_id: str, origin: str = "") -> StoredRun:
    """A run of three owners, the second of whom wrote nothing, with a blob."""
    digest, rows, blob = genesis(run_id, origin), list[Row](), blob_digest(DATA)
    for number, (epoch, refs) in enumerate(((1, ()), (1, (("/text", blob),)), (3, ())), 1):
        at, body = 1_700_000_000.0 + number, b"body %d" % number
        digest = chain(digest, 2 * number, 2, epoch, at, body, refs, (), 1)
        rows.append(Row(2 * number, 2, epoch, at, body, refs, digest, (), 1))
    return StoredRun(run_id, rows, {blob: DATA}, origin, "told elsewhere", b"summary")


async def restoring(open_store: OpenStore) -> None:
    """A run from elsewhere is stored as it was, once, is marked as such, and goes on like any other."""
    run = story("restoring", "restoring elsewhere")
    async with open_store() as journal:
        await journal.restore(run)
        same(list(await journal.read("restoring")), run.rows, "its rows")
        same(await journal.blob("restoring", blob_digest(DATA)), DATA, "its blob")
        entry = await _entry(journal, "restoring")
        same(
            (entry.seq, entry.epoch, entry.owner, entry.summary, entry.name, entry.origin, entry.imported),
            (6, 3, "", b"summary", "told elsewhere", "restoring elsewhere", True),
            "its entry",
        )
        same(entry.updated_at, run.rows[-1].at, "when it was last written")
        await raises(UserError, "the same run once more", journal.restore(run))
        lease = await journal.claim("restoring")
        same(lease, Lease("restoring", 4, 6, run.rows[-1].digest, imported=True), "its lease")
        rows = [*run.rows, *await RowWriter(journal, lease).write(b"here")]
        same(list(await journal.read("restoring")), rows, "its rows, when it has gone on")
        await journal.release(lease)
        same((await journal.claim("restoring")).imported, True, "imported, also when it was held before")
        same(await journal.post("restoring", "k", b"x"), True, "a command for it")
        await journal.restore(StoredRun("restoring nothing", [], {}))
        lease = await journal.claim("restoring nothing")
        same(lease, Lease("restoring nothing", 1, 0, genesis("restoring nothing"), imported=True), "no rows")
        same((await journal.claim("restoring beside", create=True)).imported, False, "a run made here")
    async with open_store() as journal:
        if journal.durability == "none":
            return
        same(list(await journal.read("restoring")), rows, "its rows, opened again")
        same((await _entry(journal, "restoring")).imported, True, "imported, opened again")
        same((await journal.claim("restoring")).imported, True, "its lease, opened again")


async def commands_elsewhere(open_store: OpenStore) -> None:
    """A run from elsewhere counts its commands on from those that its rows name."""
    async with open_store() as journal:
        await journal.restore(replace(story("commands_elsewhere"), commands=7))
        same(list(await journal.commands("commands_elsewhere")), [], "commands before there are any here")
        for key in ("a", "b"):
            await journal.post("commands_elsewhere", key, b"x")
        for after, wanted in ((0, [8, 9]), (7, [8, 9]), (8, [9]), (9, [])):
            found = [command.number for command in await journal.commands("commands_elsewhere", after)]
            same(found, wanted, f"commands after {after}")
        async with asyncio.timeout(PATIENCE_S):
            await journal.wait("commands_elsewhere", 99, 8)
        await journal.delete("commands_elsewhere")
        await journal.claim("commands_elsewhere", create=True)
        await journal.post("commands_elsewhere", "a", b"x")
        found = [command.number for command in await journal.commands("commands_elsewhere")]
        same(found, [1], "commands of a new run of that id")


async def foreign_runs(open_store: OpenStore) -> None:
    """A run that no journal could have written is refused as UserError, and nothing of it is stored."""
    good = story("foreign_runs")
    async with open_store() as journal:
        for what, bad in _bad_runs(good):
            await raises(UserError, f"a run {what}", journal.restore(bad))
            known = {entry.run_id for entry in await journal.runs()}
            same(bad.run_id in known, False, f"a run {what} is there")
        await journal.restore(good)
        same(list(await journal.read("foreign_runs")), good.rows, "the good one")
        await raises(JournalError, "a command of it", _as(journal.blob("foreign_runs", blob_digest(b"lost"))))
        await raises(UnknownName, "what was not taken in", journal.claim("foreign_runs elsewhere"))


def _bad_runs(good: StoredRun) -> list[tuple[str, StoredRun]]:
    other = b"other"
    return [
        *((f"with the id {bad[:20]!a}", replace(good, run_id=bad)) for bad in BAD_IDS),
        ("with the origin of another", replace(good, origin="foreign_runs elsewhere")),
        ("with an origin that is none", story("foreign_runs", "two\nlines")),
        *((f"with {count} commands", replace(good, commands=count)) for count in (-1, 2**62, 2**80)),
        ("with a name that is none", replace(good, name="two\nlines")),
        ("without its first row", replace(good, rows=good.rows[1:])),
        ("without a row", replace(good, rows=[good.rows[0], good.rows[2]])),
        ("without its blob", replace(good, blobs={})),
        ("with a changed blob", replace(good, blobs={blob_digest(DATA): other})),
        ("with a blob of nobody", replace(good, blobs={**good.blobs, blob_digest(other): other})),
        ("with a blob that is no text", _one_row(good, refs=(("/\ud800", blob_digest(DATA)),))),
        ("with a changed row", replace(good, rows=[*good.rows[:2], replace(good.rows[2], body=other)])),
        *(
            (f"with {field} = {value!r}", _one_row(good, **{field: value}))
            for field, values in BAD_NUMBERS.items()
            for value in values
        ),
    ]


BAD_NUMBERS: dict[str, tuple[float, ...]] = {
    "epoch": (0, -1, 2**40, 2**62, 2**63, 2**80),
    "at": (1e308, float("inf"), float("-inf"), float("nan"), -1.0),
    "count": (0, -1, 3, 2**31, 2**40),
    "seq": (0, -2, 1, 2**62, 2**70),
    "given": (-1, 3, 2**40),
}


def _one_row(good: StoredRun, **changes: object) -> StoredRun:
    """The run with its first row changed, and no other; its digest is right where there can be one."""
    row = replace(good.rows[0], **changes)
    try:
        digest = chain(
            genesis(good.run_id),
            row.seq,
            row.count,
            row.epoch,
            row.at,
            row.body,
            row.refs,
            row.blobs,
            row.given,
        )
    except (ValueError, struct.error):
        # A number or text for which there is no digest at all.
        digest = row.digest
    return replace(good, rows=[replace(row, digest=digest)], blobs=good.blobs if row.refs else {})


async def deleting(open_store: OpenStore) -> None:
    """A run that nobody holds is removed with all it held; its id may be used anew, other runs stay."""
    shared, own = b"shared" * 2_000, b"own" * 3_000
    names = blob_digest(shared), blob_digest(own)
    async with open_store() as journal:
        await raises(UnknownName, "deleting what is not there", journal.delete("deleting nobody"))
        pens = [
            RowWriter(journal, await journal.claim(f"deleting {n}", create=True)) for n in ("it", "another")
        ]
        for pen, kept in zip(pens, (names, names[:1]), strict=True):
            for number in range(5):
                await pen.put(pen.row(b"%d" % number, blobs=kept), {names[0]: shared, names[1]: own})
            await journal.post(pen.lease.run_id, "k", b"command")
        await journal.rename("deleting it", "called")
        await raises(RunInUse, "deleting a run that is held", journal.delete("deleting it"))
        same(len(await journal.read("deleting it")), 5, "rows of a run that is held")
        waiter = asyncio.ensure_future(journal.wait("deleting it", 99, 99))
        await journal.runs()
        await journal.release(pens[0].lease)
        await journal.delete("deleting it")
        await raises(UnknownName, "waiting for a run that is deleted", waiter)
        await raises(UnknownName, "deleting it twice", journal.delete("deleting it"))
        for doing in (
            journal.claim("deleting it"),
            _as(journal.read("deleting it")),
            journal.post("deleting it", "k", b""),
            _as(journal.commands("deleting it")),
            journal.blob("deleting it", names[0]),
            journal.rename("deleting it", "x"),
        ):
            await raises(UnknownName, "using a deleted run", doing)
        same("deleting it" in {entry.run_id for entry in await journal.runs()}, False, "listed")
        await raises(JournalError, "a row under its lease", pens[0].put(pens[0].row(b"late")))
        await _made_anew(journal, names)
        same(await journal.blob("deleting another", names[0]), shared, "a blob that another run names")
        same(len(await pens[1].write(b"more")), 1, "the other run goes on")
        same(len(await journal.commands("deleting another")), 1, "its commands")


async def _made_anew(journal: Journal, names: tuple[str, str]) -> None:
    """A run under the id of a deleted one knows nothing of it."""
    lease = await journal.claim("deleting it", create=True)
    same(lease, Lease("deleting it", 1, 0, genesis("deleting it")), "the lease of a new run of that id")
    same(list(await journal.read("deleting it")), [], "its rows")
    same(await journal.post("deleting it", "k", b"new"), True, "a key used in the deleted run")
    entry = await _entry(journal, "deleting it")
    same((entry.name, entry.summary), ("", b""), "its entry")
    # Named without being given: found only where somebody else keeps it.
    pen = RowWriter(journal, lease)
    await pen.put(pen.row(b"x", blobs=names[:1]))
    await journal.blob("deleting it", names[0])
    await raises(JournalError, "a blob that nobody named any more", journal.blob("deleting it", names[1]))


async def compacting(open_store: OpenStore) -> None:
    """Space is given back when nobody holds a run, and everything is as it was."""
    async with open_store() as journal:
        if any(entry.owner for entry in await journal.runs()):
            # Cases before this one hold some, where the store is one instance.
            return
        pen = RowWriter(journal, await journal.claim("compacting", create=True))
        rows = await pen.write(b"a", b"b")
        await raises(RunInUse, "compacting while a run is held", journal.compact())
        await journal.release(pen.lease)
        same(await journal.compact() >= 0, True, "bytes given back")
        same(list(await journal.read("compacting")), rows, "rows")
        same((await journal.claim("compacting")).epoch, 2, "the next lease")


async def standing_rules(open_store: OpenStore) -> None:
    """Rules are kept beside the runs, once per id, until they are dropped; those for a run go with it."""
    given = [
        StoredRule(f"standing {number}", scope, key, b'{"n":%d}' % number, 1e9 + number)
        for number, (scope, key) in enumerate(
            [("project", "shop"), ("owner", "ann"), ("run", "standing"), ("run", "standing too")]
        )
    ]
    async with open_store() as journal:
        for each in reversed(given):
            same(await journal.add_rule(each), True, f"adding {each.id}")
        same(await journal.add_rule(replace(given[0], body=b"other")), False, "adding an id twice")
        same(await _standing(journal), given, "rules, oldest first")
        for wrong in ({"id": ""}, {"scope": ""}, {"scope": "world"}, {"key": ""}, {"key": "a\nb"}):
            await raises(UserError, f"a rule with {wrong}", journal.add_rule(replace(given[0], **wrong)))
        await journal.release(await journal.claim("standing", create=True))
        await journal.delete("standing")
        await raises(UnknownName, "a rule for a run that was deleted", journal.drop_rule(given[2].id))
        await journal.drop_rule(given[1].id)
        await raises(UnknownName, "a rule that was dropped", journal.drop_rule(given[1].id))
        same(await _standing(journal), [given[0], given[3]], "rules that are left")
        durable = journal.durability != "none"
    if durable:
        async with open_store() as journal:
            same(await _standing(journal), [given[0], given[3]], "rules of the store when it is opened again")
    async with open_store() as journal:
        for each in await _standing(journal):
            await journal.drop_rule(each.id)


async def _standing(journal: Journal) -> list[StoredRule]:
    return [each for each in await journal.rules() if each.id.startswith("standing ")]


async def _entry(journal: Journal, run_id: str) -> RunInfo:
    return next(entry for entry in await journal.runs() if entry.run_id == run_id)


async def _as(doing: Awaitable[object]) -> object:
    return await doing


CASES: tuple[Case, ...] = (
    ids,
    restoring,
    commands_elsewhere,
    foreign_runs,
    deleting,
    compacting,
    standing_rules,
)
