"""Stand-ins: the types that msgspec is given where it cannot read, or must not see, what was annotated.

To msgspec each is a class it does not know, so it hands the plain value to `from_json`, which reads it
here: unions it cannot tell apart, mixed enumerations, values with a pattern or a multiple, objects whose
fields hold one of these, objects with keys that are no free text.
"""

from __future__ import annotations

import enum
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import PurePath
from typing import Any

import msgspec

from antiphon.values.schema.constraints import limits_in_schema
from antiphon.values.schema.structured import ClassField

SCALARS = (str, int, float, bool, type(None))
INTEGER_KEY = "^(0|-?[1-9][0-9]*)$"
_INTEGER = re.compile(r"0|-?[1-9][0-9]*")


Hook = Callable[[type, Any], Any]
"""msgspec's dec_hook: decodes a plain value as a class that msgspec does not know."""
_LONGEST_REASON = 200
"""Characters that each alternative of a union may say; unions inside of it would double them."""


class StandIn(type):
    """The metaclass of stand-ins: msgspec accepts whatever their `read` returns."""

    read: Callable[[Any, Hook], Any]
    """Decodes a plain value, and its parts by the hook. Raises ValueError when it does not fit."""
    schema: Callable[[list[dict[str, Any]]], dict[str, Any]]
    """Its JSON Schema, given those of its parts."""
    parts: tuple[Any, ...]
    """The fitted annotations that it is made of."""

    def __instancecheck__(cls, instance: object) -> bool:
        return True


class UnionChoice(metaclass=StandIn):
    """A union: the first member that fits and keeps every given key."""

    parts: tuple[Any, ...] = ()

    @classmethod
    def read(cls, value: Any, inner: Hook) -> Any:
        found: list[Any] = []
        reasons: list[str] = []
        for member in cls.parts:
            try:
                fitting = convert(value, member, inner)
            except (msgspec.ValidationError, ValueError) as error:
                reasons.append(str(error).replace(" - at `", " at `")[:_LONGEST_REASON])
                continue
            if not isinstance(value, dict) or value.keys() <= _keys(fitting):
                return fitting
            found.append(fitting)
        if found:
            return found[0]
        raise ValueError("Fits none of the alternatives: " + "; ".join(reasons))

    @classmethod
    def schema(cls, parts: list[dict[str, Any]]) -> dict[str, Any]:
        return {"anyOf": parts}


class EnumValues(metaclass=StandIn):
    """An enumeration of values of mixed types; `members` maps (type, value) to what the tool gets."""

    parts: tuple[Any, ...] = ()
    members: Mapping[tuple[type, Any], Any] = {}

    @classmethod
    def read(cls, value: Any, inner: Hook) -> Any:
        if isinstance(value, SCALARS) and (type(value), value) in cls.members:
            return cls.members[type(value), value]
        raise ValueError(f"Invalid enum value {value!r}")

    @classmethod
    def schema(cls, parts: list[dict[str, Any]]) -> dict[str, Any]:
        return enumeration([value for _, value in cls.members])


class LimitedValue(metaclass=StandIn):
    """A value of one type, with limits that are checked here."""

    parts: tuple[Any, ...] = ()
    limits: Mapping[str, Any] = {}
    check: Callable[[Any], None]

    @classmethod
    def read(cls, value: Any, inner: Hook) -> Any:
        found = convert(value, cls.parts[0], inner)
        cls.check(found)
        return found

    @classmethod
    def schema(cls, parts: list[dict[str, Any]]) -> dict[str, Any]:
        return limits_in_schema(cls.limits, parts[0])


class KeyedObject(metaclass=StandIn):
    """A dictionary whose keys are integers, or texts of which not every one will do."""

    parts: tuple[Any, ...] = ()
    integers: bool = False

    @classmethod
    def read(cls, value: Any, inner: Hook) -> Any:
        key, item = cls.parts
        if not isinstance(value, dict):
            raise ValueError(f"Expected `object`, got `{kind_of(value)}`")
        found = {}
        for name, each in value.items():
            if cls.integers and not _INTEGER.fullmatch(name):
                raise ValueError(f"Expected whole numbers as keys, got {name!r}")
            read = convert(int(name) if cls.integers else name, key, inner)
            found[read] = _at(name, each, item, inner)
        return found

    @classmethod
    def schema(cls, parts: list[dict[str, Any]]) -> dict[str, Any]:
        key, item = parts
        keys = {"pattern": INTEGER_KEY} if cls.integers else key
        return {"type": "object", "propertyNames": keys, "additionalProperties": item}


class PydanticDataclass(metaclass=StandIn):
    """A dataclass that pydantic reads by its own rules; `adapter` is its TypeAdapter."""

    parts: tuple[Any, ...] = ()
    adapter: Any = None

    @classmethod
    def read(cls, value: Any, inner: Hook) -> Any:
        return cls.adapter.validate_json(msgspec.json.encode(value))

    @classmethod
    def schema(cls, parts: list[dict[str, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = cls.adapter.json_schema()
        return found


class FieldwiseObject(metaclass=StandIn):
    """An object of a class with fields, read field by field and made by calling the class.

    fields, parts: what it holds, side by side; set once the class was looked through, as it may hold itself.
    tag: the field that names the class, and its name; or None. closed: unknown fields are refused.
    array: it is an array in JSON.
    """

    parts: tuple[Any, ...] = ()
    fields: tuple[ClassField, ...] = ()
    made: Callable[..., Any]
    title: str = ""
    tag: tuple[str, Any] | None = None
    closed: bool = False
    array: bool = False

    @classmethod
    def read(cls, value: Any, inner: Hook) -> Any:
        if not isinstance(value, list if cls.array else dict):
            raise ValueError(f"Expected `{'array' if cls.array else 'object'}`, got `{kind_of(value)}`")
        if cls.array:
            if len(value) > len(cls.fields):
                raise ValueError(f"Expected `array` of at most length {len(cls.fields)}")
            value = {each.key: item for each, item in zip(cls.fields, value, strict=False)}
        if cls.tag is not None and value.get(cls.tag[0]) != cls.tag[1]:
            raise ValueError(f"Expected {cls.tag[1]!r} - at `$.{cls.tag[0]}`")
        if cls.closed:
            known = {each.key for each in cls.fields} | ({cls.tag[0]} if cls.tag else set())
            for name in value:
                if name not in known:
                    raise ValueError(f"Object contains unknown field `{name}`")
        given = {}
        for each, part in zip(cls.fields, cls.parts, strict=True):
            if each.key in value:
                given[each.name] = _at(each.key, value[each.key], part, inner)
            elif each.required:
                raise ValueError(f"Object missing required field `{each.key}`")
        return cls.made(**given)

    @classmethod
    def schema(cls, parts: list[dict[str, Any]]) -> dict[str, Any]:
        needed = [each.key for each in cls.fields if each.required]
        if cls.array:
            return {
                "title": cls.title, "type": "array", "prefixItems": parts, "items": False,
                "minItems": len(needed), "maxItems": len(parts),
            }  # fmt: skip
        properties = {each.key: part for each, part in zip(cls.fields, parts, strict=True)}
        for each, part in zip(cls.fields, cls.parts, strict=True):
            written = written_default(each.default, part)
            if written is not None:
                properties[each.key] = {**properties[each.key], "default": msgspec.json.decode(written)}
        if cls.tag is not None:
            properties = {cls.tag[0]: {"enum": [cls.tag[1]]}, **properties}
            needed = [cls.tag[0], *needed]
        schema = {"title": cls.title, "type": "object", "properties": properties}
        schema = {**schema, "required": needed} if needed else schema
        return {**schema, "additionalProperties": False} if cls.closed else schema


def _at(key: str, value: Any, kind: Any, inner: Hook) -> Any:
    """A part of a value; what does not fit is said with its place."""
    try:
        return convert(value, kind, inner)
    except (msgspec.ValidationError, ValueError) as error:
        raise ValueError(f"{error} - at `$.{key}`") from error


def convert(value: Any, kind: Any, hook: Hook | None = None) -> Any:
    """A plain JSON value as a fitted type. Raises msgspec.ValidationError, ValueError."""
    try:
        return msgspec.convert(value, kind, dec_hook=hook or _OnePass(), str_keys=True)
    except msgspec.ValidationError as error:
        raise msgspec.ValidationError(in_one_place(str(error))) from error


_PLACE = re.compile(r" - at `\$([^`]*)`")
_PLACES = re.compile(r"(?: - at `\$[^`]*`){2,}$")


def in_one_place(said: str) -> str:
    """What an error says, with the places of inner and outer values, inner first, as one."""
    places = _PLACES.search(said)
    if places is None:
        return said
    return f"{said[: places.start()]} - at `${''.join(reversed(_PLACE.findall(places[0])))}`"


def written_default(default: Callable[[], Any] | None, kind: Any) -> bytes | None:
    """A default as JSON, or None when there is none that can be written and read back as its type."""
    if default is None:
        return None
    try:
        text = msgspec.json.encode(default(), enc_hook=to_json, order="deterministic")
        msgspec.json.decode(text, type=kind, dec_hook=from_json)
    except (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError):
        return None
    return text


def kind_of(value: object) -> str:
    """What a plain value is called in JSON."""
    if value is None or isinstance(value, bool):
        return "null" if value is None else "boolean"
    for kind, name in ((str, "string"), (int, "integer"), (float, "number"), (list, "array")):
        if isinstance(value, kind):
            return name
    return "object"


_NAMES = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}


def enumeration(values: list[Any]) -> dict[str, Any]:
    """An `enum` with the type of its first member, or no type when the members differ."""
    kinds = {type(value) for value in values}
    if len(kinds) == 1 and kinds <= _NAMES.keys():
        return {"type": _NAMES[kinds.pop()], "enum": values}
    return {"enum": values}


def _keys(value: Any) -> set[str]:
    plain = msgspec.to_builtins(value, enc_hook=to_json, str_keys=True)
    return set(plain) if isinstance(plain, dict) else set()


def pydantic_model(kind: object) -> Any:
    """`kind` if it is a pydantic model class; pydantic is looked at only when the user imported it."""
    module = sys.modules.get("pydantic")
    model = getattr(module, "BaseModel", None)
    return kind if model is not None and isinstance(kind, type) and issubclass(kind, model) else None


def pydantic_dataclass(kind: object) -> Any:
    """Its stand-in if it is a dataclass of pydantic's, else None."""
    module = sys.modules.get("pydantic")
    if module is None or not hasattr(kind, "__pydantic_fields__") or pydantic_model(kind) is not None:
        return None
    name, adapter = getattr(kind, "__name__", "Object"), module.TypeAdapter(kind)
    return type(name, (PydanticDataclass,), {"adapter": adapter})


class _OnePass:
    """One pass over a value: each part is read as each stand-in once, however many unions it stands in.

    Alternatives that hold one another would else be tried anew at each level, twice as often as above it.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], tuple[Any, Any, str | None]] = {}

    def __call__(self, kind: type, value: Any) -> Any:
        if not isinstance(kind, StandIn):
            return from_json(kind, value)
        known = self._known.get((id(value), id(kind)))
        if known is None:
            # The value is kept, so that no other has its identity.
            known = self._known[id(value), id(kind)] = (value, *self._read(kind, value))
        if known[2] is not None:
            # A ValueError, not msgspec's own: to that it adds no place.
            raise ValueError(known[2])
        return known[1]

    def _read(self, kind: StandIn, value: Any) -> tuple[Any, str | None]:
        try:
            return kind.read(value, self), None
        except ValueError as error:
            return None, str(error)


def from_json(kind: type, value: Any) -> Any:
    """msgspec's dec_hook: decode what msgspec does not know. Raises ValueError when it does not fit."""
    if isinstance(kind, StandIn):
        return _OnePass()(kind, value)
    model = pydantic_model(kind)
    if model is not None:
        return model.model_validate_json(msgspec.json.encode(value))
    if issubclass(kind, PurePath) and isinstance(value, str):
        return kind(value)
    raise ValueError(f"Expected `{kind.__name__}`")


def to_json(value: Any) -> Any:
    """msgspec's enc_hook: paths, mixed enumerations, pydantic models. TypeError for anything else."""
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, enum.Enum):
        return value.value
    if pydantic_model(type(value)) is not None:
        return value.model_dump(mode="json", by_alias=True)
    raise TypeError(f"{type(value).__module__}.{type(value).__qualname__} cannot be written as JSON")
