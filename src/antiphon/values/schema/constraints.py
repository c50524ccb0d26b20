"""What `Annotated` and `Field` say of a value beyond its type: bounds, lengths, patterns, texts, defaults.

Read from msgspec.Meta, annotated_types and pydantic alike; the last two are recognized by the module of
their classes and never imported. msgspec is not shown patterns and multiples: it frees a pattern inside
a union too often, and finds that 0.07 is no multiple of 0.01.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from math import isfinite
from typing import Any

import msgspec
from msgspec import Struct, field

NUMERIC = ("ge", "gt", "le", "lt", "multiple_of")
LENGTHS = ("min_length", "max_length")
_LIMITS = (*NUMERIC, *LENGTHS, "pattern", "tz")
_UNDERSTOOD = (
    "expected a text, msgspec.Meta, pydantic.Field with bounds, lengths, pattern, multiple_of, "
    "description, title, examples or default, or Ge, Gt, Le, Lt, Interval, MultipleOf, MinLen, MaxLen, "
    "Len of annotated_types"
)
_KEYWORDS = {"ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum", "lt": "exclusiveMaximum"}
_WORDS = {"ge": ">=", "gt": ">", "le": "<=", "lt": "<"}
_LENGTH_KEYWORDS = {
    "string": {"min_length": "minLength", "max_length": "maxLength"},
    "array": {"min_length": "minItems", "max_length": "maxItems"},
    "object": {"min_length": "minProperties", "max_length": "maxProperties"},
}
_UNUSED = frozenset({"allow_inf_nan"})
"""What pydantic may say that cannot matter to JSON."""


class Stated(Struct, eq=False):
    """What was said of one annotation; filled by `stated`.

    limits: by the names of msgspec.Meta. shown: further keywords of its JSON Schema.
    default: a function that makes it, or None.
    """

    limits: dict[str, Any] = field(default_factory=dict)
    shown: dict[str, Any] = field(default_factory=dict)
    description: str = ""
    default: Callable[[], Any] | None = None

    def limit(self, name: str, value: Any) -> None:
        """One more limit; of two of a kind the stricter counts. Raises TypeError."""
        if isinstance(value, Decimal):
            value = int(value) if value == value.to_integral_value() else float(value)
        if name in NUMERIC and (not isinstance(value, int | float) or not isfinite(value)):
            raise TypeError(f"{name}={value!r} is not understood; expected a finite number")
        if name == "multiple_of" and value <= 0:
            raise TypeError(f"multiple_of={value!r} is not understood; expected a number above 0")
        if name in LENGTHS and (type(value) is not int or value < 0):
            raise TypeError(f"{name}={value!r} is not understood; expected a whole number from 0")
        value = _pattern(value) if name == "pattern" else value
        held = self.limits.setdefault(name, value)
        if name in ("ge", "gt", "min_length"):
            self.limits[name] = max(held, value)
        elif name in ("le", "lt", "max_length"):
            self.limits[name] = min(held, value)
        elif held != value:
            raise TypeError(f"two values of {name}, {held!r} and {value!r}; give one")


def _pattern(value: Any) -> str:
    """A pattern as text, checked. Raises TypeError."""
    if isinstance(value, re.Pattern):
        if not isinstance(value.pattern, str) or value.flags & ~re.UNICODE:
            raise TypeError(f"pattern={value!r} is not understood; expected a text pattern without flags")
        value = value.pattern
    if not isinstance(value, str):
        raise TypeError(f"pattern={value!r} is not understood; expected a text")
    try:
        re.compile(value)
    except re.error as error:
        raise TypeError(f"pattern={value!r} is no regular expression: {error}") from error
    return value


def field_info(value: object) -> Any:
    """`value` if it is what pydantic.Field returns; pydantic is looked at only when the user imported it."""
    kind = getattr(sys.modules.get("pydantic.fields"), "FieldInfo", None)
    return value if kind is not None and isinstance(value, kind) else None


def stated(metadata: Iterable[Any]) -> Stated:
    """What the items of an `Annotated` say. Raises TypeError for one that is not understood."""
    found = Stated()
    for item in metadata:
        _read(item, found)
    return found


def _read(item: Any, found: Stated) -> None:
    name, module = type(item).__name__, type(item).__module__.partition(".")[0]
    documentation = getattr(item, "documentation", None)
    if item is None:  # pydantic.conint and its like leave gaps
        return
    if isinstance(item, str):
        found.description = found.description or item
    elif isinstance(item, msgspec.Meta):
        _read_meta(item, found)
    elif field_info(item) is not None:
        _read_field(item, found)
    elif isinstance(documentation, str):
        found.description = found.description or documentation
    elif module == "annotated_types" and name in _ONE:
        found.limit(_ONE[name], getattr(item, _ONE[name]))
    elif name in _SEVERAL and module in ("annotated_types", "pydantic"):
        for part in item:
            _read(part, found)
    elif module == "pydantic" and name == "_PydanticGeneralMetadata":
        for key, value in vars(item).items():
            if value is None or value is False:
                continue
            if key not in ("pattern", *_UNUSED):
                raise TypeError(f"{key}={value!r} is not understood; {_UNDERSTOOD}")
            if key == "pattern":
                found.limit(key, value)
    else:
        raise TypeError(f"{item!r} is not understood; {_UNDERSTOOD}")


_ONE = {
    "Ge": "ge", "Gt": "gt", "Le": "le", "Lt": "lt",
    "MultipleOf": "multiple_of", "MinLen": "min_length", "MaxLen": "max_length",
}  # fmt: skip
_SEVERAL = ("Interval", "Len", "StringConstraints")


def _read_meta(meta: msgspec.Meta, found: Stated) -> None:
    for key in _LIMITS:
        if (value := getattr(meta, key)) is not None:
            found.limit(key, value)
    found.description = found.description or meta.description or ""
    for key in ("title", "examples"):
        if (value := getattr(meta, key)) is not None:
            found.shown[key] = value
    found.shown.update(meta.extra_json_schema or {})


def _read_field(info: Any, found: Stated) -> None:
    """What pydantic.Field was given. Raises TypeError for what would change how a value is read."""
    for key in ("alias", "validation_alias", "discriminator"):
        if getattr(info, key, None) is not None:
            raise TypeError(
                f"Field({key}={getattr(info, key)!r}) is not understood; name the parameter "
                f"itself so, or use a pydantic model as its type; {_UNDERSTOOD}"
            )
    for part in info.metadata:
        _read(part, found)
    found.description = found.description or info.description or ""
    for key in ("title", "examples"):
        if (value := getattr(info, key)) is not None:
            found.shown[key] = value
    extra = info.json_schema_extra
    if callable(extra):
        raise TypeError(
            f"Field(json_schema_extra={extra!r}) is not understood; expected keywords and their values"
        )
    found.shown.update(extra or {})
    if info.default_factory is not None:
        found.default = info.default_factory
    elif not info.is_required():
        found.default = lambda: info.default


def limits_in_schema(limits: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of a type with the keywords of its limits."""
    lengths = _LENGTH_KEYWORDS.get(str(schema.get("type")), {})
    named = {**_KEYWORDS, **lengths, "multiple_of": "multipleOf", "pattern": "pattern"}
    return {**schema, **{named[key]: value for key, value in limits.items() if key in named}}


def limits_check(limits: Mapping[str, Any], kind: str) -> Callable[[Any], None]:
    """A function that raises ValueError for a value beyond the limits; `kind` is what it calls the value."""
    pattern = limits.get("pattern")
    search = re.compile(_whole_end(pattern)).search if pattern is not None else None
    step = _exact(limits["multiple_of"]) if "multiple_of" in limits else None

    def check(value: Any) -> None:
        for key, word in _WORDS.items():
            if key in limits and not _COMPARE[key](value, limits[key]):
                raise ValueError(f"Expected `{kind}` {word} {limits[key]}")
        if step is not None and _exact(value) % step:
            raise ValueError(f"Expected `{kind}` that's a multiple of {limits['multiple_of']}")
        if len(value) < limits["min_length"] if "min_length" in limits else False:
            raise ValueError(f"Expected `{kind}` of length >= {limits['min_length']}")
        if len(value) > limits["max_length"] if "max_length" in limits else False:
            raise ValueError(f"Expected `{kind}` of length <= {limits['max_length']}")
        if search is not None and search(value) is None:
            raise ValueError(f"Expected `{kind}` matching regex {pattern!r}")

    return check


_COMPARE: Mapping[str, Callable[[Any, Any], bool]] = {
    "ge": lambda value, bound: bool(value >= bound),
    "gt": lambda value, bound: bool(value > bound),
    "le": lambda value, bound: bool(value <= bound),
    "lt": lambda value, bound: bool(value < bound),
}


def _exact(value: Any) -> Any:
    """A number as it is written, a Fraction: 0.07 is seven hundredths."""
    # Slow to import, and rarely needed.
    from fractions import Fraction

    return Fraction(repr(value) if isinstance(value, float) else value)


_ESCAPE_OR_CLASS = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\$", re.DOTALL)


def _whole_end(pattern: str) -> str:
    """The pattern with `$` at the end alone, as in JSON Schema; Python's also stands before a line break."""
    if re.compile(pattern).flags & re.MULTILINE:
        return pattern
    return _ESCAPE_OR_CLASS.sub(lambda found: r"\Z" if found[0] == "$" else found[0], pattern)
