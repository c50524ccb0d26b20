"""What a person said with more than a line of text: to a question, or with files."""

from __future__ import annotations

from msgspec import Struct

from antiphon.values.message import Attachment
from antiphon.values.policy import Grant


class Given(Struct, frozen=True):
    """What a person said to a question. arguments: JSON, of an approval as edited. grant: how far `always`
    reaches. reason: of a `no`."""

    content: str
    arguments: str = ""
    grant: Grant | None = None
    reason: str = ""


class Sent(Struct, frozen=True):
    """A message with files."""

    text: str
    files: tuple[Attachment, ...]
