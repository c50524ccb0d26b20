"""An agent's own hooks: what they are shown, how they are asked, what is recorded of their answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import msgspec
from msgspec import Struct

from antiphon.errors import UserError
from antiphon.kernel.facts.activation import Activation
from antiphon.kernel.facts.agent_call import CALL_AGENT, AgentCall, reason_shown
from antiphon.kernel.facts.events import CallEffect, EffectFinished, MessagePosted, StateChanged
from antiphon.kernel.facts.fold.hops import NONE
from antiphon.kernel.facts.fold.inbox import full
from antiphon.kernel.facts.state import RunState
from antiphon.kernel.rules.next import Emit
from antiphon.values.codec import clean_fields, encode_value, stored, type_and_text
from antiphon.values.fields import check_fields
from antiphon.values.hooks import (
    CallResult,
    Continue,
    DirectResult,
    ModelInput,
    PlannedCall,
    Return,
    TurnContext,
    TurnPlan,
)
from antiphon.values.message import Message, ToolCall

_GO_ON = Continue()
_Answer = TypeVar("_Answer", bound=Struct | None)


def checked(found: _Answer, *kinds: type) -> _Answer:
    """What a hook answered, as it will be read back. Raises UserError for any other kind."""
    if found is None:
        return found
    if not isinstance(found, kinds):
        names = " or ".join([*(kind.__name__ for kind in kinds), "None"])
        raise UserError(f"{names} is expected, not {type(found).__name__}")
    if type(found) is Continue and found == _GO_ON and type(found.reminder) is str:
        # It says nothing, and so holds nothing of the user's.
        return found
    try:
        return stored(found)
    except (TypeError, ValueError):
        # The slow way says which field it is, and makes right what means the same.
        check_fields(found)
        return stored(clean_fields(found))


def raised(hook: str, activation: Activation, error: Exception) -> Return:
    """A hook that raises fails its activation, never the run."""
    reason = f"the hook {hook} of {activation.agent} failed: {type_and_text(error)}"
    return Return("failed", activation.progress.best_text, reason)


def record_changes(
    emit: Emit,
    activation: Activation,
    found: TurnPlan | ModelInput | Continue | Return | DirectResult | PlannedCall,
    hook: str,
) -> None:
    """Record the data that a hook changes: of the activation, and of the whole run."""
    if found.activation_data:
        emit(StateChanged(activation.id, dict(found.activation_data), by=hook))
    if found.run_data:
        emit(StateChanged(0, dict(found.run_data), by=hook))


def post(emit: Emit, run: RunState, activation: Activation, messages: Sequence[Message], hook: str) -> None:
    """Put messages of a hook into the agent's own inbox, as far as there is room."""
    for message in messages:
        refused = full(activation, run.options.limits)
        emit(MessagePosted(message, activation.id, dead_letter=refused, hook=hook))


def planned_call(number: int, call: PlannedCall, taken: int) -> ToolCall:
    """A call of a plan as the call that the turn does. Raises UserError for a position out of range."""
    if call.forward and not 0 <= min(call.forward) <= max(call.forward) < taken:
        raise UserError(
            f"PlannedCall(forward={call.forward}): this turn took {taken} messages, numbered from 0"
        )
    asked = AgentCall(
        call.agent, call.message, intent=call.intent, task_id=call.task_id, data=call.data, calls=call.calls,
        forward=call.forward, deadline=call.deadline, deliver_only=call.deliver_only,
        options=call.options, schema=call.schema,
    )  # fmt: skip
    return ToolCall(f"call_{number}", CALL_AGENT, encode_value(asked).decode())


def context(
    run: RunState, activation: Activation, taken: Sequence[Message], turn: int, left: Sequence[Message]
) -> TurnContext:
    """An activation as its hooks see it."""
    current, mailbox = activation.turn, activation.mailbox
    known, toolsets = mailbox.hops, run.owner.toolsets
    chains = [dict(known.get(each.id, NONE)) for each in taken] if known else [{} for _ in taken]
    ended = mailbox.background_results
    return TurnContext(
        run.run_id,
        activation.agent,
        turn - activation.progress.earlier_turns,
        run.at,
        taken,
        chains,
        activation.data,
        _results(activation) if current.calls else [],
        left,
        mailbox.unread or {},
        [_call_result(call, event) for call, event in ended] if ended else [],
        current.reply,
        [call.name for call in current.calls] if current.calls else [],
        run.activations[0].data,
        activation.conversation.transcript.messages,
        activation.conversation.window_tokens,
        background_agents(activation) if activation.open else [],
        activation.progress.reminders,
        {name: each.tools for name, each in toolsets.items()} if toolsets else {},
    )


def background_agents(activation: Activation) -> list[str]:
    """The agents whose calls go on in the background."""
    details = [each.detail for each in activation.open.values()]
    return [each.agent for each in details if type(each) is CallEffect and each.background]


class _Whom(Struct):
    """Whom a planned call was for, and in which thread."""

    agent_name: str
    task_id: str = ""


_whom = msgspec.json.Decoder(_Whom).decode
_AWAY = EffectFinished("", "skipped", reason="somebody is asked; it goes on meanwhile")


def _results(activation: Activation) -> list[CallResult]:
    """How the calls of the turn ended, as far as they have."""
    turn = activation.turn
    if turn.ends is not None:
        return [_call_result(call, turn.ends.get(index, _AWAY)) for index, call in enumerate(turn.calls)]
    return [
        CallResult(call.name, "failed" if found.is_error else "completed", found.content, "")
        for call, found in zip(turn.calls, turn.results, strict=True)
        if found is not None
    ]


def _call_result(call: ToolCall, event: EffectFinished) -> CallResult:
    asked = _whom(call.arguments)
    reason, replaced = reason_shown(event), bool(event.replaced_by)
    return CallResult(asked.agent_name, event.outcome, event.content, reason, asked.task_id, replaced)
