"""What models, tools and files say, made fit for a terminal. The only place where that is done.

A text may hold escape sequences that move the cursor, change the title or the clipboard, hide what
follows or turn its direction. None of it reaches a terminal: every control character is replaced by
a visible sign, whatever it would have meant.
"""

from __future__ import annotations

import json
import re
from math import isfinite
from typing import Any

import msgspec

_HARMFUL = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # controls of ASCII and Latin-1, tab and line feed apart
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # turn the direction of what follows
    "\u200b-\u200d\u2028\u2029\u2060-\u2064\ufeff\ufff9-\ufffb"  # invisible, or a hidden line break
    "\ud800-\udfff\U000e0000-\U000e007f"  # halves of pairs, invisible tags
)
_ALL = re.compile(f"[{_HARMFUL}]")
_JOINER = "\u200d"
"""Joins the parts of one emoji; kept between two signs beyond ASCII, where it can hide nothing."""
_SPACES = re.compile(r"\s+")
CUT = "…"


def clean(text: str) -> str:
    """The text with every control character made visible; line feeds stay, a tab is four spaces."""
    text = text.replace("\r\n", "\n").replace("\t", "    ")
    return text if text.isascii() and text.isprintable() else _ALL.sub(_visible, text)


def line(text: str, width: int = 0) -> str:
    """The text as one clean line, cut to `width` characters (0: as long as it is)."""
    # Cut before the work too: only what can be shown is worth cleaning.
    start = text[: width * 4] if width else text
    found = _SPACES.sub(" ", clean(_SPACES.sub(" ", start))).strip()
    if width and (len(found) > width or len(start) < len(text)):
        return found[: max(width - 1, 0)].rstrip() + CUT
    return found


def escaped(text: str) -> str:
    """JSON with every control character written as an escape: the same value, fit for a terminal."""
    return _ALL.sub(_escaped, text)


def json_line(value: Any) -> str:
    """A value as one line of JSON that holds no control character, not even a Latin-1 one."""
    return escaped(msgspec.json.encode(value).decode())


def json_text(value: Any) -> str:
    """A value as JSON over several lines, to be read by people and programs.

    A number that JSON does not have, infinite or none at all, is null, as in `json_line`.
    """
    plain = msgspec.to_builtins(value)
    try:
        text = json.dumps(plain, indent=2, ensure_ascii=False, allow_nan=False)
    except ValueError:
        text = json.dumps(_finite(plain), indent=2, ensure_ascii=False, allow_nan=False)
    return escaped(text)


def _finite(value: Any) -> Any:
    """Plain data with None for each number that JSON does not have."""
    if isinstance(value, dict):
        return {_finite(key): _finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not isfinite(value) else value


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


def _escaped(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code > 0xFFFF:
        code -= 0x10000
        return f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"
    return f"\\u{code:04x}"
