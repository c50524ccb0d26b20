"""What the routes of one server share."""

from __future__ import annotations

import asyncio
import logging

from antiphon.host import Host
from antiphon.server.gate import CallerRates
from antiphon.server.subjects import Subjects


class Served:
    """A host, who may ask it, and whether it is being left. log: `antiphon.server`; it says no content."""

    def __init__(self, host: Host, subjects: Subjects, rates: CallerRates) -> None:
        self.host, self.subjects, self.rates = host, subjects, rates
        self.leaving = asyncio.Event()
        self.log = logging.getLogger("antiphon.server")
