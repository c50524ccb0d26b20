"""JSON as files of ours in JSON are read: bounded, every value with its place, no key twice."""

from __future__ import annotations

import json
import os
import re
from bisect import bisect_right
from typing import Any

from msgspec import Struct

from antiphon.config.yaml import read_text
from antiphon.errors import ConfigError

MAX_DEPTH = 40
MAX_VALUES = 100_000
_SPACE = re.compile(r"[ \t\r\n]*")
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]++|\\.)*+"')
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,300})(\.[0-9]{1,300})?([eE][-+]?[0-9]{1,3})?")
_WORDS = {"true": True, "false": False, "null": None}
_KINDS = {dict: "an object", list: "a list", str: "a text", bool: "true or false", type(None): "null"}


class JsonPlace(Struct, frozen=True):
    """Where something stands; both from 1."""

    line: int
    column: int


class JsonNode(Struct, frozen=True):
    """A value and where it begins. Of an object `value` holds a node for each key, of a list one for each
    item; `keys` says where each key stands."""

    value: Any
    place: JsonPlace
    keys: dict[str, JsonPlace] = {}

    @property
    def kind(self) -> str:
        """What it is, in words."""
        return _KINDS.get(type(self.value), "a number")

    @property
    def data(self) -> Any:
        """The value without places."""
        if isinstance(self.value, dict):
            return {key: each.data for key, each in self.value.items()}
        return [each.data for each in self.value] if isinstance(self.value, list) else self.value


def read_json(path: str | os.PathLike[str]) -> JsonNode:
    """The value in a file. Raises ConfigError: not readable, not UTF-8, not JSON, a key twice, too deep."""
    return parse_json(read_text(path), os.fspath(path))


def parse_json(text: str, path: str = "") -> JsonNode:
    """The value in a text; `path` is for errors. Raises ConfigError as `read_json`."""
    return _JsonParser(text, path).whole()


class _JsonParser:
    """One text, from left to right."""

    def __init__(self, text: str, path: str) -> None:
        self._text, self._path, self._at, self._values = text, path, 0, 0
        self._lines = [0, *(found.end() for found in re.finditer("\n", text))]

    def whole(self) -> JsonNode:
        found = self._value(0)
        if self._peek():
            raise self._wrong("something follows the end of the value")
        return found

    def _place(self, at: int) -> JsonPlace:
        line = bisect_right(self._lines, at)
        return JsonPlace(line, at - self._lines[line - 1] + 1)

    def _wrong(self, text: str, at: int | None = None) -> ConfigError:
        place = self._place(self._at if at is None else at)
        return ConfigError(f"is not JSON: {text}", self._path, place.line, place.column)

    def _peek(self) -> str:
        """The next character that is no space; empty at the end."""
        found = _SPACE.match(self._text, self._at)
        self._at = found.end() if found else self._at
        return self._text[self._at : self._at + 1]

    def _value(self, depth: int) -> JsonNode:
        sign, at = self._peek(), self._at
        self._values += 1
        if depth > MAX_DEPTH or self._values > MAX_VALUES:
            what = (
                f"nested deeper than {MAX_DEPTH}" if depth > MAX_DEPTH else f"more than {MAX_VALUES:,} values"
            )
            raise self._wrong(what)
        if sign == "{":
            return self._object(at, depth)
        if sign == "[":
            return self._list(at, depth)
        if sign == '"':
            return JsonNode(self._string(), self._place(at))
        for word, value in _WORDS.items():
            if self._text.startswith(word, at):
                self._at += len(word)
                return JsonNode(value, self._place(at))
        number = _NUMBER.match(self._text, at)
        if number is None:
            hint = "; a comment cannot stand in JSON" if sign in ("/", "#") else ""
            raise self._wrong(f"a value is expected, {_seen(sign)}{hint}")
        self._at = number.end()
        plain = not number[1] and not number[2]
        return JsonNode(int(number[0]) if plain else float(number[0]), self._place(at))

    def _string(self) -> str:
        at, said = self._at, _STRING.match(self._text, self._at)
        if said is None:
            raise self._wrong("a text begins here that does not end, or holds a line break or a control sign")
        self._at = said.end()
        try:
            found: str = json.loads(said[0])
        except json.JSONDecodeError as error:
            raise self._wrong(error.msg, at + error.pos) from None
        try:
            found.encode()
        except UnicodeEncodeError:
            told = "the text holds half of a surrogate pair; give the whole character"
            raise self._wrong(told, at) from None
        return found

    def _object(self, at: int, depth: int) -> JsonNode:
        found: dict[str, JsonNode] = {}
        keys: dict[str, JsonPlace] = {}
        self._at += 1
        while self._peek() != "}" or found:
            if self._peek() != '"':
                raise self._wrong(f"a key in quotes is expected, {_seen(self._peek())}")
            key_at, key = self._at, self._string()
            if key in found:
                raise self._wrong(f"the key {key[:80]!r} stands here twice", key_at)
            if self._peek() != ":":
                raise self._wrong(f"':' is expected after the key {key[:80]!r}, {_seen(self._peek())}")
            self._at += 1
            keys[key] = self._place(key_at)
            found[key] = self._value(depth + 1)
            if not self._more("}"):
                break
        self._at += 1
        return JsonNode(found, self._place(at), keys)

    def _list(self, at: int, depth: int) -> JsonNode:
        found: list[JsonNode] = []
        self._at += 1
        while self._peek() != "]" or found:
            found.append(self._value(depth + 1))
            if not self._more("]"):
                break
        self._at += 1
        return JsonNode(found, self._place(at))

    def _more(self, end: str) -> bool:
        """Whether another one follows after a comma."""
        sign = self._peek()
        if sign == end:
            return False
        if sign != ",":
            raise self._wrong(f"',' or {end!r} is expected, {_seen(sign)}")
        self._at += 1
        if self._peek() == end:
            raise self._wrong(f"a comma stands before {end!r}; take it out")
        return True


def _seen(sign: str) -> str:
    return f"not {sign!r}" if sign else "and the file ends"
