"""What a tool returned, as the model is shown it and the journal keeps it."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from antiphon.errors import ToolError
from antiphon.schema.standins import to_json
from antiphon.values.codec import clean_fields, clean_text, stored
from antiphon.values.fields import check_fields
from antiphon.values.message import Attachment, ToolResult


class Done(Exception):
    """Raise it from a tool to end the agent's reaction; `result` is then what the agent returns.

    Anything but text becomes JSON; raises ToolError when it cannot.
    """

    def __init__(self, result: Any = "") -> None:
        super().__init__(result)
        self.result = result_of(result).content


def result_of(value: Any) -> ToolResult:
    """What a tool returned, as the model is shown it.

    Text stays text, None is empty, an Attachment or a list that holds one is split into text and
    attachments, anything else is JSON. Raises ToolError naming the type that JSON cannot carry.
    """
    if type(value) is str and value.isascii():
        return ToolResult(value)
    if isinstance(value, str):
        return ToolResult(clean_text(value))
    if isinstance(value, ToolResult):
        check_fields(value)
        return stored(clean_fields(value))
    if value is None:
        return ToolResult("")
    if isinstance(value, Attachment):
        return ToolResult("", (stored(clean_fields(value)),))
    if isinstance(value, (list, tuple)) and any(isinstance(item, Attachment) for item in value):
        parts = [result_of(item) for item in value]
        files = tuple(file for part in parts for file in part.attachments)
        return ToolResult("\n".join(part.content for part in parts if part.content), files)
    return ToolResult(_json_of(value))


_encode = msgspec.json.Encoder(enc_hook=to_json).encode


def _json_of(value: Any) -> str:
    try:
        return str(_encode(value), "utf-8")
    except UnicodeEncodeError:
        plain = msgspec.to_builtins(value, enc_hook=to_json, str_keys=True)
        return clean_text(json.dumps(plain, ensure_ascii=False, separators=(",", ":")))
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        path, culprit = _culprit(value)
        raise ToolError(
            f"The tool returned a {type(culprit).__qualname__} at {path}, which JSON cannot carry: {error}"
        ) from error


def _culprit(value: Any) -> tuple[str, Any]:
    """The innermost part of a result that cannot be written as JSON, and the path to it."""
    path = "$"
    for _ in range(100):
        parts: list[tuple[str, Any]] = []
        if isinstance(value, dict):
            parts = [(f"[{key!r}]", part) for key, part in value.items()]
        elif isinstance(value, (list, tuple, set, frozenset)):
            parts = [(f"[{place}]", part) for place, part in enumerate(value)]
        elif hasattr(value, "__struct_fields__") or hasattr(value, "__dataclass_fields__"):
            names = getattr(value, "__struct_fields__", None) or value.__dataclass_fields__
            parts = [(f".{name}", getattr(value, name)) for name in names]
        found = next(((step, part) for step, part in parts if not _writable(part)), None)
        if found is None:
            return path, value
        path, value = path + found[0], found[1]
    return path, value


def _writable(value: Any) -> bool:
    try:
        msgspec.json.encode(value, enc_hook=to_json)
    except (TypeError, ValueError, OverflowError, RecursionError):
        return False
    return True
