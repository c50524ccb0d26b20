"""Exceptions of user code: the log has them whole, the journal in short, and whoever waits as a cause."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path, PurePath
from traceback import walk_tb

from msgspec import Struct, field

from antiphon.kernel.run.log.records import say
from antiphon.values.codec import clean_text, text_of, type_and_text

MAX_FRAMES = 8
"""Frames of one exception that the journal keeps, the innermost."""
MAX_CAUSES = 3
MAX_CHARACTERS = 2_000
"""Of one text in the journal."""
REMEMBERED = 1_000
"""Requests whose last exception is remembered."""

_OURS = str(Path(__file__).resolve().parents[3])
_PYTHON = (str(Path(logging.__file__).resolve().parents[1]), "<frozen ")
_INSTALLED = ("site-packages", "dist-packages")


def trace_of(error: BaseException) -> str:
    """The type of an exception, what it says, where in the user's code it came from, and its causes.

    Only the last two parts of a path: a journal goes to other machines.
    """
    lines, seen = list(_lines(error)), 0
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    while cause is not None and seen < MAX_CAUSES:
        lines += ["from " + line if not place else line for place, line in enumerate(_lines(cause))]
        cause, seen = cause.__cause__ or (None if cause.__suppress_context__ else cause.__context__), seen + 1
    text = clean_text("\n".join(lines))
    return text if len(text) <= MAX_CHARACTERS else f"{text[: MAX_CHARACTERS - 1]}…"


def _lines(error: BaseException) -> Iterator[str]:
    yield type_and_text(error)
    frames = [
        f"  {'/'.join(PurePath(code.co_filename).parts[-2:])}:{line} in {code.co_qualname}"
        for code, line in ((frame.f_code, line) for frame, line in walk_tb(error.__traceback__))
        if _is_users(code.co_filename)
    ]
    yield from frames[-MAX_FRAMES:]


def _is_users(path: str) -> bool:
    if path.startswith(_OURS):
        return False
    return not path.startswith(_PYTHON) or any(each in path for each in _INSTALLED)


class Failures(Struct):
    """The exceptions of one run: each is logged, and the last one of each request remembered."""

    run_id: str
    last: dict[str, BaseException] = field(default_factory=dict)
    """By request."""

    def note(self, error: BaseException, effect_id: str, agent: str, what: str, request: str) -> str:
        """Log an exception and remember it; what the journal keeps of it. what: the tool, model or action."""
        text = "Run %s: %s of %s failed, %s: %s"
        about = self.run_id, what, agent, effect_id
        plain = text % (*about, type(error).__name__)
        say(
            logging.INFO, text, *about, text_of(error), agent=agent, effect_id=effect_id, error=error,
            without_content=plain,
        )  # fmt: skip
        self.last.pop(request, None)
        self.last[request] = error
        if len(self.last) > REMEMBERED:
            del self.last[next(iter(self.last))]
        return trace_of(error)

    def take(self, request: str) -> BaseException | None:
        """The last exception of a request, which is then forgotten."""
        return self.last.pop(request, None)
