"""A run as Server-Sent Events: every record once, in order, over disconnects and restarts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Annotated, Any, Literal

import msgspec
from litestar import Request, get
from litestar.params import FromPath, FromQuery, HeaderParameter, QueryParameter
from litestar.response import Stream

from antiphon.errors import AntiphonError
from antiphon.kernel.facts.records import Record, ReplyDelta
from antiphon.server.gate import caller_of
from antiphon.server.permissions import allowed
from antiphon.server.problems import Refusal, refusal_of
from antiphon.server.routes.loading import FromHost, FromServed, FromSubject, loaded
from antiphon.server.served import Served
from antiphon.server.subjects import Subject
from antiphon.view import RunConnection
from antiphon.view.connection import RunEvents
from antiphon.view.frames import FrameReader, encode

ALIVE_SECONDS = 15.0
"""After so long without anything a comment says that the stream lives."""
_encode = msgspec.json.Encoder().encode


@get("/runs/{run_id:str}/events", summary="Follow a run", media_type="text/event-stream", **allowed("read"))
async def events(
    request: Request[Any, Any, Any], run_id: FromPath[str], host: FromHost, subject: FromSubject,
    served: FromServed, after: Annotated[int, QueryParameter(ge=0)] = 0, deltas: FromQuery[bool] = True,
    view: FromQuery[Literal["records", "frames"]] = "records",
    last_event_id: Annotated[str, HeaderParameter(name="Last-Event-ID")] = "",
) -> Stream:  # fmt: skip
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
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    found = run.events(after, deltas=deltas)
    shown: AsyncGenerator[bytes] = map_events(found) if view == "records" else frames_of(run, found, after)
    stream = _follow(shown, served, subject, caller)
    return Stream(stream, media_type="text/event-stream", headers=headers)


async def map_events(events: RunEvents) -> AsyncGenerator[bytes]:
    """Records and pieces as events."""
    async with aclosing(events):
        async for item in events:
            yield event_of(item)


async def frames_of(run: RunConnection, events: RunEvents, after: int) -> AsyncGenerator[bytes]:
    """Frames and pieces as events; what lies before `after` is read, since a frame tells what changed."""
    reader = FrameReader()
    async with aclosing(events):
        if after:
            async with aclosing(run.events(0, deltas=False)) as before:
                async for item in before:
                    if isinstance(item, Record):
                        reader.add(item)
                    if reader.seq >= after:
                        break
        async for item in events:
            if isinstance(item, Record):
                yield b"id: %d\nevent: frame\ndata: %b\n\n" % (item.seq, encode(reader.add(item)))
            else:
                yield event_of(item)


async def _follow(
    shown: AsyncGenerator[bytes], served: Served, subject: Subject, caller: str
) -> AsyncGenerator[bytes]:
    pending: asyncio.Future[bytes] | None = None
    leaving = asyncio.ensure_future(served.leaving.wait())
    end: dict[str, Any] = {}
    try:
        yield b": antiphon\nretry: 1000\n\n"
        while not end:
            pending = pending or asyncio.ensure_future(anext(shown))
            waited: set[asyncio.Future[Any]] = {pending, leaving}
            await asyncio.wait(waited, timeout=ALIVE_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            if not served.subjects.is_known(subject):
                end = {"reason": "token"}
            elif pending.done():
                done, pending = pending, None
                try:
                    yield done.result()
                except StopAsyncIteration:
                    end = {"reason": "closed"}
                except AntiphonError as error:
                    end = {"reason": "failed", "problem": refusal_of(error).problem}
            elif leaving.done():
                end = {"reason": "server_left"}
            else:
                yield b": alive\n\n"
        yield b"event: end\ndata: " + _encode(end) + b"\n\n"
    finally:
        served.rates.disconnect(caller)
        leaving.cancel()
        if pending is not None:
            pending.cancel()
            await asyncio.wait((pending,))
        await shown.aclose()


def event_of(item: Record | ReplyDelta) -> bytes:
    """A record or a piece as an event. JSON holds no line break, so it is one line."""
    if isinstance(item, Record):
        return b"id: %d\nevent: record\ndata: %b\n\n" % (item.seq, _encode(item))
    return b"event: delta\ndata: %b\n\n" % _encode(item)
