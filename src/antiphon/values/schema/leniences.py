"""Slips of models that cost no meaning: a value that its schema refuses, as the one that it stands for.

docs/tools.md lists them; there are no others. What fits its schema is never touched, and text is taken
for something else only where no text is allowed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from antiphon.values.schema.constraints import limits_check
from antiphon.values.schema.standins import kind_of

_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,255})(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,3})?")
_TRUTHS = {"true": True, "1": True, "false": False, "0": False}
_LIMITS = {
    "minimum": "ge", "exclusiveMinimum": "gt", "maximum": "le", "exclusiveMaximum": "lt",
    "multipleOf": "multiple_of", "minLength": "min_length", "maxLength": "max_length", "pattern": "pattern",
}  # fmt: skip


class Leniences:
    """The slips that one schema allows for.

    parse: reads JSON that was quoted, raises ValueError; None: nothing is allowed for, and a value is only
    written as its schema means it, 1 for 1.0.
    """

    def __init__(self, schema: Mapping[str, Any], parse: Callable[[str], Any] | None) -> None:
        self._defs: Mapping[str, Any] = schema.get("$defs", {})
        self._parse = parse

    def mended(self, value: Any, schema: Any) -> Any:
        """The value that fits, or as much of it as can be told."""
        return _Pass(self._defs, self._parse).mended(value, schema)

    def fits(self, value: Any, schema: Any) -> bool:
        """Whether a value is what a schema of ours, or of pydantic's, describes."""
        return _Pass(self._defs, self._parse).fits(value, schema)


class _Pass:
    """One pass over a value, in which each part is held against each schema once.

    Alternatives that hold one another would else be tried anew at each level, twice as often as above it.
    """

    def __init__(self, defs: Mapping[str, Any], parse: Callable[[str], Any] | None) -> None:
        self._defs = defs
        self._parse = parse
        self._mended: dict[tuple[int, int], tuple[Any, Any, Any]] = {}
        self._fitting: dict[tuple[int, int], tuple[Any, Any, bool]] = {}

    def mended(self, value: Any, schema: Any) -> Any:
        key = (id(value), id(schema))
        if key not in self._mended:
            # Value and schema are kept, so that no others have their identity.
            self._mended[key] = (value, schema, self._mend(value, schema))
        return self._mended[key][2]

    def fits(self, value: Any, schema: Any) -> bool:
        key = (id(value), id(schema))
        if key not in self._fitting:
            self._fitting[key] = (value, schema, self._fit(value, schema))
        return self._fitting[key][2]

    def _mend(self, value: Any, schema: Any) -> Any:
        schema = self._target(schema)
        if "enum" in schema or "const" in schema:
            return _member(value, schema.get("enum", [schema.get("const")]), self._parse is not None)
        several = schema.get("anyOf") or schema.get("oneOf")
        if several:
            return self._of_several(value, several)
        kinds = schema.get("type", ())
        kinds = (kinds,) if isinstance(kinds, str) else kinds
        for kind in kinds if kinds and not _is_of(value, kinds) else ():
            found = self._as(kind, value)
            if _is_of(found, (kind,)):
                value = found
                break
        if isinstance(value, float) and "integer" in kinds and "number" not in kinds and value.is_integer():
            return int(value)
        if isinstance(value, dict) and ("properties" in schema or "additionalProperties" in schema):
            known, rest = schema.get("properties", {}), schema.get("additionalProperties", {})
            return {key: self.mended(item, known.get(key, rest)) for key, item in value.items()}
        if isinstance(value, list) and ("items" in schema or "prefixItems" in schema):
            first, rest = schema.get("prefixItems", []), schema.get("items", {})
            return [
                self.mended(item, first[at] if at < len(first) else rest) for at, item in enumerate(value)
            ]
        return value

    def _fit(self, value: Any, schema: Any) -> bool:
        if schema is False:
            return False
        schema = self._target(schema)
        if "enum" in schema or "const" in schema:
            return any(_same(value, each) for each in schema.get("enum", [schema.get("const")]))
        several = schema.get("anyOf") or schema.get("oneOf")
        if several and not any(self.fits(value, each) for each in several):
            return False
        kinds = schema.get("type", ())
        if kinds and not _is_of(value, (kinds,) if isinstance(kinds, str) else kinds):
            return False
        if isinstance(value, dict):
            return self._object_fits(value, schema)
        if isinstance(value, list):
            first, rest = schema.get("prefixItems", []), schema.get("items", {})
            if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
                return False
            return all(
                self.fits(item, first[at] if at < len(first) else rest) for at, item in enumerate(value)
            )
        return _within(value, schema)

    def _object_fits(self, value: dict[str, Any], schema: Mapping[str, Any]) -> bool:
        known, rest = schema.get("properties", {}), schema.get("additionalProperties", {})
        names = schema.get("propertyNames", {})
        return (
            all(name in value for name in schema.get("required", ()))
            and schema.get("minProperties", 0) <= len(value) <= schema.get("maxProperties", len(value))
            and all(self.fits(name, names) for name in (value if names else ()))
            and all(self.fits(item, known.get(name, rest)) for name, item in value.items())
        )

    def _target(self, schema: Any) -> Mapping[str, Any]:
        for _ in range(100):
            reference = schema.get("$ref") if isinstance(schema, Mapping) else None
            if reference is None:
                break
            schema = self._defs.get(reference.removeprefix("#/$defs/"), {})
        return schema if isinstance(schema, Mapping) else {}

    def _of_several(self, value: Any, members: list[Any]) -> Any:
        """As the first member that it can be read as; one that it fits already goes before."""
        if any(self.fits(value, member) for member in members):
            return self._equal(value, members)
        for member in members:
            found = self.mended(value, member)
            if self.fits(found, member):
                return found
        return value

    def _equal(self, value: Any, members: list[Any]) -> Any:
        """What fits already, written as its member writes it: 1.0 where 1 is meant."""
        return self.mended(value, next(member for member in members if self.fits(value, member)))

    def _as(self, kind: str, value: Any) -> Any:
        """A value as a type that it only stands for; the value itself when it does not."""
        if self._parse is None:
            return value
        if kind == "boolean":
            return _truth(value)
        if not isinstance(value, str):
            return value
        if kind in ("integer", "number") and _NUMBER.fullmatch(value):
            number = json.loads(value)
            whole = isinstance(number, float) and number.is_integer() and kind == "integer"
            return int(number) if whole else number
        if kind == "null" and value.lower() == "null":
            return None
        if kind in ("array", "object") and value.lstrip()[:1] in ("[", "{"):
            try:
                return self._parse(value)
            except ValueError:
                return value
        return value


def _truth(value: Any) -> Any:
    if isinstance(value, str):
        return _TRUTHS.get(value.lower(), value)
    return bool(value) if type(value) is int and value in (0, 1) else value


def _member(value: Any, members: list[Any], quoted: bool) -> Any:
    """The member that a value equals in JSON, or that it quotes, if that is allowed."""
    for each in members:
        if _same(value, each):
            return each
    named = [each for each in members if not isinstance(each, str) and value == json.dumps(each)]
    return named[0] if named and quoted else value


def _same(one: Any, other: Any) -> bool:
    """Whether two values are equal in JSON."""
    return bool(identity(one) == identity(other))


def identity(value: Any) -> Any:
    """What two values have in common that are equal in JSON, where 1 is 1.0 and not true."""
    if isinstance(value, dict):
        return ("object", frozenset((key, identity(each)) for key, each in value.items()))
    if isinstance(value, list):
        return ("array", tuple(identity(each) for each in value))
    kind = kind_of(value)
    return ("number" if kind == "integer" else kind, value)


def _is_of(value: Any, kinds: Any) -> bool:
    kind = kind_of(value)
    whole = kind == "number" and isinstance(value, float) and value.is_integer()
    return kind in kinds or (kind == "integer" and "number" in kinds) or (whole and "integer" in kinds)


def _within(value: Any, schema: Mapping[str, Any]) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    limits = {
        _LIMITS[key]: limit
        for key, limit in schema.items()
        if key in _LIMITS and (isinstance(value, str) if "ength" in key or key == "pattern" else number)
    }
    if not limits:
        return True
    try:
        limits_check(limits, "value")(value)
    except ValueError:
        return False
    return True
