"""A provider's own data on a reply, kept as JSON and given back as it came.

Signed reasoning is only good if it returns untouched and in its place among the other parts. So the
parts of a reply are kept in their order, under the key `providers` of `opaque`; what the reply holds
anyway (texts, reasoning, calls) is not kept twice: a part says how many characters of it are its.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

from pydantic_ai.messages import (
    ModelMessagesTypeAdapter,
    ModelResponse,
    TextPart,
    ThinkingPart,
    ToolCallPart,
)

from antiphon.values.model import ChatMessage

KEY = "providers"
_PASSING = ("finish_reason", "timestamp")
_SAID = {"text": "content", "thinking": "reasoning"}


def pack(response: ModelResponse) -> dict[str, Any] | None:
    """What must come back to the provider, None when nothing does."""
    dumped = ModelMessagesTypeAdapter.dump_python([response], mode="json", exclude_none=True)[0]
    parts = [_own(part) for part in dumped["parts"]]
    details = {
        key: value for key, value in (dumped.get("provider_details") or {}).items() if key not in _PASSING
    }
    if not details and not any(len(part) > 2 or part["kind"] == "thinking" for part in parts):
        return None
    text = "".join(part.content for part in response.parts if isinstance(part, TextPart))
    thought = "".join(part.content for part in response.parts if isinstance(part, ThinkingPart))
    kept: dict[str, Any] = {"parts": parts, "digest": _digest(text, thought)}
    for name in ("provider_name", "provider_url", "canonical_system", "model_name"):
        if dumped.get(name):
            kept[name] = dumped[name]
    if details:
        kept["provider_details"] = details
    return {KEY: kept}


def _own(part: dict[str, Any]) -> dict[str, Any]:
    """A part without what the reply says itself."""
    own = dict(part)
    kind = own.pop("part_kind")
    if kind == "tool-call":
        for name in ("tool_name", "args", "tool_call_id"):
            own.pop(name, None)
        return {"kind": kind, "size": 0, **own}
    return {"kind": kind, "size": len(own.pop("content", "")), **own}


def unpack(message: ChatMessage, system: str, calls: list[ToolCallPart]) -> ModelResponse | None:
    """The response as it was, for the provider `system`; None when that one did not make it.

    Also None when the message is no longer what the provider said: a changed text has no valid signature.
    calls: the message's calls as parts.
    """
    kept = message.opaque.get(KEY) if isinstance(message.opaque, dict) else None
    if not isinstance(kept, dict) or kept.get("provider_name", system) != system:
        return None
    if kept.get("digest") != _digest(message.content, message.reasoning):
        return None
    at = {"content": 0, "reasoning": 0}
    left = list(calls)
    parts: list[Any] = []
    for one in kept["parts"]:
        own = dict(one)
        kind, size = own.pop("kind"), own.pop("size")
        if kind == "tool-call":
            if not left:
                return None
            call = left.pop(0)
            parts.append(ToolCallPart(call.tool_name, call.args, call.tool_call_id, **own))
            continue
        field = _SAID[kind]
        text = (message.content if kind == "text" else message.reasoning)[at[field] : at[field] + size]
        at[field] += size
        parts.append(TextPart(text, **own) if kind == "text" else ThinkingPart(text, **own))
    if left:
        return None
    return ModelResponse(
        parts, **{name: value for name, value in kept.items() if name not in ("parts", "digest")}
    )


def _digest(text: str, thought: str) -> str:
    return blake2b(f"{len(text)}:{text}{thought}".encode(errors="surrogatepass"), digest_size=8).hexdigest()
