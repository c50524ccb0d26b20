"""What a function's signature says about its arguments: a JSON Schema and a type to decode into.

msgspec does the work where it can. What it cannot decode itself (unions of several objects,
enumerations of mixed values, paths, pydantic models) is given a stand-in type whose decoding is
done here. An annotation that JSON cannot carry is a string, so that any function can be offered.
"""

from __future__ import annotations

import contextlib
import enum
import functools
import inspect
import operator
import sys
import types
import typing
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import PurePath
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import msgspec
from msgspec import Struct

from antiphon.errors import ToolDefinitionError
from antiphon.schema.docstring import documented

_SCALARS = (str, int, float, bool, bytes, enum.Enum, type(None))


class Shape(Struct, frozen=True, eq=False):
    """A signature as arguments.

    type: a Struct type with one field per shown parameter, in declared order.
    parameters: the JSON Schema of type object.
    described: the docstring without its section about parameters.
    context: the name of the injected parameter, or empty.
    plain: the arguments can be given by position, after the injected one.
    sparse: some default cannot be written as JSON; its field is UNSET unless it is given.
    method: the first parameter is `self`, still to be bound.
    ordered: no set occurs in the arguments.
    foreign: a type occurs that msgspec does not know.
    """

    type: type[Struct]
    parameters: dict[str, Any]
    described: str
    context: str
    plain: bool
    sparse: bool
    method: bool
    ordered: bool
    foreign: bool


class _Stand(type):
    """The metaclass of stand-ins: msgspec accepts whatever their `read` returns."""

    read: Callable[[Any], Any]
    schema: Callable[[], dict[str, Any]]

    def __instancecheck__(cls, instance: object) -> bool:
        return True


class _UnionChoice(metaclass=_Stand):
    """A union that msgspec cannot decode: the first member that fits and keeps every given key."""

    members: tuple[Any, ...] = ()

    @classmethod
    def read(cls, value: Any) -> Any:
        found: list[Any] = []
        reasons: list[str] = []
        for member in cls.members:
            try:
                fitting = msgspec.convert(value, member, dec_hook=from_json)
            except (msgspec.ValidationError, ValueError) as error:
                reasons.append(str(error))
                continue
            if not isinstance(value, dict) or value.keys() <= _keys(fitting):
                return fitting
            found.append(fitting)
        if found:
            return found[0]
        raise ValueError("Fits none of the alternatives: " + "; ".join(reasons))

    @classmethod
    def schema(cls) -> dict[str, Any]:
        return {"anyOf": [schema_of(member) for member in cls.members]}


class _EnumValues(metaclass=_Stand):
    """An enumeration of values of mixed types; `members` maps (type, value) to what the tool gets."""

    members: Mapping[tuple[type, Any], Any] = {}

    @classmethod
    def read(cls, value: Any) -> Any:
        known = isinstance(value, (str, int, float, bool, type(None)))
        if known and (type(value), value) in cls.members:
            return cls.members[type(value), value]
        raise ValueError(f"Invalid enum value {value!r}")

    @classmethod
    def schema(cls) -> dict[str, Any]:
        return _enum([value for _, value in cls.members])


def _keys(value: Any) -> set[str]:
    plain = msgspec.to_builtins(value, enc_hook=to_json)
    return set(plain) if isinstance(plain, dict) else set()


def _pydantic(kind: object) -> Any:
    """`kind` if it is a pydantic model class; pydantic is looked at only when the user imported it."""
    module = sys.modules.get("pydantic")
    model = getattr(module, "BaseModel", None)
    return kind if model is not None and isinstance(kind, type) and issubclass(kind, model) else None


def from_json(kind: type, value: Any) -> Any:
    """msgspec's dec_hook: decode what msgspec does not know. Raises ValueError when it does not fit."""
    if isinstance(kind, _Stand):
        return kind.read(value)
    model = _pydantic(kind)
    if model is not None:
        return model.model_validate(value)
    if issubclass(kind, PurePath) and isinstance(value, str):
        return kind(value)
    raise ValueError(f"Expected `{kind.__name__}`")


def to_json(value: Any) -> Any:
    """msgspec's enc_hook: paths, mixed enumerations, pydantic models. TypeError for anything else."""
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, enum.Enum):
        return value.value
    if _pydantic(type(value)) is not None:
        return value.model_dump(mode="json", by_alias=True)
    raise TypeError(f"{type(value).__module__}.{type(value).__qualname__} cannot be written as JSON")


def _schema(kind: type) -> dict[str, Any]:
    """msgspec's schema_hook."""
    if isinstance(kind, _Stand):
        return kind.schema()
    model = _pydantic(kind)
    if model is not None:
        return _inlined(model.model_json_schema(), {})
    if issubclass(kind, PurePath):
        return {"type": "string", "format": "path"}
    raise NotImplementedError


_NAMES = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}


def _enum(values: list[Any]) -> dict[str, Any]:
    """An `enum` with the type of its first member, or no type when the members differ."""
    kinds = {type(value) for value in values}
    if len(kinds) == 1 and kinds <= _NAMES.keys():
        return {"type": _NAMES[kinds.pop()], "enum": values}
    return {"enum": values}


def schema_of(annotation: Any) -> dict[str, Any]:
    """The JSON Schema of a fitted annotation. Definitions are inlined; recursive ones stay in `$defs`."""
    (schema,), defs = msgspec.json.schema_components(
        [annotation], schema_hook=_schema, ref_template="#/$defs/{name}"
    )
    return _inlined(schema, defs)


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
            key: value if key in ("default", "enum", "const", "examples") else walk(value)
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

    done: dict[str, Any] = walk(schema)
    return {**done, "$defs": kept} if kept else done


def _typed(node: dict[str, Any]) -> dict[str, Any]:
    """The type that all members of an enumeration or a union of objects have, said at the top."""
    if "type" in node:
        return node
    if isinstance(node.get("enum"), list):
        return {**_enum(node["enum"]), **node}
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


def _decodable(annotation: Any) -> bool:
    try:
        msgspec.json.Decoder(annotation, dec_hook=from_json)
    except TypeError:
        return False
    return True


def fitted(annotation: Any) -> Any:
    """The annotation as msgspec can decode it; what JSON cannot carry becomes `str`."""
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        kept = tuple(item for item in args[1:] if isinstance(item, msgspec.Meta))
        inner = fitted(args[0])
        return Annotated[(inner, *kept)] if kept else inner
    if origin is Union or origin is types.UnionType:
        return _union(tuple(fitted(arg) for arg in args if arg is not type(None)), type(None) in args)
    if origin is Literal:
        return annotation if _decodable(annotation) else _values({(type(arg), arg): arg for arg in args})
    if isinstance(annotation, type) and issubclass(annotation, enum.Enum) and not _decodable(annotation):
        return _values({(type(member.value), member.value): member for member in annotation})
    if origin is not None and args and isinstance(origin, type) and not _structured(origin):
        origin = list if origin is Iterable else origin
        if origin not in (tuple, list, dict, set, frozenset) and not issubclass(origin, Collection):
            return str
        alias = types.GenericAlias(origin, tuple(arg if arg is ... else fitted(arg) for arg in args))
        return alias if _decodable(alias) else str
    if annotation is object:
        return Any
    return annotation if _known(annotation) else str


def _structured(kind: type) -> bool:
    return (
        hasattr(kind, "__struct_fields__")
        or hasattr(kind, "__dataclass_fields__")
        or _pydantic(kind) is not None
    )


def _known(annotation: Any) -> bool:
    try:
        info = msgspec.inspect.type_info(annotation)
    except TypeError:
        # A type msgspec knows, with something inside that it does not: told apart when it is built.
        return isinstance(annotation, type)
    if not isinstance(info, msgspec.inspect.CustomType):
        return True
    kind = info.cls
    return isinstance(kind, _Stand) or issubclass(kind, PurePath) or _pydantic(kind) is not None


def _either(*members: Any) -> Any:
    return functools.reduce(operator.or_, members)


def _union(members: tuple[Any, ...], nullable: bool) -> Any:
    whole = _either(*members)
    if not _decodable(whole):
        whole = type("Choice", (_UnionChoice,), {"members": members})
    return _either(whole, None) if nullable else whole


def _values(members: Mapping[tuple[type, Any], Any]) -> Any:
    return type("Values", (_EnumValues,), {"members": members})


_EMPTY = inspect.Parameter.empty


def shape_of(function: Callable[..., Any], name: str, context: type) -> Shape:
    """Read a signature. `context` is the type whose parameter is injected and hidden.

    Raises ToolDefinitionError naming the parameter and the reason.
    """
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError) as error:
        raise ToolDefinitionError(f"{name}: its signature cannot be read: {error}") from error
    described, texts = documented(inspect.getdoc(function) or "")
    method = bool(parameters) and parameters[0].name == "self"
    parameters = parameters[1:] if method else parameters
    injected = ""
    shown: list[tuple[str, Any, Any, str]] = []
    for place, parameter in enumerate(parameters):
        first = place == 0 and parameter.name == "ctx"
        annotation = context if first else _annotation(function, parameter, name, context)
        if annotation is context or get_origin(annotation) is context:
            injected = parameter.name
            continue
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            kind = "positional-only" if parameter.kind is parameter.POSITIONAL_ONLY else "variadic"
            raise ToolDefinitionError(
                f"{name}: parameter {parameter.name!r} is {kind}; a model gives arguments by name"
            )
        text = _text(annotation) or texts.get(parameter.name, "")
        shown.append((parameter.name, annotation, parameter.default, text))
    plain = all(one.kind is one.POSITIONAL_OR_KEYWORD for one in parameters)
    plain = plain and (not injected or injected == parameters[0].name)
    fields, schema = _assembled(name, shown)
    sparse = any(field.default is msgspec.UNSET for field in msgspec.structs.fields(fields))
    infos = "".join(repr(msgspec.inspect.type_info(each)) for each in fields.__annotations__.values())
    return Shape(
        type=fields,
        parameters=schema,
        described=described,
        context=injected,
        plain=plain and not sparse,
        sparse=sparse,
        method=method,
        ordered="SetType(" not in infos and not any("set[" in repr(each) for _, each, _, _ in shown),
        foreign="CustomType(" in infos,
    )


def _annotation(function: Callable[..., Any], parameter: inspect.Parameter, name: str, context: type) -> Any:
    """The resolved annotation; a textual one is looked up where the function was written."""
    written = parameter.annotation
    if not isinstance(written, str):
        return str if written is _EMPTY else written
    source = inspect.unwrap(function)
    source = source.func if isinstance(source, functools.partial) else source
    source = source if inspect.isroutine(source) else type(source).__call__
    source = getattr(source, "__func__", source)
    local: dict[str, Any] = {}
    for free, cell in zip(source.__code__.co_freevars, source.__closure__ or (), strict=True):
        with contextlib.suppress(ValueError):  # a name that is not assigned yet
            local[free] = cell.cell_contents
    holder = types.SimpleNamespace(__annotations__={parameter.name: written})
    try:
        hints = typing.get_type_hints(holder, source.__globals__, local, include_extras=True)
    except (NameError, AttributeError, TypeError, SyntaxError) as error:
        # Imported for the type checker only, as is usual.
        if written.partition("[")[0].rpartition(".")[2] == context.__name__:
            return context
        raise ToolDefinitionError(
            f"{name}: the annotation {written!r} of parameter {parameter.name!r} cannot be resolved "
            f"({error}); define what it names in the function's module"
        ) from error
    return hints[parameter.name]


def _text(annotation: Any) -> str:
    """The first text of an `Annotated`, also of one inside a union."""
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return next((item for item in args[1:] if isinstance(item, str)), "")
    if origin is Union or origin is types.UnionType:
        return next((text for text in map(_text, args) if text), "")
    return ""


def _assembled(name: str, shown: list[tuple[str, Any, Any, str]]) -> tuple[type[Struct], dict[str, Any]]:
    """The Struct type and the JSON Schema of the shown parameters: (name, annotation, default, text)."""
    fields: list[Any] = []
    properties: dict[str, Any] = {}
    defs: dict[str, Any] = {}
    required: list[str] = []
    for parameter, annotation, default, text in shown:
        try:
            kind = fitted(annotation)
            if default is None and not _accepts(kind, b"null"):
                kind = _either(kind, None)
            msgspec.json.Decoder(kind, dec_hook=from_json)
            schema = schema_of(kind)
        except (TypeError, NotImplementedError, ValueError) as error:
            reason = str(error) or "JSON cannot carry it"
            raise ToolDefinitionError(
                f"{name}: parameter {parameter!r} of type {annotation!r} cannot be offered: {reason}"
            ) from error
        schema = {**_declared(annotation, schema), **({"description": text} if text else {})}
        defs.update(schema.pop("$defs", {}))
        if default is _EMPTY:
            required.append(parameter)
            fields.append((parameter, kind))
        else:
            written = _written(kind, default)
            if written is None:
                fields.append((parameter, kind, msgspec.UNSET))
            else:
                schema["default"] = msgspec.json.decode(written)
                fields.append((parameter, kind, _default(default)))
        properties[parameter] = schema
    parameters: dict[str, Any] = {"type": "object", "properties": properties}
    if required:
        parameters["required"] = required
    if defs:
        parameters["$defs"] = defs
    try:
        return msgspec.defstruct("Arguments", fields, kw_only=True, forbid_unknown_fields=True), parameters
    except (TypeError, ValueError) as error:
        raise ToolDefinitionError(f"{name}: its parameters cannot be offered to a model: {error}") from error


def _default(value: Any) -> Any:
    """A default for a Struct field; it is only ever encoded, so sharing a mutable one does no harm."""
    return value if isinstance(value, _SCALARS) else msgspec.field(default_factory=lambda: value)


def _accepts(kind: Any, text: bytes) -> bool:
    try:
        msgspec.json.decode(text, type=kind, dec_hook=from_json)
    except (msgspec.MsgspecError, ValueError):
        return False
    return True


def _written(kind: Any, default: Any) -> bytes | None:
    """A default as JSON, or None when it cannot be written and read back as the parameter's type."""
    try:
        text = msgspec.json.encode(default, enc_hook=to_json, order="deterministic")
    except (TypeError, ValueError, RecursionError):
        return None
    return text if _accepts(kind, text) else None


def _declared(annotation: Any, schema: dict[str, Any]) -> dict[str, Any]:
    """Enumerated values in the order they were declared; msgspec sorts them."""
    inner = get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation
    if get_origin(inner) is Literal:
        return {**schema, **_enum(list(get_args(inner)))}
    if isinstance(inner, type) and issubclass(inner, enum.Enum):
        return {**schema, **_enum([member.value for member in inner])}
    return schema
