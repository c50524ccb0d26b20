"""How a run begins in a host: its labels, and the first request, by which one asked for twice is known."""

from __future__ import annotations

from hashlib import blake2b

from antiphon.host.team import check_label
from antiphon.journal import Journal
from antiphon.journal.listing import Labels

_FIRST = "start:"


def checked(labels: Labels) -> Labels:
    """The labels of a run that a host starts: each stands in addresses too. Raises UserError."""
    for what in Labels.__struct_fields__:
        if getattr(labels, what):
            check_label(what, getattr(labels, what))
    return labels


def first_key(labels: Labels, request: bytes, *choices: str) -> str:
    """The key under which the first request of a run is posted; it says what was asked, and for whom.

    choices: what else was chosen for the run; empty texts say nothing.
    """
    told = repr((labels.project, labels.owner, labels.team)).encode()
    if any(choices):
        told += repr(choices).encode()
    return _FIRST + blake2b(told + request, digest_size=16).hexdigest()


async def known_first(journal: Journal, run_id: str) -> str:
    """The key of the first request that a host has posted in a run; empty when there is none yet.

    Raises UnknownName.
    """
    keys = (stored.key for stored in await journal.commands(run_id))
    return next((key for key in keys if key.startswith(_FIRST)), "")
