"""Given: what a person said to a question with the keys of a panel."""

from __future__ import annotations

from msgspec import Struct

from antiphon.values.policy import Grant


class Given(Struct, frozen=True):
    """What a person said to a question. arguments: JSON, of an approval as edited. grant: how far `always`
    reaches. reason: of a `no`."""

    content: str
    arguments: str = ""
    grant: Grant | None = None
    reason: str = ""
