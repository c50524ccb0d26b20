"""schema: JSON Schema of the files, for editors; made of the tables that the loader reads by."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from antiphon.styles.profiles.files.fields import (
    SHAPES,
    Choice,
    Each,
    Field,
    Kind,
    Many,
    MappingShape,
    Variants,
)
from antiphon.styles.profiles.files.vocabulary import INGESTORS, SOURCES

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_TEXT: Mapping[str, Any] = {"type": ["string", "number", "boolean"]}
_SCALARS: Mapping[str, Mapping[str, Any]] = {
    "flag": {"type": "boolean"},
    "whole": {"type": "integer", "minimum": 0},
    "number": {"type": "number"},
    "data": {},
    "payload": {},
    "value": {},
    "mapping": {"type": "object"},
    "parameters": {"type": "object"},
    "source": {"type": "string", "examples": list(SOURCES)},
    "ingestor": {"type": "string", "examples": list(INGESTORS)},
}


def json_schema(kind: str) -> dict[str, Any]:
    """The JSON Schema of `profile`, `llm_config` or `handover_protocol` files."""
    return {"$schema": DIALECT, "title": kind, **_shape(SHAPES[kind])}


def _shape(shape: MappingShape) -> dict[str, Any]:
    found: dict[str, Any] = {
        "type": "object",
        "properties": {name: _field(field) for name, field in shape.fields.items()},
        "additionalProperties": False,
    }
    if required := [name for name, field in shape.fields.items() if field.required]:
        found["required"] = required
    return found


def _field(field: Field) -> dict[str, Any]:
    said: dict[str, Any] = {"description": field.says}
    if field.ignored:
        return {**said, "deprecated": True}
    kind = _kind(field.kind)
    # Null is as good as not there, except for what must be there.
    return {**said, **kind} if field.required or not kind else {**said, "anyOf": [kind, {"type": "null"}]}


def _kind(kind: Kind) -> dict[str, Any]:
    if isinstance(kind, Choice):
        return {"enum": list(kind.of)}
    if isinstance(kind, Many):
        return {"type": "array", "items": _kind(kind.of)}
    if isinstance(kind, Each):
        return {"type": "object", "additionalProperties": _kind(kind.of)}
    if isinstance(kind, MappingShape):
        return _shape(kind)
    if isinstance(kind, Variants):
        return {"anyOf": [_variant(kind, name) for name in (*kind.of, *kind.passed_over)]}
    return dict(_SCALARS.get(kind, _TEXT))


def _variant(kind: Variants, name: str) -> dict[str, Any]:
    if name not in kind.of:
        return {"type": "object", "properties": {kind.by: {"const": name}}, "required": [kind.by]}
    found = _shape(kind.of[name])
    if kind.by:
        found["properties"][kind.by] = {**found["properties"][kind.by], "const": name}
    return found
