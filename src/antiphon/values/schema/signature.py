"""What a function's signature says about its arguments: a JSON Schema and a type to decode into.

msgspec does the work where it can; `fitted` gives it a stand-in for everything else. An annotation that
JSON cannot carry is a string, so that any function can be offered; a constraint that is not understood
is refused, because nobody would check it.
"""

from __future__ import annotations

import contextlib
import enum
import functools
import inspect
import types
import typing
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, get_args, get_origin

import msgspec
from msgspec import Struct

from antiphon.errors import ToolDefinitionError
from antiphon.values.schema.constraints import field_info, stated
from antiphon.values.schema.declared import declared_arguments
from antiphon.values.schema.docstring import documented
from antiphon.values.schema.fitted import fitted, holds_sets, nullable
from antiphon.values.schema.json_schema import schemas_of
from antiphon.values.schema.shape import Shape
from antiphon.values.schema.standins import SCALARS, enumeration, from_json, written_default
from antiphon.values.schema.structured import is_annotated, is_union, unwrapped


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
    shown: list[Parameter] = []
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
        try:
            shown.append(_parameter(annotation, parameter, texts.get(parameter.name, "")))
        except TypeError as error:
            raise ToolDefinitionError(
                f"{name}: parameter {parameter.name!r} of type {annotation!r} cannot be offered: {error}"
            ) from error
    plain = all(one.kind is one.POSITIONAL_OR_KEYWORD for one in parameters)
    plain = plain and (not injected or injected == parameters[0].name)
    fields, schema = _assembled(name, shown)
    sparse = any(field.default is msgspec.UNSET for field in msgspec.structs.fields(fields))
    kinds = list(fields.__annotations__.values())
    infos = "".join(repr(msgspec.inspect.type_info(each)) for each in kinds)
    return Shape(
        type=fields,
        parameters=schema,
        described=described,
        context=injected,
        whole=False,
        plain=plain and not sparse,
        sparse=sparse,
        method=method,
        ordered=not any(map(holds_sets, kinds)),
        foreign="CustomType(" in infos,
    )


def shape_of_schema(schema: Any, call: Callable[..., Any], name: str) -> Shape:
    """The arguments that a JSON Schema of type object describes, for a call that takes them as one dict.

    Raises ToolDefinitionError for what is no such schema or would not be checked, and a call that takes
    something else.
    """
    if not isinstance(schema, Mapping) or schema.get("type", "object") != "object":
        raise ToolDefinitionError(f"{name}: parameters must be a JSON Schema of type object")
    try:
        kind = declared_arguments({"type": "object", **schema})
    except (TypeError, ValueError) as error:
        raise ToolDefinitionError(f"{name}: its parameters are no JSON Schema: {error}") from error
    try:
        taken = inspect.signature(call)
        injected = next(iter(taken.parameters), "") == "ctx"
        taken.bind(*((None, {}) if injected else ({},)))
    except (TypeError, ValueError) as error:
        raise ToolDefinitionError(
            f"{name}: call takes its arguments as one dictionary, after `ctx` if it has it: {error}"
        ) from error
    return Shape(
        type=kind,
        parameters=kind.checked.schema,
        described="",
        context="ctx" if injected else "",
        whole=True,
        plain=False,
        sparse=False,
        method=False,
        ordered=True,
        foreign=False,
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
    if is_annotated(annotation):
        args = get_args(annotation)
        return stated(args[1:]).description or _text(args[0])
    if is_union(annotation):
        return next((text for text in map(_text, get_args(annotation)) if text), "")
    return ""


class Parameter(Struct, eq=False):
    """One shown parameter."""

    name: str
    annotation: Any
    """With the metadata of its default, when that is pydantic.Field."""
    default: Callable[[], Any] | None
    """Makes the default; None: it is required."""
    text: str
    """What the model is told of it."""
    replaced: bool
    """The function's own default is none that it could work with, so that it must always be given one."""


def _parameter(annotation: Any, parameter: inspect.Parameter, text: str) -> Parameter:
    """A parameter, its default taken out of pydantic.Field. Raises TypeError."""
    given = parameter.default
    info = field_info(given)
    if info is not None:
        annotation = Annotated[annotation, info]
    elif type(given) is type(_MSGSPEC_FIELD) or type(given).__module__ == "dataclasses":
        raise TypeError(
            f"its default {given!r} is for the fields of classes; expected a value, or pydantic.Field"
        )
    default: Callable[[], Any] | None = None if given is _EMPTY or info is not None else lambda: given
    replaced = info is not None
    if default is None and is_annotated(annotation):
        default = stated(get_args(annotation)[1:]).default
        replaced = default is not None
    return Parameter(parameter.name, annotation, default, _text(annotation) or text, replaced)


_EMPTY = inspect.Parameter.empty
_MSGSPEC_FIELD = msgspec.field()


def _assembled(name: str, shown: list[Parameter]) -> tuple[type[Struct], dict[str, Any]]:
    """The Struct type and the JSON Schema of the shown parameters."""
    fields: list[Any] = []
    properties: dict[str, Any] = {}
    kinds = [_kind(name, each) for each in shown]
    schemas, defs = _schemas(name, shown, kinds)
    required: list[str] = []
    for each, kind, schema in zip(shown, kinds, schemas, strict=True):
        schema = {**_declared(each.annotation, schema), **({"description": each.text} if each.text else {})}
        if each.default is None:
            required.append(each.name)
            fields.append((each.name, kind))
        else:
            written = written_default(each.default, kind)
            if written is None and each.replaced:
                raise ToolDefinitionError(
                    f"{name}: the default of parameter {each.name!r}, {each.default()!r}, does not fit its "
                    f"type {each.annotation!r} as JSON; expected one that does"
                )
            if written is None:
                fields.append((each.name, kind, msgspec.UNSET))
            else:
                schema["default"] = msgspec.json.decode(written)
                fields.append((each.name, kind, _default(each.default)))
        properties[each.name] = schema
    parameters: dict[str, Any] = {"type": "object", "properties": properties}
    if required:
        parameters["required"] = required
    parameters["additionalProperties"] = False
    if defs:
        parameters["$defs"] = defs
    try:
        return msgspec.defstruct("Arguments", fields, kw_only=True, forbid_unknown_fields=True), parameters
    except (TypeError, ValueError) as error:
        raise ToolDefinitionError(f"{name}: its parameters cannot be offered to a model: {error}") from error


def _kind(name: str, shown: Parameter) -> Any:
    """The type its argument is decoded as; null too, where that is the default."""
    try:
        kind = _without_text(fitted(shown.annotation))
        if shown.default is not None and shown.default() is None and not _takes_null(kind):
            kind = nullable(kind)
        msgspec.json.Decoder(kind, dec_hook=from_json)
    except (TypeError, ValueError) as error:
        raise _not_offered(name, shown, error) from error
    return kind


def _without_text(kind: Any) -> Any:
    """A fitted type without its description, which the parameter carries itself."""
    if not is_annotated(kind):
        return kind
    inner, *metas = get_args(kind)
    kept = [each for each in metas if set(each.extra_json_schema or ()) != {"description"}]
    return Annotated[(inner, *kept)] if kept else inner


def _takes_null(kind: Any) -> bool:
    return written_default(lambda: None, kind) is not None


def _schemas(
    name: str, shown: list[Parameter], kinds: list[Any]
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    try:
        return schemas_of(kinds)
    except Exception:
        for each, kind in zip(shown, kinds, strict=True):
            try:
                schemas_of([kind])
            except Exception as error:
                raise _not_offered(name, each, error) from error
        raise


def _not_offered(name: str, shown: Parameter, error: Exception) -> ToolDefinitionError:
    reason = str(error) or "JSON cannot carry it"
    return ToolDefinitionError(
        f"{name}: parameter {shown.name!r} of type {shown.annotation!r} cannot be offered: {reason}"
    )


def _default(make: Callable[[], Any]) -> Any:
    """A default for a Struct field; it is only ever encoded, so sharing a mutable one does no harm."""
    value = make()
    return value if isinstance(value, (*SCALARS, bytes, enum.Enum)) else msgspec.field(default_factory=make)


def _declared(annotation: Any, schema: dict[str, Any]) -> dict[str, Any]:
    """Enumerated values in the order they were declared, null last; msgspec sorts them."""
    inner = unwrapped(annotation)
    if is_annotated(inner):
        return _declared(get_args(inner)[0], schema)
    if get_origin(inner) is Literal:
        values = [arg.value if isinstance(arg, enum.Enum) else arg for arg in get_args(inner)]
    elif isinstance(inner, type) and issubclass(inner, enum.Enum):
        values = [member.value for member in inner]
    elif is_union(inner) and len(get_args(inner)) == 2 and type(None) in get_args(inner):
        rest = next(arg for arg in get_args(inner) if arg is not type(None))
        return _declared(rest, schema)
    else:
        return schema
    if {"type": "null"} in schema.get("anyOf", ()):
        values = [*values, None]
        schema = {key: value for key, value in schema.items() if key != "anyOf"}
    elif None in schema.get("enum", ()) and None not in values:
        values = [*values, None]
    return {**schema, **enumeration(values)}
