"""What the routes of one server share."""

from __future__ import annotations

import asyncio
import logging
import traceback
from collections.abc import Mapping

from antiphon.host import Host
from antiphon.server.gate import CallerRates
from antiphon.server.subjects import Subjects
from antiphon.server.uploads import Uploads


class Served:
    """A host, who may ask it, and whether it is being left. log: `antiphon.server`; it says no content.

    commands: see `SessionView`.
    """

    def __init__(
        self, host: Host, subjects: Subjects, rates: CallerRates, commands: Mapping[str, str]
    ) -> None:
        self.host, self.subjects, self.rates, self.commands = host, subjects, rates, commands
        self.leaving, self.uploads = asyncio.Event(), Uploads()
        self.log = logging.getLogger("antiphon.server")

    def tell_fault(self, error: Exception) -> None:
        """Log where a fault came from. Not its text: that may hold what somebody said or a key."""
        lines = "".join(traceback.format_tb(error.__traceback__))
        self.log.error("request failed: %s at\n%s", type(error).__name__, lines)
