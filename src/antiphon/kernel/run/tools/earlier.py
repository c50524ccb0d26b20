"""What an agent's calls of tools gave, for a tool that must know. Read from the fold, so that it is the same
after a restart."""

from __future__ import annotations

from antiphon.kernel.facts import ids
from antiphon.kernel.facts.activation import Activation
from antiphon.kernel.facts.events import EffectFinished, ToolEffect
from antiphon.kernel.facts.state import RunState
from antiphon.values.tool import EarlierCall


def earlier_calls(run: RunState, activation: Activation, effect_id: str) -> list[EarlierCall]:
    """See `ToolContext.earlier_calls`; without the call `effect_id` itself.

    Safe in a tool's own thread: what the event loop changes meanwhile is copied at once, and what runs is
    looked at before what has ended, so that no call is missed.
    """
    running = [
        EarlierCall(
            each.id, each.detail.name, running=True, steps=_steps(list((each.operations or {}).values()))
        )
        for each in list(activation.open.values())
        if type(each.detail) is ToolEffect and each.id != effect_id
    ]
    transcript, turn = activation.conversation.transcript, activation.turn
    shown = zip(list(transcript.messages), list(transcript.origins), strict=False)
    found = [
        EarlierCall(origin, each.name, _whole(run, activation, origin, each.content), each.is_error)
        for each, origin in shown
        if each.role == "tool"
    ]
    known = {each.effect_id for each in found}
    for index, (call, result) in enumerate(zip(turn.calls, list(turn.results), strict=False)):
        ended = ids.call_id(activation.id, turn.number, index)
        if result is not None and ended not in known:
            found.append(EarlierCall(ended, call.name, result.content, result.is_error))
            known.add(ended)
    return [*found, *(each for each in running if each.effect_id not in known)]


def _whole(run: RunState, activation: Activation, origin: str, shown: str) -> str:
    """A result that was cut or removed, as it was; only what the agent itself was shown."""
    return run.outputs.texts.get(origin, shown) if origin.startswith(f"{activation.id}/") else shown


def _steps(ends: list[EffectFinished]) -> tuple[str, ...]:
    return tuple(each.content for each in ends if each.outcome == "completed")
