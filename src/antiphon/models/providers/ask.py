"""Requests as `pydantic_ai` takes them."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from pydantic_ai.messages import (
    AudioUrl,
    BinaryContent,
    DocumentUrl,
    ImageUrl,
    InstructionPart,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
    VideoUrl,
)
from pydantic_ai.messages import ModelRequest as ProviderRequest
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition

from antiphon.errors import ModelError
from antiphon.models.providers.kept import unpack
from antiphon.values.message import Attachment, ToolCall
from antiphon.values.model import ChatMessage, ModelRequest

_OWN = frozenset(
    {"max_tokens", "max_output", "max_retries", "tool_choice", "model", "messages", "tools", "stream"}
)
_RENAMED = {"reasoning_effort": "thinking", "stop": "stop_sequences"}
_FAMILY = {"azure": "openai"}
_GENERAL = frozenset(ModelSettings.__annotations__)
_URLS = {"image": ImageUrl, "audio": AudioUrl, "video": VideoUrl}


def run(request: ModelRequest, model: Model) -> list[ProviderRequest | ModelResponse]:
    """The messages, tail last. Neighbours that a provider wants in one message are one request."""
    out: list[ProviderRequest | ModelResponse] = []
    parts: list[Any] = []
    for message in request.messages:
        if message.role == "assistant":
            if parts:
                out.append(ProviderRequest(parts))
                parts = []
            out.append(_reply(message, model.system))
        else:
            parts.append(_part(message, bool(out)))
    if request.tail:
        parts.append(UserPromptPart(request.tail))
    if parts:
        out.append(ProviderRequest(parts))
    return out


def _part(message: ChatMessage, begun: bool) -> Any:
    if message.role == "tool":
        content = _content(message.content, message.attachments)
        return ToolReturnPart(
            message.name, content, message.call_id, outcome="failed" if message.is_error else "success"
        )
    if message.role == "system" and not begun:
        return SystemPromptPart(message.content)
    # Later on most providers have no place for it, and in the system text it would break the prefix.
    text = f"<system>\n{message.content}\n</system>" if message.role == "system" else message.content
    return UserPromptPart(_content(text, message.attachments))


def _reply(message: ChatMessage, system: str) -> ModelResponse:
    calls = [ToolCallPart(one.name, _arguments(one), one.id) for one in message.calls]
    kept = unpack(message, system, calls)
    if kept is not None:
        return kept
    return ModelResponse([*([TextPart(message.content)] if message.content else ()), *calls])


def _arguments(one: ToolCall) -> dict[str, Any]:
    """The arguments as an object: every provider refuses a history with anything else."""
    text = one.arguments.strip()
    if text in ("", "null"):
        return {}
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {"invalid_arguments": text}
    return value if isinstance(value, dict) else {"invalid_arguments": text}


def _content(text: str, attachments: Sequence[Attachment]) -> Any:
    if not attachments:
        return text
    return [*([text] if text else ()), *(_file(one) for one in attachments)]


def _file(one: Attachment) -> Any:
    kind = one.media_type.lower().partition(";")[0].strip()
    if one.url and not one.data:
        return _URLS.get(kind.partition("/")[0], DocumentUrl)(one.url, media_type=kind or None)
    try:
        data = base64.b64decode(one.data, validate=True)
    except (binascii.Error, ValueError) as error:
        raise ModelError("validation", f"The attachment {one.name!r} is not base64") from error
    if kind.startswith("text/") or kind == "application/json":
        return f"{one.name or kind}:\n{data.decode('utf-8', 'replace')}"
    return BinaryContent(data, media_type=kind)


def parameters(request: ModelRequest, model: Model) -> ModelRequestParameters:
    """Tools and output schema; schemas go out as they are, `strict` is never claimed for them."""
    tools = [
        ToolDefinition(
            name=one.name, description=one.description, parameters_json_schema=one.parameters, strict=False
        )
        for one in request.tools
    ]
    system = [InstructionPart(content=request.system)] if request.system else []
    if request.output_schema is None:
        return ModelRequestParameters(function_tools=tools, instruction_parts=system)
    schema = request.output_schema
    profile: Mapping[str, Any] = {**model.profile}
    native = profile.get("supports_json_schema_output", False)
    if "google_supports_tool_combination" in profile and tools:
        native = native and profile["google_supports_tool_combination"]
    name = "".join(c if c.isascii() and c.isalnum() else "_" for c in str(schema.get("title", "")))[:64]
    return ModelRequestParameters(
        function_tools=tools,
        instruction_parts=system,
        output_mode="native" if native else "prompted",
        output_object=OutputObjectDefinition(json_schema=schema, name=name or "output"),
    )


def settings(request: ModelRequest, model: Model, provider: str) -> ModelSettings:
    """Settings under pydantic_ai's names. Retries are ours: each attempt is an effect of the run."""
    if clash := _OWN.intersection(request.settings):
        raise ModelError(
            "validation", f"settings may not hold {', '.join(sorted(clash))}: the request says it"
        )
    found: Any = {"max_tokens": request.max_output}
    if "max_retries" not in model.unsupported_settings:
        found["max_retries"] = 0
    if request.tools and request.tool_choice != "auto":
        choice = request.tool_choice
        found["tool_choice"] = choice if choice in ("none", "required") else [choice]
    found.update(_given(request.settings, model, provider))
    given: ModelSettings = found
    return given


def _given(settings: Mapping[str, Any], model: Model, provider: str) -> dict[str, Any]:
    """A setting that nobody would read is refused, not dropped."""
    family = _FAMILY.get(provider, provider.partition("-")[0])
    unread = model.unsupported_settings
    given: dict[str, Any] = {}
    for name, value in settings.items():
        known = _RENAMED.get(name, name)
        if known in unread or (known not in _GENERAL and not known.startswith(f"{family}_")):
            listed = ", ".join(sorted(_GENERAL - _OWN - unread))
            raise ModelError(
                "validation",
                f"settings: {name!r} is not known for {provider}; known are {listed} "
                f"and names that begin with {family}_",
            )
        if known == "thinking" and value == "none":
            value = False
        given[known] = [value] if known == "stop_sequences" and isinstance(value, str) else value
    return given
