"""The reply to a message that was worked on: an answer or an error, and how it went."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from antiphon.styles.tasks.messages.message import StructuredMessage


def reply_to(
    message: StructuredMessage,
    worker: str,
    outcome: str,
    output: str,
    why: str,
    results: Iterable[Mapping[str, Any]] = (),
) -> StructuredMessage:
    """What a worker answers, with the results of its tools, those of the message's own calls first.

    Its metadata say the `outcome`, `why` where there is a reason to give, and the `status`:
    `completed`, `partial` when some of the message's calls failed, `failed` when all did or there is
    no answer. Without one it is of type `error`, and has what there was of it as `output`.
    """
    found = list(results)
    if outcome == "completed":
        reply = StructuredMessage.create_response(output, message)
    else:
        reply = StructuredMessage.create_error(why or outcome, message)
        reply.metadata["output"] = output
    reply.source_agent = worker
    for each in found:
        reply.add_tool_result(**each)
    if why:
        reply.metadata["why"] = why
    reply.metadata["outcome"] = outcome
    reply.metadata["status"] = _status(outcome, found[: len(message.tool_calls)])
    return reply


def _status(outcome: str, results: Sequence[Mapping[str, Any]]) -> str:
    failed = [each for each in results if each["status"] != "success"]
    if outcome != "completed" or (failed and len(failed) == len(results)):
        return "failed"
    return "partial" if failed else "completed"
