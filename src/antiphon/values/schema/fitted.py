"""An annotation as msgspec can decode it. What it must not see is given a stand-in, at any depth.

Nothing with a pattern, a multiple or a limit inside a union reaches msgspec, not even in a field of a
user's class: such a class is read here, field by field.
"""

from __future__ import annotations

import datetime
import decimal
import enum
import functools
import operator
import types
from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AnySet
from pathlib import PurePath
from typing import Annotated, Any, Literal, get_args, get_origin

import msgspec

from antiphon.values.schema.constraints import LENGTHS, NUMERIC, limits_check, stated
from antiphon.values.schema.standins import (
    SCALARS,
    EnumValues,
    FieldwiseObject,
    KeyedObject,
    LimitedValue,
    StandIn,
    UnionChoice,
    from_json,
    kind_of,
    pydantic_dataclass,
    pydantic_model,
)
from antiphon.values.schema.structured import (
    annotations_of,
    fields_of,
    is_annotated,
    is_named_tuple,
    is_structured,
    is_union,
    unwrapped,
)

_Records = dict[Any, Any]
"""The stand-ins of classes that are being looked through, by class."""
_FORMATS = {datetime.datetime: "date-time", datetime.time: "time"}
"""Formats that are checked, and that msgspec does not show."""
_ABSENT = (type(None), msgspec.UnsetType)
_LONGEST = 2**63 - 1


def fitted(annotation: Any) -> Any:
    """The annotation as msgspec can decode it; a type that JSON cannot carry becomes `str`.

    Raises TypeError for what is not understood.
    """
    return _fit(annotation, {})


def _fit(annotation: Any, records: _Records) -> Any:
    annotation = unwrapped(annotation)
    origin, args = get_origin(annotation), get_args(annotation)
    if is_annotated(annotation):
        return _annotated(args[0], args[1:], records)
    if is_union(annotation):
        return _union(tuple(_fit(arg, records) for arg in args if arg not in _ABSENT), type(None) in args)
    if origin is Literal:
        return annotation if _decodable(annotation) else _literal(args)
    if isinstance(annotation, type) and issubclass(annotation, enum.Enum):
        return _enum(annotation)
    dataclass = pydantic_dataclass(annotation)
    if dataclass is not None:
        return dataclass
    if hasattr(annotation, "__attrs_attrs__") and not _readable(annotation, set()):
        raise TypeError(f"{annotation!r} has fields that are checked one by one; expected a dataclass")
    if is_structured(annotation):
        return annotation if _readable(annotation, set()) else _record(annotation, records)
    if origin is not None and args and isinstance(origin, type) and pydantic_model(origin) is None:
        return _container(origin, args, records)
    if isinstance(annotation, type) and annotation in _FORMATS:
        return Annotated[annotation, msgspec.Meta(extra_json_schema={"format": _FORMATS[annotation]})]
    if annotation is object:
        return Any
    return annotation if _known(annotation) else str


def _container(origin: type, args: tuple[Any, ...], records: _Records) -> Any:
    """A collection of something."""
    origin = list if origin is Iterable else origin
    if origin not in (tuple, list, dict, set, frozenset) and not issubclass(origin, Collection):
        return str
    if issubclass(origin, Mapping) and len(args) == 2:
        return _mapping(origin, _fit(args[0], records), _fit(args[1], records))
    alias = types.GenericAlias(origin, tuple(arg if arg is ... else _fit(arg, records) for arg in args))
    return alias if _decodable(alias) else str


def _mapping(origin: type, key: Any, value: Any) -> Any:
    if key in (str, Any):
        return types.GenericAlias(origin, (str, value))
    texts = key is not int and _texts(key)
    if not texts and key is not int:
        raise TypeError(
            f"the keys of a JSON object are texts; expected str, int or an enumeration of texts, got {key}"
        )
    return type("Keyed", (KeyedObject,), {"parts": (key, value), "integers": not texts})


def _texts(key: Any) -> bool:
    """Whether a fitted type is read from text alone."""
    if get_origin(key) is Literal:
        return all(isinstance(each, str) for each in get_args(key))
    if isinstance(key, type) and issubclass(key, enum.Enum):
        return all(isinstance(each.value, str) for each in key)
    if isinstance(key, StandIn) and issubclass(key, LimitedValue):
        return _texts(key.parts[0])
    return key is str or (is_annotated(key) and _texts(get_args(key)[0]))


def _literal(args: tuple[Any, ...]) -> Any:
    plain = {arg: arg.value if isinstance(arg, enum.Enum) else arg for arg in args}
    for arg, value in plain.items():
        if not isinstance(value, SCALARS):
            raise TypeError(f"{arg!r} is no value that JSON can hold")
    return _values({(type(value), value): arg for arg, value in plain.items()})


def _enum(kind: type[enum.Enum]) -> Any:
    wrong = [each for each in kind if not isinstance(each.value, SCALARS)]
    if wrong or not list(kind):
        raise TypeError(
            f"{wrong[0]!r} is no value that JSON can hold" if wrong else f"{kind!r} has no members"
        )
    if _decodable(kind):
        return kind
    return _values({(type(member.value), member.value): member for member in kind})


def _annotated(inner: Any, metadata: tuple[Any, ...], records: _Records) -> Any:
    said = stated(metadata)
    kind = _limited(inner, said.limits, records)
    shown = {**said.shown, **({"description": said.description} if said.description else {})}
    if not shown:
        return kind
    return Annotated[kind, msgspec.Meta(extra_json_schema=shown)]


def _limited(inner: Any, limits: dict[str, Any], records: _Records) -> Any:
    """A type with limits; those of a union are its members', each taking those that are meant for it."""
    inner = unwrapped(inner)
    if not limits:
        return _fit(inner, records)
    if is_annotated(inner):
        args = get_args(inner)
        both = stated(args[1:])
        for name, value in limits.items():
            both.limit(name, value)
        return _limited(args[0], both.limits, records)
    if is_union(inner):
        args = get_args(inner)
        unused = set(limits) - {name for name in limits for arg in args if _applies(name, arg)}
        _check_used(unused, limits, inner)
        members = (
            _limited(arg, {name: value for name, value in limits.items() if _applies(name, arg)}, records)
            for arg in args
            if arg not in _ABSENT
        )
        return _union(tuple(members), type(None) in args)
    _check_used({name for name in limits if not _applies(name, inner)}, limits, inner)
    kind = _fit(inner, records)
    if _harmless(inner, limits):
        return Annotated[kind, msgspec.Meta(**limits)]
    check = staticmethod(limits_check(limits, _called(inner)))
    return type("Limited", (LimitedValue,), {"parts": (kind,), "limits": limits, "check": check})


def _check_used(unused: set[str], limits: Mapping[str, Any], inner: Any) -> None:
    for name in sorted(unused):
        meant = "numbers" if name in NUMERIC else "texts and collections" if name in LENGTHS else "texts"
        meant = "times" if name == "tz" else meant
        raise TypeError(f"{name}={limits[name]!r} is for {meant}, and the type is {inner!r}")


def _applies(name: str, inner: Any) -> bool:
    inner = unwrapped(inner)
    if is_annotated(inner):
        return _applies(name, get_args(inner)[0])
    if is_union(inner):
        return any(_applies(name, arg) for arg in get_args(inner))
    origin = get_origin(inner) or inner
    if not isinstance(origin, type) or is_structured(origin) or issubclass(origin, enum.Enum):
        return False
    if name in NUMERIC:
        return origin in (int, float, decimal.Decimal)
    if name in LENGTHS:
        return issubclass(origin, str | bytes | Collection)
    if name == "tz":
        return origin in (datetime.datetime, datetime.time)
    return origin is str


def _harmless(inner: Any, limits: Mapping[str, Any]) -> bool:
    """Whether msgspec checks these limits as JSON Schema means them."""
    origin = get_origin(inner) or inner
    if origin is int and any(type(value) is not int or abs(value) > _LONGEST for value in limits.values()):
        return False
    if origin not in (int, float, str, list, datetime.datetime, datetime.time, bytes):
        return False
    return not {"pattern", "multiple_of"} & limits.keys() and not (
        {"ge", "gt"} <= limits.keys() or {"le", "lt"} <= limits.keys()
    )


def _called(inner: Any) -> str:
    origin = get_origin(inner) or inner
    if issubclass(origin, Mapping):
        return "object"
    return "array" if issubclass(origin, Collection) and origin not in (str, bytes) else str(origin.__name__)


def _record(kind: Any, records: _Records) -> Any:
    """The stand-in of a class with fields that msgspec must not see."""
    if kind in records:
        return records[kind]
    origin: Any = get_origin(kind) or kind
    config = getattr(origin, "__struct_config__", None)
    if config is not None and config.array_like:
        raise TypeError(f"{kind!r} is array_like with fields that are checked one by one; use a NamedTuple")
    made = dict if isinstance(origin, type) and issubclass(origin, dict) else origin
    tag = (config.tag_field, config.tag) if config is not None and config.tag_field is not None else None
    found: Any = type(
        origin.__name__,
        (FieldwiseObject,),
        {
            "fields": fields_of(kind),
            "made": staticmethod(made),
            "title": origin.__name__,
            "tag": tag,
            "closed": config is not None and config.forbid_unknown_fields,
            "array": is_named_tuple(origin),
        },
    )
    records[kind] = found
    parts = []
    for each in found.fields:
        try:
            part = _fit(each.annotation, records)
        except TypeError as error:
            raise TypeError(f"field {each.name!r} of {origin.__name__}: {error}") from error
        if part is str and not _known(unwrapped(each.annotation)):
            raise TypeError(
                f"field {each.name!r} of {origin.__name__}: JSON cannot carry {each.annotation!r}"
            )
        parts.append(part)
    found.parts = tuple(parts)
    return found


def _readable(annotation: Any, seen: set[Any]) -> bool:
    """Whether msgspec may be given it as it stands, with all that is inside of it."""
    inner = unwrapped(annotation)
    origin, args = get_origin(inner), get_args(inner)
    if is_annotated(inner):
        if not all(isinstance(each, msgspec.Meta) for each in args[1:]):
            return False
        limits = stated(args[1:]).limits
        return (
            not is_union(unwrapped(args[0]))
            and _readable(args[0], seen)
            and (
                not limits or (all(_applies(name, args[0]) for name in limits) and _harmless(args[0], limits))
            )
        )
    if is_union(inner):
        members = [arg for arg in args if arg not in _ABSENT]
        return all(_readable(arg, seen) for arg in members) and (len(members) == 1 or _apart(members))
    if origin is Literal:
        return _decodable(inner)
    if isinstance(inner, type) and issubclass(inner, enum.Enum):
        return all(isinstance(each.value, SCALARS) for each in inner) and _decodable(inner)
    if hasattr(inner, "__pydantic_fields__") and pydantic_model(inner) is None:
        return False
    if is_structured(inner) or hasattr(inner, "__attrs_attrs__"):
        if inner in seen:
            return True
        seen.add(inner)
        return all(_readable(each, seen) for each in annotations_of(inner))
    if origin is None or not args:
        plain = not isinstance(inner, type) or inner not in _FORMATS
        return plain and (inner is Any or _known(inner))
    if not isinstance(origin, type) or not issubclass(origin, Collection):
        return False
    if issubclass(origin, Mapping):
        return unwrapped(args[0]) in (str, Any) and _readable(args[1], seen)
    return all(arg is ... or _readable(arg, seen) for arg in args)


def _known(annotation: Any) -> bool:
    """Whether it is a type that msgspec, or `from_json`, reads without looking into it."""
    if annotation is None or annotation is Any:
        return True
    if isinstance(annotation, StandIn) or pydantic_model(annotation) is not None:
        return True
    if isinstance(annotation, type) and issubclass(annotation, PurePath):
        return True
    try:
        info = msgspec.inspect.type_info(annotation)
    except TypeError:
        return False
    return not isinstance(info, msgspec.inspect.CustomType)


def _apart(members: Sequence[Any]) -> bool:
    """Whether msgspec tells the members of a union apart as JSON Schema does: by the type of the value."""
    if all(getattr(getattr(each, "__struct_config__", None), "tag", None) is not None for each in members):
        return True
    kinds: list[str] = []
    for member in members:
        origin = get_origin(member) or member
        if get_origin(member) is Literal:
            kinds += {kind_of(each) for each in get_args(member)}
        elif isinstance(origin, type) and issubclass(origin, enum.Enum):
            kinds += {kind_of(each.value) for each in origin}
        elif origin in _PLAIN:
            kinds.append(_PLAIN[origin])
        elif isinstance(origin, type) and issubclass(origin, dict):
            kinds.append("object")
        elif origin in (list, tuple, set, frozenset):
            kinds.append("array")
        elif is_structured(member) and not is_named_tuple(origin):
            kinds.append("object")
        else:
            return False
    # An integer is a number too; beside a plain `float` only a plain `int` stays what was given.
    mixed = "number" in kinds and "integer" in kinds and int not in members
    return len(set(kinds)) == len(kinds) and not mixed


_PLAIN = {str: "string", int: "integer", float: "number", bool: "boolean"}


def _decodable(annotation: Any) -> bool:
    try:
        msgspec.json.Decoder(annotation, dec_hook=from_json)
    except TypeError:
        return False
    return True


def either(*members: Any) -> Any:
    """The union of fitted types."""
    return functools.reduce(operator.or_, members)


def _union(members: tuple[Any, ...], nullable: bool) -> Any:
    if len(members) == 1 or (_apart(members) and _decodable(either(*members))):
        whole = either(*members)
    else:
        # A number that is an integer stays one.
        ordered = sorted(members, key=lambda member: _base(member) is float)
        whole = type("Choice", (UnionChoice,), {"parts": tuple(ordered)})
    return either(whole, None) if nullable else whole


def nullable(kind: Any) -> Any:
    """A fitted type, or null."""
    return _union((kind,), True)


def _base(member: Any) -> Any:
    if is_annotated(member):
        return _base(get_args(member)[0])
    return (
        _base(member.parts[0]) if isinstance(member, StandIn) and issubclass(member, LimitedValue) else member
    )


def _values(members: Mapping[tuple[type, Any], Any]) -> Any:
    return type("Values", (EnumValues,), {"members": members})


def holds_sets(kind: Any) -> bool:
    """Whether a fitted type holds a set anywhere, whose order is nobody's."""
    seen: set[int] = set()

    def look(each: Any) -> bool:
        inner = unwrapped(each)
        origin = get_origin(inner) or inner
        if id(origin) in seen and not get_args(inner):
            return False
        seen.add(id(origin))
        if isinstance(origin, type) and issubclass(origin, AnySet):
            return True
        inside = inner.parts if isinstance(inner, StandIn) else get_args(inner)
        if not isinstance(inner, StandIn) and is_structured(inner):
            inside = (*inside, *(field.annotation for field in fields_of(inner)))
        return any(look(part) for part in inside if part is not ... and not isinstance(part, SCALARS))

    return look(kind)
