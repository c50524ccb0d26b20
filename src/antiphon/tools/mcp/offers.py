"""From what a server says of its tools to tools; from what they return to what a model is shown."""

from __future__ import annotations

import logging
import re
from base64 import b64decode
from collections.abc import Awaitable, Callable, Iterable, Mapping
from hashlib import blake2b
from typing import Any

import msgspec
from msgspec import Struct

from antiphon.errors import ToolDefinitionError, ToolError
from antiphon.tools.mcp.servers import McpServer
from antiphon.values.codec import clean_text
from antiphon.values.message import Attachment, ToolResult
from antiphon.values.secret import shown
from antiphon.values.tool import MAX_TITLE, Effect, Tool, ToolContext, tool_from
from antiphon.values.tool.offer import ToolKind

MAX_DESCRIPTION = 8_192
"""Characters of a description that a model is shown; a server that says more is cut."""
MAX_TEXT = 1_048_576
"""Characters of a result's texts together."""
MAX_BINARY = 8 * 1_048_576
"""Characters of base64 of a result's files together."""
MAX_NAME = 64
_ORDER: tuple[Effect, ...] = ("once", "idempotent", "read")
"""Effects, from what says least of a tool to what says most."""
_OTHER = re.compile(r"[^A-Za-z0-9_-]")
_LOG = logging.getLogger("antiphon.mcp")
Call = Callable[[ToolContext, str, dict[str, Any], bool], Awaitable[Any]]
"""Calls a tool of a server by the name that it has there; the flag: never twice."""


class Definition(Struct, frozen=True):
    """A tool as its server defines it: `whole` is all that it says, JSON."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    whole: Mapping[str, Any] = {}
    changes: tuple[str, ...] = ()
    """What the server says otherwise now than when it was approved: so long it is suspended."""

    @classmethod
    def of(cls, whole: Mapping[str, Any], changes: Iterable[str] = ()) -> Definition:
        """From all that a server says of a tool."""
        return cls(whole["name"], whole.get("description", ""), whole["inputSchema"], whole, tuple(changes))

    @property
    def hints(self) -> Mapping[str, Any]:
        """The server's own word on what it does."""
        found = self.whole.get("annotations")
        return found if isinstance(found, Mapping) else {}

    @property
    def digest(self) -> str:
        """Of all that the server says of it."""
        return blake2b(msgspec.json.encode(self.whole, order="deterministic"), digest_size=16).hexdigest()


def tool_name(server: str, name: str) -> str:
    """What models call a tool of a server: `server_tool`, of letters, digits, `_` and `-`."""
    found = f"{server}_{_OTHER.sub('_', name)}"
    if len(found) <= MAX_NAME:
        return found
    return f"{found[: MAX_NAME - 9]}_{blake2b(name.encode(errors='replace'), digest_size=4).hexdigest()}"


def effect_of(server: McpServer, definition: Definition) -> Effect:
    """The contract of a tool: as the user says it, or the server, as far as it is believed."""
    if definition.name in server.effects:
        return server.effects[definition.name]
    said: Effect = "once"
    if definition.hints.get("idempotentHint") is True:
        said = "idempotent"
    if definition.hints.get("readOnlyHint") is True:
        said = "read"
    return min(said, server.effect, key=_ORDER.index)


def kind_of(effect: Effect, definition: Definition) -> ToolKind:
    """What a tool is for. One that only reads reaches out (`fetch`) unless its server says
    `openWorldHint: false`: MCP takes a tool that says nothing to meet strangers, and so do we."""
    if effect != "read":
        return "other"
    return "read" if definition.hints.get("openWorldHint") is False else "fetch"


def tools_of(server: McpServer, definitions: Iterable[Definition], call: Call) -> list[Tool]:
    """The tools that can be used. Those that cannot are left out: two that would have one name, and schemas
    that no arguments can be checked by; the log names them."""
    named: dict[str, list[Definition]] = {}
    for each in definitions:
        if not each.name:
            _LOG.warning("MCP server %s: a tool of it has no name, and is not used", server.name)
            continue
        named.setdefault(tool_name(server.name, each.name), []).append(each)
    found = []
    for name, twins in named.items():
        if len(twins) > 1:
            both = " and ".join(repr(clean_text(each.name)[:80]) for each in twins[:2])
            _LOG.warning(
                "MCP server %s: its tools %s would both be %s; neither is used", server.name, both, name
            )
            continue
        if twins[0].changes:
            told = "; ".join(twins[0].changes)
            _LOG.warning(
                "MCP server %s: its tool %s has changed, and is suspended: %s", server.name, name, told
            )
        try:
            found.append(_tool(server, name, twins[0], call))
        except ToolDefinitionError as error:
            _LOG.warning("MCP server %s: its tool %s cannot be used: %s", server.name, name, error)
    return found


def _tool(server: McpServer, name: str, definition: Definition, call: Call) -> Tool:
    async def ask(ctx: ToolContext, arguments: dict[str, Any]) -> Any:
        if definition.changes:
            how = f"A person may approve that: antiphon mcp approve {server.name}"
            raise ToolError(
                "it is suspended, since its server defines it otherwise now than when it was approved: "
                f"{'; '.join(definition.changes)}. {how}"
            )
        return await call(ctx, definition.name, arguments, effect == "once")

    description = clean_text(definition.description)
    if len(description) > MAX_DESCRIPTION:
        description = f"{description[:MAX_DESCRIPTION]} […]"
    title = definition.whole.get("title") or definition.hints.get("title")
    title = shown(title, limit=MAX_TITLE) if isinstance(title, str) else ""
    effect = effect_of(server, definition)
    return tool_from(
        name, description, definition.parameters, ask, effect=effect, timeout=server.timeout,
        labels=("untrusted",), trusted=False, version=definition.digest, title=title,
        kind=kind_of(effect, definition), reconcile="resume",
    )  # fmt: skip


class _ResultRoom:
    """What a model is shown of a result, as far as there is room."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.files: list[Attachment] = []
        self._text, self._binary = MAX_TEXT, MAX_BINARY

    def text(self, given: object) -> None:
        """One more text, cut where there is no room."""
        text = clean_text(given if isinstance(given, str) else msgspec.json.encode(given).decode())
        if len(text) > self._text:
            left_out = len(text) - self._text
            text = f"{text[: self._text]}\n[{left_out:,} more characters were left out]"
        self._text = max(self._text - len(text), 0)
        if text:
            self.texts.append(text)

    def file(self, kind: object, data: object, name: str) -> None:
        """One more file; what is too large is named."""
        kind = kind if isinstance(kind, str) and kind else "application/octet-stream"
        if not isinstance(data, str) or len(data) > self._binary:
            self.text(
                f"[{name}: {kind}, left out: more than {MAX_BINARY:,} characters of base64 in a result]"
            )
            return
        try:
            b64decode(data, validate=True)
        except ValueError:
            # No model could be asked any more with such a file in its conversation.
            self.text(f"[{name}: {kind}, left out: it is not base64]")
            return
        self._binary -= len(data)
        self.files.append(Attachment(clean_text(kind)[:200], data, name=clean_text(name)[:200]))


def shown_result(
    blocks: Iterable[Mapping[str, Any]], structured: Any = None, *, failed: bool = False
) -> ToolResult:
    """What a model is shown of a result: its texts, what is structured where it has none, its files.

    blocks: as JSON has them. Raises ToolError with the texts when the tool says that it failed.
    """
    found = _ResultRoom()
    for each in blocks:
        _show(found, each)
    if structured is not None and not found.texts:
        found.text(structured)
    text = "\n\n".join(found.texts)
    if failed:
        raise ToolError(text or "it failed and did not say why")
    return ToolResult(text or ("" if found.files else "(nothing)"), tuple(found.files))


def _show(found: _ResultRoom, block: Mapping[str, Any]) -> None:
    kind = block.get("type")
    if kind == "text":
        found.text(str(block.get("text", "")))
    elif kind in ("image", "audio"):
        found.file(block.get("mimeType"), block.get("data"), str(kind))
    elif kind == "resource_link":
        told = [str(block[key]) for key in ("name", "uri", "mimeType", "description") if block.get(key)]
        found.text(f"[resource: {', '.join(told)}]")
    elif kind == "resource" and isinstance(block.get("resource"), Mapping):
        _show_resource(found, block["resource"])
    else:
        found.text(block)


def _show_resource(found: _ResultRoom, resource: Mapping[str, Any]) -> None:
    """A resource that is there: its text under its address, or a file."""
    uri = str(resource.get("uri", ""))
    if "blob" in resource:
        found.file(resource.get("mimeType"), resource["blob"], uri or "resource")
    else:
        found.text(f"[resource: {uri}]\n{resource.get('text', '')}")
