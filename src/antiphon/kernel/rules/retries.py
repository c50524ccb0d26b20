"""After a model call that failed: again later, another model, or the end. And the time that a call may
take."""

from __future__ import annotations

from hashlib import blake2b

from antiphon.errors import RETRYABLE
from antiphon.kernel.facts import ids
from antiphon.kernel.facts.activation import Activation
from antiphon.kernel.facts.events import EffectStarted, ModelEffect, TimerEffect
from antiphon.kernel.facts.ledger import waited
from antiphon.kernel.facts.state import RunState
from antiphon.kernel.rules import compacting, models
from antiphon.kernel.rules.next import WAIT, Emit, Next
from antiphon.kernel.rules.team.compiled import CompiledAgent, CompiledTeam
from antiphon.values.agent import RetryPolicy
from antiphon.values.hooks import Return
from antiphon.values.result import Failure


def retry(
    emit: Emit, run: RunState, team: CompiledTeam, member: CompiledAgent, activation: Activation
) -> Next:
    """After a failed call: wait and ask again, ask the next model, or end the activation."""
    attempts, best = activation.turn.attempts, activation.progress.best_text
    failure = attempts.failure.failure if attempts.failure is not None else None
    if failure is None:
        return Return("failed", best, "the model call failed")
    options, following = team.models[activation.agent], attempts.fallback + 1
    asked_last = options[min(attempts.fallback, len(options) - 1)] if options else None
    rules = asked_last.retry_of(member.agent) if asked_last is not None else member.agent.asking.retry
    waits = _wait(run, rules, activation, failure)
    if isinstance(waits, EffectStarted):
        emit(waits)
        return WAIT
    if failure.kind == "context_length" and compacting.can_compact(member.agent, activation):
        asked = models.ask_to_compact(run, team, member, activation)
        if isinstance(asked, EffectStarted) and type(asked.detail) is ModelEffect:
            emit(asked)
            return WAIT
    blameless = failure.kind in ("validation", "refusal")
    if not blameless and following < len(options) and not options[following].spare:
        return models.ask_option(emit, run, team, member, activation, following)
    return Return("failed", best, waits)


def _wait(run: RunState, rules: RetryPolicy, activation: Activation, failure: Failure) -> EffectStarted | str:
    """The wait before another attempt; or why there is none."""
    attempts, reason = activation.turn.attempts, str(failure)
    again = failure.kind in RETRYABLE
    if rules.statuses is not None and failure.status:
        again = failure.status in rules.statuses
    if not again or attempts.tries >= rules.max_attempts:
        return reason
    effect_id = ids.backoff_id(activation.id, activation.turn.number, attempts.count)
    delay, longest = (
        failure.retry_after,
        rules.max_delay if rules.max_retry_after is None else rules.max_retry_after,
    )
    if delay is None:
        delay = min(rules.initial_delay * 2.0 ** (attempts.tries - 1), rules.max_delay) * _jitter(effect_id)
        longest = delay
    if delay > longest:
        return f"{reason} (asked to wait {delay:,.0f} s, more than the {longest:,.0f} s allowed)"
    if run.at - attempts.since + delay > rules.max_elapsed:
        return f"{reason} (the {rules.max_elapsed:,.0f} s in which it may be asked again are over)"
    text = f"attempt {attempts.tries + 1} of {rules.max_attempts}"
    return EffectStarted(effect_id, TimerEffect("retry", run.at + delay, text))


def _jitter(effect_id: str) -> float:
    """Between 0.5 and 1, from the id alone, so that a replay waits the same."""
    return 0.5 + blake2b(effect_id.encode(), digest_size=2).digest()[0] / 512


def deadline(emit: Emit, run: RunState, activation: Activation) -> Next:
    """Keep the time limits of an activation's own: a timer, put off while people are waited for.

    A Return when the time is up, else WAIT.
    """
    call = run.open[activation.call]
    outside = getattr(call.detail, "outside", 0)
    outer = len(run.activations[activation.caller].scopes) - outside
    own = activation.scopes[: len(activation.scopes) - outer]
    limits = [scope.limits.timeout_seconds for scope in own if scope.limits.timeout_seconds is not None]
    if not limits or (activation.progress.overdue and own[0].open_questions):
        return WAIT
    left = call.since + min(limits) + waited(own[0], run.at) - run.at
    if left <= 0:
        reason = f"the limit of {min(limits):,g} s is used up"
        return Return("limit", activation.progress.best_text, reason)
    number = activation.progress.deadlines + 1
    timer = ids.deadline_id(activation.id, activation.turn.number, number)
    emit(EffectStarted(timer, TimerEffect("deadline", run.at + max(left, 0.05))))
    return WAIT
