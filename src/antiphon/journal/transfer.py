"""transfer: a run from elsewhere, put into a journal as it was: the same rows, the same digests."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial

from antiphon.errors import UserError
from antiphon.journal.port import Journal, Row


async def restore(
    journal: Journal,
    run_id: str,
    rows: Sequence[Row],
    blobs: Mapping[str, bytes],
    summary: bytes = b"",
    *,
    origin: str = "",
) -> None:
    """Store a run whose rows were found good; it can then be gone on with like any other.

    Raises UserError when the journal has the run already, JournalError when it cannot be written; what
    was stored until then is a run that ends earlier.
    """
    if any(entry.run_id == run_id for entry in await journal.runs()):
        raise UserError(f"Run {run_id} is in this journal already")
    lease = await journal.claim(run_id, create=True, origin=origin)
    stored: asyncio.Future[None] | None = None
    for row in rows:
        # Each owner's rows are written as by that owner: taking a run over makes the epoch grow.
        while lease.epoch < row.epoch:
            await journal.release(lease)
            lease = await journal.claim(run_id)
        stored = asyncio.get_running_loop().create_future()
        named = {name: blobs[name] for name in (*row.blobs, *(each for _, each in row.refs))}
        journal.append(lease, row, named, partial(_settle, stored))
    if stored is not None:
        # Rows keep their order, and none follows one that failed.
        await stored
    await journal.release(lease, summary)


def _settle(stored: asyncio.Future[None], error: BaseException | None) -> None:
    if error is None:
        stored.set_result(None)
    else:
        stored.set_exception(error)
        # Only the last one is waited for.
        stored.exception()
