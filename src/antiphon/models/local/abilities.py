"""What the local model takes on: it chooses, copies and quotes. What would have to be written is refused.

A tiny model that may write a list of tasks, or the fields of an invoice, writes something that fits the
schema and means nothing. Whoever reads it cannot tell; so it is an error, with what to do instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from antiphon.errors import ModelError

_DEPTH = 16
"""Levels of a schema that are looked into; a schema that goes deeper, or in circles, is not chosen from."""


def beyond(what: str) -> ModelError:
    """The error for a request that this model would have to make something up for."""
    return ModelError(
        "validation",
        f"the local model cannot do this: {what}. It is tiny: it picks a tool or a colleague, copies "
        "arguments from the request and quotes results. Ask a larger model: --model openai:…, ollama:… or "
        "another one in ANTIPHON_MODEL",
    )


def choosable(schema: Mapping[str, Any]) -> bool:
    """Whether every value of the schema is a choice among given ones: enumerations, constants, yes or no."""
    return _choosable(schema, schema, _DEPTH)


def _choosable(schema: object, whole: Mapping[str, Any], depth: int) -> bool:
    if not isinstance(schema, Mapping) or depth == 0:
        return False
    if "enum" in schema or "const" in schema:
        return True
    if "$ref" in schema:
        return _choosable(_defined(schema["$ref"], whole), whole, depth - 1)
    either = schema.get("anyOf") or schema.get("oneOf")
    if either:
        return all(_choosable(each, whole, depth - 1) for each in either)
    kind = schema.get("type")
    if kind == "object":
        # Without properties it may hold anything.
        inner = schema.get("properties") or {"": {}}
        return all(_choosable(each, whole, depth - 1) for each in inner.values())
    if kind == "array":
        return _choosable(schema.get("items"), whole, depth - 1)
    return kind in ("boolean", "null")


def _defined(reference: object, whole: Mapping[str, Any]) -> object:
    """What `#/$defs/Name` stands for; None for what leads elsewhere."""
    found: object = whole
    for part in str(reference).removeprefix("#/").split("/"):
        found = found.get(part) if isinstance(found, Mapping) else None
    return found
