"""A run as Server-Sent Events: every record once, in order, over disconnects and restarts."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any, Literal

from litestar import Request, get
from litestar.params import FromPath, FromQuery, HeaderParameter, QueryParameter

from antiphon.server.gate import caller_of
from antiphon.server.permissions import allowed
from antiphon.server.problems import Refusal
from antiphon.server.routes.loading import FromHost, FromServed, FromSubject, loaded
from antiphon.server.streams.event_stream import EventStream, EventStreamResponse
from antiphon.server.streams.frames import frames_of


@get("/runs/{run_id:str}/events", summary="Follow a run", media_type="text/event-stream", **allowed("read"))
async def events(
    request: Request[Any, Any, Any], run_id: FromPath[str], host: FromHost, subject: FromSubject,
    served: FromServed, after: Annotated[int, QueryParameter(ge=0)] = 0, deltas: FromQuery[bool] = True,
    view: FromQuery[Literal["records", "frames"]] = "records",
    last_event_id: Annotated[str, HeaderParameter(name="Last-Event-ID")] = "",
) -> EventStreamResponse:  # fmt: skip
    """Records after `after`, or the header Last-Event-ID, and those that come; `id` is a record's number.

    Events: `record`, or `frame` with `view=frames`: what the record changed, as flat JSON; `delta`, a piece
    of a reply, which has no id since a record will hold all of it; `end` with the reason `closed`,
    `server_left`, `token` (revoked or expired) or `failed`, with the problem. A comment each 15 s without
    anything else.
    """
    async with loaded(host, subject, run_id) as run:
        if last_event_id:
            if not last_event_id.isascii() or not last_event_id.isdigit() or len(last_event_id) > 18:
                raise Refusal(
                    400, "cursor", "Last-Event-ID is the number of a record", "Send what `id` said last"
                )
            after = int(last_event_id)
        if after > run.seq:
            raise Refusal(
                400,
                "cursor",
                f"The cursor {after} is of the future: the last record is {run.seq}",
                "Begin with an earlier one",
            )
    caller = caller_of(request.scope, subject)
    served.rates.connect(caller)
    frames = frames_of(host, run_id) if view == "frames" else None
    is_known = partial(served.subjects.is_known, subject)
    found = EventStream(
        run.events(after, deltas=deltas), frames, served, is_known, partial(served.rates.disconnect, caller)
    )
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return EventStreamResponse(found, media_type="text/event-stream", headers=headers)
