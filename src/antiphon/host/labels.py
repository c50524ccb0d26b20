"""Whose a run is: its team, owner and project, kept with the first request that a host posts in it.

The key of that command says them, beside a digest of the whole request, so that they are as durable as the
request itself, and one posted twice under an idempotency key is known. Nobody else reads or writes them.
"""

from __future__ import annotations

from hashlib import blake2b

from msgspec import Struct

from antiphon.host.team import check_label
from antiphon.journal import Journal

_FIRST = "start"


class RunLabels(Struct, frozen=True):
    """What a run belongs to. Each is 1 to 40 letters, digits, dots, dashes and underscores, or empty."""

    team: str = ""
    """The team that does it; empty for a run that no host has started."""
    owner: str = ""
    """Who may see it; empty where nobody tells users apart."""
    project: str = ""
    """What it is a part of."""


class FirstCommand(Struct, frozen=True):
    """What was found of a run's first request: its labels, and the digest of all of it."""

    labels: RunLabels
    digest: str


def first_key(labels: RunLabels, request: bytes) -> str:
    """The key under which the first request is posted. Raises UserError for a label that is none."""
    for what in ("team", "owner", "project"):
        if getattr(labels, what):
            check_label(what, getattr(labels, what))
    digest = blake2b(request, digest_size=16).hexdigest()
    return ":".join((_FIRST, digest, labels.team, labels.owner, labels.project))


async def first_command(journal: Journal, run_id: str) -> FirstCommand | None:
    """The first request that a host has posted in a run; None when there is none. Raises UnknownName."""
    for stored in await journal.commands(run_id):
        parts = stored.key.split(":")
        if len(parts) == 5 and parts[0] == _FIRST:
            return FirstCommand(RunLabels(*parts[2:]), parts[1])
    return None
