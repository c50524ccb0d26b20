"""The spans of a run while it goes on, from the records that are durable."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import aclosing

from antiphon.journal import Journal
from antiphon.kernel.run.rows import RecordReader
from antiphon.view.traces.run_trace import RunTrace
from antiphon.view.traces.span import RunSpan

SendSpans = Callable[[Sequence[RunSpan]], None]
"""Takes spans that have ended, a few at a time; it must not wait."""
LOG = logging.getLogger("antiphon.traces")


class LiveTrace:
    """Sends the spans of one run as they end. What fails here, or in `send`, is logged: no run stops for it.

    after: spans that ended with a record up to this one were sent by whoever drove the run before.
    """

    def __init__(
        self, journal: Journal, run_id: str, send: SendSpans, after: int = 0, *, content: bool = False
    ) -> None:
        self._reader, self._trace = RecordReader(journal, run_id), RunTrace(content=content)
        self._run_id, self._send, self._after = run_id, send, after
        self._failed = False

    async def follow(self) -> None:
        """Send them as records come, until it is cancelled; then `read_on` sends what has ended since."""
        while not self._failed:
            await self.read_on()
            await self._reader.wait()

    async def read_on(self) -> None:
        """Send the spans that have ended since."""
        if self._failed:
            return
        try:
            async with aclosing(self._reader.records()) as records:
                async for record in records:
                    spans = self._trace.add(record)
                    if spans and record.seq > self._after:
                        self._send(spans)
        except Exception as error:  # noqa: BLE001 - a collector that is away must not stop a run
            self._failed = True
            LOG.warning("No more spans of run %s: %s", self._run_id, type(error).__name__)
