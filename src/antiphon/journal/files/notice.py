"""Log records: the fields that each of ours has, and the records of journals.

Nothing is written where nobody listens, also not by Python's own last resort, which takes warnings that no
handler takes: a library is silent until the program says otherwise.
"""

from __future__ import annotations

import logging

LOG = logging.getLogger("antiphon.journal")


def fields(run_id: str = "", agent: str = "", effect_id: str = "") -> dict[str, str]:
    """What a record is about, for `extra=`; empty where it is about none, so that one format fits all."""
    return {"run_id": run_id, "agent": agent, "effect_id": effect_id}


def notice(text: str, *given: object) -> None:
    """Say what was found wrong with a journal's files, and put right as far as it can be."""
    if LOG.hasHandlers():
        LOG.warning(text, *given, extra=fields())
