"""What models, tools and files say, made fit for a terminal. The only place where that is done.

A text may hold escape sequences that move the cursor, change the title or the clipboard, hide what
follows or turn its direction. None of it reaches a terminal: every control character is replaced by
a visible sign, whatever it would have meant (`visible`, which notebooks need too).
"""

from __future__ import annotations

import json
import re
from math import isfinite
from typing import Any

import msgspec

from antiphon.values.codec import HARMFUL, visible
from antiphon.view.wording import CUT as CUT
from antiphon.view.wording import line as line

clean = visible


def escaped(text: str) -> str:
    """JSON with every control character written as an escape: the same value, fit for a terminal."""
    return HARMFUL.sub(_escaped, text)


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


def _escaped(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code > 0xFFFF:
        code -= 0x10000
        return f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"
    return f"\\u{code:04x}"
