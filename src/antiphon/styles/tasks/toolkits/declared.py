"""Tools written as objects with `name`, `description`, `schema` and `execute`, as Antiphon's own Tools.

The schema becomes the signature that `antiphon.values.tool` reads, so arguments are checked as those of any
other tool: types, enumerations, bounds and patterns. Of a nested object only that it is one.
"""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Mapping
from inspect import Parameter, Signature
from typing import Annotated, Any, Literal, Protocol, TypeGuard

import msgspec

from antiphon import Tool, tool
from antiphon.errors import ToolDefinitionError


class ExecutableTool(Protocol):
    """A tool as an object. schema: JSON Schema of the arguments, or what holds it as `parameters`.

    Without a `schema` the signature of `execute` says what it takes. `execute` may be async.
    """

    name: str
    description: str

    def execute(self, **arguments: Any) -> Any: ...


def is_executable(obj: object) -> TypeGuard[ExecutableTool]:
    """Whether it is a tool of this kind."""
    return callable(getattr(obj, "execute", None)) and isinstance(getattr(obj, "name", None), str)


def declared_tool(obj: ExecutableTool) -> Tool:
    """The object as a Tool. Raises ToolDefinitionError when its schema and `execute` do not fit."""
    offered = tool(name=obj.name, description=getattr(obj, "description", None) or None)
    schema = _parameters(obj)
    if schema is None:
        return offered(obj.execute)
    try:
        signature = _signature(obj.name, schema)
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise ToolDefinitionError(f"{obj.name}: its schema is no JSON Schema: {error}") from error
    try:
        inspect.signature(obj.execute).bind(**dict.fromkeys(signature.parameters))
    except TypeError as error:
        raise ToolDefinitionError(f"{obj.name}: execute does not take what schema says: {error}") from error
    return offered(_signed(obj.execute, signature))


def _parameters(obj: ExecutableTool) -> Mapping[str, Any] | None:
    schema = getattr(obj, "schema", None)
    if schema is None:
        return None
    inner = schema.get("parameters") if isinstance(schema, Mapping) else getattr(schema, "parameters", None)
    found = schema if inner is None else inner
    if not isinstance(found, Mapping) or not isinstance(found.get("properties", {}), Mapping):
        raise ToolDefinitionError(
            f"{obj.name}: schema must be a JSON Schema of type object, or hold one as 'parameters'"
        )
    return found


def _signed(execute: Any, signature: Signature) -> Any:
    """`execute` with the signature that its schema declares."""
    if inspect.iscoroutinefunction(execute):

        @functools.wraps(execute)
        async def run(**arguments: Any) -> Any:
            return await execute(**arguments)

    else:

        @functools.wraps(execute)
        def run(**arguments: Any) -> Any:
            return execute(**arguments)

    run.__signature__ = signature  # type: ignore[attr-defined]
    return run


def _signature(name: str, schema: Mapping[str, Any]) -> Signature:
    required = schema.get("required", ())
    shown = []
    for key, said in schema.get("properties", {}).items():
        default = Parameter.empty if key in required else said.get("default", msgspec.UNSET)
        shown.append(Parameter(key, Parameter.KEYWORD_ONLY, default=default, annotation=_annotation(said)))
    unknown = [key for key in required if key not in schema.get("properties", {})]
    if unknown:
        raise ToolDefinitionError(f"{name}: schema requires {', '.join(unknown)}, which it does not describe")
    return Signature(shown)


_TYPES: Mapping[str, Any] = {
    "string": str,
    "integer": int,
    "number": float,
    "boolean": bool,
    "object": dict[str, Any],
    "null": None,
}
_NUMERIC = {
    "minimum": "ge",
    "maximum": "le",
    "exclusiveMinimum": "gt",
    "exclusiveMaximum": "lt",
    "multipleOf": "multiple_of",
}
_BOUNDS: Mapping[str, Mapping[str, str]] = {
    "integer": _NUMERIC,
    "number": _NUMERIC,
    "string": {"pattern": "pattern", "minLength": "min_length", "maxLength": "max_length"},
    "array": {"minItems": "min_length", "maxItems": "max_length"},
}
"""JSON Schema's words for what bounds a type, and msgspec's."""


def _annotation(schema: Mapping[str, Any]) -> Any:
    """What a schema says of one value, as an annotation."""
    kind, text = _kind(schema), schema.get("description")
    return Annotated[kind, text] if text else kind


def _kind(schema: Mapping[str, Any]) -> Any:
    if "enum" in schema:
        return Literal[tuple(schema["enum"])]
    types = schema.get("type", ())
    members = [_one(each, schema) for each in ([types] if isinstance(types, str) else types)]
    members += [_annotation(each) for each in schema.get("anyOf", ())]
    return functools.reduce(operator.or_, members) if members else Any


def _one(type_: str, schema: Mapping[str, Any]) -> Any:
    """One type a value may have, within the bounds that the schema sets."""
    kind = list[_annotation(schema.get("items", {}))] if type_ == "array" else _TYPES[type_]  # type: ignore[misc]
    bounds = {ours: schema[theirs] for theirs, ours in _BOUNDS.get(type_, {}).items() if theirs in schema}
    return Annotated[kind, msgspec.Meta(**bounds)] if bounds else kind
