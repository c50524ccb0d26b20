"""Parameters that a handover protocol declares, as types.

Models are shown them, and arguments are checked by them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, Union

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

_PLAIN: Mapping[str, Any] = {
    "string": str, "integer": int, "number": float, "boolean": bool, "null": None,
}  # fmt: skip
_BOUNDS: Mapping[str, str] = {
    "minimum": "ge", "maximum": "le", "exclusiveMinimum": "gt", "exclusiveMaximum": "lt",
    "multipleOf": "multiple_of", "minLength": "min_length", "maxLength": "max_length",
    "minItems": "min_length", "maxItems": "max_length",
}  # fmt: skip


class ToolParameter(Struct, frozen=True):
    """A parameter of a tool, or a key of an object among its arguments. says: what the model is told."""

    name: str
    type: Any
    says: str = ""
    required: bool = False


def declared(schema: Mapping[str, Any]) -> list[ToolParameter]:
    """The properties of an object's JSON Schema as parameters."""
    required = schema.get("required", ())
    return [
        ToolParameter(name, type_of(each, name), _text(each, "description"), name in required)
        for name, each in schema.get("properties", {}).items()
    ]


def merged(
    own: Sequence[ToolParameter], said: Sequence[ToolParameter], fixed: Sequence[str]
) -> list[ToolParameter]:
    """A tool's own parameters with those of a protocol.

    What the protocol says of one counts, but for the types of those in `fixed`, which the tool relies on.
    """
    found = {each.name: each for each in own}
    for each in said:
        before = found.get(each.name)
        kept = before.type if before is not None and each.name in fixed else each.type
        says = each.says or (before.says if before is not None else "")
        required = each.required or (before is not None and before.required)
        found[each.name] = ToolParameter(each.name, kept, says, required)
    return list(found.values())


def object_of(parameters: Sequence[ToolParameter], name: str) -> type[Struct]:
    """An object with these keys and no others; one that was not given is left out."""
    fields: list[Any] = []
    for each in parameters:
        told = Meta(description=each.says or None)
        if each.required:
            fields.append((each.name, Annotated[each.type, told]))
        else:
            fields.append((each.name, Annotated[Union[each.type, UnsetType], told], UNSET))  # noqa: UP007
    return msgspec.defstruct(name, fields, kw_only=True, forbid_unknown_fields=True)


def type_of(schema: Any, name: str) -> Any:
    """The type that a JSON Schema describes; anything that it says beyond the usual is shown, not checked."""
    if not isinstance(schema, Mapping):
        return Any
    values = schema.get("enum")
    if isinstance(values, list) and values and all(type(each) in (str, int) for each in values):
        return Literal[tuple(values)]
    kind = schema.get("type")
    if isinstance(kind, list):
        return Union[tuple(type_of({**schema, "type": each}, name) for each in kind)] if kind else Any  # noqa: UP007
    found = _PLAIN.get(kind, Any) if isinstance(kind, str) else Any
    if kind == "array":
        found = list[type_of(schema.get("items"), name)]  # type: ignore[misc]
    elif kind == "object":
        named = bool(schema.get("properties")) and not schema.get("additionalProperties")
        found = object_of(declared(schema), name.title().replace("_", "")) if named else dict[str, Any]
    bounds = {_BOUNDS[key]: value for key, value in schema.items() if key in _BOUNDS and found is not Any}
    # A pattern is for the model: it is never run over what comes from outside.
    more = {key: schema[key] for key in ("pattern", "format", "default") if key in schema}
    if not bounds and not more:
        return found
    return Annotated[found, Meta(extra_json_schema=more or None, **bounds)]


def _text(schema: Any, key: str) -> str:
    return str(schema.get(key) or "") if isinstance(schema, Mapping) else ""
