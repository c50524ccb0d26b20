"""What the routes of one server share."""

from __future__ import annotations

import asyncio

from antiphon.host import Host
from antiphon.server.gate import CallerRates
from antiphon.server.log import LOG, places_of
from antiphon.server.subjects import Subjects
from antiphon.server.uploads import Uploads


class Served:
    """A host, who may ask it, and whether it is being left."""

    def __init__(self, host: Host, subjects: Subjects, rates: CallerRates) -> None:
        self.host, self.subjects, self.rates = host, subjects, rates
        self.leaving, self.uploads = asyncio.Event(), Uploads()

    def tell_fault(self, error: Exception) -> None:
        """Log where a fault came from. Not its text: that may hold what somebody said or a key."""
        LOG.error("request failed: %s", " ".join(places_of(error)))
