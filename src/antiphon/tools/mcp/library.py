"""Resources and prompts of a server, as tools that read them: models take nothing but tools."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Protocol

from mcp import ClientSession
from mcp_types import PaginatedRequestParams, ServerCapabilities

from antiphon.tools.mcp.offers import shown_result, tool_name
from antiphon.tools.mcp.servers import McpServer
from antiphon.values.codec import clean_text
from antiphon.values.message import ToolResult
from antiphon.values.tool import Tool, tool_from
from antiphon.values.tool.offer import ToolKind

MAX_LISTED = 500
"""Resources, or prompts, that a list shows."""
MAX_LINE = 300
"""Characters of one."""
_NOTHING: Mapping[str, Any] = {"type": "object", "properties": {}}
_ADDRESS: Mapping[str, Any] = {
    "type": "object", "properties": {"uri": {"type": "string", "description": "Its address."}},
    "required": ["uri"],
}  # fmt: skip
_PROMPT: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "arguments": {"type": "object", "additionalProperties": {"type": "string"}},
    },
    "required": ["name"],
}  # fmt: skip


class Fetch(Protocol):
    """Asks a server something; what goes wrong is raised as a tool does."""

    async def __call__(self, ask: Callable[[ClientSession], Awaitable[Any]]) -> Any:
        """What it answers."""
        ...


def reading_tools(
    server: McpServer, able: ServerCapabilities, fetch: Fetch, taken: Iterable[str]
) -> list[Tool]:
    """The tools that read what a server has beside its tools; a name that one of these has is theirs."""
    found: list[Tool] = []

    def add(name: str, description: str, parameters: Mapping[str, Any], call: Callable[..., Any]) -> None:
        full = tool_name(server.name, name)
        # What a model gives one of them, an address say, is told the server; a list is given nothing.
        kind: ToolKind = "read" if parameters is _NOTHING else "fetch"
        if full not in taken:
            found.append(tool_from(
                full, description, parameters, call, effect="read", timeout=server.timeout,
                labels=("untrusted",), trusted=False, kind=kind,
            ))  # fmt: skip

    async def list_resources(arguments: dict[str, Any]) -> str:
        page = lambda asked, params: asked.list_resources(params=params)  # noqa: E731 - one of two alike
        return await _listed(fetch, page, "resources", ("uri", "name", "mimeType", "description"))

    async def read_resource(arguments: dict[str, Any]) -> ToolResult:
        answer = await fetch(lambda asked: asked.read_resource(arguments["uri"]))
        contents = [
            each.model_dump(by_alias=True, mode="json", exclude_none=True) for each in answer.contents
        ]
        return shown_result([{"type": "resource", "resource": each} for each in contents])

    async def list_prompts(arguments: dict[str, Any]) -> str:
        page = lambda asked, params: asked.list_prompts(params=params)  # noqa: E731 - as above
        return await _listed(fetch, page, "prompts", ("name", "title", "description", "arguments"))

    async def get_prompt(arguments: dict[str, Any]) -> ToolResult:
        given = arguments.get("arguments") or {}
        answer = await fetch(lambda asked: asked.get_prompt(arguments["name"], given))
        blocks = [
            each.content.model_dump(by_alias=True, mode="json", exclude_none=True) for each in answer.messages
        ]
        return shown_result(blocks)

    if able.resources is not None:
        add("list_resources", f"List the resources of {server.name}.", _NOTHING, list_resources)
        add("read_resource", f"Read a resource of {server.name}.", _ADDRESS, read_resource)
    if able.prompts is not None:
        add(
            "list_prompts",
            f"List the prompts of {server.name}, with their arguments.",
            _NOTHING,
            list_prompts,
        )
        add("get_prompt", f"Show a prompt of {server.name}, filled in.", _PROMPT, get_prompt)
    return found


async def _listed(
    fetch: Fetch, page: Callable[..., Awaitable[Any]], what: str, fields: tuple[str, ...]
) -> str:
    """A line for each; of more than MAX_LISTED it is said that there are."""
    lines: list[str] = []
    cursor: str | None = None
    while True:
        params = PaginatedRequestParams(cursor=cursor) if cursor is not None else None
        answer = await fetch(lambda asked, params=params: page(asked, params))  # type: ignore[misc]
        for each in getattr(answer, what):
            said = each.model_dump(by_alias=True, mode="json", exclude_none=True)
            told = [str(said[field]) for field in fields if said.get(field)]
            lines.append(" ".join(clean_text(", ".join(told)).split())[:MAX_LINE])
        if cursor == answer.next_cursor or answer.next_cursor is None or len(lines) >= MAX_LISTED:
            break
        cursor = answer.next_cursor
    more = [f"[more {what} are not shown]"] if len(lines) > MAX_LISTED else []
    return "\n".join([*lines[:MAX_LISTED], *more]) or f"(no {what})"
