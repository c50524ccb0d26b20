"""The examples nearest to a request: TF-IDF over words and pieces of words, compared by cosine.

Deterministic and small: no vectors from a network, no dependency. Numbers, dates and file names are
folded into one feature each, because "17 times 23" asks for the same call as "4 times 9".
"""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Sequence

from antiphon.models.local.spans import WRITTEN_DATE
from antiphon.values.model import Example

_FILE = re.compile(r"[\w./-]*(?:\.[A-Za-z]\w{0,5}|/)[\w./-]*")
_CAPITALS = re.compile(r"(?<!\w)[A-Z]{6,}(?!\w)")
"""README, LICENSE and their kin."""
_RATIO = re.compile(r"[\d./-]*|\w{1,3}/\w{1,2}")
"""What has the look of a path and is none: 3/8, km/h."""
_DATE = re.compile(WRITTEN_DATE, re.IGNORECASE)
_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
_WORD = re.compile(r"<\w+>|[^\W_]+|[-+*/^%×÷=]")
_PIECE = 4
"""Letters in a piece of a word: enough for "converting" to meet "convert"."""

_ENOUGH = 0.5


def features(text: str) -> Counter[str]:
    """What `text` is compared by: its words, pairs of words and pieces of words."""
    folded = _DATE.sub(" <date> ", _CAPITALS.sub(" <file> ", text).lower())
    folded = _FILE.sub(lambda match: f" {_file(match.group(0))} ", folded)
    words = _WORD.findall(_NUMBER.sub(" <number> ", folded))
    found = Counter(words)
    found.update(f"{left} {right}" for left, right in itertools.pairwise(words))
    for word in words:
        if len(word) > _PIECE and word[0] != "<":
            found.update(f"~{word[at : at + _PIECE]}" for at in range(len(word) - _PIECE + 1))
    return found


def _file(text: str) -> str:
    return text if _RATIO.fullmatch(text) else "<file>"


def nearest(request: str, examples: Sequence[Example], count: int) -> list[Example]:
    """The examples most like `request`, at most `count`, least like first (the last is read best).

    What is less than half as like as the likest is left out: it only distracts. Equal likeness keeps
    the order given. Examples of one request and call count once.
    """
    distinct = list({(example.request, example.call): example for example in examples}.values())
    bags = [features(example.request) for example in distinct]
    spread = Counter(feature for bag in bags for feature in bag)
    weights = {feature: math.log((1 + len(bags)) / (0.5 + seen)) for feature, seen in spread.items()}
    asked = _vector(features(request), weights)
    likeness = [_dot(asked, _vector(bag, weights)) for bag in bags]
    order = sorted(range(len(bags)), key=lambda at: (-likeness[at], at))[:count]
    return [distinct[at] for at in reversed(order) if likeness[at] >= _ENOUGH * likeness[order[0]]]


def _vector(bag: Counter[str], weights: dict[str, float]) -> dict[str, float]:
    raw = {
        feature: (1 + math.log(seen)) * weights[feature] * (0.5 if feature[0] == "~" else 1.0)
        for feature, seen in bag.items()
        if feature in weights
    }
    length = math.sqrt(sum(value * value for value in raw.values()))
    return {feature: value / length for feature, value in raw.items()} if length else {}


def _dot(left: dict[str, float], right: dict[str, float]) -> float:
    return sum(value * right[feature] for feature, value in left.items() if feature in right)
