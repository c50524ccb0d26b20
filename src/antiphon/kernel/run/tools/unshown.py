"""Which files of a tool's result a model is not shown: what none takes, and what is too large for one."""

from __future__ import annotations

from msgspec.structs import replace

from antiphon.values.message import Attachment

TAKEN = frozenset(
    {
        "image/png", "image/jpeg", "image/gif", "image/webp", "application/pdf",
        "audio/wav", "audio/x-wav", "audio/wave", "audio/mpeg", "audio/mp3",
    }
)  # fmt: skip
"""What models take as it is, if they take files of that kind at all."""
MAX_FILE = 6_700_000
"""Characters of base64: 5 MB, what providers take of one picture."""
MAX_TEXT = 70_000
"""The same of a text, which becomes part of the prompt: about as much as of any other result."""


def unshown(files: tuple[Attachment, ...]) -> tuple[Attachment, ...]:
    """The files, those that a model is not shown marked so."""
    return tuple([each if _is_taken(each) else replace(each, shown=False) for each in files])


def _is_taken(file: Attachment) -> bool:
    if not file.data:
        # An address is short, and says itself what it leads to.
        return True
    kind = file.media_type.lower().partition(";")[0].strip()
    if kind in TAKEN:
        return len(file.data) <= MAX_FILE
    is_text = kind.startswith("text/") or kind == "application/json"
    return is_text and len(file.data) <= MAX_TEXT
