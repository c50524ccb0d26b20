"""Codec: user data as JSON and back, and texts that can be stored and sent."""

from __future__ import annotations

import math
from operator import is_not
from typing import Any, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from antiphon.errors import UserError

_encoder = msgspec.json.Encoder()
encode_value = _encoder.encode
"""Any JSON-able value to the bytes of the one codec."""


_Value = TypeVar("_Value")


def stored(value: _Value) -> _Value:
    """A value as a journal will give it back. Raises TypeError, ValueError for one it cannot hold."""
    return msgspec.json.decode(_encoder.encode(value), type=type(value))


_Number = TypeVar("_Number", int, float)


def exact(kind: type[_Number], value: Any, what: str) -> _Number:
    """A number as it will be read back: 60 seconds are 60.0, and 3.0 turns are 3.

    Raises UserError for what is no such number.
    """
    refused = UserError(f"{what} takes a finite {kind.__name__}; got {value!r}")
    try:
        found = kind(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise refused from error
    if isinstance(value, bool | str) or not math.isfinite(found) or (kind is int and found != value):
        raise refused
    return found


S = TypeVar("S", bound=Struct)


def clean_text(text: str) -> str:
    """The text with each half of a surrogate pair replaced, so that it can be stored and sent.

    Raises TypeError for anything but a text, bytes too.
    """
    if str.isascii(text):
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def clean_fields(found: S) -> S:
    """A struct with every text in it, and in structs it holds, made `clean_text`; itself when all are."""
    changed: dict[str, Any] = {}
    for name in found.__struct_fields__:
        value = getattr(found, name)
        kind = type(value)
        if kind is str:
            if not value.isascii() and (text := clean_text(value)) is not value:
                changed[name] = text
        elif kind is tuple and value:
            items = tuple([clean_fields(each) if isinstance(each, Struct) else each for each in value])
            if any(map(is_not, items, value)):
                changed[name] = items
    return replace(found, **changed) if changed else found
