"""The fields of classes that describe objects: Struct, dataclass, TypedDict, NamedTuple."""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, TypeVar, get_args, get_origin

import msgspec
from msgspec import Struct


class ClassField(Struct, frozen=True, eq=False):
    """One field. name: in Python; key: in JSON; default: makes what it is when not given, or None."""

    name: str
    key: str
    annotation: Any
    required: bool = True
    default: Callable[[], Any] | None = None


def is_structured(kind: Any) -> bool:
    """Whether it is a class, or the alias of a generic one, whose fields `fields_of` reads."""
    origin = get_origin(kind) or kind
    return isinstance(origin, type) and (
        hasattr(origin, "__struct_fields__")
        or hasattr(origin, "__dataclass_fields__")
        or typing.is_typeddict(origin)
        or is_named_tuple(origin)
    )


def is_named_tuple(kind: Any) -> bool:
    """Whether it is a class of named tuples, an array in JSON."""
    return isinstance(kind, type) and issubclass(kind, tuple) and hasattr(kind, "_fields")


def annotations_of(kind: Any) -> Iterable[Any]:
    """The annotations of its fields; of a class of attrs too."""
    if is_structured(kind):
        return [each.annotation for each in fields_of(kind)]
    return typing.get_type_hints(kind, include_extras=True).values()


def fields_of(kind: Any) -> tuple[ClassField, ...]:
    """Its fields as declared. Raises TypeError for what cannot be read one by one."""
    origin: Any = get_origin(kind) or kind
    try:
        return _fields(kind, origin)
    except NameError as error:
        raise TypeError(
            f"an annotation of {origin.__name__} cannot be resolved ({error}); define what it names in the "
            "module of the class"
        ) from error


def _fields(kind: Any, origin: Any) -> tuple[ClassField, ...]:
    if hasattr(origin, "__struct_fields__"):
        return tuple(map(_struct_field, msgspec.structs.fields(kind)))
    hints = _hints(kind, origin)
    if hasattr(origin, "__dataclass_fields__"):
        # Slow to import; whoever has a dataclass has done so.
        from dataclasses import fields

        return tuple(_dataclass_field(each, hints[each.name]) for each in fields(origin) if each.init)
    if typing.is_typeddict(origin):
        # Annotations that are texts hide `Required` and `NotRequired` from the class.
        marks = {name: get_origin(hint) for name, hint in hints.items()}
        needed = {name for name in origin.__required_keys__ if marks[name] is not typing.NotRequired}
        needed |= {name for name, mark in marks.items() if mark is typing.Required}
        return tuple(ClassField(name, name, hint, name in needed) for name, hint in hints.items())
    defaults: Mapping[str, Any] = origin._field_defaults
    return tuple(
        ClassField(name, name, hints.get(name, Any), name not in defaults, _constant(defaults, name))
        for name in origin._fields
    )


def _struct_field(each: Any) -> ClassField:
    if each.default_factory is not msgspec.NODEFAULT:
        return ClassField(each.name, each.encode_name, each.type, False, each.default_factory)
    default = None if each.required else lambda: each.default
    return ClassField(each.name, each.encode_name, each.type, each.required, default)


def _dataclass_field(each: Any, hint: Any) -> ClassField:
    from dataclasses import MISSING, InitVar

    if isinstance(hint, InitVar):
        raise TypeError(f"{each.name} is an InitVar; expected a field")
    if each.default_factory is not MISSING:
        return ClassField(each.name, each.name, hint, False, each.default_factory)
    if each.default is not MISSING:
        return ClassField(each.name, each.name, hint, False, lambda: each.default)
    return ClassField(each.name, each.name, hint)


def _constant(values: Mapping[str, Any], name: str) -> Callable[[], Any] | None:
    return (lambda: values[name]) if name in values else None


def _hints(kind: Any, origin: Any) -> dict[str, Any]:
    """Its annotations, with the arguments of a generic alias filled in."""
    hints = typing.get_type_hints(origin, include_extras=True)
    known = dict(zip(getattr(origin, "__parameters__", ()), get_args(kind), strict=False))
    return {name: _filled(hint, known) for name, hint in hints.items()} if known else hints


def _filled(hint: Any, known: Mapping[Any, Any]) -> Any:
    if isinstance(hint, TypeVar):
        return known.get(hint, hint)
    parameters = getattr(hint, "__parameters__", ())
    return hint[tuple(known.get(each, each) for each in parameters)] if parameters else hint


_TRANSPARENT = (typing.Final, typing.Required, typing.NotRequired, typing.ClassVar)


def unwrapped(annotation: Any) -> Any:
    """An annotation without the names and marks around it: aliases, NewType, Final, Required, variables."""
    for _ in range(100):
        origin = get_origin(annotation)
        alias = annotation if origin is None else origin
        if isinstance(annotation, TypeVar):
            bound, several = annotation.__bound__, annotation.__constraints__
            annotation = bound if bound is not None else typing.Union[several] if several else Any  # noqa: UP007
        elif origin in _TRANSPARENT or type(origin).__name__ == "ReadOnly":
            annotation = get_args(annotation)[0]
        elif type(alias).__name__ == "TypeAliasType":
            annotation = alias.__value__[get_args(annotation)] if origin is not None else alias.__value__
        elif origin is None and hasattr(annotation, "__supertype__"):
            annotation = annotation.__supertype__
        else:
            return annotation
    raise TypeError(f"{annotation!r} is an alias of itself; use a class")


def is_union(annotation: Any) -> bool:
    """Whether it is `A | B` or `Union[A, B]`."""
    return get_origin(annotation) in (typing.Union, types.UnionType)


def is_annotated(annotation: Any) -> bool:
    """Whether it is `Annotated[…]`."""
    return get_origin(annotation) is Annotated
