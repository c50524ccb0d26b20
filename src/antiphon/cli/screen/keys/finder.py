"""Files that a message mentions: `@` and some letters of the path. Listed and searched beside the keys."""

from __future__ import annotations

import asyncio
import re
import threading
import time
from collections.abc import Callable, Sequence
from heapq import nsmallest
from queue import SimpleQueue

SHOWN = 8
"""Paths that are offered."""
FRESH = 20.0
"""Seconds for which the files of a folder are not listed again."""
LONGEST = 100
"""Letters that are looked for."""
MENTION = re.compile(r"(?:^|(?<=[\s(\"'`]))@([^\s@]*)$")
"""The last word of a text, where it mentions a file."""

Listed = Callable[[], Sequence[str]]


class MentionIndex:
    """The paths of a folder, prepared to be searched."""

    def __init__(self, paths: Sequence[str]) -> None:
        self._paths = list(paths)
        self._folded = [each.casefold() for each in self._paths]
        self._last: tuple[str, list[int]] = ("", list(range(len(self._paths))))

    def best(self, text: str, limit: int = SHOWN) -> list[str]:
        """The paths that have these letters in their order, the likeliest first: those that have them as one
        word, in the file's name, early, and in a short path."""
        wanted = text.casefold()[:LONGEST]
        before, among = self._last
        if not wanted.startswith(before):
            among = list(range(len(self._paths)))
        found = self._holding(wanted, among)
        self._last = (wanted, found)
        folded = self._folded

        def rank(number: int) -> tuple[int, int, int, str]:
            path = folded[number]
            name = path.rfind("/") + 1
            at = path.find(wanted, name)
            if at >= 0:
                return (0 if at == name else 1, len(path) - name, len(path), path)
            at = path.find(wanted)
            return (2, at, len(path), path) if at >= 0 else (3, _spread(path, wanted), len(path), path)

        return [self._paths[each] for each in nsmallest(limit, found, rank)]

    def _holding(self, wanted: str, among: list[int]) -> list[int]:
        folded = self._folded
        # Most are lost by a letter that they lack, which is the cheapest to find out.
        for letter in dict.fromkeys(wanted):
            among = [each for each in among if letter in folded[each]]
        if len(wanted) < 2:
            return among
        return [each for each in among if _has(folded[each], wanted)]


def _has(path: str, wanted: str) -> bool:
    """Whether a path has these letters in their order."""
    at = -1
    for letter in wanted:
        at = path.find(letter, at + 1)
        if at < 0:
            return False
    return True


def _spread(path: str, wanted: str) -> int:
    """Over how many letters those that are wanted are spread, looked for from the end."""
    end = at = len(path)
    for letter in reversed(wanted):
        at = path.rfind(letter, 0, at)
        end = at if end == len(path) else end
    return end - at


class FileFinder:
    """Searches the files of a folder on a thread of its own: no key waits. listed: names all of them; called
    there. found: called on the event loop with the letters and the paths, for the newest question only."""

    def __init__(self, listed: Listed, found: Callable[[str, list[str]], None]) -> None:
        self._listed, self._found = listed, found
        self._asked: SimpleQueue[str | None] = SimpleQueue()
        self._index: MentionIndex | None = None
        self._known_at = 0.0
        self._loop: asyncio.AbstractEventLoop | None = None

    def ask(self, text: str) -> None:
        """Look for these letters."""
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
            threading.Thread(target=self._work, name="antiphon file finder", daemon=True).start()
        self._asked.put(text)

    def close(self) -> None:
        """Look for nothing any more."""
        self._asked.put(None)

    def _work(self) -> None:
        while (text := self._newest()) is not None:
            paths = self.best(text)
            if self._loop is None or not self._asked.empty():
                continue
            try:
                self._loop.call_soon_threadsafe(self._found, text, paths)
            except RuntimeError:
                # The event loop has ended, and with it whoever asked.
                return

    def _newest(self) -> str | None:
        text = self._asked.get()
        while text is not None and not self._asked.empty():
            text = self._asked.get()
        return text

    def best(self, text: str) -> list[str]:
        """The likeliest paths, of the files as they are now or were a moment ago."""
        now = time.monotonic()
        if self._index is None or now - self._known_at > FRESH:
            self._index, self._known_at = MentionIndex(self._listed()), now
        return self._index.best(text)
