"""Values in a message as JSON, and back: dates, sets, tuples, bytes, paths, enumerations, dataclasses …

What JSON cannot carry is written as an object with the key `$antiphon`, which names its kind:

    {"$antiphon": "set", "value": [1, 2]}
    {"$antiphon": "type", "name": "Order", "value": {"id": 7}}

Data never names code. The kinds are a closed list of built-in types; a class is only ever made when
the reader asked for it (`types`), and otherwise its plain data is what is read. A dictionary that
holds the key itself is written as a kind of its own, so what looks like a kind comes back as it was.
"""

from __future__ import annotations

import base64
import dataclasses
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID

import msgspec
from msgspec import Struct

from antiphon import UserError
from antiphon.styles.tasks.errors import InvalidMessage

KIND = "$antiphon"
"""The key that marks a value JSON has no form for."""
MAX_CHARACTERS = 1_048_576
"""The longest JSON text that is written or read."""
MAX_DEPTH = 64
"""The deepest nesting of values in values."""

_WRITABLE = (
    "text, numbers, true, false, null, lists, dictionaries, datetime, date, time, timedelta, set, frozenset, "
    "tuple, bytes, Path, Enum, UUID, Decimal, dataclasses, msgspec Structs"
)


def to_json(value: Any) -> str:
    """The value as ASCII JSON. Raises InvalidMessage naming the path of what cannot be written."""
    text = json.dumps(plain(value), separators=(",", ":"))
    _check_length(text)
    return text


def plain(value: Any) -> Any:
    """The value in JSON's own types, as `to_json` writes it. Raises InvalidMessage."""
    return _ValueEncoder().plain(value, None)


def from_json(text: str, types: Iterable[type] = ()) -> Any:
    """The value that `to_json` wrote.

    types: the enumerations, dataclasses and Structs that may be made, matched by their `__name__`;
    of any other the plain value or the dictionary of its fields is returned. Raises InvalidMessage
    for what is too long, is no JSON (with line and column) or does not fit one of the types,
    UserError for `types` that cannot be.
    """
    reader = _ValueDecoder(types)
    _check_length(text)
    try:
        parsed = json.loads(text, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        near = text[max(0, error.pos - 20) : error.pos + 20]
        where = f"line {error.lineno}, column {error.colno}"
        raise InvalidMessage(f"Not JSON: {error.msg} at {where}, near {near!r}") from error
    except RecursionError as error:
        raise InvalidMessage(_too_deep(None)) from error
    except ValueError as error:
        raise InvalidMessage(f"Not JSON: {error}") from error
    return reader.value(parsed, None)


def value(plain: Any) -> Any:
    """The value that `plain` wrote; data in place of objects. Raises InvalidMessage."""
    return _ValueDecoder(()).value(plain, None)


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON number")


def _check_length(text: str) -> None:
    if len(text) > MAX_CHARACTERS:
        raise _too_long(f"{len(text):,}")


def _too_long(characters: str) -> InvalidMessage:
    return InvalidMessage(
        f"The JSON has {characters} characters, at most {MAX_CHARACTERS:,} (MAX_CHARACTERS) are taken; "
        "send a reference to what is large"
    )


_Path = tuple[Any, object] | None
"""Where a part stands: the path to what it is in, and its key or place there; None for the whole.
Spelled out only for an error, because a text for every part could cost more than the parts."""


def _at(path: _Path) -> str:
    steps: list[str] = []
    while path is not None:
        path, step = path
        named = isinstance(step, str) and step.isidentifier()
        steps.append(f".{step}" if named else f"[{step!r}]")
    return "At $" + "".join(step if len(step) <= 80 else f"{step[:77]}..." for step in reversed(steps))


def _too_deep(path: _Path) -> str:
    return f"{_at(path)}: nested deeper than {MAX_DEPTH} levels (MAX_DEPTH)"


class _ValueEncoder:
    """Turns one value into what JSON can carry.

    `_above`: the containers it is inside of. `_written`: parts so far; lists that hold one list
    twice, level after level, are small here and endless as a text.
    """

    def __init__(self) -> None:
        self._above: set[int] = set()
        self._written = 0

    def plain(self, value: Any, path: _Path) -> Any:
        """The value in JSON's own types."""
        self._written += 1
        if self._written > MAX_CHARACTERS:
            raise _too_long(f"more than {MAX_CHARACTERS:,}")
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, Enum):
            return self._named(value, value.value, path)
        if isinstance(value, str):
            return value
        if isinstance(value, int):
            return _integer(value, path)
        if isinstance(value, float):
            return value if math.isfinite(value) else _marked("float", str(float(value)))
        if not isinstance(value, dict | list):
            for kind, (type_, write, _) in _SCALARS.items():
                if isinstance(value, type_):
                    return _marked(kind, write(value))
        return self._container(value, path)

    def _container(self, value: Any, path: _Path) -> Any:
        if id(value) in self._above:
            raise InvalidMessage(f"{_at(path)}: the {type(value).__name__} holds itself")
        if len(self._above) >= MAX_DEPTH:
            raise InvalidMessage(_too_deep(path))
        self._above.add(id(value))
        try:
            return self._parts(value, path)
        finally:
            self._above.remove(id(value))

    def _parts(self, value: Any, path: _Path) -> Any:
        if isinstance(value, dict):
            return self._dictionary(value, path)
        if isinstance(value, list):
            return self._items(value, path)
        for kind, type_ in _COLLECTIONS.items():
            if isinstance(value, type_):
                items = self._items(value, path)
                return _marked(kind, items if type_ is tuple else sorted(items, key=json.dumps))
        fields = _fields(value)
        if fields is None:
            raise InvalidMessage(
                f"{_at(path)}: a {type(value).__qualname__} cannot be written as JSON. Possible: {_WRITABLE}"
            )
        return self._named(value, fields, path)

    def _named(self, value: Any, data: Any, path: _Path) -> Any:
        return {KIND: "type", "name": type(value).__name__, "value": self.plain(data, path)}

    def _items(self, value: Iterable[Any], path: _Path) -> list[Any]:
        return [self.plain(item, (path, place)) for place, item in enumerate(value)]

    def _dictionary(self, value: dict[Any, Any], path: _Path) -> Any:
        pairs = [(key, self.plain(item, (path, key))) for key, item in value.items()]
        if KIND not in value and all(type(key) is str for key in value):
            return dict(pairs)
        return _marked("dict", [[self.plain(key, (path, "(a key)")), item] for key, item in pairs])


def _marked(kind: str, value: Any) -> dict[str, Any]:
    return {KIND: kind, "value": value}


def _integer(value: int, path: _Path) -> int:
    if value.bit_length() > 4_096:
        raise InvalidMessage(f"{_at(path)}: the integer has more than 4,096 bits; send it as text")
    return value


def _fields(value: Any) -> dict[str, Any] | None:
    """The fields of a dataclass or Struct, by the names that msgspec reads them by."""
    if isinstance(value, Struct):
        names = zip(value.__struct_encode_fields__, value.__struct_fields__, strict=True)
        found = {written: getattr(value, name) for written, name in names}
        return {written: each for written, each in found.items() if each is not msgspec.UNSET}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {each.name: getattr(value, each.name) for each in dataclasses.fields(value)}
    return None


def _exactly(type_: type) -> Callable[[Any], Any]:
    """Reads what was written as one text."""

    def read(value: Any) -> Any:
        if not isinstance(value, str):
            raise ValueError("expected text")
        return type_(value)

    return read


def _timedelta(value: Any) -> timedelta:
    days, seconds, microseconds = value
    return timedelta(days, seconds, microseconds)


def _bytes(value: Any) -> bytes:
    return base64.b64decode(value, validate=True)


def _float(value: Any) -> float:
    if value not in ("nan", "inf", "-inf"):
        raise ValueError("expected nan, inf or -inf")
    return float(value)


_TINY = re.compile(r"([+-])00:00:00\.(\d{6})$")
_When = TypeVar("_When", datetime, time)


def _instant(kind: type[_When]) -> Callable[[str], _When]:
    def read(value: str) -> _When:
        found = kind.fromisoformat(value)
        tiny = _TINY.search(value)
        if tiny is None:
            return found
        # Python reads an offset of less than a second as none at all.
        offset = timedelta(microseconds=int(tiny[1] + tiny[2]))
        return found.replace(tzinfo=timezone(offset))

    return read


_SCALARS: Mapping[str, tuple[type, Callable[[Any], Any], Callable[[Any], Any]]] = {
    "datetime": (datetime, datetime.isoformat, _instant(datetime)),
    "date": (date, date.isoformat, date.fromisoformat),
    "time": (time, time.isoformat, _instant(time)),
    "timedelta": (timedelta, lambda value: [value.days, value.seconds, value.microseconds], _timedelta),
    "bytes": (bytes, lambda value: base64.b64encode(value).decode(), _bytes),
    "path": (Path, str, _exactly(Path)),
    "uuid": (UUID, str, _exactly(UUID)),
    "decimal": (Decimal, str, _exactly(Decimal)),
}
"""Kinds written as one value: what they are, how they are written, how they are read. A datetime is a
date too, so it comes first."""

_COLLECTIONS: Mapping[str, type[tuple[Any, ...] | set[Any] | frozenset[Any]]] = {
    "tuple": tuple,
    "set": set,
    "frozenset": frozenset,
}


class _ValueDecoder:
    """Turns parsed JSON into values; `_types` are the classes that may be made, by name."""

    def __init__(self, types: Iterable[Any]) -> None:
        self._types: dict[str, type] = {}
        for each in types:
            if not _is_made(each):
                raise UserError(f"types: {each!r} is no Enum, dataclass or Struct class")
            if self._types.setdefault(each.__name__, each) is not each:
                raise UserError(f"types: two classes are named {each.__name__}; pass one of them")

    def value(self, plain: Any, path: _Path, depth: int = 0) -> Any:
        """The value of a part of the JSON."""
        if depth > 2 * MAX_DEPTH:
            raise InvalidMessage(_too_deep(path))
        if isinstance(plain, list):
            return [self.value(item, (path, place), depth + 1) for place, item in enumerate(plain)]
        if not isinstance(plain, dict):
            return plain
        if KIND not in plain:
            return {key: self.value(item, (path, key), depth + 1) for key, item in plain.items()}
        try:
            return self._marked(plain, path, depth)
        except InvalidMessage:
            raise
        except (TypeError, ValueError, ArithmeticError, msgspec.MsgspecError) as error:
            raise InvalidMessage(f"{_at(path)}: not a {plain[KIND]}: {error}") from error

    def _marked(self, plain: dict[str, Any], path: _Path, depth: int) -> Any:
        kind, value = plain[KIND], plain.get("value")
        if kind == "type":
            return self._made(plain.get("name"), self.value(value, path, depth + 1))
        if kind == "float":
            return _float(value)
        if isinstance(kind, str) and kind in _SCALARS:
            return _SCALARS[kind][2](value)
        if isinstance(kind, str) and kind in _COLLECTIONS:
            return _COLLECTIONS[kind](self._items(value, path, depth))
        if kind == "dict":
            return dict(map(_pair, self._items(value, path, depth)))
        known = ", ".join([*_SCALARS, *_COLLECTIONS, "dict", "float", "type"])
        raise InvalidMessage(f"{_at(path)}: unknown kind {kind!r:.80} under {KIND!r}. Known: {known}")

    def _items(self, value: Any, path: _Path, depth: int) -> list[Any]:
        if not isinstance(value, list):
            raise ValueError("expected a list")
        return [self.value(item, (path, place), depth + 1) for place, item in enumerate(value)]

    def _made(self, name: Any, data: Any) -> Any:
        """An instance of a class that the reader asked for; else the data as it is."""
        type_ = self._types.get(name) if isinstance(name, str) else None
        if type_ is None:
            return data
        if issubclass(type_, Enum):
            return type_(data)
        return msgspec.convert(data, type_, dec_hook=_as_it_is)


def _is_made(type_: Any) -> bool:
    """Whether it is a class whose instances can be made of data."""
    return isinstance(type_, type) and (issubclass(type_, Enum | Struct) or dataclasses.is_dataclass(type_))


def _pair(value: Any) -> tuple[Any, Any]:
    if not isinstance(value, list) or len(value) != 2:
        raise ValueError("expected pairs")
    return value[0], value[1]


def _as_it_is(type_: type, value: Any) -> Any:
    """msgspec's dec_hook: a field of a type it does not know takes what is of that type already."""
    if isinstance(value, type_):
        return value
    raise ValueError(f"Expected `{type_.__name__}`")
