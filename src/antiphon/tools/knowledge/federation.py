"""Several sources asked as one: side by side, by a deadline, their answers brought together by rank.

A source that fails or is late contributes nothing, and is named with the reason. Scores of different sources
cannot be compared, ranks can: a passage counts 1 / (60 + rank) for each source that found it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from msgspec import Struct

from antiphon.errors import AntiphonError, DuplicateName, ToolError, visible
from antiphon.tools.knowledge.source import (
    DocumentPart,
    DocumentPlace,
    Source,
    SourceAnswer,
    SourcePassage,
    check_source_name,
)
from antiphon.values.codec import type_and_text

DEADLINE = 2.0
"""Seconds that sources have to answer a search."""
READ_SECONDS = 60.0
"""Seconds that a source has to read a document; a long PDF takes many."""
REASON = 500
"""Characters of what a source says that it raised."""
_K = 60
_Answer = TypeVar("_Answer")


class FoundPassage(Struct, frozen=True):
    """A passage with the source it comes from."""

    source: str
    passage: SourcePassage

    @property
    def citation(self) -> str:
        """Source, document, lines: `handbook/guide.md:10-18`; as `Federation.read` takes it."""
        place = self.passage.place
        last = max(place.first, place.last)
        lines = f":{place.first}-{last}" if place.first else ""
        return visible(f"{self.source}/{place.document}{lines}")


class SourceNote(Struct, frozen=True):
    """What is to be known of a source's part in an answer."""

    source: str
    text: str
    """Why it contributed nothing, or not all that it has."""


class Found(Struct, frozen=True):
    """What a search over sources found."""

    passages: tuple[FoundPassage, ...] = ()
    """Best first."""
    missing: tuple[SourceNote, ...] = ()
    """Sources that failed or were late."""
    partial: tuple[SourceNote, ...] = ()
    """Sources that may have more."""
    how: tuple[SourceNote, ...] = ()
    """What is to be known of how sources were searched."""


class Federation:
    """Sources that are searched together.

    sources: or a function that says which there are now. seconds: how long a search waits for them. Raises
    UserError for a name that is none, DuplicateName.
    """

    def __init__(
        self, sources: Iterable[Source] | Callable[[], Iterable[Source]], *, seconds: float = DEADLINE
    ) -> None:
        given = sources if callable(sources) else tuple(sources)
        self._given = given if callable(given) else lambda: given
        self._seconds = seconds
        self._abandoned: set[asyncio.Task[Any]] = set()
        if not callable(sources):
            self.sources()

    def sources(self) -> dict[str, Source]:
        """The sources there are now, by name."""
        found: dict[str, Source] = {}
        for each in self._given():
            if check_source_name(each.name) in found:
                raise DuplicateName("source", each.name)
            found[each.name] = each
        return found

    def chosen(self, names: Iterable[str]) -> dict[str, Source]:
        """Those of these names; all when none is named. Raises ToolError, which names them all."""
        known = self.sources()
        wanted = list(dict.fromkeys(names))
        for name in wanted:
            if name not in known:
                raise ToolError(f"There is no source {name!r}. Sources: {', '.join(known) or '(none)'}")
        return {name: known[name] for name in wanted} or known

    async def search(self, query: str, limit: int = 5, only: Sequence[str] = ()) -> Found:
        """The best passages of all sources, or of those that `only` names. Raises ToolError for a name that
        is none of theirs; what a source raises is told in the result."""
        chosen, deadline = self.chosen(only), self._deadline()
        asked = {name: each.search(query, limit, deadline) for name, each in chosen.items()}
        answers, missing = await self._together(asked, deadline)
        partial = tuple([SourceNote(name, each.note) for name, each in answers.items() if each.note])
        how = tuple([SourceNote(name, each.how) for name, each in answers.items() if each.how])
        return Found(tuple(fused(answers, limit)), missing, partial, how)

    async def about(self) -> dict[str, str]:
        """How much each source holds, in a line; or why that is not known."""
        asked = {name: each.about() for name, each in self.sources().items()}
        told, missing = await self._together(asked, self._deadline())
        return {**told, **{each.source: each.text for each in missing}}

    def _deadline(self) -> float:
        return asyncio.get_running_loop().time() + self._seconds

    async def _together(
        self, asked: Mapping[str, Coroutine[Any, Any, _Answer]], deadline: float
    ) -> tuple[dict[str, _Answer], tuple[SourceNote, ...]]:
        """The answers that came in time, by source, and why others did not; in the order of the sources."""
        tasks = {name: asyncio.ensure_future(each) for name, each in asked.items()}
        try:
            if tasks:
                await asyncio.wait(tasks.values(), timeout=deadline - asyncio.get_running_loop().time())
        finally:
            for task in tasks.values():
                self._abandon(task)
        answers: dict[str, _Answer] = {}
        missing: list[SourceNote] = []
        for name, task in tasks.items():
            if not task.done():
                missing.append(SourceNote(name, f"gave no answer within {self._seconds:g} seconds"))
            elif task.cancelled():
                missing.append(SourceNote(name, "gave up"))
            elif (error := task.exception()) is not None:
                missing.append(SourceNote(name, _told(error)))
            else:
                answers[name] = task.result()
        return answers, tuple(missing)

    def _abandon(self, task: asyncio.Task[Any]) -> None:
        """Wait no more for what has not come. One that does not let itself be cancelled is nobody's wait."""
        if not task.done():
            task.cancel()
            self._abandoned.add(task)
            task.add_done_callback(self._gone)

    def _gone(self, task: asyncio.Task[Any]) -> None:
        self._abandoned.discard(task)
        if not task.cancelled():
            task.exception()

    async def read(self, place: str, first: int = 1, last: int = 0) -> DocumentPart:
        """Lines of a document by its source and path, as citations name it. Raises ToolError."""
        name, slash, document = place.partition("/")
        if not slash or not document:
            raise ToolError(
                f"{place!r} names no document; give SOURCE/PATH as a citation has it. "
                f"Sources: {', '.join(self.sources()) or '(none)'}"
            )
        source = self.chosen([name])[name]
        try:
            async with asyncio.timeout(READ_SECONDS):
                return await source.read(DocumentPlace(document, first, last))
        except TimeoutError as error:
            raise ToolError(f"{place} was not read within {READ_SECONDS:g} seconds") from error


def fused(answers: Mapping[str, SourceAnswer], limit: int) -> list[FoundPassage]:
    """The best passages of all; a text counts for each source that found it, once, and is told once."""
    scores: dict[str, float] = {}
    first: dict[str, FoundPassage] = {}
    for name, answer in answers.items():
        own = {each.text: each for each in reversed(answer.passages[:limit])}
        for rank, passage in enumerate(reversed(own.values()), 1):
            scores[passage.text] = scores.get(passage.text, 0.0) + 1 / (_K + rank)
            first.setdefault(passage.text, FoundPassage(name, passage))
    return sorted(first.values(), key=lambda each: -scores[each.passage.text])[:limit]


def _told(error: BaseException) -> str:
    return visible(str(error) if isinstance(error, AntiphonError) else type_and_text(error))[:REASON]
