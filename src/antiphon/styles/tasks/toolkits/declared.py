"""Tools written as objects with `name`, `description`, `schema` and `execute`, as Antiphon's own Tools.

Models are shown the schema as it is written, and arguments are checked against all of it: references,
alternatives, nested objects, properties of any name.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeGuard

from antiphon import Tool, tool
from antiphon.errors import ToolDefinitionError
from antiphon.values.schema.docstring import documented
from antiphon.values.tool import tool_from


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
    written = _parameters(obj)
    if written is None:
        return offered(obj.execute)
    schema = _closed(written)
    made = tool_from(obj.name, getattr(obj, "description", None) or _documented(obj), schema, _call(obj))
    _check_taken(obj, schema)
    return made


def _parameters(obj: ExecutableTool) -> Mapping[str, Any] | None:
    schema = getattr(obj, "schema", None)
    if schema is None:
        return None
    inner = schema.get("parameters") if isinstance(schema, Mapping) else getattr(schema, "parameters", None)
    found = schema if inner is None else inner
    if (
        not isinstance(found, Mapping)
        or not isinstance(found.get("properties", {}), Mapping)
        or found.get("type", "object") != "object"
    ):
        raise ToolDefinitionError(
            f"{obj.name}: schema must be a JSON Schema of type object, or hold one as 'parameters'"
        )
    return found


_ELSEWHERE = (
    "$ref", "additionalProperties", "allOf", "anyOf", "dependentSchemas", "if", "oneOf", "patternProperties",
)  # fmt: skip
"""What may name arguments beside `properties`, or says itself whether there are others."""


def _closed(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema with what holds for the arguments of every tool: an object, without unknown names."""
    found = {"type": "object", **schema}
    return found if any(each in schema for each in _ELSEWHERE) else {**found, "additionalProperties": False}


def _check_taken(obj: ExecutableTool, schema: Mapping[str, Any]) -> None:
    """Refuse a schema that describes what `execute` does not take."""
    name, described = obj.name, schema.get("properties", {})
    closed = schema.get("additionalProperties") is False and "patternProperties" not in schema
    unknown = [key for key in schema.get("required", ()) if closed and key not in described]
    if unknown:
        raise ToolDefinitionError(f"{name}: schema requires {', '.join(unknown)}, which it does not describe")
    try:
        inspect.signature(obj.execute).bind(**dict.fromkeys(described))
    except TypeError as error:
        raise ToolDefinitionError(f"{name}: execute does not take what schema says: {error}") from error
    method = getattr(obj.execute, "__func__", None)
    first = next(iter(inspect.signature(method).parameters.values()), None) if method is not None else None
    if first is not None and first.kind is first.POSITIONAL_OR_KEYWORD and first.name in described:
        raise ToolDefinitionError(
            f"{name}: execute does not take what schema says: {first.name!r} is the object itself; "
            f"write def execute({first.name}, /, **arguments)"
        )


def _documented(obj: ExecutableTool) -> str:
    return documented(inspect.getdoc(obj.execute) or "")[0]


def _call(obj: ExecutableTool) -> Callable[[dict[str, Any]], Any]:
    """`execute` with its arguments as one dictionary."""
    if inspect.iscoroutinefunction(obj.execute):

        async def run(arguments: dict[str, Any]) -> Any:
            return await obj.execute(**arguments)

        return run

    return lambda arguments: obj.execute(**arguments)
