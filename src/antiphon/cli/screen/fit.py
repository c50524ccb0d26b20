"""Whether a terminal can be drawn on."""

from __future__ import annotations

import os
import sys

PLAIN = "ANTIPHON_PLAIN"
"""Set to anything, the plain mode is used on every terminal, as screen readers want it."""


def fits() -> bool:
    """Whether this terminal can be drawn on so: one to read from and to write to, and not a dumb one."""
    streams = (sys.stdin, sys.stdout, sys.stderr)
    if os.name != "posix" or not all(each is not None and each.isatty() for each in streams):
        return False
    return not os.environ.get(PLAIN) and os.environ.get("TERM", "dumb") not in ("dumb", "unknown", "")
