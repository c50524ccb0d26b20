"""What a server asks in the middle of a call: a person, a model, its roots.

It goes through the door of the call, so that it is on record, counts for the caller's limits, and is found
again after a crash.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mcp_types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    CreateMessageRequest,
    CreateMessageRequestParams,
    CreateMessageResult,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitRequestURLParams,
    ElicitResult,
    ErrorData,
    InputRequest,
    ListRootsResult,
    Root,
    TextContent,
)

from antiphon.errors import EffectFailed
from antiphon.tools.mcp.servers import McpServer
from antiphon.values.codec import clean_text
from antiphon.values.form import wrong_form
from antiphon.values.tool import ToolContext

MAX_QUESTION = 4_000
"""Characters of a question that a person is shown."""
MAX_PROMPT = 100_000
"""Characters of what a model is asked."""
YES, NO = "yes", "no"
DONE = "done"


async def answer(
    ctx: ToolContext, server: McpServer, request: InputRequest
) -> ElicitResult | CreateMessageResult | ListRootsResult | ErrorData:
    """The answer to what a server asks in a call; an error where nobody can give one."""
    try:
        if isinstance(request, ElicitRequest):
            return await _ask_person(ctx, server, request.params)
        if isinstance(request, CreateMessageRequest):
            return await _ask_model(ctx, server, request.params)
    except EffectFailed as error:
        if isinstance(request, ElicitRequest):
            # Nobody is there, nobody answered in time, or somebody called the question off.
            return ElicitResult(action="cancel")
        return ErrorData(code=INTERNAL_ERROR, message=f"it was not answered: {error}")
    return roots_of(server)


def roots_of(server: McpServer) -> ListRootsResult:
    """The folders that a server is told it works in: its own, where the user has said one."""
    folder = Path(server.cwd).absolute() if server.cwd else None
    return ListRootsResult(roots=[Root(uri=folder.as_uri(), name=folder.name)] if folder is not None else [])  # type: ignore[arg-type]


async def _ask_person(
    ctx: ToolContext, server: McpServer, params: ElicitRequestFormParams | ElicitRequestURLParams
) -> ElicitResult | ErrorData:
    text = f"The MCP server {server.name} asks: {clean_text(params.message)[:MAX_QUESTION]}"
    if isinstance(params, ElicitRequestURLParams):
        where = clean_text(str(params.url))[:MAX_QUESTION]
        said = await ctx.ask_user(f"{text}\nOpen this yourself: {where}", options=[DONE, NO])
        return ElicitResult(action="accept" if said == DONE else "decline")
    schema: dict[str, Any] = dict(params.requested_schema)
    if not schema.get("properties"):
        said = await ctx.ask_user(text, options=[YES, NO])
        return ElicitResult(action="accept", content={}) if said == YES else ElicitResult(action="decline")
    if wrong := wrong_form((), schema, patterns=False):
        return ErrorData(code=INVALID_PARAMS, message=wrong)
    content = await ctx.ask_user(text, schema=schema)
    return ElicitResult(action="accept", content={**_defaults(schema), **content})


def _defaults(schema: dict[str, Any]) -> dict[str, Any]:
    """What a form says of the fields that a person leaves out."""
    fields = schema["properties"]
    return {
        name: each["default"] for name, each in fields.items() if isinstance(each, dict) and "default" in each
    }


async def _ask_model(
    ctx: ToolContext, server: McpServer, params: CreateMessageRequestParams
) -> CreateMessageResult:
    lines = [f"The MCP server {server.name} asks you, in the middle of a call of its tool:"]
    lines += [params.system_prompt] if params.system_prompt else []
    for each in params.messages:
        blocks = [getattr(block, "text", f"[{block.type}]") for block in each.content_as_list]
        lines.append(f"{each.role}: {' '.join(blocks)}")
    said = await ctx.ask_model("\n\n".join(lines)[:MAX_PROMPT])
    return CreateMessageResult(
        role="assistant", content=TextContent(type="text", text=said), model="antiphon", stop_reason="endTurn"
    )
