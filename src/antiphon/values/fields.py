"""Fields: whether what a program writes into a value is what its class declares.

What is read from JSON or YAML is checked by its reader; a struct made in Python is checked here, where the
mistake is, instead of where the value is used, or ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache
from itertools import compress
from math import isfinite
from operator import is_not
from types import FunctionType, NoneType, UnionType
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

from msgspec import Struct
from msgspec.structs import astuple, fields

from antiphon.errors import UserError


class _Kind(NamedTuple):
    """What a field takes, in words, and whether a value is that."""

    words: str
    accepts: Callable[[Any], bool]
    types: frozenset[type] = frozenset()
    """Types whose every instance is accepted, so that most values need no call."""


class Checked(Struct, frozen=True):
    """A value whose fields are checked when it is made. Raises UserError, see `check_fields`."""

    def __post_init__(self) -> None:
        check_fields(self)


def check_fields(value: Struct) -> None:
    """Raise UserError for a field of `value` that does not hold what its class declares."""
    defaults, kinds = _declared(type(value))
    held = astuple(value)
    # Most fields are left as they are: what holds its default needs no look.
    for each, (name, kind) in compress(zip(held, kinds, strict=True), map(is_not, held, defaults)):
        if type(each) not in kind.types and not kind.accepts(each):
            raise UserError(f"{type(value).__name__}({name}=...) takes {kind.words}; got {each!r}")


def check_at_least(value: Struct, name: str, least: int) -> None:
    """Raise UserError where the number in the field `name` is below `least`; None is none."""
    held = getattr(value, name)
    if held is not None and held < least:
        raise UserError(f"{type(value).__name__}({name}=...) is at least {least}; got {held!r}")


@cache
def _declared(of: type[Struct]) -> tuple[tuple[Any, ...], tuple[tuple[str, _Kind], ...]]:
    """The defaults of a class's fields, and their names and kinds."""
    hints, declared = get_type_hints(of), fields(of)
    return (
        tuple([field.default for field in declared]),
        tuple([(field.name, _kind(hints[field.name])) for field in declared]),
    )


def _kind(hint: Any) -> _Kind:
    origin, parts = get_origin(hint), get_args(hint)
    if hint is Any:
        return _Kind("anything", lambda held: True)
    if origin is Literal:
        return _Kind(_either(map(repr, parts)), lambda held: isinstance(held, str) and held in parts)
    if origin in (Union, UnionType):
        kinds = [_kind(each) for each in parts]
        return _Kind(
            _either(each.words for each in kinds),
            lambda held: any(each.accepts(held) for each in kinds),
            frozenset[type]().union(*(each.types for each in kinds)),
        )
    if origin in (tuple, Sequence):
        item = _kind(parts[0])
        return _Kind(
            f"a list, each item {item.words}", lambda held: _is_list(held) and all(map(item.accepts, held))
        )
    if origin is Mapping:
        return _Kind("a dict", lambda held: isinstance(held, Mapping))
    if origin is Callable:
        return _Kind("a function", callable, frozenset({FunctionType}))
    return _PLAIN.get(hint) or _of_class(hint)


def _of_class(of: type) -> _Kind:
    if getattr(of, "_is_protocol", False):
        members = [each for each in vars(of) if not each.startswith("_")]
        return _Kind(
            f"an object with {' and '.join(members)}",
            lambda held: all(hasattr(type(held), each) or hasattr(held, each) for each in members),
        )
    article = "an" if of.__name__[0] in "AEIO" else "a"
    return _Kind(f"{article} {of.__name__}", lambda held: isinstance(held, of), frozenset({of}))


def _either(words: Iterable[str]) -> str:
    *most, last = words
    return f"{', '.join(most)} or {last}" if most else last


def _is_list(held: Any) -> bool:
    # A text is a sequence of texts: what holds one name in place of a list of names is a mistake.
    return isinstance(held, Collection) and not isinstance(held, str | bytes | bytearray | Mapping)


_PLAIN: Mapping[type, _Kind] = {
    NoneType: _Kind("None", lambda held: held is None, frozenset({NoneType})),
    str: _Kind("a text", lambda held: isinstance(held, str), frozenset({str})),
    bool: _Kind("True or False", lambda held: isinstance(held, bool), frozenset({bool})),
    int: _Kind(
        "a whole number",
        lambda held: isinstance(held, int) and not isinstance(held, bool),
        frozenset({int}),
    ),
    float: _Kind(
        "a finite number",
        lambda held: isinstance(held, int | float) and not isinstance(held, bool) and isfinite(held),
    ),
}
