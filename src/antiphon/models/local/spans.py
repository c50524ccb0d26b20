"""Pieces of a request that an argument can be copied from.

A model of 135 million parameters copies well when it may only choose, and invents when it may write.
So a text argument is chosen from the spans of the request that have the right shape, and the right
shape is learnt from the tool's examples: the argument of an example is looked up in its own request.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sep(?:t(?:ember)?)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.?"
)
# The look-behind keeps a long run of digits from being tried from each of them.
_NUMBER = r"(?<![\d.])(?:-?\d+(?:,\d{3})+(?:\.\d+)?|-?\d+(?:\.\d+)?(?:/\d+)?)"
_SMALL = (
    "zero|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen"
    "|sixteen|seventeen|eighteen|nineteen|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety|hundred"
)
_QUOTED = re.compile(r"\"([^\"\n]+)\"|“([^”\n]+)”|`([^`\n]+)`|(?<!\w)'([^'\n]+)'(?!\w)")
_PATH = re.compile(r"(?<![\w/.-])(?:[\w.-]*/[\w./-]*|[\w-]*\.[A-Za-z]\w{0,9}(?:\.\w+)*)")
_CAPITALS = re.compile(r"(?<!\w)[A-Z][A-Z_-]{2,}(?!\w)|(?<!\w)Makefile(?!\w)|(?<!\w)Dockerfile(?!\w)")
_BEFORE_FOLDER = re.compile(r"([\w-]+)\s+(?:folder|directory)\b", re.IGNORECASE)
_AFTER_FOLDER = re.compile(r"\b(?:folder|directory)\s+(?:named\s+|called\s+)?([\w-]+)", re.IGNORECASE)
_IN_FOLDER = re.compile(r"\b(?:in|under|inside|within)\s+([\w-]+)\s*[?.!]*\s*$", re.IGNORECASE)
_NO_FOLDER_TEXT = (
    "a all any bytes characters contain contains current directory each every folder has have "
    "here hold in is it lines main my no of one our root that the there this total which whole "
    "words your"
)
_NO_FOLDER = frozenset(_NO_FOLDER_TEXT.split())
WRITTEN_DATE = (
    rf"\d{{4}}-\d{{1,2}}-\d{{1,2}}"
    rf"|\d{{1,2}}(?:st|nd|rd|th)?(?:\s+of)?\s+{_MONTH},?\s+\d{{4}}"
    rf"|{_MONTH}\s+\d{{1,2}}(?:st|nd|rd|th)?,?\s+\d{{4}}"
    rf"|\d{{1,2}}[./]\d{{1,2}}[./]\d{{4}}"
)
_DATE = re.compile(rf"{WRITTEN_DATE}|\b(?:today|tomorrow|yesterday|now)\b", re.IGNORECASE)
_QUANTITY = re.compile(
    rf"(?:{_NUMBER}|\b(?:an?|half an?|{_SMALL})\b)\s*(?:°\s*)?[^\W\d_][\w/²³]*", re.IGNORECASE
)
_OPERAND = rf"{_NUMBER}|\b(?:{_SMALL}|a half|half|a quarter|a third)\b"
_OPERATOR = (
    r"[-+*/^()%×÷−·,]|\*\*|\b(?:plus|minus|times|multiplied by|divided by|over|to the power of|squared"
    r"|cubed|percent of|per cent of|percent|per cent|of|mod|modulo|x|and|by|from|add|subtract|multiply"
    r"|divide|sum of|product of|difference between|quotient of|square root of|square|cube|power|the)\b"
)
_SUM = re.compile(rf"(?:(?:{_OPERAND}|{_OPERATOR})\s*)+", re.IGNORECASE)
_LEFT_OVER = re.compile(
    r"^(?:[\s,*/^)%×÷·]|\b(?:and|of|by|from|the|x|percent)\b)+|(?:[\s,(+*/^×÷·-]|\b(?:and|of|by|from|the|x)\b)+$",
    re.IGNORECASE,
)
_WORDS = re.compile(r"°?[^\W_][\w'/²³-]*")
_FUNCTION_WORDS_TEXT = (
    "a an and are as at be by can could did do does for from had has have how i if in into is it its "
    "many me much my of on or our please so than that the their there these this those to under was "
    "we were what what's when where which who why will with would you your"
)
_FUNCTION_WORDS = frozenset(_FUNCTION_WORDS_TEXT.split())
_HAS_NUMBER = re.compile(rf"\d|\b(?:{_SMALL}|half|quarter|third)\b", re.IGNORECASE)


def _quoted(text: str) -> list[str]:
    return [next(group for group in match.groups() if group) for match in _QUOTED.finditer(text)]


def _paths(text: str) -> list[str]:
    found = [(match.start(), match.group(0)) for match in _PATH.finditer(text)]
    named = [(at, path.rstrip(".")) for at, path in found if re.search(r"[A-Za-z]", path)]
    # Names without a slash or an ending are looked for only where there is no plain path.
    for pattern in () if named else (_CAPITALS, _BEFORE_FOLDER, _AFTER_FOLDER, _IN_FOLDER):
        for hit in pattern.finditer(text):
            at = hit.start(hit.lastindex or 0)
            if hit.group(hit.lastindex or 0).lower() not in _NO_FOLDER:
                named.append((at, hit.group(hit.lastindex or 0)))
    return [path for _, path in sorted(named)]


def _sums(text: str) -> list[str]:
    runs = [_LEFT_OVER.sub("", match.group(0)) for match in _SUM.finditer(text)]
    runs = [run for run in runs if _HAS_NUMBER.search(run)]
    size = {run: len(re.findall(_OPERAND, run, re.IGNORECASE)) for run in runs}
    most = max(size.values(), default=0)
    return [run for run in runs if size[run] == most]


def _quantities(text: str) -> list[str]:
    dateless = _DATE.sub(lambda match: "|" * len(match.group(0)), text)
    return [match.group(0).strip() for match in _QUANTITY.finditer(dateless)]


def _words(text: str) -> list[str]:
    return [
        match.group(0) for match in _WORDS.finditer(text) if match.group(0).lower() not in _FUNCTION_WORDS
    ]


def _found(pattern: re.Pattern[str]) -> Callable[[str], list[str]]:
    return lambda text: [match.group(0).strip() for match in pattern.finditer(text)]


MAX_LOOKED_AT = 1000
"""Characters of a text that are searched for spans."""

SHAPES: dict[str, Callable[[str], list[str]]] = {
    "whole": lambda text: [text.strip()],
    "quoted": _quoted,
    "path": _paths,
    "date": _found(_DATE),
    "quantity": _quantities,
    "sum": _sums,
    "number": _found(re.compile(_NUMBER)),
    "word": _words,
}
"""From the most telling shape to the least; each finds its spans in the order of the text."""


def spans(shape: str, text: str) -> list[str]:
    """The spans of one shape, each once, in the order of the text."""
    looked_at = text if shape == "whole" else text[:MAX_LOOKED_AT]
    return list(dict.fromkeys(span for span in SHAPES[shape](looked_at) if span))


def learn(pairs: Iterable[tuple[str, str]]) -> tuple[str, list[str]]:
    """From (request, argument) pairs: the shape most arguments have, and the arguments with none.

    An argument that does not stand in its request is a constant: it may be chosen anywhere. Without a
    single copied argument the shape is "".
    """
    votes: Counter[str] = Counter()
    constants: list[str] = []
    for request, argument in pairs:
        shapes = [shape for shape in SHAPES if argument in spans(shape, request)]
        votes.update(shapes)
        if not shapes and argument not in constants:
            constants.append(argument)
    best = max(votes.values(), default=0)
    return next((shape for shape in SHAPES if votes[shape] == best), "") if best else "", constants


def candidates(shape: str, texts: Sequence[str]) -> list[str]:
    """What an argument of `shape` may be: spans of the request (the first text) and of what belongs to it.

    Without a shape: every telling span, or the whole request when there is none.
    """
    if shape == "whole":
        return spans(shape, texts[0])
    wanted = [shape] if shape else ["quoted", "path", "date", "sum"]
    found = [span for text in texts for name in wanted for span in spans(name, text)]
    return list(dict.fromkeys(found)) or ([] if shape else spans("whole", texts[0]))
