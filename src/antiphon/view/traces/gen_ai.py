"""What OpenTelemetry calls things: its semantic conventions for generative AI, in this one place.

As of the conventions of 2026 (`invoke_workflow`, `invoke_agent`, `chat`, `execute_tool`), which are in
development: a name that changes there changes here. What they have no name for begins with `antiphon.`. What
was said in a run is in none of these unless `content` asks for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from antiphon.values.model import Reply
from antiphon.view.nodes import ActivationNode, Cost, EffectNode
from antiphon.view.traces.span import MAX_TEXT, Attribute

Found = dict[str, Attribute]

_PROVIDERS: Mapping[str, str] = {
    "google": "gcp.gemini",
    "google-vertex": "gcp.vertex_ai",
    "bedrock": "aws.bedrock",
    "azure": "azure.ai.openai",
    "mistral": "mistral_ai",
    "grok": "x_ai",
    "xai": "x_ai",
    "moonshotai": "moonshot_ai",
}
"""Providers by the prefix of a model's name, where the conventions call them otherwise."""
_FINISHED: Mapping[str, str] = {"calls": "tool_call", "refusal": "content_filter"}
"""Why a model stopped, where the conventions call it otherwise."""
_NO_ERROR = frozenset({"completed", "cancelled", "limit", "denied", "skipped"})
"""Ends that somebody chose; any other is an error."""
RETRY_EVENT = "antiphon.retry"
REFUSED_EVENT = "antiphon.call_refused"


def workflow(run_id: str, effect: EffectNode, *, content: bool) -> tuple[str, Found]:
    """Name and attributes of a user's request and all that comes of it."""
    # What came to no call has the name of the call that was meant, and no agent's.
    agent = effect.name if effect.kind == "call" else ""
    found = _common(run_id, "invoke_workflow", effect) | {"gen_ai.conversation.id": run_id}
    if agent:
        found["gen_ai.workflow.name"] = agent
    if content and effect.callee is not None:
        found |= _said(effect.callee, effect)
    return f"invoke_workflow {agent}".strip(), found


def agent(run_id: str, effect: EffectNode, node: ActivationNode, *, content: bool) -> tuple[str, Found]:
    """Name and attributes of an agent's work on one call."""
    found = _common(run_id, "invoke_agent", effect) | {
        "gen_ai.conversation.id": run_id,
        "gen_ai.agent.name": node.agent,
        "gen_ai.agent.id": f"{run_id}/{node.id}",
        "antiphon.activation.path": node.path,
        "antiphon.activation.reactivated": node.reactivated,
    }
    totals = node.own
    if totals.reported:
        found |= _tokens(totals.usage)
    found |= _cost(totals.cost)
    if content:
        found |= _said(node, effect)
    return f"invoke_agent {node.agent}", found


def chat(run_id: str, node: ActivationNode, effect: EffectNode, *, content: bool) -> tuple[str, Found]:
    """Name and attributes of one attempt of a model call. It is asked by `gen_ai.agent.name`."""
    model = effect.name.partition(":")[2] or effect.name
    found = _common(run_id, "chat", effect) | {
        "gen_ai.conversation.id": run_id,
        "gen_ai.provider.name": provider_of(effect.name),
        "gen_ai.request.model": model,
        "gen_ai.agent.name": node.agent,
        "antiphon.model.attempt": effect.attempt,
    }
    use = effect.model
    if use is None:
        return f"chat {model}", found
    if use.usage is not None:
        found |= _tokens(use.usage)
    found |= _cost(use.cost)
    if use.reply is not None:
        found["gen_ai.response.finish_reasons"] = (_FINISHED.get(use.reply.stop, use.reply.stop),)
        if use.reply.model:
            found["gen_ai.response.model"] = use.reply.model
        if content:
            found["gen_ai.output.messages"] = _json([_answer(use.reply)])
    return f"chat {model}", found


def tool(run_id: str, node: ActivationNode, effect: EffectNode, *, content: bool) -> tuple[str, Found]:
    """Name and attributes of a tool call, or of a durable step of an action."""
    found = _common(run_id, "execute_tool", effect) | {
        "gen_ai.tool.name": effect.name,
        "gen_ai.tool.type": "function",
        "gen_ai.agent.name": node.agent,
    }
    if effect.call is not None and effect.call.id:
        found["gen_ai.tool.call.id"] = effect.call.id
    if content:
        found["gen_ai.tool.call.arguments"] = _cut(effect.arguments)
        found["gen_ai.tool.call.result"] = _cut(effect.content)
    return f"execute_tool {effect.name}", found


def turn(run_id: str, node: ActivationNode, number: int) -> tuple[str, Found]:
    """Name and attributes of a turn, for which the conventions have no name."""
    return "turn", {"antiphon.run.id": run_id, "antiphon.turn": number, "gen_ai.agent.name": node.agent}


def wait(run_id: str, node: ActivationNode, effect: EffectNode, *, content: bool) -> tuple[str, Found]:
    """Name and attributes of a wait: for a person, for the end of a call, for room in a budget."""
    found = _common(run_id, "", effect) | {"gen_ai.agent.name": node.agent}
    if effect.is_approval:
        found["gen_ai.tool.name"] = effect.name
    if content and effect.asks_person:
        found["antiphon.question"], found["antiphon.answer"] = _cut(effect.text), _cut(effect.content)
    return f"wait {effect.what}", found


def failure_of(effect: EffectNode) -> str:
    """What went wrong, in one word of few (`error.type`); empty where nothing did."""
    if not effect.outcome or effect.outcome in _NO_ERROR:
        return ""
    return effect.failure.kind if effect.failure is not None else effect.outcome


def provider_of(model: str) -> str:
    """Whose model it is, by its name in the journal: `openai:gpt-x`, `script`."""
    prefix = model.partition(":")[0]
    return _PROVIDERS.get(prefix, prefix)


def _common(run_id: str, operation: str, effect: EffectNode) -> Found:
    found: Found = {"antiphon.run.id": run_id, "antiphon.effect.id": effect.id}
    if operation:
        found["gen_ai.operation.name"] = operation
    if effect.purpose:
        found["antiphon.purpose"] = effect.purpose
    if effect.outcome:
        found["antiphon.outcome"] = effect.outcome
    failure = failure_of(effect)
    if failure:
        found["error.type"] = failure
    return found


def _tokens(usage: Any) -> Found:
    """Tokens; those of caches and of reasoning where there are any."""
    found: Found = {
        "gen_ai.usage.input_tokens": usage.input_tokens,
        "gen_ai.usage.output_tokens": usage.output_tokens,
    }
    beside = {
        "gen_ai.usage.cache_read.input_tokens": usage.cache_read_tokens,
        "gen_ai.usage.cache_creation.input_tokens": usage.cache_write_tokens,
        "gen_ai.usage.reasoning.output_tokens": usage.reasoning_tokens,
    }
    return found | {name: count for name, count in beside.items() if count}


def _cost(cost: Cost) -> Found:
    return {"antiphon.cost.usd": cost.usd} if cost.nano_usd else {}


def _said(node: ActivationNode, effect: EffectNode) -> Found:
    """What an agent was asked and what it answered."""
    found: Found = {}
    if node.asked:
        found["gen_ai.input.messages"] = _json([{"role": "user", "parts": [_text(node.asked)]}])
    if effect.content:
        answer = {"role": "assistant", "parts": [_text(effect.content)], "finish_reason": "stop"}
        found["gen_ai.output.messages"] = _json([answer])
    return found


def _answer(reply: Reply) -> dict[str, Any]:
    parts = [_text(reply.content)] if reply.content else []
    parts += [
        {"type": "tool_call", "id": each.id, "name": each.name, "arguments": _cut(each.arguments)}
        for each in reply.calls
    ]
    if reply.reasoning:
        parts.insert(0, {"type": "reasoning", "content": _cut(reply.reasoning)})
    return {"role": "assistant", "parts": parts, "finish_reason": _FINISHED.get(reply.stop, reply.stop)}


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "content": _cut(text)}


def _cut(text: str) -> str:
    return text if len(text) <= MAX_TEXT else text[:MAX_TEXT] + "…"


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
