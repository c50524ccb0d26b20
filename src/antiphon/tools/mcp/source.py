"""An MCP server as a source of knowledge: a tool of it that searches, and one that reads what that found.

Most call them `search` and `fetch`, and give and take what is expected here; any others may be named.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from antiphon.errors import ToolError
from antiphon.tools.folder.index import Changes
from antiphon.tools.folder.text.passages import lines_of
from antiphon.tools.knowledge.source import (
    DocumentPart,
    DocumentPlace,
    SourceAnswer,
    SourcePassage,
    check_source_name,
    lines_within,
)
from antiphon.tools.mcp.offers import shown_result
from antiphon.tools.mcp.servers import McpServer
from antiphon.values.codec import clean_text
from antiphon.values.tool import ToolContext
from antiphon.values.tool.toolset import ProviderLost

RESERVE = 0.1
"""Seconds before a deadline at which a connection that is still being made is waited for no longer."""
MAX_PASSAGES = 50
MAX_PASSAGE = 8_000
"""Characters of a passage."""
KEPT = 200
"""Documents whose passages are kept, where the server has nothing that reads them."""
_RESULTS = ("results", "result", "documents", "items", "hits", "matches", "data")
_DOCUMENT = ("id", "uri", "url", "path", "document", "source", "file")
_TITLE = ("title", "heading", "name")
_TEXT = ("text", "content", "snippet", "passage", "description", "summary", "body")
_COUNTS = ("limit", "count", "top_k", "k", "max_results", "num_results", "n", "size")


class _SourceLink:
    """One connection to the server; a link of it. gone: why it is lost."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop, self.gone = loop, ""
        self.session: Any = None
        self.opening: asyncio.Task[list[Any]] | None = None

    def offer(self, tools: Iterable[Any]) -> None:
        """See ToolsetLink; what it offers is looked up with each search."""

    def lost(self, reason: str) -> None:
        """See ToolsetLink."""
        self.gone = reason or "its connection is closed"


class McpSource:
    """A server whose tools search and read, see `McpServer`. Needs the extra `mcp`.

    search, fetch: the names that the server has for these tools. A query goes to the first text that the
    search requires, a document's id to that of the fetch; how many passages are wanted to a number called
    `limit`, `count` or the like. Results are read where they are JSON (a list, or one under `results`,
    of objects with an id, a title and a text), else each text is a passage. Without the tool `fetch` a
    document is read as a resource of the server, or else it is what was found of it.

    One connection serves all searches of an event loop, made with the first; one that is lost is made
    again with the next. `close` ends it. Raises UserError for a name that is none.
    """

    def __init__(
        self,
        server: McpServer,
        *,
        name: str = "",
        search: str = "search",
        fetch: str = "fetch",
        description: str = "",
    ) -> None:
        self.name, self.description = check_source_name(name or server.name), description
        self._server, self._search, self._fetch = server, search, fetch
        self._connection: _SourceLink | None = None
        self._leaving: list[_SourceLink] = []
        self._found: dict[str, dict[str, None]] = {}

    async def search(self, query: str, limit: int, deadline: float) -> SourceAnswer:
        """See `Source.search`."""
        session = await self._session(deadline - RESERVE)
        definition = self._searching(session)
        arguments: dict[str, Any] = {_required(definition, "query"): query}
        counted = [each for each in _COUNTS if each in _properties(definition)]
        if counted:
            arguments[counted[0]] = limit
        result = await self._called(session, self._search, arguments)
        found = [each for _, each in zip(range(min(limit, MAX_PASSAGES)), _passages(result), strict=False)]
        for each in found:
            self._keep(each)
        return SourceAnswer(tuple(found))

    async def changes(self) -> Changes:
        """None: the server is asked each time."""
        return Changes()

    async def read(self, place: DocumentPlace) -> DocumentPart:
        """See `Source.read`."""
        session = await self._session(None)
        definition = _definition(session, self._fetch)
        if definition is not None:
            named = {_required(definition, "id"): place.document}
            return lines_within(lines_of(_document(await self._called(session, self._fetch, named))), place)
        if "://" in place.document and session.has_resources:
            return lines_within(lines_of(await session.resource(place.document)), place)
        if place.document in self._found:
            return lines_within(lines_of("\n\n".join(self._found[place.document])), place)
        raise ToolError(f"{place.document} can not be read: the server has no tool {self._fetch!r}")

    async def about(self) -> str:
        """What the server says of its search. Raises ToolError: not reached, or it has no such tool."""
        definition = self._searching(await self._session(None))
        said = " ".join(clean_text(str(definition.get("description", ""))).split())
        return f"MCP server: {said[:200]}" if said else "MCP server"

    async def close(self) -> None:
        """End the connection, if there is one."""
        self.let_go()
        await self.left()

    def let_go(self) -> None:
        """See `HeldSource.let_go`."""
        connection, self._connection = self._connection, None
        if connection is not None and connection.session is not None:
            self._leaving.append(connection)
            # On a loop that is closed nothing is connected any more.
            with suppress(RuntimeError):
                connection.loop.call_soon_threadsafe(connection.session.leave)

    async def left(self) -> None:
        """See `HeldSource.left`."""
        here = asyncio.get_running_loop()
        while self._leaving:
            connection = self._leaving.pop()
            if connection.loop is here:
                await connection.session.stop()

    def _searching(self, session: Any) -> Mapping[str, Any]:
        """The tool that searches. Raises ToolError: there is none of that name."""
        definition = _definition(session, self._search)
        if definition is None:
            offered = ", ".join(each["name"] for each in session.definitions) or "(none)"
            raise ToolError(f"it has no tool {self._search!r}; its tools: {clean_text(offered)[:300]}")
        return definition

    async def _session(self, until: float | None) -> Any:
        """A connection that is up: one that the team's own tools have, or ours. until: how long it is
        waited for, on the event loop's clock. Raises ToolError."""
        try:
            from antiphon.tools.mcp.session import McpSession, sessions_here
        except ImportError as error:
            raise ToolError(
                f"MCP servers need the extra mcp: pip install 'antiphon[mcp]' ({error.name} is missing)"
            ) from error
        if (shared := sessions_here().get(self._server.key)) is not None:
            return shared
        loop = asyncio.get_running_loop()
        held = self._connection
        if held is None or held.loop is not loop or held.gone or held.opening is None:
            held = self._connection = _SourceLink(loop)
            held.session = McpSession(self._server, held)
            held.opening = loop.create_task(held.session.start(), name=f"source {self.name}")
            # Why it failed is told by whoever waits for it; that may be nobody.
            held.opening.add_done_callback(lambda task: task.cancelled() or task.exception())
        # It goes on being made whatever becomes of this search: the next one has it.
        await asyncio.wait([held.opening], timeout=None if until is None else max(until - loop.time(), 0))
        if not held.opening.done():
            raise ToolError("is being connected; search again in a while")
        if (failed := held.opening.exception()) is not None:
            held.gone = str(failed)
            raise ToolError(f"can not be reached: {failed}") from failed
        return held.session

    async def _called(self, session: Any, name: str, arguments: dict[str, Any]) -> Any:
        try:
            result = await session.result(ToolContext(), name, arguments)
        except ProviderLost as error:
            raise ToolError(f"can not be reached: {error}") from error
        if result.is_error:
            # Raises with what it says.
            shown_result(_blocks(result), result.structured_content, failed=True)
        return result

    def _keep(self, passage: SourcePassage) -> None:
        """What is found of a document is what there is of it where nothing else reads it."""
        name = passage.place.document
        self._found[name] = {**self._found.pop(name, {}), passage.text: None}
        while len(self._found) > KEPT:
            self._found.pop(next(iter(self._found)))


def _definition(session: Any, name: str) -> Mapping[str, Any] | None:
    return next((each for each in session.definitions if each.get("name") == name), None)


def _properties(definition: Mapping[str, Any]) -> Mapping[str, Any]:
    schema = definition.get("inputSchema")
    found = schema.get("properties") if isinstance(schema, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def _required(definition: Mapping[str, Any], usual: str) -> str:
    """The parameter that a text goes to: the usual one, else the first text that is required."""
    properties = _properties(definition)
    if usual in properties or not properties:
        return usual
    schema = definition["inputSchema"]
    required = [each for each in schema.get("required") or () if each in properties]
    texts = [name for name in (*required, *properties) if _is_text(properties[name])]
    return texts[0] if texts else usual


def _is_text(schema: object) -> bool:
    return isinstance(schema, Mapping) and schema.get("type") in (None, "string")


def _blocks(result: Any) -> list[dict[str, Any]]:
    return [each.model_dump(by_alias=True, mode="json", exclude_none=True) for each in result.content]


def _texts(result: Any) -> list[str]:
    return [str(each["text"]) for each in _blocks(result) if each.get("type") == "text" and each.get("text")]


def _read_json(text: str) -> Any:
    """What a text says as JSON, where that is an object or a list; else None."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict | list) else None


def _passages(result: Any) -> Iterator[SourcePassage]:
    """What a search found: its structured content, else its texts as JSON, else each text as it is."""
    held = result.structured_content
    said = [held] if held else [_read_json(text) or text for text in _texts(result)]
    number = 0
    for each in said:
        for item in _items(each):
            number += 1
            if (passage := _passage(item, number)) is not None:
                yield passage


def _items(held: Any) -> Iterable[Any]:
    if isinstance(held, dict):
        listed = next((held[key] for key in _RESULTS if isinstance(held.get(key), list | dict)), None)
        if listed is not None:
            return _items(listed)
        return [held] if _first(held, _TEXT) or _first(held, _DOCUMENT) else []
    return held if isinstance(held, list) else [held]


def _passage(item: Any, number: int) -> SourcePassage | None:
    if isinstance(item, str):
        text = clean_text(item)[:MAX_PASSAGE]
        return SourcePassage(DocumentPlace(f"result {number}"), text) if text.strip() else None
    if not isinstance(item, dict):
        return None
    title = clean_text(_first(item, _TITLE))[:200]
    text = clean_text(_first(item, _TEXT))[:MAX_PASSAGE] or title
    document = clean_text(_first(item, _DOCUMENT))[:1000] or title or f"result {number}"
    if not text.strip():
        return None
    first = _line(item, ("first", "line", "start_line"))
    return SourcePassage(
        DocumentPlace(document, first, max(_line(item, ("last", "end_line")), first)), text, title
    )


def _first(item: Mapping[str, Any], keys: Iterable[str]) -> str:
    """The first of these that is a text or a number."""
    for key in keys:
        held = item.get(key)
        if isinstance(held, str) and held.strip():
            return held
        if isinstance(held, int) and not isinstance(held, bool):
            return str(held)
    return ""


def _line(item: Mapping[str, Any], keys: Iterable[str]) -> int:
    return next((each for key in keys if type(each := item.get(key)) is int and 0 < each < 10**9), 0)


def _document(result: Any) -> str:
    """The text of a document: where it is JSON, the text in it."""
    held = result.structured_content
    texts = _texts(result)
    for each in [held] if held else [_read_json(text) for text in texts]:
        item = each.get("result", each) if isinstance(each, dict) else each
        if isinstance(item, dict) and (text := _first(item, _TEXT)):
            return clean_text(text)
        if isinstance(item, str):
            return clean_text(item)
    return clean_text("\n\n".join(texts))
