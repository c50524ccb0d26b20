"""JSON Schema as its specification says it, as far as tools use it; written apart from the package."""

from __future__ import annotations

import datetime
import re
import uuid
from fractions import Fraction
from typing import Any

KNOWN = {
    "type", "enum", "anyOf", "$ref", "$defs", "properties", "required", "additionalProperties",
    "propertyNames", "items", "prefixItems", "minItems", "maxItems", "uniqueItems", "minProperties",
    "maxProperties", "minLength", "maxLength", "pattern", "minimum", "maximum", "exclusiveMinimum",
    "exclusiveMaximum", "multipleOf", "format", "title", "description", "default", "examples",
}  # fmt: skip


def valid(schema: Any, value: Any, root: Any) -> bool:
    """Whether a value fits. An unknown keyword is an error of the test."""
    if isinstance(schema, bool):
        return schema
    if unknown := schema.keys() - KNOWN:
        raise AssertionError(f"unknown keywords: {unknown}")
    if "$ref" in schema and not valid(root["$defs"][schema["$ref"].removeprefix("#/$defs/")], value, root):
        return False
    if "type" in schema and not is_of(value, schema["type"]):
        return False
    if "enum" in schema and not any(same(value, each) for each in schema["enum"]):
        return False
    if "anyOf" in schema and not any(valid(each, value, root) for each in schema["anyOf"]):
        return False
    if isinstance(value, str):
        return text(schema, value)
    if isinstance(value, bool) or value is None:
        return True
    if isinstance(value, int | float):
        return number(schema, value)
    return array(schema, value, root) if isinstance(value, list) else members(schema, value, root)


def is_of(value: Any, kind: str) -> bool:
    if kind == "integer":
        return not isinstance(value, bool) and isinstance(value, int | float) and value == int(value)
    kinds: dict[str, Any] = {
        "string": str, "boolean": bool, "null": type(None), "array": list, "object": dict,
        "number": (int, float),
    }  # fmt: skip
    return isinstance(value, kinds[kind]) and not (kind == "number" and isinstance(value, bool))


def same(one: Any, other: Any) -> bool:
    return bool(one == other) and isinstance(one, bool) == isinstance(other, bool)


def exact(value: Any) -> Fraction:
    return Fraction(str(value))


def number(schema: Any, value: Any) -> bool:
    given = exact(value)
    return (
        given >= exact(schema.get("minimum", value))
        and given <= exact(schema.get("maximum", value))
        and ("exclusiveMinimum" not in schema or given > exact(schema["exclusiveMinimum"]))
        and ("exclusiveMaximum" not in schema or given < exact(schema["exclusiveMaximum"]))
        and ("multipleOf" not in schema or (given / exact(schema["multipleOf"])).denominator == 1)
    )


def text(schema: Any, value: str) -> bool:
    # In ECMA-262 `$` is the end, and nothing before it.
    pattern = schema.get("pattern", "").replace("$", r"\Z")
    if not schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", len(value)):
        return False
    try:
        {"date": datetime.date.fromisoformat, "date-time": instant, "uuid": uuid.UUID}.get(
            schema.get("format"), str
        )(value)
    except ValueError:
        return False
    return re.search(pattern, value) is not None


def instant(value: str) -> datetime.datetime:
    found = datetime.datetime.fromisoformat(value)
    if found.tzinfo is None or "T" not in value:
        raise ValueError("no offset")
    return found


def array(schema: Any, value: list[Any], root: Any) -> bool:
    first, rest = schema.get("prefixItems", []), schema.get("items", True)
    if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
        return False
    if schema.get("uniqueItems") and any(same(a, b) for at, a in enumerate(value) for b in value[:at]):
        return False
    return all(valid(first[at] if at < len(first) else rest, each, root) for at, each in enumerate(value))


def members(schema: Any, value: dict[str, Any], root: Any) -> bool:
    known, rest = schema.get("properties", {}), schema.get("additionalProperties", True)
    return (
        all(name in value for name in schema.get("required", ()))
        and schema.get("minProperties", 0) <= len(value) <= schema.get("maxProperties", len(value))
        and all(valid(schema.get("propertyNames", True), name, root) for name in value)
        and all(valid(known.get(name, rest), each, root) for name, each in value.items())
    )
