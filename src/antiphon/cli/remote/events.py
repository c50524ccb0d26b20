"""A run's stream from a server: every record once, in order, over cuts and restarts."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from urllib.parse import quote

import httpx2
from msgspec import Struct

from antiphon.cli.remote.client import ServerClient, ServerFault, ServerProblem, ServerRefused
from antiphon.errors import ModelError
from antiphon.kernel.facts.events import RunClosed
from antiphon.kernel.facts.records import Record, ReplyDelta
from antiphon.kernel.run.live.feed import Ended
from antiphon.models.sse import ServerEvent, SSEReader

PAUSES = (0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
"""Seconds before each new attempt; the last one again and again."""
GIVE_UP_SECONDS = 300.0
"""How long a server may be away, at least, before that is an error."""
IDLE_SECONDS = 45.0
"""A server says every 15 s that it lives; one that has not for so long is taken for gone."""
STEADY_SECONDS = 10.0
"""A connection that lives so long counts, also when nothing happens in the run."""
MAX_EVENT = 64 << 20
"""Bytes of a record."""


class StreamEnd(Struct, frozen=True):
    """Why a server ends a stream."""

    reason: str
    problem: ServerProblem | None = None


class ServerEvents:
    """An async iterator over records numbered above `after`, and pieces of replies as they come.

    It ends with the run's close. tell: what is said to the person when the connection is cut, and when it is
    there again, once each. It may be cancelled anywhere: what was not handed out comes again. position: the
    number of the last record that was handed out. check: awaited while nothing happens; what it raises ends
    it.
    """

    def __init__(
        self, client: ServerClient, run_id: str, after: int, deltas: bool, tell: Callable[[str], object],
        check: Callable[[], Awaitable[None]] | None = None,
    ) -> None:  # fmt: skip
        self.position = after
        self.ended: Ended = ""
        self._client, self._run_id, self._deltas, self._tell = client, run_id, deltas, tell
        self._check = check
        self._found: deque[Record | ReplyDelta] = deque()
        self._said: dict[tuple[str, str, int], int] = {}
        self._stack = AsyncExitStack()
        self._chunks: AsyncIterator[bytes] | None = None
        self._reader = SSEReader()
        self._failed = 0
        self._away = self._opened = 0.0
        self._over = False

    def __aiter__(self) -> ServerEvents:
        return self

    async def __anext__(self) -> Record | ReplyDelta:
        while not self._over:
            if self._found:
                return self._given(self._found.popleft())
            try:
                await self._read_on()
            except (ServerFault, ServerRefused) as error:
                await self._drop()
                if not error.passing:
                    raise
                await self._pause(error)
            except BaseException:
                # Whoever was interrupted here begins with the last record that was handed out.
                await self._drop()
                raise
        await self._drop()
        raise StopAsyncIteration

    def wake(self) -> None:
        """See Subscription; nothing is lost here."""

    def close(self) -> None:
        """Stop watching. `aclose` ends the connection, too."""
        self._over = True

    async def aclose(self) -> None:
        """`close`, for `contextlib.aclosing`."""
        self.close()
        await self._drop()

    # -- reading ------------------------------------------------------------------------------

    async def _read_on(self) -> None:
        if self._chunks is None:
            self._chunks = await self._open()
        try:
            async with asyncio.timeout(IDLE_SECONDS):
                chunk = await anext(self._chunks)
        except StopAsyncIteration:
            raise ServerFault("The stream was cut", passing=True) from None
        except TimeoutError as error:
            said = f"The server at {self._client.url} says nothing any more"
            raise ServerFault(said, passing=True) from error
        except (httpx2.HTTPError, httpx2.StreamError, OSError) as error:
            said = f"The connection was cut: {self._client.said(str(error))}"
            raise ServerFault(said, passing=True) from error
        try:
            events = self._reader.feed(chunk)
        except ModelError as error:
            raise ServerFault(f"The server at {self._client.url}: {self._client.said(error.text)}") from None
        for each in events:
            self._take(each)
        if self._found or asyncio.get_running_loop().time() > self._opened + STEADY_SECONDS:
            self._is_back()
        if self._check is not None and not events and not self._over:
            await self._check()

    async def _open(self) -> AsyncIterator[bytes]:
        known = {"last-event-id": str(self.position), "accept": "text/event-stream"}
        path = f"/runs/{quote(self._run_id, safe='')}/events"
        try:
            async with asyncio.timeout(IDLE_SECONDS):
                answer = await self._stack.enter_async_context(
                    self._client.stream("GET", path, query={"deltas": self._deltas}, headers=known)
                )
        except TimeoutError as error:
            said = f"The server at {self._client.url} does not answer"
            raise ServerFault(said, passing=True) from error
        self._opened = asyncio.get_running_loop().time()
        self._reader = SSEReader(max_line=MAX_EVENT, max_event=MAX_EVENT)
        chunks = answer.aiter_bytes()
        # A connection that is dropped leaves no generator to be closed by chance.
        self._stack.push_async_callback(chunks.aclose)
        return chunks

    async def _drop(self) -> None:
        self._found.clear()
        stack, self._stack, self._chunks = self._stack, AsyncExitStack(), None
        await stack.aclose()

    def _take(self, event: ServerEvent) -> None:
        if event.event == "record":
            record = self._client.decoded(event.data, Record)
            last = self._newest()
            if record.seq <= last and record.run_id == self._run_id:
                return
            check_next(self._client, record, self._run_id, last)
            self._found.append(record)
        elif event.event == "delta":
            delta = self._client.decoded(event.data, ReplyDelta)
            if delta.kind == "queued" and not (delta.text.isdecimal() and len(delta.text) < 10):
                raise ServerFault(f"The server at {self._client.url} sends a place in a line that is none")
            if (rest := self._unsaid(delta)) is not None:
                self._found.append(rest)
        elif event.event == "end":
            self._end(self._client.decoded(event.data, StreamEnd))

    def _newest(self) -> int:
        return next((each.seq for each in reversed(self._found) if isinstance(each, Record)), self.position)

    def _end(self, end: StreamEnd) -> None:
        if end.reason == "closed":
            if not any(
                isinstance(each, Record) and isinstance(each.event, RunClosed) for each in self._found
            ):
                self._over, self.ended = True, "closed"
        elif end.reason == "server_left":
            raise ServerFault("The server was left", passing=True)
        else:
            problem = end.problem or ServerProblem(
                "The token is not valid any more", "urn:antiphon:problem:token"
            )
            raise self._client.refusal_of(problem, 401 if end.reason == "token" else 500)

    def _unsaid(self, delta: ReplyDelta) -> ReplyDelta | None:
        """The part of a piece that was not handed out: a new connection begins with all that is said."""
        if delta.kind in ("queued", "progress", "void"):
            return delta
        known = self._said.get((delta.effect_id, delta.kind, delta.index), 0)
        if delta.offset + len(delta.text) <= known:
            return None
        if delta.offset < known:
            left = delta.text[known - delta.offset :]
            return ReplyDelta(
                delta.effect_id, delta.activation, delta.agent, delta.kind, left, delta.index, known
            )
        return delta

    def _given(self, item: Record | ReplyDelta) -> Record | ReplyDelta:
        if isinstance(item, Record):
            self.position = item.seq
            if isinstance(item.event, RunClosed):
                self._over, self.ended = True, "closed"
            ended = getattr(item.event, "id", "")
            for key in [each for each in self._said if each[0] == ended]:
                del self._said[key]
        else:
            self._said[item.effect_id, item.kind, item.index] = item.offset + len(item.text)
        return item

    # -- reconnecting -------------------------------------------------------------------------

    async def _pause(self, error: Exception) -> None:
        """Say once that it is cut, and wait longer each time. Raises when it was away for too long."""
        if not self._failed:
            self._tell(f"(the connection to {self._client.url} was cut; reconnecting)")
        pause = PAUSES[min(self._failed, len(PAUSES) - 1)]
        if self._away >= GIVE_UP_SECONDS:
            raise ServerFault(
                f"The server at {self._client.url} did not come back within {GIVE_UP_SECONDS:g} s: {error}"
            ) from error
        self._failed += 1
        self._away += pause
        await asyncio.sleep(pause)

    def _is_back(self) -> None:
        if self._failed:
            self._tell("(connected again)")
        self._failed, self._away = 0, 0.0


def check_next(client: ServerClient, record: Record, run_id: str, last: int) -> None:
    """Raise ServerFault for a record that does not follow record `last` of a run."""
    if record.run_id != run_id or record.seq != last + 1:
        raise ServerFault(
            f"The server at {client.url} sends record {record.seq} after {last}: some were lost"
        )
