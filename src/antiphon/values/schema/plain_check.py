"""The quick half of a schema's check: what fits beyond doubt, without saying what does not.

Most schemas are objects of texts, numbers and lists, and most arguments fit them. For these a schema is
made into functions once. Whatever else it says is left to the whole check, which also says what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Check = Callable[[Any], bool]
Limits = Mapping[int, tuple[Callable[[Any], None], Callable[[Any], None]]]
"""Checks of the numbers and of the texts of each schema, by its identity; they raise ValueError."""

_TOLD = frozenset(
    {"title", "description", "default", "examples", "format", "deprecated", "$comment", "$schema"}
)
"""Keywords that limit nothing."""
_NUMBERS = frozenset({"minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum", "multipleOf"})
_TEXTS = frozenset({"minLength", "maxLength", "pattern"})
_OBJECTS = frozenset({"properties", "required", "additionalProperties"})
_ARRAYS = frozenset({"items", "minItems", "maxItems"})


def plain_check(schema: Any, limits: Limits) -> Check | None:
    """Whether a value fits a schema and needs no rewriting; False is no answer. None: it says too much.

    A value is of JSON's own types, as read from a text. It needs rewriting where 1.0 stands for 1.
    """
    if not isinstance(schema, dict):
        return None
    keywords = schema.keys() - _TOLD
    match schema.get("type"):
        case "string" | None if keywords - {"type"} == {"enum"}:
            return _one_of(schema["enum"])
        case "string" if keywords <= {"type"} | _TEXTS:
            return _limited((str,), limits[id(schema)][1] if keywords & _TEXTS else None)
        case "integer" | "number" as kind if keywords <= {"type"} | _NUMBERS:
            types = (int,) if kind == "integer" else (int, float)
            return _limited(types, limits[id(schema)][0] if keywords & _NUMBERS else None)
        case "boolean" if keywords <= {"type"}:
            return _limited((bool,), None)
        case "null" if keywords <= {"type"}:
            return _limited((type(None),), None)
        case "object" if keywords <= {"type"} | _OBJECTS:
            return _object(schema, limits)
        case "array" if keywords <= {"type"} | _ARRAYS:
            return _array(schema, limits)
    return None


def _one_of(allowed: list[Any]) -> Check:
    texts = frozenset(each for each in allowed if isinstance(each, str))
    return lambda value: type(value) is str and value in texts


def _limited(types: tuple[type, ...], check: Callable[[Any], None] | None) -> Check:
    if check is None:
        return lambda value: type(value) in types

    def fits(value: Any) -> bool:
        if type(value) not in types:
            return False
        try:
            check(value)
        except ValueError:
            return False
        return True

    return fits


def _object(schema: Mapping[str, Any], limits: Limits) -> Check | None:
    """No other names than those that are described: of others a schema says little, and nothing quickly."""
    parts = {name: plain_check(each, limits) for name, each in schema.get("properties", {}).items()}
    checks = {name: each for name, each in parts.items() if each is not None}
    required = frozenset(schema.get("required", ()))
    if len(checks) < len(parts):
        return None

    def fits(value: Any) -> bool:
        if type(value) is not dict or not required <= value.keys():
            return False
        for name, item in value.items():
            check = checks.get(name)
            if check is None or not check(item):
                return False
        return True

    return fits


def _array(schema: Mapping[str, Any], limits: Limits) -> Check | None:
    check = plain_check(schema.get("items"), limits)
    least, most = schema.get("minItems", 0), schema.get("maxItems", float("inf"))
    if check is None:
        return None
    return lambda value: type(value) is list and least <= len(value) <= most and all(map(check, value))
