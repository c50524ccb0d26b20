"""inside: what a wish of an action begins with, and what the action's end brings with it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from antiphon.kernel.facts.activation import Activation
from antiphon.kernel.facts.agent_call import CallAgent
from antiphon.kernel.facts.events import EffectFinished, EffectStarted, Event, MessagePosted, StateChanged
from antiphon.kernel.facts.inbox import full
from antiphon.kernel.facts.ledger import no_more_calls
from antiphon.kernel.facts.state import State
from antiphon.kernel.rules.calls import cannot_call
from antiphon.kernel.rules.cancelling import cancel
from antiphon.kernel.rules.team import Team
from antiphon.values.actions import Ask, Call, Question, Step, Wish
from antiphon.values.message import USER, Message
from antiphon.values.result import Outcome

LEFT = "the action ended without it"
"""Why what an action began and did not wait for is cancelled."""


def begin(state: State, team: Team, activation: Activation, effect_id: str, wish: Wish) -> Event:
    """The start of what an action wishes for, or its refusal."""
    if isinstance(wish, Step):
        return EffectStarted(effect_id, "step", wish.name)
    if isinstance(wish, Question):
        if not state.options.attended:
            return EffectFinished(effect_id, "missing", why="nobody is there to answer")
        return EffectStarted(effect_id, "wait", USER, purpose="question", text=wish.text)
    if isinstance(wish, Call):
        if wish.agent == USER:
            return begin(state, team, activation, effect_id, Question(wish.text))
        refusal = cannot_call(state, team, team.members[activation.agent], activation, wish.agent)
        if refusal is not None:
            return EffectFinished(effect_id, refusal[0], why=refusal[1])
    used_up = no_more_calls(activation.scopes)
    if used_up:
        return EffectFinished(effect_id, "limit", why=used_up)
    if isinstance(wish, Ask):
        return _call(effect_id, team, activation.agent, wish.text, asks=True)
    return _call(effect_id, team, wish.agent, wish.text)


def _call(effect_id: str, team: Team, name: str, text: str, *, asks: bool = False) -> EffectStarted:
    callee = team.members[name]
    return EffectStarted(
        effect_id,
        "call",
        name,
        purpose="ask" if asks else "",
        arguments=msgspec.json.encode(CallAgent(name, text)).decode(),
        digest=callee.head.digest,
        limits=None if asks else callee.agent.limits,
    )


def end(
    state: State, activation: Activation, effect_id: str, outcome: Outcome, content: str, why: str,
    changed: StateChanged | None = None, published: Sequence[Message] = (),
) -> Iterator[Event]:  # fmt: skip
    """The end of an action, with what it changed and published.

    What it began and did not wait for is cancelled first. Messages that the caller's inbox has no
    room for are dead letters.
    """
    caller = state.activations[activation.caller]
    for opened in reversed(list(activation.open.values())):
        if opened.effect.id != effect_id:
            yield from cancel(state, opened, LEFT)
    if changed is not None:
        yield changed
    for message in published:
        yield MessagePosted(message, caller.id, dead=full(caller, state.options.limits), by=activation.id)
    yield EffectFinished(effect_id, outcome, content, why=why)
