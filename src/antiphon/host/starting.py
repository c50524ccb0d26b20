"""How a run is started once, and what a host refuses."""

from __future__ import annotations

import json
from hashlib import blake2b
from typing import Any

from msgspec import Struct

from antiphon.errors import UserError

KEY_LENGTH = 200
"""Characters of an idempotency key."""


class StartedRun(Struct, frozen=True):
    """A run that a host has started, or has started before under that key."""

    run_id: str
    created: bool
    """False: the same was asked for under the same key before."""


class KeyUsed(UserError):
    """An idempotency key came a second time, with another request."""


class HostDraining(UserError):
    """A host is being left, and starts nothing more."""


class NotMoved(UserError):
    """A run's team is not where the run was to be moved."""


def run_of(owner: str, key: Any) -> str:
    """The id of the run that an owner's idempotency key starts."""
    if not isinstance(key, str) or not 0 < len(key) <= KEY_LENGTH or not key.isprintable():
        raise UserError(f"An idempotency key is 1 to {KEY_LENGTH} visible characters; give another one")
    return "k" + blake2b(json.dumps([owner, key]).encode(), digest_size=16).hexdigest()
