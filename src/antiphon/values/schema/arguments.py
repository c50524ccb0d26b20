"""From what a model wrote to arguments a tool can trust: strict JSON, validation, defaults.

`ArgumentParser.read` is pure: the same text gives the same canonical JSON or the same refusal, on any
machine and at any time. Policy, approvals and idempotency keys are bound to that canonical text.

Accepted, because models err so and no meaning is at stake: no text for no arguments, `null` for an
argument that has a default, and the slips of `leniences`, such as a number in quotes. Text that is no
JSON may have lost a part that mattered, so it is refused on the way to whatever changes the world.
Where a wrong guess costs another question only, `ArgumentParser.repair` reads it as the object it most
plainly stands for and says so (`Repaired`): a code fence around the object, trailing commas, raw control
characters inside strings, missing closing brackets and quotes, surplus closing brackets at the end.
Everything else is refused with a text the model can act on.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

import msgspec
from msgspec import Struct

from antiphon.values.schema.canonical import writer
from antiphon.values.schema.leniences import Leniences
from antiphon.values.schema.standins import StandIn, in_one_place, kind_of

MAX_CHARACTERS = 1_048_576
"""The longest argument text that is read at all."""
MAX_DEPTH = 100
"""The deepest nesting of objects and arrays."""
MAX_DIGITS = 256
"""The longest integer; all such integers still fit the range of a float."""
PLAIN = min(MAX_DEPTH, MAX_DIGITS)
"""Text up to this length can be neither too deep nor hold too long an integer."""


class Invalid(Struct, frozen=True, gc=False):
    """Arguments that were refused; `text` tells the model what is wrong and what is expected."""

    text: str
    broken: bool = False
    """The text is no JSON; it may still be plain what it stands for."""


class Repaired(Struct, frozen=True, gc=False):
    """Arguments read out of text that is no JSON; `text` is the canonical JSON of what was understood."""

    text: str


class ArgumentsRejected(ValueError):
    """Why a JSON text cannot be arguments, without the tool's name."""


class BrokenJson(ArgumentsRejected):
    """The text is no JSON at all."""


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise ArgumentsRejected(f"the key {key!r} appears twice in one object; give it once")
            seen.add(key)
    return found


def _constant(name: str) -> NoReturn:
    raise ArgumentsRejected(f"{name} is not JSON; give a finite number, or null where it is allowed")


def _integer(digits: str) -> int:
    if len(digits.lstrip("-")) > MAX_DIGITS:
        raise ArgumentsRejected(f"an integer has more than {MAX_DIGITS} digits")
    return int(digits)


def _number(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise ArgumentsRejected(f"the number {text[:40]} is out of range")
    return value


_json = json.JSONDecoder(
    object_pairs_hook=_pairs, parse_constant=_constant, parse_int=_integer, parse_float=_number
)
_twice = json.JSONDecoder(object_pairs_hook=_pairs).raw_decode
_STRING = r'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)'
_TOKEN = re.compile(_STRING + r'|[{}\[\],:]|[^\s"{}\[\],:]+', re.DOTALL)
_BRACKET = re.compile(_STRING + r"|[{}\[\]]|[0-9]+", re.DOTALL)
_LONG = re.compile(r"[0-9]{4}")
_FENCE = re.compile(r"```[^\n`{\[]*\n?")
_PARTIAL = r"\\(?:u[0-9a-fA-F]{0,3})?"
_PART = re.compile(rf"(?<!\\)((?:\\\\)*)(?:\\u[dD][89abAB][0-9a-fA-F]{{2}}(?:{_PARTIAL})?|{_PARTIAL})\Z")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_CONTROL = re.compile(r"[\x00-\x1f]")
_WORDS = ("true", "false", "null")


def check_length(text: str) -> None:
    """Refuse what is too long; raises `ArgumentsRejected`."""
    if len(text) > MAX_CHARACTERS:
        raise ArgumentsRejected(f"the text has {len(text):,} characters; at most {MAX_CHARACTERS:,} are read")


def check_size(text: str) -> None:
    """Refuse what is too long, nested too deeply or holds too long an integer; raises `ArgumentsRejected`."""
    check_length(text)
    # Too long a run of digits shows four times in a row when every 64th character is looked at.
    long = _LONG.search(text[:: MAX_DIGITS // 4]) is not None
    if not long and text.count("{") + text.count("[") <= MAX_DEPTH:
        return
    depth = 0
    for match in _BRACKET.finditer(text):
        token = match[0]
        if token in "{[":
            depth += 1
            if depth > MAX_DEPTH:
                raise ArgumentsRejected(f"the text is nested deeper than {MAX_DEPTH} levels")
        elif token in "}]":
            depth = max(0, depth - 1)
        elif token[0] != '"' and len(token) > MAX_DIGITS:
            raise ArgumentsRejected(f"an integer has more than {MAX_DIGITS} digits")


def is_json(text: str) -> bool:
    """Whether a text is JSON from its beginning to its end."""
    try:
        check_size(text)
        msgspec.json.decode(text)
    except (ArgumentsRejected, msgspec.DecodeError, UnicodeError, RecursionError):
        return False
    return True


def said_by(error: Exception) -> str:
    """What a validator's error says, or its type, whatever its own `__str__` does."""
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - the error of somebody's error
        return type(error).__name__


class _Mender:
    """One pass over the tokens of a damaged text; `out` is what has been mended so far."""

    def __init__(self) -> None:
        self.out: list[str] = []
        self.open: list[str] = []
        self.keys: list[int] = []
        self.comma = False
        self.whole = False

    def put(self, text: str, is_key: bool) -> None:
        """A key, or a value with the comma that was due before it."""
        if is_key:
            self.keys[-1] = len(self.out)
        if self.comma:
            self.out.append(",")
            self.comma = False
        self.out.append(text)

    def close(self, at_end: bool) -> None:
        """Close the innermost bracket, without its trailing comma or a key that got no value."""
        mark = self.keys.pop()
        if mark >= 0 and at_end:
            del self.out[mark:]
        self.comma = False
        self.out.append(self.open.pop())
        self.settled()

    def settled(self) -> None:
        """A value is complete: the key before it, if any, is no longer waiting."""
        if self.open:
            self.keys[-1] = -1
        else:
            self.whole = True

    def take(self, token: str, last: bool) -> bool:
        """Take one token; False when the text cannot be mended."""
        first = token[0]
        if self.whole:
            return first in "}]"
        if first in "}]":
            if first not in self.open:
                return False
            while self.open[-1] != first:
                self.close(False)
            self.close(False)
        elif first == ",":
            if self.comma or not self.open or self.out[-1] in "{[:":
                return False
            self.comma = True
        elif first == ":":
            self.out.append(first)
        elif first in "{[":
            self.put(first, False)
            self.open.append("}" if first == "{" else "]")
            self.keys.append(-1)
        else:
            return self.scalar(token, last)
        return True

    def scalar(self, token: str, last: bool) -> bool:
        """A string, number or word: completed if the text ends in it."""
        is_key = bool(self.open) and self.open[-1] == "}" and self.keys[-1] < 0
        text = _string(token) if token[0] == '"' else _word(token) if last else token
        if text:
            self.put(text, is_key)
            if not is_key:
                self.settled()
        return True


def _string(token: str) -> str:
    """A string token, closed if it was cut and with its raw control characters escaped."""
    if len(token) < 2 or not token.endswith('"') or _cut(token):
        token = _PART.sub(r"\1", token) + '"'
    return _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", token)


def _cut(token: str) -> bool:
    """Whether the last quote of a string token is an escaped one, so that the string is not closed."""
    body = token[:-1]
    return (len(body) - len(body.rstrip("\\"))) % 2 == 1


def _word(token: str) -> str:
    """A number or literal at the very end of a text: cut back or completed; empty if nothing is left."""
    for word in _WORDS:
        if word.startswith(token):
            return word
    number = _NUMBER.match(token)
    if number is not None and token[number.end() :] in ("", ".", "e", "E", "e-", "E-", "e+", "E+"):
        return number[0]
    return "" if token == "-" else token


def repair(text: str) -> str | None:
    """The JSON that a fenced, comma-trailed or truncated text most plainly stands for.

    Aware of strings: brackets and commas inside them count for nothing. A key that got no value is
    dropped, brackets are closed in the order they were opened. None when the text is no such damage;
    the result may still not be JSON. Linear in the length of the text.
    """
    text = text.lstrip("\ufeff \t\r\n")
    fence = _FENCE.match(text)
    if fence is not None:
        text = text[fence.end() :]
        text = text.rstrip().removesuffix("```").rstrip()
    tokens = _TOKEN.findall(text)
    # A word is cut only where the text itself ends in it, not where white space follows.
    cut = bool(tokens) and text.endswith(tokens[-1])
    mender = _Mender()
    for place, token in enumerate(tokens, 1):
        if not mender.take(token, cut and place == len(tokens)):
            return None
    while mender.open:
        mender.close(True)
    return "".join(mender.out)


def parse(text: str) -> Any:
    """The value of a strict JSON text. Raises `BrokenJson`, `ArgumentsRejected`."""
    try:
        return _json.decode(text)
    except json.JSONDecodeError as error:
        near = text[max(0, error.pos - 20) : error.pos + 20]
        reason = f"not JSON: {error.msg} at character {error.pos + 1}, near {near!r}"
        raise BrokenJson(f"{reason}; give the whole object again, as JSON") from error
    except RecursionError as error:
        raise ArgumentsRejected("the text is nested too deeply") from error


def parse_quoted(text: str) -> Any:
    """The value of a JSON text that stood in a string. Raises `ArgumentsRejected`."""
    check_size(text)
    return parse(text)


def parse_repaired(text: str) -> Any:
    """The value of a damaged JSON text; None when nothing is left of it. Raises `ArgumentsRejected`."""
    mended = repair(text)
    if mended == "":
        return None
    try:
        return parse(mended or "")
    except BrokenJson:
        # What is wrong is said of the text as it was given.
        return parse(text)


def _given(value: object) -> str:
    return json.dumps(value) if isinstance(value, bool) else kind_of(value)


def _expected(schema: Any) -> str:
    """A schema in a few words."""
    if not isinstance(schema, Mapping):
        return "any value"
    if "enum" in schema:
        return "one of " + ", ".join(json.dumps(value, ensure_ascii=False) for value in schema["enum"])
    if "anyOf" in schema:
        return " or ".join(_expected(one) for one in schema["anyOf"])
    kind = schema.get("type", "any value")
    return " or ".join(kind) if isinstance(kind, list) else str(kind)


def _meant(name: str, free: Sequence[str], missing: Sequence[str]) -> str:
    """Which argument that was not given an unknown one may stand for."""
    near = difflib.get_close_matches(name, free, 1) or missing
    return f" (did you mean {near[0]!r}?)" if len(near) == 1 else ""


def _at(properties: Mapping[str, Any], path: str) -> Mapping[str, Any]:
    """The schema of what stands at a path such as `$.a[0].b`, as far as it can be told."""
    found: Mapping[str, Any] = {"properties": properties}
    for name, item in re.findall(r"\.([^.\[]+)|(\[)", path):
        inner = found.get("items") if item else found.get("properties", {}).get(name)
        choices = [inner, *inner.get("anyOf", ())] if isinstance(inner, dict) else []
        found = next((each for each in choices if "properties" in each or "items" in each), {})
    return found


class ArgumentParser:
    """Reads the arguments of one tool. Immutable after construction; share it freely.

    shape: the Struct type whose fields are the arguments, in the declared order; or a stand-in that reads
    them, and may allow for more than it names.
    parameters: the JSON Schema shown to the model, used for the texts of refusals.
    ordered: no set occurs; otherwise sets, and with them objects, are sorted to be canonical.
    foreign: a type occurs that msgspec does not know, so what was written is read back as a check.
    """

    __slots__ = (
        "_closed",
        "_encode",
        "_foreign",
        "_leniences",
        "_optional",
        "_properties",
        "_required",
        "_strict",
        "name",
    )

    def __init__(
        self,
        name: str,
        shape: type[Any],
        parameters: Mapping[str, Any],
        dec_hook: Callable[[type, Any], Any],
        enc_hook: Callable[[Any], Any],
        *,
        ordered: bool = True,
        foreign: bool = False,
    ) -> None:
        self.name = name
        self._foreign = foreign
        self._closed = not isinstance(shape, StandIn) or (
            parameters.get("additionalProperties") is False and "patternProperties" not in parameters
        )
        self._strict = msgspec.json.Decoder(shape, dec_hook=dec_hook).decode
        self._leniences = Leniences(parameters, parse_quoted)
        self._encode = writer(enc_hook, ordered=ordered)
        self._properties: Mapping[str, Mapping[str, Any]] = parameters.get("properties", {})
        self._required = tuple(parameters.get("required", ()))
        self._optional = frozenset(self._properties).difference(self._required)

    def read(self, raw: str) -> str | Invalid:
        """The canonical JSON text of the validated arguments, or why there is none. Never raises."""
        try:
            if len(raw) > PLAIN:
                check_size(raw)
            text = str(self._encode(self._strict(raw)), "utf-8")
            if self._foreign:
                self._strict(text)
            # Equal but for blanks, the texts hold equally many pairs, so no key came twice.
            if text != raw and text != raw.replace(": ", ":").replace(", ", ",") and raw.count(":") > 1:
                _twice(raw, raw.index("{"))
        except ArgumentsRejected as error:
            return self.refuse(str(error))
        except Exception:  # noqa: BLE001 - a validator of the user's may raise anything; said by the slow way
            return self._read_slowly(raw)
        return text

    def decode(self, arguments: str) -> Any:
        """The arguments in a canonical text. Raises `msgspec.MsgspecError` when they no longer fit."""
        return self._strict(arguments)

    def repair(self, raw: str) -> Repaired | Invalid:
        """What `read` refused as broken, read as what it most plainly stands for. Never raises."""
        try:
            return Repaired(self._checked(parse_repaired(raw)))
        except ArgumentsRejected as error:
            return self.refuse(str(error))

    def refuse(self, reason: str, broken: bool = False) -> Invalid:
        """A refusal in the tool's name, whatever a validator says."""
        text = f"Invalid arguments for tool {self.name!r}: {reason}"
        return Invalid(text.encode("utf-8", "replace").decode(), broken)

    def _read_slowly(self, raw: str) -> str | Invalid:
        """Text that is not at once what the tool asks for."""
        try:
            return self._checked(parse(raw) if raw and not raw.isspace() else None)
        except ArgumentsRejected as error:
            return self.refuse(str(error), isinstance(error, BrokenJson))

    def _checked(self, given: Any) -> str:
        """The canonical text of parsed arguments; nothing is an empty object."""
        given = {} if given is None else given
        if not isinstance(given, dict):
            raise ArgumentsRejected(f"at $ expected an object, got {_given(given)}")
        self._check_names(given)
        return self._fit(given)

    def _check_names(self, given: dict[str, Any]) -> None:
        unknown = [name for name in given if self._closed and name not in self._properties]
        missing = [name for name in self._required if name not in given]
        if unknown:
            free = [name for name in self._properties if name not in given]
            missing = missing or (free if len(self._properties) == 1 else [])
            named = ", ".join(f"{name[:80]!r}{_meant(name[:80], free, missing)}" for name in unknown[:8])
            allowed = ", ".join(self._properties) or "(none)"
            raise ArgumentsRejected(f"unknown argument {named}; allowed: {allowed}")
        if missing:
            named = ", ".join(f"{name!r} ({_expected(self._properties.get(name))})" for name in missing)
            raise ArgumentsRejected(f"missing required argument {named}")

    def _fit(self, given: dict[str, Any]) -> str:
        """Validate parsed arguments; strictly first, so that a union keeps the type that was given."""
        try:
            plain = msgspec.json.encode(given)
        except UnicodeEncodeError as error:
            raise ArgumentsRejected(
                "a string holds half of a surrogate pair; give the whole character"
            ) from error
        try:
            return str(self._encode(self._strict(plain)), "utf-8")
        except Exception:  # noqa: BLE001 - a validator of the user's may raise anything
            return self._fit_mended(given)

    def _fit_mended(self, given: dict[str, Any]) -> str:
        """Validate arguments that did not fit as they are."""
        try:
            mended = self._mended(given)
            return str(self._encode(self._strict(msgspec.json.encode(mended))), "utf-8")
        except RecursionError:
            raise ArgumentsRejected("the arguments are nested too deeply") from None
        except Exception as error:
            raise ArgumentsRejected(self._reason(error, given)) from error

    def _mended(self, given: dict[str, Any]) -> dict[str, Any]:
        """The arguments without the slips that cost no meaning; null is an argument left out."""
        found = {}
        for name, value in given.items():
            schema = self._properties.get(name, True)
            if value is not None or name not in self._optional or self._leniences.fits(None, schema):
                found[name] = self._leniences.mended(value, schema)
        return found

    def _reason(self, error: Exception, given: dict[str, Any]) -> str:
        """What failed, where, what was expected and what was given."""
        said, _, path = in_one_place(said_by(error)).rpartition(" - at `")
        said, path = (said, path.rstrip("`")) if said else (path, "$")
        if not isinstance(error, (ValueError, TypeError)):
            said = f"{type(error).__name__}: {said}"
        said = said[:1].lower() + said[1:].replace("`", "")
        unknown = re.fullmatch(r"object contains unknown field (.+)", said)
        if unknown is not None:
            known = list(_at(self._properties, path).get("properties", ()))
            hint = _meant(unknown[1][:80], known, ())
            return f"at {path} unknown field {unknown[1][:80]!r}{hint}; allowed: {', '.join(known)}"
        name = re.match(r"\$\.([^.\[]+)", path)
        if name is None or name[1] not in self._properties:
            return f"at {path} {said}"
        shown = json.dumps(given.get(name[1]), ensure_ascii=False)
        shown = shown if len(shown) <= 80 else shown[:77] + "..."
        expected = "" if said.startswith("expected") else f"; expected {_expected(self._properties[name[1]])}"
        return f"at {path} {said}{expected}; {name[1]!r} was given as {shown}"
