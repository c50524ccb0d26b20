"""Routes that take a run out of the journal as a file, and in again."""

from __future__ import annotations

import asyncio

from litestar import Response, get, post
from litestar.params import JSONBody
from msgspec.structs import replace

from antiphon.errors import JournalError, UserError
from antiphon.journal.listing import Labels
from antiphon.server.permissions import allowed
from antiphon.server.problems import Refusal
from antiphon.server.routes.bodies import RunCreated
from antiphon.server.routes.loading import FromHost, FromRun, FromSubject
from antiphon.view.export_file import Export, checked, export_of, stored

WAITING = "Commands-Waiting"
MAX_IMPORT = 64 << 20
"""Bytes of a file that is taken in over the network; larger ones by `antiphon runs import`."""


@get("/runs/{run_id:str}/export", summary="A run as a file", **allowed("read"))
async def export_run(run: FromRun, host: FromHost) -> Response[Export]:
    """All of a run with its digests, as `antiphon runs export` writes it, for `verify` and `import`.

    The header Commands-Waiting says how many commands its records do not hold yet.
    """
    found, state = await export_of(host.journal, await host.info(run.run_id))
    waiting = sum(each.number > state.command for each in await host.journal.commands(run.run_id))
    return Response(found, headers={WAITING: str(waiting)})


@post(
    "/runs/import", status_code=201, summary="Take in a run from a file", request_max_body_size=MAX_IMPORT,
    **allowed("write"),
)  # fmt: skip
async def import_run(data: JSONBody[Export], host: FromHost, subject: FromSubject) -> RunCreated:
    """Take in what an export gave, up to 64 MiB: all of it is checked, then stored, or nothing.

    It keeps its id and is marked as imported: it is nobody's, and only who sees every run may do this.
    """
    if not subject.sees_all:
        raise Refusal(403, "scope", "An imported run is nobody's", "Ask somebody who sees every run")
    try:
        run = await asyncio.to_thread(checked, stored(data, "the body"))
    except JournalError as error:
        raise Refusal(400, "damaged", str(error), "Export the run again") from error
    try:
        await host.journal.restore(replace(run, labels=Labels()))
    except UserError as error:
        raise Refusal(409, "exists", str(error), "Look at the run that is here") from error
    return RunCreated(run.run_id, True)
