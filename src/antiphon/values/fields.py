"""Fields: whether what a program writes into a value is what its class declares.

What is read from JSON or YAML is checked by its reader; a struct made in Python is checked here, where the
mistake is, instead of where the value is used, or ignored. A value of another type that means exactly one
of the right type is converted: 3.0 turns are 3, a list is a tuple, a text of a class of its own is a text.
Everything else is refused, with the field, what it takes, and what was probably meant; nothing is guessed.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from difflib import get_close_matches
from functools import cache, partial
from math import isfinite
from types import FunctionType, NoneType, UnionType
from typing import (
    Any,
    Final,
    Literal,
    NamedTuple,
    ParamSpec,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from msgspec import Struct, StructMeta
from msgspec.structs import astuple, fields, force_setattr

from antiphon.errors import UserError
from antiphon.values.codec import clean_text, stored

_make = StructMeta.__call__
_NUMBERS = (int, float)
_Given = ParamSpec("_Given")
_Made = TypeVar("_Made", bound=Struct)


class _Named(StructMeta):
    """Structs whose wrong keywords are answered with the right ones."""

    # A type checker that honors metaclasses, as pyright does, reads the class's own fields only where this is
    # said to return an instance of it; mypy wants `cls` to be a metaclass for that.

    def __call__(cls: type[_Made], *args: Any, **named: Any) -> _Made:  # type: ignore[misc]
        try:
            made: _Made = _make(cls, *args, **named)
            return made
        except TypeError:
            unknown = [name for name in named if name not in cls.__struct_fields__]
            if not unknown:
                raise
            text = _no_such_field(cls, unknown[0], named[unknown[0]])
        raise UserError(text)


class Checked(Struct, frozen=True, metaclass=_Named):
    """A value whose fields are checked when it is made. Raises UserError, see `check_fields`."""

    def __post_init__(self) -> None:
        check_fields(self)


class _NotNegative(_Named):
    """Structs whose numbers are not below 0, and can be counted with, when a program makes them."""

    def __call__(cls: type[_Made], *args: Any, **named: Any) -> _Made:  # type: ignore[misc]
        made = _Named.__call__(cls, *args, **named)
        for name, held in zip(cls.__struct_fields__, astuple(made), strict=True):
            if type(held) in _NUMBERS and not 0 <= held <= LARGEST:
                bound = "at least 0" if held < 0 else f"at most {LARGEST:,}"
                raise UserError(f"{cls.__name__}({name}=...) is {bound}, or None for no limit; got {held!r}")
        return made


class AtLeastZero(Checked, frozen=True, metaclass=_NotNegative):
    """A Checked of limits. What a journal holds is read all the same, whatever its numbers are."""


class _CheckedByMaker(_Named):
    """Structs that are checked when a program makes them, and not when they are read."""

    def __call__(cls: type[_Made], *args: Any, **named: Any) -> _Made:  # type: ignore[misc]
        made = _Named.__call__(cls, *args, **named)
        check_fields(made)
        return made


class CheckedWhenMade(Struct, frozen=True, metaclass=_CheckedByMaker):
    """A value of the wire: its fields are checked where a program makes it; a decoder has done so already."""


def unchecked(of: Callable[_Given, _Made]) -> Callable[_Given, _Made]:
    """A struct's class, to be called with values that are known to be right."""
    make: Callable[_Given, _Made] = partial(_make, of)  # type: ignore[arg-type]
    return make


def check_fields(value: Struct, called: str = "", names: Mapping[str, str] = {}) -> None:
    """Make each field of `value` what its class declares. Raises UserError for one that cannot be.

    called, names: what the fields are arguments of, and their names there, where these are others.
    """
    # Every object that a user makes passes here: names are looked up once, and zip is not asked to count.
    for each, (default, name, exact, kind) in zip(astuple(value), _declared(type(value))):  # noqa: B905
        # Most fields are left as they are: what holds its default needs no look.
        if each is default:
            continue
        of = type(each)
        if of in exact and (of is not str or each.isascii()):
            continue
        kept = kind.keep(each)
        if kept is REFUSED:
            what = f"{called or type(value).__name__}({names.get(name, name)}=...)"
            raise UserError(refusal(kind, each, what))
        if kept is not each:
            force_setattr(value, name, kept)


def check_at_least(value: Struct, least: float, *names: str) -> None:
    """Raise UserError where a number in one of the fields is below `least`; None is none."""
    for name in names:
        held = getattr(value, name)
        if held is not None and held < least:
            raise UserError(f"{type(value).__name__}({name}=...) is at least {least:g}; got {held!r}")


@cache
def _declared(of: type[Struct]) -> tuple[tuple[Any, str, frozenset[type], Kind], ...]:
    """Of each field of a class its default, its name, the types that need no look, and its kind."""
    hints = get_type_hints(of)
    kinds = [(field.default, field.name, kind_of(hints[field.name])) for field in fields(of)]
    return tuple([(default, name, kind.exact, kind) for default, name, kind in kinds])


def _no_such_field(of: Any, name: str, held: Any) -> str:
    """What to write instead of a keyword that a struct does not take."""
    places = _places(of)
    close = get_close_matches(name, places, 1) if name not in places else [name]
    known = ", ".join(of.__struct_fields__)
    meant = f"did you mean {places[close[0]].replace('...', shown(held))}?" if close else f"it takes {known}"
    return f"{of.__name__} has no {name!r}; {meant}"


def _places(of: type[Struct]) -> Mapping[str, str]:
    """The fields of a struct, and of the structs it is given, each with how it is written."""
    found = {name: f"{name}=..." for name in of.__struct_fields__}
    for name, hint in get_type_hints(of).items():
        for part in (hint, *get_args(hint)):
            if isinstance(part, _Named):
                for inner in part.__struct_fields__:
                    found.setdefault(inner, f"{name}={part.__name__}({inner}=...)")
    return found


# -- kinds ----------------------------------------------------------------------------------------

REFUSED: Final = object()
"""What a value becomes that does not fit."""
LARGEST: Final = 2**63 - 1
"""The largest whole number that every journal holds."""
SHOWN: Final = 200
"""Characters of a refused value that are shown."""


def _no_idea(held: Any) -> str:
    """No right value is near."""
    return ""


class Kind(NamedTuple):
    """What a field takes, and how a value becomes that."""

    words: str
    keep: Callable[[Any], Any]
    """The value as it is kept, or REFUSED."""
    exact: frozenset[type] = frozenset()
    """Types whose every instance is kept as it is, but for texts with halves of surrogate pairs."""
    nearest: Callable[[Any], str] = _no_idea
    """The right value that a refused one was probably meant to be, as it is written in code."""


def fit(held: Any, hint: Any, what: str) -> Any:
    """A value as what `hint` declares. `what` names it. Raises UserError saying what was expected."""
    kind = kind_of(hint)
    kept = kind.keep(held)
    if kept is REFUSED:
        raise UserError(refusal(kind, held, what))
    return kept


def refusal(kind: Kind, held: Any, what: str) -> str:
    """Why a value was refused: what it is for, what was expected, and what was perhaps meant."""
    meant = kind.nearest(held)
    return f"{what} takes {kind.words}; got {shown(held)}" + (f"; did you mean {meant}?" if meant else "")


def shown(held: Any) -> str:
    """A value for an error, whatever it is."""
    try:
        text = repr(held)
    except Exception:  # noqa: BLE001 - a value that cannot even be shown is named by its type
        text = f"a {type(held).__qualname__}"
    # Where it lies in memory says nothing, and is another place in a replay.
    text = re.sub(r" at 0x[0-9a-fA-F]+", "", text)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


@cache
def kind_of(hint: Any) -> Kind:
    """The kind that a type hint declares."""
    origin, parts = get_origin(hint), get_args(hint)
    if hint in _PLAIN:
        return _PLAIN[hint]
    if hint is Any:
        return Kind("anything", lambda held: held)
    if origin is Literal:
        return _choice(parts)
    if origin in (Union, UnionType):
        return _one_of([kind_of(each) for each in parts])
    if origin is tuple and parts[-1:] != (...,):
        return _row([kind_of(each) for each in parts])
    if origin in (tuple, Sequence, Collection):
        return _list(kind_of(parts[0]))
    if origin in (Mapping, dict):
        return _dict(kind_of(parts[0]), parts[1])
    if origin is Callable:
        return Kind("a function", lambda held: held if callable(held) else REFUSED, frozenset({FunctionType}))
    return _of_class(hint)


# -- plain values ---------------------------------------------------------------------------------


def _text(held: Any) -> Any:
    if type(held) is str and held.isascii():
        return held
    return clean_text(held) if isinstance(held, str) else REFUSED


def _flag(held: Any) -> Any:
    return held if held is True or held is False else REFUSED


def _whole(held: Any) -> Any:
    if isinstance(held, bool):
        return REFUSED
    try:
        found = operator.index(held)
    except TypeError:
        number = _number(held)
        if number is REFUSED or not number.is_integer():
            return REFUSED
        found = int(number)
    return found if -LARGEST <= found <= LARGEST else REFUSED


def _number(held: Any) -> Any:
    if isinstance(held, bool | str | bytes) or not (hasattr(held, "__float__") or hasattr(held, "__index__")):
        return REFUSED
    try:
        found = float(held)
    except (TypeError, ValueError, OverflowError):
        return REFUSED
    return found if isfinite(found) else REFUSED


def _nearest_whole(held: Any) -> str:
    number = _nearest_number(held) if isinstance(held, str) else _number(held)
    return str(round(float(number))) if number not in ("", REFUSED) and abs(float(number)) < LARGEST else ""


def _nearest_number(held: Any) -> str:
    try:
        found = float(held) if isinstance(held, str) else float("nan")
    except ValueError:
        return ""
    return f"{found:g}" if isfinite(found) else ""


_PLAIN: Mapping[Any, Kind] = {
    NoneType: Kind("None", lambda held: None if held is None else REFUSED, frozenset({NoneType})),
    str: Kind("a text", _text, frozenset({str})),
    bool: Kind("True or False", _flag, frozenset({bool})),
    int: Kind("a whole number", _whole, nearest=_nearest_whole),
    float: Kind("a finite number", _number, nearest=_nearest_number),
}


# -- what is made of others -------------------------------------------------------------------------


def _choice(parts: tuple[Any, ...]) -> Kind:
    def keep(held: Any) -> Any:
        text = held if type(held) is str else _text(held)
        return text if text is not REFUSED and text in parts else REFUSED

    def nearest(held: Any) -> str:
        close = get_close_matches(held.strip().lower(), parts, 1) if isinstance(held, str) else []
        return repr(close[0]) if close else ""

    return Kind(_either(map(repr, parts)), keep, nearest=nearest)


def _one_of(kinds: Sequence[Kind]) -> Kind:
    def keep(held: Any) -> Any:
        for kind in kinds:
            kept = kind.keep(held)
            if kept is not REFUSED:
                return kept
        return REFUSED

    return Kind(
        _either(each.words for each in kinds),
        keep,
        frozenset[type]().union(*(each.exact for each in kinds)),
        lambda held: next(filter(None, (each.nearest(held) for each in kinds)), ""),
    )


def _list(item: Kind) -> Kind:
    def keep(held: Any) -> Any:
        if type(held) is not tuple and type(held) is not list and not _is_list(held):
            return REFUSED
        kept, exact = [], item.exact
        for each in held:
            if type(each) not in exact or type(each) is str:
                each = item.keep(each)
                if each is REFUSED:
                    return REFUSED
            kept.append(each)
        return tuple(kept)

    def nearest(held: Any) -> str:
        # A text is a sequence of texts: what holds one name in place of a list of names is a mistake.
        return f"({shown(held)},)" if isinstance(held, str) and item.keep(held) is not REFUSED else ""

    return Kind(f"a list, each item {item.words}", keep, nearest=nearest)


def _row(items: Sequence[Kind]) -> Kind:
    def keep(held: Any) -> Any:
        if not isinstance(held, tuple | list) or len(held) != len(items):
            return REFUSED
        kept = tuple([item.keep(each) for item, each in zip(items, held, strict=True)])
        return REFUSED if any(each is REFUSED for each in kept) else kept

    return Kind(f"a list of {' and '.join(each.words for each in items)}", keep)


def _dict(key: Kind, value: Any) -> Kind:
    """A dict. One of anything is data, which are kept as a journal gives them back."""
    if value is not Any:
        return Kind("a dict", lambda held: held if isinstance(held, Mapping) else REFUSED)

    def keep(held: Any) -> Any:
        if not isinstance(held, Mapping):
            return REFUSED
        kept = {key.keep(name): each for name, each in held.items()}
        try:
            return REFUSED if REFUSED in kept else stored(kept)
        except (TypeError, ValueError, RecursionError):
            return REFUSED

    return Kind(f"a dict that JSON can hold, each key {key.words}", keep)


def _is_list(held: Any) -> bool:
    return isinstance(held, Collection) and not isinstance(held, str | bytes | bytearray | Mapping)


def _of_class(of: type) -> Kind:
    if getattr(of, "_is_protocol", False):
        members = [each for each in vars(of) if not each.startswith("_")]
        return Kind(
            f"an object with {' and '.join(members)}",
            lambda held: (
                held if all(hasattr(type(held), each) or hasattr(held, each) for each in members) else REFUSED
            ),
        )
    article = "an" if of.__name__[0] in "AEIO" else "a"

    def nearest(held: Any) -> str:
        names = of.__struct_fields__ if issubclass(of, Struct) else ()
        if not isinstance(held, Mapping) or not held or not all(each in names for each in held):
            return ""
        given = ", ".join(f"{name}={shown(each)}" for name, each in held.items())
        return f"{of.__name__}({given})"

    def keep(held: Any) -> Any:
        return held if isinstance(held, of) else REFUSED

    return Kind(f"{article} {of.__name__}", keep, frozenset({of}), nearest)


def _either(words: Iterable[str]) -> str:
    *most, last = words
    return f"{', '.join(most)} or {last}" if most else last
