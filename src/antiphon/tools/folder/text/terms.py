"""What is compared when passages are searched for: words, folded and without endings."""

from __future__ import annotations

import functools
import re

_STOP_TEXT = (
    "a about above according after all an and any are as at be been before being between but by can "
    "could did do does doc docs document documentation documents explain find for from give had has "
    "have how i if in into is it its look manual me mention mentions meaning my no not of on or our "
    "out passage please project quotation quote read said say says section should show so some "
    "summarise summarize tell than that the their them then there these they this those to up was we "
    "were what when where which who whose why will with would write written you your"
)
_STOP = frozenset(_STOP_TEXT.split())
_TERM = re.compile(r"[^\W_]+")
_PART = re.compile(r"[A-Z]?[^\WA-Z_]+|[A-Z]+(?![^\WA-Z_])")
_ASIAN = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


def terms(text: str) -> list[str]:
    """Folded words without endings, and the parts of `camelCase`; Chinese, Japanese and Korean by pairs."""
    found: list[str] = []
    for word in _TERM.findall(text):
        found.extend(_of_word(word))
    return found


@functools.lru_cache(8_192)
def _of_word(word: str) -> tuple[str, ...]:
    if len(word) > 1 and word.isascii() and (word.islower() or word[1:].islower()):
        return (stem(word.lower()),)
    if _ASIAN.search(word):
        return tuple(word[at : at + 2] for at in range(max(len(word) - 1, 1)))
    parts = _PART.findall(word)
    whole = stem(word.lower())
    return (whole, *(stem(part.lower()) for part in parts)) if len(parts) > 1 else (whole,)


def stem(word: str) -> str:
    """A word without its commonest English endings: "retries", "retrying" and "retried" meet "retry"."""
    for ending, instead in (("ies", "y"), ("ied", "y"), ("ing", ""), ("ed", ""), ("es", ""), ("s", "")):
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not word.endswith("ss"):
            word = word[: -len(ending)] + instead
            break
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "lsz":
        word = word[:-1]
    return word[:-1] if len(word) > 4 and word.endswith("e") else word


def kept(query: str) -> list[str]:
    """The words of a question that are worth looking for; all of them when none is."""
    words = _TERM.findall(query)
    return [word for word in words if word.lower() not in _STOP] or words
