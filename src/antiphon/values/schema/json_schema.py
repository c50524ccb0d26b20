"""The JSON Schema of fitted annotations. Definitions are inlined; recursive ones stay in `$defs`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any

import msgspec

from antiphon.values.schema.standins import StandIn, enumeration, pydantic_model


def schema_of(annotation: Any) -> dict[str, Any]:
    """The JSON Schema of one fitted annotation, with its `$defs`."""
    (schema,), defs = schemas_of([annotation])
    return {**schema, "$defs": defs} if defs else schema


def schemas_of(annotations: Sequence[Any]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The JSON Schemas of fitted annotations, and the definitions that they share."""
    names: dict[StandIn, str] = {}

    def hook(kind: type) -> dict[str, Any]:
        if isinstance(kind, StandIn):
            if kind not in names:
                taken = set(names.values())
                names[kind] = f"{kind.__name__}_{len(names)}" if kind.__name__ in taken else kind.__name__
            return {"$ref": "#/$defs/" + names[kind]}
        model = pydantic_model(kind)
        if model is not None:
            return _inlined(model.model_json_schema(), {})
        if issubclass(kind, PurePath):
            return {"type": "string", "format": "path"}
        raise NotImplementedError

    known: list[StandIn] = []
    while True:
        parts = [part for each in known for part in each.parts]
        schemas, components = msgspec.json.schema_components(
            [*annotations, *parts], schema_hook=hook, ref_template="#/$defs/{name}"
        )
        clashes = [each for each in known if names[each] in components]
        for each in clashes:
            names[each] += "_"
        if len(names) == len(known) and not clashes:
            break
        known = list(names)
    left = iter(schemas[len(annotations) :])
    defs = dict(components)
    for each in known:
        defs[names[each]] = each.schema([next(left) for _ in each.parts])
    shared: dict[str, Any] = {}
    found = []
    for schema in schemas[: len(annotations)]:
        done = _inlined(schema, defs)
        shared.update(done.pop("$defs", {}))
        found.append(done)
    return found, shared


_VALUES = ("default", "enum", "const", "examples")
"""Keywords that hold values, not schemas."""


def _inlined(schema: dict[str, Any], defs: Mapping[str, Any]) -> dict[str, Any]:
    defs = {**defs, **schema.get("$defs", {})}
    kept: dict[str, Any] = {}

    def walk(node: Any) -> Any:
        if isinstance(node, list):
            return [walk(item) for item in node]
        if not isinstance(node, dict):
            return node
        if node is not schema:
            kept.update(node.get("$defs", {}))
        rest = {
            key: value if key in _VALUES else _named(value) if key == "properties" else walk(value)
            for key, value in node.items()
            if key != "$defs"
            and not (key == "discriminator" and "anyOf" in node)  # OpenAPI's, not JSON Schema's
        }
        name = _reference(rest)
        if name not in defs:
            return _typed(rest)
        if _recursive(name, defs):
            if name not in kept:
                kept[name] = {}
                kept[name] = walk(defs[name])
            return rest
        del rest["$ref"]
        target = walk(defs[name])
        return {**{key: value for key, value in target.items() if key != "title"}, **rest}

    def _named(properties: dict[str, Any]) -> dict[str, Any]:
        return {name: walk(each) for name, each in properties.items()}

    done: dict[str, Any] = walk(schema)
    return {**done, "$defs": kept} if kept else done


def _typed(node: dict[str, Any]) -> dict[str, Any]:
    """The type that all members of an enumeration or a union of objects have, said at the top."""
    if "type" in node:
        return node
    if isinstance(node.get("enum"), list):
        return {**enumeration(node["enum"]), **node}
    members = node.get("anyOf")
    if isinstance(members, list) and all(member.get("type") == "object" for member in members):
        return {"type": "object", **node}
    return node


def _reference(node: Mapping[str, Any]) -> str:
    found = node.get("$ref")
    return found.removeprefix("#/$defs/") if isinstance(found, str) else ""


def _references(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        yield _reference(node)
        for value in node.values():
            yield from _references(value)
    elif isinstance(node, list):
        for item in node:
            yield from _references(item)


def _recursive(name: str, defs: Mapping[str, Any]) -> bool:
    """Whether a definition reaches itself."""
    seen: set[str] = set()
    todo = [name]
    while todo:
        for found in _references(defs.get(todo.pop(), {})):
            if found == name:
                return True
            if found not in seen:
                seen.add(found)
                todo.append(found)
    return False
