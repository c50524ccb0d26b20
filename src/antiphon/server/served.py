"""What the routes of one server share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from antiphon.host import Host
from antiphon.server.gate import CallerRates
from antiphon.server.log import LOG, places_of
from antiphon.server.streams.encodings import Encodings, SharedChunks
from antiphon.server.subjects import Subjects
from antiphon.server.uploads import Uploads


class Served:
    """A host, who may ask it, and whether it is being left.

    event_encodings, update_encodings: of records and pieces as Server-Sent Events, and as messages of a
    WebSocket. event_chunks: of events, joined. readers: by any key, what makes a stream look whether it must
    end.
    commands: see `SessionView`.
    """

    def __init__(
        self, host: Host, subjects: Subjects, rates: CallerRates, commands: Mapping[str, str]
    ) -> None:
        self.host, self.subjects, self.rates, self.commands = host, subjects, rates, commands
        self.leaving, self.uploads = asyncio.Event(), Uploads()
        self.event_encodings, self.update_encodings = Encodings[bytes](), Encodings[str]()
        self.event_chunks = SharedChunks()
        self.readers: dict[int, Callable[[], None]] = {}
        subjects.on_revoked = self._wake

    def leave(self) -> None:
        """The server is being left: streams end."""
        self.leaving.set()
        self._wake()

    def _wake(self) -> None:
        for wake in tuple(self.readers.values()):
            wake()

    def tell_fault(self, error: Exception) -> None:
        """Log where a fault came from. Not its text: that may hold what somebody said or a key."""
        LOG.error("request failed: %s", " ".join(places_of(error)))
