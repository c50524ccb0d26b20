"""The secret type: a value that is used, never shown; and what takes secrets out of foreign words."""

from __future__ import annotations

import hmac
import html
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NoReturn, SupportsIndex

MASK = "***"
PIECE = 8
"""Characters of a secret that are never shown in one piece."""
SHORTEST = 6
"""Characters below which a text is too common to be taken for a secret."""
_NAMED = re.compile(r"(.*[_-])?(key|token|secret|password|credentials?|authorization|cookie)", re.IGNORECASE)


@dataclass(init=False, repr=False, eq=False)
class Secret:
    """A text that prints and formats as `***` and encodes to JSON as `{"secret": "***"}`.

    `reveal()` gives the value. Its only field is the mask, so whatever walks over fields (the JSON
    codec, `asdict`, a debugger's printer) meets nothing else. It cannot be pickled.
    """

    secret: str

    def __init__(self, value: str | Secret) -> None:
        self.secret = MASK
        text = value.reveal() if isinstance(value, Secret) else value
        self._reveal: Callable[[], str] = lambda: text

    def reveal(self) -> str:
        """The value; call it where it is sent and keep the result nowhere."""
        return self._reveal()

    def __repr__(self) -> str:
        return f"Secret({MASK!r})"

    def __str__(self) -> str:
        return MASK

    def __bool__(self) -> bool:
        return bool(self._reveal())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        return hmac.compare_digest(self._reveal().encode(), other.reveal().encode())

    def __hash__(self) -> int:
        return hash((Secret, self._reveal()))

    def __copy__(self) -> Secret:
        return self

    def __deepcopy__(self, memo: object) -> Secret:
        return self

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise TypeError("a Secret cannot be pickled")


def is_secret_name(name: str) -> bool:
    """Whether what goes by this name is a secret: `api_key`, `x-auth-token`, …; `max_tokens` is none."""
    return _NAMED.fullmatch(name) is not None


def redact(text: str, secrets: Iterable[str]) -> str:
    """The text with every secret, and every piece of `PIECE` or more of its characters, masked.

    They are found also where white space, line breaks or quotes break them, in either case, and where
    they are written with the escapes of JSON, of URLs or of HTML, several times over. A secret shorter
    than `SHORTEST` is not looked for. Redact before anything cuts or reflows: a cut may leave less of a
    secret than `PIECE`.
    """
    keys = {key for each in secrets if len(key := _letters(each.lower())) >= SHORTEST}
    hidden = bytearray(len(text))
    form = [(letter, at, at + 1) for at, letter in enumerate(text)] if keys else []
    for _ in range(_LAYERS):
        if not form:
            break
        kept = [(letter.lower()[:1], start, end) for letter, start, end in form if not _between(letter)]
        letters = "".join(letter for letter, _, _ in kept)
        for key in keys:
            _hide(key, letters, kept, hidden)
        form = _decoded(form)
    out, at = [], 0
    for found in re.finditer(rb"\x01+", hidden):
        out += [text[at : found.start()], MASK]
        at = found.end()
    return "".join([*out, text[at:]])


def shown(text: str, secrets: Iterable[str] = (), limit: int = 200) -> str:
    """A foreign text made safe for one line: secrets masked, control and direction marks out, cut."""
    text = redact(text[: limit * _WINDOW], secrets)
    clean = " ".join("".join(c if c.isprintable() else " " for c in text[: limit * 4]).split())
    return clean if len(clean) <= limit else f"{clean[: limit - 1]}…"


_LAYERS = 4
"""The text as it stands, and that many less one escapes around one another."""
_WINDOW = 12
"""Lengths of what is shown in which secrets are looked for: more than anything that is shown comes from."""
_ESCAPE = re.compile(
    r"\\+u(?P<u>[0-9a-f]{4})|\\+x(?P<x>[0-9a-f]{2})|\\+(?P<c>[nrtbf/\"'])|%(?P<p>[0-9a-f]{2})"
    r"|(?P<h>&(?:#[0-9]{1,6}|#x[0-9a-f]{1,5}|[a-z]{2,6});)",
    re.IGNORECASE,
)
_Form = list[tuple[str, int, int]]
"""Letters, each with where it begins and ends in the original text."""


def _between(letter: str) -> bool:
    """Whether this may stand between the letters of a broken secret."""
    return not letter.isprintable() or letter in " \"'\\,+"


def _letters(text: str) -> str:
    return "".join(letter for letter in text if not _between(letter))


def _decoded(form: _Form) -> _Form:
    """One layer of escapes taken off; nothing when there is none."""
    text, out, at = "".join(letter for letter, _, _ in form), [], 0
    for found in _ESCAPE.finditer(text):
        kind, value = found.lastgroup, found[found.lastgroup or 0]
        out += form[at : found.start()]
        letter = "\n" if kind == "c" and value in "nrtbf" else value
        if kind in ("u", "x", "p"):
            letter = chr(int(value, 16))
        elif kind == "h":
            letter = html.unescape(value)[:1]
        out.append((letter, form[found.start()][1], form[found.end() - 1][2]))
        at = found.end()
    return [*out, *form[at:]] if at else []


def _hide(key: str, letters: str, form: _Form, hidden: bytearray) -> None:
    """Mark in `hidden` every piece of the key that stands in the letters."""
    size = min(PIECE, len(key))
    pieces = {key[at : at + size] for at in range(len(key) - size + 1)}
    for at in range(len(letters) - size + 1):
        if letters[at : at + size] in pieces:
            start, end = form[at][1], form[at + size - 1][2]
            hidden[start:end] = b"\x01" * (end - start)
