"""What an MCP client is told: the tools of a team, and what came of their calls."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from mcp_types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    Tool,
    ToolAnnotations,
)

from antiphon.host import HostedTeam
from antiphon.server.mcp.following import Standing
from antiphon.values.message import Attachment
from antiphon.view import OpenQuestion

ASK, GET_RUN, LIST_RUNS, CANCEL_RUN = "ask", "get_run", "list_runs", "cancel_run"
MAX_MESSAGE = 1_000_000
"""Characters of a request."""
MAX_WAIT = 86_400
"""Seconds that a call waits, at most."""
MAX_FILES = 8 * 1_048_576
"""Bytes of files that come with an answer, as base64."""
MAX_LISTED = 100
_RUN_ID = {"type": "string", "minLength": 1, "maxLength": 200}
_WAIT = {"type": "number", "minimum": 0, "maximum": MAX_WAIT}
_RESULT = {
    "type": "object",
    "properties": {
        "run_id": {"type": "string", "description": "The run, which outlives this call."},
        "state": {
            "type": "string",
            "description": "completed, failed, cancelled, limit, budget, no_progress or interrupted once it"
            " has ended; running, or waiting for a person, before.",
        },
        "output": {"type": "string", "description": "The answer, or the best partial one."},
        "reason": {"type": "string", "description": "Why it ended so, where that needs saying."},
        "questions": {
            "type": "array",
            "items": {"type": "object"},
            "description": "What people are asked before it goes on.",
        },
        "tokens": {"type": "integer", "description": "Tokens of the request, as billed."},
        "usd": {"type": "number", "description": "What is known of their price."},
    },
    "required": ["run_id", "state", "output", "reason", "questions", "tokens", "usd"],
}


def tools_of(name: str, team: HostedTeam) -> list[Tool]:
    """What a client may call."""
    entry = next(each for each in team.agents if each.name == team.entry)
    about = f": {entry.description}" if entry.description else ""
    acting = ToolAnnotations(read_only_hint=False, destructive_hint=True, open_world_hint=True)
    reading = ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)
    stopping = ToolAnnotations(
        read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=False
    )
    return [
        Tool(
            name=ASK, title=f"Ask {name}", annotations=acting, output_schema=_RESULT,
            description=f"Ask the agent {team.entry} of the team {name}{about}. It may take long: the run"
            f" goes on if you stop waiting, and {GET_RUN} tells its answer.",
            input_schema=_schema({
                "message": {
                    "type": "string", "minLength": 1, "maxLength": MAX_MESSAGE,
                    "description": "What you want. It knows nothing of your conversation but this.",
                },
                "run_id": _RUN_ID | {"description": "A run before, which the agent remembers."},
                "wait_seconds": _WAIT | {"description": "How long to wait for it. Default: until it ends."},
                "max_tokens": {"type": "integer", "minimum": 0, "description": "What it may use, at most."},
                "max_usd": {"type": "number", "minimum": 0, "description": "What it may cost, at most."},
            }, "message"),
        ),
        Tool(
            name=GET_RUN, title="Look at a run", annotations=reading, output_schema=_RESULT,
            description="How the last request of a run stands: its answer, or what it waits for.",
            input_schema=_schema({
                "run_id": _RUN_ID,
                "wait_seconds": _WAIT | {"description": "How long to wait for its end. Default: not at all."},
            }, "run_id"),
        ),
        Tool(
            name=LIST_RUNS, title="List runs", annotations=reading,
            description=f"The runs of {name}, newest first.",
            input_schema=_schema({"limit": {"type": "integer", "minimum": 1, "maximum": MAX_LISTED}}),
        ),
        Tool(
            name=CANCEL_RUN, title="Stop a run", annotations=stopping,
            description="Stop what goes on in a run. It can be asked again.",
            input_schema=_schema({
                "run_id": _RUN_ID, "reason": {"type": "string", "maxLength": 1_000},
            }, "run_id"),
        ),
    ]  # fmt: skip


def _schema(fields: Mapping[str, Any], *required: str) -> dict[str, Any]:
    return {
        "type": "object", "properties": dict(fields), "required": list(required),
        "additionalProperties": False,
    }  # fmt: skip


def refused(text: str) -> CallToolResult:
    """A call that was not done, as whoever made it is told."""
    return CallToolResult(content=[TextContent(text=text)], is_error=True)


def plain(value: Mapping[str, Any], *, failed: bool = False) -> CallToolResult:
    """Something to be read by programs and models alike."""
    text = json.dumps(value, ensure_ascii=False)
    return CallToolResult(content=[TextContent(text=text)], structured_content=dict(value), is_error=failed)


def result_of(stand: Standing, journal: str) -> CallToolResult:
    """How a request stands. journal: how the command line is told of it, for whoever has to answer there."""
    run_id, end = stand.run_id, stand.end
    told: dict[str, Any] = {
        "run_id": run_id, "state": "waiting" if stand.questions else "running", "output": "", "reason": "",
        "questions": [_asked(each) for each in stand.questions], "tokens": 0, "usd": 0.0,
    }  # fmt: skip
    if end is None:
        lines = _unfinished(stand, journal)
        told["reason"] = lines
        return CallToolResult(content=[TextContent(text=lines)], structured_content=told)
    total = end.callee.total if end.callee is not None else None
    told |= {"state": end.outcome, "output": end.content, "reason": end.reason}
    if total is not None:
        told |= {"tokens": total.usage.total, "usd": total.cost.usd}
    failed = end.outcome != "completed"
    content: list[ContentBlock] = [TextContent(text=end.content)] if end.content else []
    if end.reason or failed:
        content.append(TextContent(text=f"[It ended {end.outcome}: {end.reason}]"))
    content += _files(run_id, end.attachments)
    content.append(TextContent(text=f"[run {run_id}]"))
    return CallToolResult(content=content, structured_content=told, is_error=failed)


def _unfinished(stand: Standing, journal: str) -> str:
    run_id = stand.run_id
    if stand.closed:
        return f"Run {run_id} is closed, and the request in it has not ended."
    if not stand.questions:
        return f"Run {run_id} goes on; {GET_RUN} with its run_id tells how it ends."
    lines = [f"Run {run_id} waits for a person, whom you cannot answer for:"]
    for each in stand.questions:
        what = f"may {each.agent} call {each.tool}?" if each.is_approval else each.text
        lines.append(
            f"- {what[:500]} (a person answers it with: antiphon answer {run_id} {each.id}{journal})"
        )
    return "\n".join([*lines, f"Then {GET_RUN} with its run_id tells how it ends."])


def _asked(question: OpenQuestion) -> dict[str, Any]:
    return {
        "id": question.id, "kind": question.kind, "agent": question.agent, "text": question.text,
        "tool": question.tool, "arguments": question.arguments, "options": list(question.options),
    }  # fmt: skip


def _files(run_id: str, files: Iterable[Attachment]) -> list[ContentBlock]:
    """Files of an answer, as far as there is room; what is left out is named."""
    found: list[ContentBlock] = []
    left = MAX_FILES
    for number, each in enumerate(files, 1):
        name = each.name or f"file {number}"
        left -= len(each.data)
        if each.url:
            found.append(ResourceLink(name=name, uri=each.url, mime_type=each.media_type))
        elif left < 0:
            found.append(TextContent(text=f"[{name} is too large to be sent; it is in run {run_id}]"))
        elif each.media_type.startswith("image/"):
            found.append(ImageContent(data=each.data, mime_type=each.media_type))
        elif each.media_type.startswith("audio/"):
            found.append(AudioContent(data=each.data, mime_type=each.media_type))
        else:
            uri = f"antiphon://runs/{run_id}/files/{number}"
            body = BlobResourceContents(uri=uri, mime_type=each.media_type, blob=each.data)
            found.append(EmbeddedResource(resource=body))
    return found
