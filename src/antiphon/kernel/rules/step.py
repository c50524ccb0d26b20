"""step: what happens next. The heart of Antiphon, and pure.

`step(emit, run, team)` emits events, and `emit` applies each one at once. It takes the activations that the
last events touched, one by one, and leads each through its turn by the rule of its phase:

    idle ── messages ──> TurnStarted ──> asking ── EffectStarted model ──> waiting
    waiting ── reply with calls ──> calling ── all ended ──> settled
    waiting ── reply without ────────────────────────────> settled
    settled ── another turn ──> idle, or asking; or EffectFinished of the call that the activation is

While a run is drained only `settled` is led on, so nothing starts; when it is resumed everyone is ready.

No clock, no I/O, no randomness: everything it knows is in the run and the team.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from antiphon.kernel.facts.activation import Activation
from antiphon.kernel.facts.state import RunState
from antiphon.kernel.rules import calls, cancelling, models, retries, turn
from antiphon.kernel.rules.next import AGAIN, WAIT, Emit, Next
from antiphon.kernel.rules.team.compiled import CompiledAgent, CompiledTeam, at_work

Rule = Callable[[Emit, RunState, CompiledTeam, CompiledAgent, Activation], Next]

RULES: Mapping[str, Rule] = {
    "idle": turn.begin,  # messages? -> TurnStarted; return
    "asking": models.ask,  # -> InstructionsEffect, ModelEffect, RoomEffect, LimitEffect, ActionEffect; return
    "waiting": models.resume,  # cut off by a crash? -> EffectFinished(interrupted)
    "failed": retries.retry,  # again? -> TimerEffect, ModelEffect, RoomEffect, LimitEffect; return
    "calling": calls.advance,  # more at once? -> ToolEffect, CallEffect, ApprovalEffect, QuestionEffect
    "acting": turn.wait,  # its action runs
    "settled": turn.end,  # another turn? -> TurnFinished, ModelEffect of the next turn; return
}
"""What follows from each phase of an activation. `scripts/diagram.py` draws this table: after `->` stands
what the rule may emit."""


def step(emit: Emit, run: RunState, team: CompiledTeam) -> None:
    """Emit what happens next, event by event, until everyone waits for the world."""
    if run.cancelling:
        cancelling.cancel_requested(emit, run)
    ready = run.ready
    while ready or (run.freed and run.owner.draining is None):
        if run.freed and run.owner.draining is None:
            # Who has waited for room takes it before anyone asks for more.
            admitted = models.admit(emit, run)
            if admitted is not None:
                _advance(emit, run, team, admitted)
            continue
        activation = ready.popleft()
        activation.queued = False
        if not activation.id and run.owner.draining is None:
            turn.serve_user(emit, run, team, activation)
        elif activation.id and run.activations.get(activation.id) is activation:
            _advance(emit, run, team, activation)


def _advance(emit: Emit, run: RunState, team: CompiledTeam, activation: Activation) -> None:
    """Lead one activation on until it waits, or has returned."""
    member = team.members.get(activation.agent)
    if member is None:
        # What is dormant stays so: it costs nothing, and another team may know it again.
        if activation.call:
            turn.leave(emit, run, activation)
        return
    if run.owner.draining is not None and activation.phase != "settled":
        # What has ended may be given back; every other phase is there to start something.
        return
    # One that has returned, and is dormant, keeps no time.
    overdue = activation.progress.overdue and activation.call and run.owner.draining is None
    following = retries.deadline(emit, run, activation) if overdue else AGAIN
    if following is not AGAIN and following is not WAIT:
        turn.break_off(emit, run, activation, following)
        return
    following = AGAIN
    while following is AGAIN:
        offered = member
        if activation.conversation.cut or activation.progress.request or member.toolsets:
            offered = at_work(member, activation)
        following = RULES[activation.phase](emit, run, team, offered, activation)
        if run.owner.draining is not None and following is AGAIN:
            return
    if following is not WAIT:
        turn.give_back(emit, run, activation, following)
