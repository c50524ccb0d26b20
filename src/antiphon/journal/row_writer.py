"""Rows for the conformance suite and for tests: numbered, chained, and appended one after the other."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping

from antiphon.journal.port import Journal, Lease, Refs, Row, chain

PATIENCE_S = 10.0
"""Seconds that a journal is given for one answer."""


class Nonconformant(AssertionError):
    """A journal broke the port's contract; the text says which sentence."""


def same(got: object, wanted: object, what: str) -> None:
    """Raise Nonconformant unless a journal did what was wanted of it."""
    if got != wanted:
        raise Nonconformant(f"{what}: got {got!r}, wanted {wanted!r}")


async def raises(kind: type[BaseException], what: str, doing: Awaitable[object]) -> BaseException:
    """The error of that kind that a journal raises. Raises Nonconformant when it raises none."""
    try:
        async with asyncio.timeout(PATIENCE_S):
            got = await doing
    except kind as error:
        return error
    raise Nonconformant(f"{what}: wanted {kind.__name__}, got {got!r}")


class RowWriter:
    """Writes rows of one lease, each properly chained to the one before."""

    def __init__(self, journal: Journal, lease: Lease) -> None:
        self.journal, self.lease = journal, lease
        self.seq, self.digest = lease.seq, lease.digest

    def row(
        self, body: bytes, count: int = 1, refs: Refs = (), blobs: tuple[str, ...] = (), given: int = 1
    ) -> Row:
        """The next row; the pen moves on."""
        self.seq += count
        at = 1_700_000_000.0 + self.seq / 7
        self.digest = chain(self.digest, self.seq, count, self.lease.epoch, at, body, refs, blobs, given)
        return Row(self.seq, count, self.lease.epoch, at, body, refs, self.digest, blobs, given)

    async def put(self, row: Row, blobs: Mapping[str, bytes] | None = None) -> None:
        """Append and wait. Raises what `done` was given."""
        await put(self.journal, self.lease, row, blobs)

    async def write(self, *bodies: bytes) -> list[Row]:
        """Append a row per body, wait for the last."""
        rows = [self.row(body) for body in bodies]
        for row in rows[:-1]:
            self.journal.append(self.lease, row, {}, _ignore)
        await self.put(rows[-1])
        return rows


async def put(journal: Journal, lease: Lease, row: Row, blobs: Mapping[str, bytes] | None = None) -> None:
    """Append one row and wait until it is durable. Raises what `done` was given."""
    end: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    journal.append(lease, row, blobs or {}, lambda error: _end(end, error))
    async with asyncio.timeout(PATIENCE_S):
        await end


def _end(future: asyncio.Future[None], error: BaseException | None) -> None:
    if future.done():
        raise Nonconformant("done was called twice")
    if error is None:
        future.set_result(None)
    else:
        future.set_exception(error)


def _ignore(error: BaseException | None) -> None:
    """For rows whose end another row's end implies."""
