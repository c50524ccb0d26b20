"""Codec: user data as JSON and back, and texts that can be stored, sent and shown."""

from __future__ import annotations

import re
from operator import is_not
from typing import Any, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

_encoder = msgspec.json.Encoder()
encode_value = _encoder.encode
"""Any JSON-able value to the bytes of the one codec."""


_Value = TypeVar("_Value")


DEPTH = 100
"""How deep lists and dicts of users may nest: what is read in a deeper call must not be deeper by itself."""


def encode_shallow(value: Any) -> bytes:
    """A value as JSON. Raises TypeError, ValueError, RecursionError for one that no journal can hold."""
    data = _encoder.encode(value)
    # Nothing is nested deeper than it opens lists and dicts; only what has many of them is looked at.
    if data.count(b"[") + data.count(b"{") > DEPTH and _depth(msgspec.json.decode(data)) > DEPTH:
        raise ValueError(f"it is nested deeper than {DEPTH} lists and dicts")
    return data


def _depth(value: Any) -> int:
    depth, level = 0, [value]
    while level := [each for each in level if isinstance(each, list | dict)]:
        depth += 1
        level = [part for each in level for part in (each.values() if isinstance(each, dict) else each)]
    return depth


def stored(value: _Value) -> _Value:
    """A value as a journal will give it back. Raises as `encode_shallow` does."""
    return msgspec.json.decode(encode_shallow(value), type=type(value))


def text_of(error: BaseException) -> str:
    """What an error says, or else its type, whatever its own `__str__` does.

    A KeyError says a key and nothing of it: its type comes first.
    """
    try:
        text = clean_text(str(error)) or type(error).__name__
        return f"KeyError: {text}" if type(error) is KeyError and error.args else text
    except Exception:  # noqa: BLE001 - the error of somebody's error
        return type(error).__name__


def type_and_text(error: BaseException) -> str:
    """The type of an error and what it says."""
    text, name = text_of(error), type(error).__name__
    return text if text.startswith(name) else f"{name}: {text}"


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


_HARMFUL = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # controls of ASCII and Latin-1, tab and line feed apart
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # turn the direction of what follows
    "\u200b-\u200d\u2028\u2029\u2060-\u2064\ufeff\ufff9-\ufffb"  # invisible, or a hidden line break
    "\ud800-\udfff\U000e0000-\U000e007f"  # halves of pairs, invisible tags
)
HARMFUL = re.compile(f"[{_HARMFUL}]")
"""A character that steers, hides or turns what is shown; line feeds and tabs do not."""
_JOINER = "\u200d"
"""Joins the parts of one emoji; kept between two signs beyond ASCII, where it can hide nothing."""


def visible(text: str) -> str:
    """The text with every control character made visible; line feeds stay, a tab is four spaces."""
    text = text.replace("\r\n", "\n").replace("\t", "    ")
    return text if text.isascii() and text.isprintable() else HARMFUL.sub(_visible, text)


def _visible(match: re.Match[str]) -> str:
    found = match[0]
    code = ord(found)
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "\u2421"
    if found == _JOINER:
        around = match.string[match.start() - 1 : match.start()] + match.string[match.end() : match.end() + 1]
        if len(around) == 2 and min(around) > "\u2000":
            return found
    return "\ufffd"
