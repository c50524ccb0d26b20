"""Tool calls that a model wrote into its text, in fences: ```json {"tool_calls": [{"name": …}]} ```."""

from __future__ import annotations

import json
import re
from typing import Any

_OPENING = re.compile(r"```json\s*")
_CLOSING = re.compile(r"\s*```")
_decode = json.JSONDecoder().raw_decode


def call_blocks(text: str) -> list[dict[str, Any]]:
    """The calls in all fences of a text, in order, as `name`, `arguments` and `id` (None when it has none).

    What is no JSON object with `tool_calls`, and what among those is no call, is ignored. Linear in
    the length of the text.
    """
    found: list[dict[str, Any]] = []
    opening = _OPENING.search(text)
    while opening is not None:
        block, end = _block(text, opening.end())
        listed = block.get("tool_calls") if isinstance(block, dict) else None
        found += [_call(each) for each in listed if _is_call(each)] if isinstance(listed, list) else []
        opening = _OPENING.search(text, end)
    return found


def _block(text: str, start: int) -> tuple[Any, int]:
    """What stands in a fence, None when it is no JSON; and where to read on."""
    try:
        block, end = _decode(text, start)
    except (ValueError, RecursionError):
        return None, start
    closing = _CLOSING.match(text, end)
    return (block, closing.end()) if closing is not None else (None, start)


def _is_call(found: Any) -> bool:
    return (
        isinstance(found, dict)
        and isinstance(found.get("name"), str)
        and isinstance(found.get("arguments") or {}, dict)
    )


def _call(found: dict[str, Any]) -> dict[str, Any]:
    call_id = found.get("id")
    return {
        "name": found["name"],
        "arguments": found.get("arguments") or {},
        "id": call_id if isinstance(call_id, str) and call_id else None,
    }
