"""JSON Schema as somebody wrote it: shown to models as it is, and checked whole.

    JsonSchema({"type": "array", "items": {"$ref": "#/$defs/row"}, "$defs": {"row": …}}).fault(value)

Every keyword of draft 2020-12 that limits a value is checked, and those of draft 7 that it replaced;
`format` says what a text is for and limits nothing, as in the standard. What would not be checked is
refused when the schema is read, so that whatever a model is told holds: references out of the schema,
`unevaluatedProperties`, `unevaluatedItems` and dynamic references; and what is above 256 KiB or nested
deeper than 64 levels.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any
from urllib.parse import unquote

import msgspec
from msgspec import Struct

from antiphon.values.schema.constraints import limits_check
from antiphon.values.schema.leniences import Leniences, identity
from antiphon.values.schema.plain_check import plain_check
from antiphon.values.schema.standins import Hook, StandIn, kind_of

SIZE = 256 * 1024
"""Bytes of a schema, as JSON."""
DEPTH = 64
"""Levels of a schema, its lists and objects."""
_REASON = 200
"""Characters that each alternative may say."""
_ONE = (
    "additionalItems", "additionalProperties", "contains", "else", "if", "items", "not", "propertyNames",
    "then",
)  # fmt: skip
_LISTS = ("allOf", "anyOf", "oneOf", "prefixItems")
_NAMED = ("$defs", "definitions", "dependentSchemas", "patternProperties", "properties")
"""Keywords that hold a schema, several, and several by name."""
_SAME_VALUE = ("allOf", "anyOf", "oneOf", "not", "if", "then", "else")
"""Those of a schema that holds for the value itself, not for a part of it."""
_REFUSED = ("unevaluatedProperties", "unevaluatedItems", "$dynamicRef", "$recursiveRef")
_NUMBERS = {
    "minimum": "ge", "exclusiveMinimum": "gt", "maximum": "le", "exclusiveMaximum": "lt",
    "multipleOf": "multiple_of",
}  # fmt: skip
_TEXTS = {"minLength": "min_length", "maxLength": "max_length", "pattern": "pattern"}
_COUNTS = (
    "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "minContains",
    "maxContains",
)  # fmt: skip
_KINDS = ("string", "integer", "number", "boolean", "object", "array", "null")


class Fault(Struct, frozen=True):
    """What does not fit, and where: the keys and positions that lead to it."""

    said: str
    path: tuple[str | int, ...] = ()

    def inside(self, step: str | int) -> Fault:
        """The same fault, seen from the value that holds this one."""
        return Fault(self.said, (step, *self.path))

    def __str__(self) -> str:
        place = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in self.path)
        return f"{self.said} - at `${place}`" if place else self.said


class JsonSchema:
    """A schema that is ready to check values. Raises ValueError for what is no schema, or is not checked."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self.schema: dict[str, Any] = _bounded(schema)
        self.targets: dict[int, Any] = {}
        """What each reference leads to, by the identity of the schema that has it."""
        self.limits: dict[int, tuple[Callable[[Any], None], Callable[[Any], None]]] = {}
        """Checks of the numbers and the texts of each schema, by its identity."""
        self._anchors: dict[str, Any] = {}
        self._read: dict[int, Any] = {}
        self._take(self.schema, "#")
        for each, where in list(self._read.values()):
            self._resolve(each, where)
        for each, where in self._read.values():
            self._check_ends(each, where)

    @property
    def has_patterns(self) -> bool:
        """Whether a regular expression is part of it."""
        return any(each.keys() & {"pattern", "patternProperties"} for each, _ in self._read.values())

    def fault(self, value: Any) -> Fault | None:
        """Why a plain JSON value does not fit; None when it does."""
        try:
            return _Checking(self).fault(value, self.schema)
        except RecursionError:
            return Fault("Nested too deeply to be checked")

    # -- reading a schema ------------------------------------------------------------------------

    def _take(self, schema: Any, where: str) -> None:
        """Look a schema and all inside of it over. Raises ValueError."""
        if isinstance(schema, bool) or id(schema) in self._read:
            return
        if not isinstance(schema, dict):
            raise ValueError(f"{where}: expected an object, true or false, got {kind_of(schema)}")
        self._read[id(schema)] = (schema, where)
        for keyword in _REFUSED:
            if keyword in schema:
                raise ValueError(f"{where}: {keyword} is not checked here; say it with additionalProperties")
        _check_keywords(schema, where)
        if isinstance(schema.get("$anchor"), str):
            self._anchors[schema["$anchor"]] = schema
        self.limits[id(schema)] = (_limits(schema, _NUMBERS, "number"), _limits(schema, _TEXTS, "string"))
        for keyword, each in _inner(schema, where):
            self._take(each, keyword)

    def _resolve(self, schema: dict[str, Any], where: str) -> None:
        reference = schema.get("$ref")
        if reference is None:
            return
        if not isinstance(reference, str) or not reference.startswith("#"):
            raise ValueError(f"{where}: $ref {reference!r:.80} leads out of the schema; expected '#/…'")
        target: Any = self.schema
        name = unquote(reference[1:])
        if name and not name.startswith("/"):
            target = self._anchors.get(name)
        for step in name.split("/")[1:] if name.startswith("/") else ():
            target = _step(target, step.replace("~1", "/").replace("~0", "~"))
        if not isinstance(target, dict | bool):
            raise ValueError(f"{where}: $ref {reference!r:.80} leads nowhere")
        known = len(self._read)
        self._take(target, reference)
        self.targets[id(schema)] = target
        for each, inside in list(self._read.values())[known:]:
            self._resolve(each, inside)

    def _check_ends(self, schema: dict[str, Any], where: str) -> None:
        """Refuse a schema that refers to itself for the same value, so that it would never be answered."""
        seen: set[int] = set()
        todo: list[Any] = [schema]
        while todo:
            each = todo.pop()
            for found in self._of_same_value(each):
                if found is schema:
                    raise ValueError(f"{where}: refers to itself without an end")
                if id(found) not in seen:
                    seen.add(id(found))
                    todo.append(found)

    def _of_same_value(self, schema: Any) -> Iterable[Any]:
        if not isinstance(schema, dict):
            return
        if id(schema) in self.targets:
            yield self.targets[id(schema)]
        for keyword in _SAME_VALUE:
            held = schema.get(keyword, ())
            yield from held if isinstance(held, list) else (held,)


def _bounded(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of its own, of JSON's own types. Raises ValueError."""
    depth, level = 0, list[Any]([schema])
    while level := [each for each in level if isinstance(each, Mapping | list | tuple)]:
        depth += 1
        if depth > DEPTH:
            raise ValueError(f"it is nested deeper than {DEPTH} levels")
        level = [part for each in level for part in (each.values() if isinstance(each, Mapping) else each)]
    try:
        written = msgspec.json.encode(dict(schema))
    except (TypeError, UnicodeEncodeError) as error:
        raise ValueError(f"it is not JSON: {error}") from error
    if len(written) > SIZE:
        raise ValueError(f"it has {len(written):,} bytes, and {SIZE:,} are allowed")
    found: dict[str, Any] = msgspec.json.decode(written)
    return found


def _inner(schema: Mapping[str, Any], where: str) -> Iterable[tuple[str, Any]]:
    """The schemas right inside of one, each with its place. Raises ValueError."""
    for keyword, held in schema.items():
        place = f"{where}/{keyword}"
        if keyword in _ONE and not (keyword == "items" and isinstance(held, list)):
            yield place, held
        elif keyword in (*_LISTS, "items"):
            if not isinstance(held, list) or (keyword in ("allOf", "anyOf", "oneOf") and not held):
                raise ValueError(f"{place}: expected a list of schemas, got {kind_of(held)}")
            yield from ((f"{place}/{index}", each) for index, each in enumerate(held))
        elif keyword in _NAMED:
            if not isinstance(held, dict):
                raise ValueError(f"{place}: expected schemas by name, got {kind_of(held)}")
            yield from ((f"{place}/{name}", each) for name, each in held.items())
        elif keyword == "dependencies" and isinstance(held, dict):
            yield from ((f"{place}/{name}", each) for name, each in held.items() if isinstance(each, dict))


def _check_keywords(schema: Mapping[str, Any], where: str) -> None:
    """Refuse keywords that do not hold what they should. Raises ValueError."""
    kinds = schema.get("type", [])
    for kind in [kinds] if isinstance(kinds, str) else kinds:
        if kind not in _KINDS:
            raise ValueError(f"{where}/type: {kind!r:.80} is none of {', '.join(_KINDS)}")
    for keyword in ("enum", "required"):
        if not isinstance(schema.get(keyword, []), list):
            raise ValueError(f"{where}/{keyword}: expected a list, got {kind_of(schema[keyword])}")
    if not all(isinstance(each, str) for each in schema.get("required", ())):
        raise ValueError(f"{where}/required: expected names, got {schema['required']!r:.80}")
    for keyword in _COUNTS:
        count = schema.get(keyword, 0)
        if isinstance(count, bool) or not isinstance(count, int | float) or count < 0 or count % 1:
            raise ValueError(f"{where}/{keyword}: expected a whole number from 0, got {count!r:.80}")
    for keyword in _NUMBERS:
        bound = schema.get(keyword, 1)
        if isinstance(bound, bool) or not isinstance(bound, int | float):
            raise ValueError(f"{where}/{keyword}: expected a number, got {bound!r:.80}")
    if schema.get("multipleOf", 1) <= 0:
        raise ValueError(f"{where}/multipleOf: expected a number above 0, got {schema['multipleOf']!r:.80}")
    for pattern in [*schema.get("patternProperties", ()), schema.get("pattern", "")]:
        try:
            re.compile(pattern)
        except (re.error, TypeError) as error:
            raise ValueError(f"{where}: {pattern!r:.80} is no regular expression: {error}") from error


def _limits(schema: Mapping[str, Any], names: Mapping[str, str], kind: str) -> Callable[[Any], None]:
    return limits_check({ours: schema[theirs] for theirs, ours in names.items() if theirs in schema}, kind)


def _step(target: Any, step: str) -> Any:
    if isinstance(target, dict):
        return target.get(step)
    if isinstance(target, list) and step.isdigit() and int(step) < len(target):
        return target[int(step)]
    return None


# -- checking a value ---------------------------------------------------------------------------


class _Checking:
    """One pass over a value, in which each part is held against each schema once.

    Alternatives that hold one another would else be tried anew at each level, twice as often as above it.
    """

    def __init__(self, whole: JsonSchema) -> None:
        self._whole = whole
        self._known: dict[tuple[int, int], Fault | None] = {}

    def fault(self, value: Any, schema: Any) -> Fault | None:
        if isinstance(schema, bool):
            return None if schema else Fault("Nothing is allowed here")
        key = (id(value), id(schema))
        if key not in self._known:
            self._known[key] = self._first(value, schema)
        return self._known[key]

    def _first(self, value: Any, schema: dict[str, Any]) -> Fault | None:
        """The first thing that is wrong."""
        found = _of_value(value, schema) or self._combined(value, schema)
        if found is not None:
            return found
        if isinstance(value, dict):
            return self._object(value, schema)
        if isinstance(value, list):
            return self._array(value, schema)
        if value is None or isinstance(value, bool):
            return None
        numbers, texts = self._whole.limits[id(schema)]
        try:
            (texts if isinstance(value, str) else numbers)(value)
        except ValueError as error:
            return Fault(str(error))
        return None

    def _combined(self, value: Any, schema: dict[str, Any]) -> Fault | None:
        target = self._whole.targets.get(id(schema))
        for each in [*([] if target is None else [target]), *schema.get("allOf", ())]:
            if (found := self.fault(value, each)) is not None:
                return found
        if "anyOf" in schema:
            faults = [self.fault(value, each) for each in schema["anyOf"]]
            if None not in faults:
                return _none_of(faults)
        if "oneOf" in schema:
            faults = [self.fault(value, each) for each in schema["oneOf"]]
            if None not in faults:
                return _none_of(faults)
            if faults.count(None) > 1:
                return Fault(f"Fits {faults.count(None)} of the alternatives; expected exactly one")
        if "not" in schema and self.fault(value, schema["not"]) is None:
            return Fault(f"Is what it must not be: {schema['not']!r:.120}")
        if "if" in schema:
            following = "else" if self.fault(value, schema["if"]) is not None else "then"
            return self.fault(value, schema.get(following, True))
        return None

    def _object(self, value: dict[str, Any], schema: dict[str, Any]) -> Fault | None:
        for name in schema.get("required", ()):
            if name not in value:
                return Fault(f"Object missing required field `{name}`")
        if not schema.get("minProperties", 0) <= len(value) <= schema.get("maxProperties", len(value)):
            return Fault(f"Expected `object` with another number of fields, got {len(value)}")
        for name, needed in _dependencies(schema):
            if name not in value:
                continue
            missing = [each for each in needed if each not in value] if isinstance(needed, list) else []
            if missing:
                return Fault(f"With `{name}` the object must have `{missing[0]}` too")
            if not isinstance(needed, list) and (found := self.fault(value, needed)) is not None:
                return found
        for name, item in value.items():
            if (wrong := self.fault(name, schema.get("propertyNames", True))) is not None:
                return Fault(f"The name {name!r:.80} is not allowed: {wrong.said}")
            if (found := self._field(name, item, schema)) is not None:
                return found
        return None

    def _field(self, name: str, item: Any, schema: dict[str, Any]) -> Fault | None:
        known = schema.get("properties", {})
        holding = [known[name]] if name in known else []
        holding += [
            each
            for pattern, each in schema.get("patternProperties", {}).items()
            if re.search(pattern, name) is not None
        ]
        if not holding:
            rest = schema.get("additionalProperties", True)
            if rest is False:
                return Fault(f"Object contains unknown field `{name}`")
            holding = [rest]
        for each in holding:
            if (found := self.fault(item, each)) is not None:
                return found.inside(name)
        return None

    def _array(self, value: list[Any], schema: dict[str, Any]) -> Fault | None:
        if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
            word, bound = (
                (">=", schema["minItems"])
                if len(value) < schema.get("minItems", 0)
                else ("<=", schema["maxItems"])
            )
            return Fault(f"Expected `array` of length {word} {bound}")
        if schema.get("uniqueItems") is True and len({identity(each) for each in value}) < len(value):
            return Fault("Expected `array` without two equal items")
        first, rest = schema.get("prefixItems", []), schema.get("items", True)
        if isinstance(rest, list):
            first, rest = rest, schema.get("additionalItems", True)
        for index, item in enumerate(value):
            found = self.fault(item, first[index] if index < len(first) else rest)
            if found is not None:
                return found.inside(index)
        if "contains" in schema:
            count = sum(self.fault(each, schema["contains"]) is None for each in value)
            if not schema.get("minContains", 1) <= count <= schema.get("maxContains", count):
                return Fault(f"Has {count} items of the kind that it must contain")
        return None


def _of_value(value: Any, schema: dict[str, Any]) -> Fault | None:
    """What `type`, `enum` and `const` say."""
    kinds = schema.get("type")
    if kinds is not None:
        kinds = [kinds] if isinstance(kinds, str) else kinds
        if not any(_is_of(value, each) for each in kinds):
            return Fault(f"Expected `{' | '.join(kinds)}`, got `{kind_of(value)}`")
    allowed = schema.get("enum", [schema["const"]] if "const" in schema else None)
    if allowed is not None and identity(value) not in [identity(each) for each in allowed]:
        return Fault(f"Expected {' or '.join(repr(each) for each in allowed)}, got {value!r:.80}")
    if "enum" in schema and "const" in schema and identity(value) != identity(schema["const"]):
        return Fault(f"Expected {schema['const']!r}, got {value!r:.80}")
    return None


def _is_of(value: Any, kind: str) -> bool:
    found = kind_of(value)
    if kind == "number":
        return found in ("integer", "number")
    return found == kind or (kind == "integer" and found == "number" and float(value).is_integer())


def _dependencies(schema: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
    for keyword in ("dependentRequired", "dependentSchemas", "dependencies"):
        yield from schema.get(keyword, {}).items()


def _none_of(faults: Iterable[Fault | None]) -> Fault:
    said = "; ".join(str(each).replace(" - at `", " at `")[:_REASON] for each in faults)
    return Fault(f"Fits none of the alternatives: {said}")


# -- as a type ----------------------------------------------------------------------------------


class DeclaredObject(metaclass=StandIn):
    """The arguments of a tool whose schema somebody wrote. What is read of them is a dictionary."""

    parts: tuple[Any, ...] = ()
    checked: JsonSchema
    plainly: Callable[[Any], bool]
    """Whether a value fits beyond doubt and is written as the schema means it; see `plain_check`."""
    written: Leniences
    """Writes what fits as the schema means it: 1 where 1.0 was given for an integer."""
    defaults: Mapping[str, Any] = {}
    """Of arguments that are not given; those only that fit."""

    @classmethod
    def read(cls, value: Any, inner: Hook) -> Any:
        if not cls.plainly(value):
            fault = cls.checked.fault(value)
            if fault is not None:
                raise ValueError(str(fault))
            value = cls.written.mended(value, cls.checked.schema)
        known = cls.checked.schema.get("properties", {})
        filled = {**cls.defaults, **value}
        if len(filled) > len(value) and not cls.plainly(filled) and cls.checked.fault(filled) is not None:
            filled = value
        # In the declared order, so that the same arguments are the same text.
        names = [*(name for name in known if name in filled), *(name for name in filled if name not in known)]
        return {name: copy.deepcopy(filled[name]) if name not in value else value[name] for name in names}

    @classmethod
    def schema(cls, parts: list[dict[str, Any]]) -> dict[str, Any]:
        return cls.checked.schema


def _never(value: Any) -> bool:
    return False


def declared_arguments(schema: Mapping[str, Any]) -> type[DeclaredObject]:
    """Arguments as a JSON Schema of type object describes them, as the annotation of `**arguments`.

    Raises ValueError for what is no schema, or would not be checked.
    """
    checked = JsonSchema(schema)
    defaults = {
        name: each["default"]
        for name, each in checked.schema.get("properties", {}).items()
        if isinstance(each, dict)
        and "default" in each
        and _Checking(checked).fault(each["default"], each) is None
    }
    plainly = staticmethod(plain_check(checked.schema, checked.limits) or _never)
    held = {
        "checked": checked,
        "plainly": plainly,
        "written": Leniences(checked.schema, None),
        "defaults": defaults,
    }
    found: Any = type("Arguments", (DeclaredObject,), held)
    return found  # type: ignore[no-any-return]
