"""Codec: user data as JSON and back, and texts that can be stored and sent."""

from __future__ import annotations

from operator import is_not
from typing import Any, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

_encoder = msgspec.json.Encoder()
encode_value = _encoder.encode
"""Any JSON-able value to the bytes of the one codec."""


_Value = TypeVar("_Value")


def stored(value: _Value) -> _Value:
    """A value as a journal will give it back. Raises TypeError, ValueError for one it cannot hold."""
    return msgspec.json.decode(_encoder.encode(value), type=type(value))


S = TypeVar("S", bound=Struct)


def clean_text(text: str) -> str:
    """The text with each half of a surrogate pair replaced, so that it can be stored and sent.

    One of a class of its own (an enum, a marked-up text) is a plain text then. Raises TypeError for anything
    but a text, bytes too.
    """
    if str.isascii(text):
        return text if type(text) is str else str.__str__(text)
    try:
        str.encode(text)
    except UnicodeEncodeError:
        return str.encode(text, "utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text if type(text) is str else str.__str__(text)


def clean_fields(found: S) -> S:
    """A struct with every text in it, and in structs it holds, made `clean_text`; itself when all are."""
    changed: dict[str, Any] = {}
    for name in found.__struct_fields__:
        value = getattr(found, name)
        kind = type(value)
        if kind is str:
            if not value.isascii() and (text := clean_text(value)) is not value:
                changed[name] = text
        elif isinstance(value, str):
            changed[name] = clean_text(value)
        elif kind is tuple and value:
            items = tuple([clean_fields(each) if isinstance(each, Struct) else each for each in value])
            if any(map(is_not, items, value)):
                changed[name] = items
    return replace(found, **changed) if changed else found
