"""ask: what asking a model begins with: room in the books and in its window, or the reason why not."""

from __future__ import annotations

from collections.abc import Generator
from hashlib import blake2b
from typing import Literal

import msgspec
from msgspec import Struct

from antiphon.errors import RETRYABLE
from antiphon.kernel.context.compaction import Gist, question, read_gist, threshold, to_compact
from antiphon.kernel.context.output_store import tokens_of
from antiphon.kernel.facts.activation import Activation
from antiphon.kernel.facts.agent_call import CALL_AGENT, CallAgent
from antiphon.kernel.facts.events import EffectStarted, Event, HistoryCompacted, TurnFinished, TurnStarted
from antiphon.kernel.facts.ledger import NANO, Scope, fits, no_more_calls, waited
from antiphon.kernel.facts.state import State
from antiphon.kernel.rules.team import Choice, Head, Member, Team
from antiphon.values.agent import Agent, Compaction
from antiphon.values.codec import encode_value, whole
from antiphon.values.hooks import Return
from antiphon.values.message import USER, ToolCall
from antiphon.values.result import Outcome

CIRCUIT = 5
"""Failures of a model in a row after which it is not asked for COOL_DOWN seconds."""
COOL_DOWN = 30.0
LEAST = 20_000
"""Tokens of tool results that a model is shown, however small its window is said to be."""


class Breach(Struct, frozen=True):
    """A limit that leaves no room for the next model call. scope: whose, 0 the innermost books.

    raisable: whether as much again could make room.
    """

    outcome: Outcome
    why: str
    scope: int
    raisable: bool = True


def ask(
    state: State, team: Team, member: Member, activation: Activation
) -> EffectStarted | Return | tuple[Event, ...] | None:
    """Ask the model, or end the activation, or (None) wait for room in the budget.

    Events: another agent takes over, since a limit is reached.
    """
    for place, scope in enumerate(activation.scopes):
        turns = scope.limits.turns
        if turns is not None and activation.turn - activation.before > turns:
            why = f"the limit of {turns} turns of one activation is used up"
            return _breached(state, team, member, activation, Breach("limit", why, place))
    asked = _call_model(state, team, member, activation, activation.fallback)
    return _breached(state, team, member, activation, asked) if isinstance(asked, Breach) else asked


def ask_number(
    state: State, team: Team, member: Member, activation: Activation, number: int
) -> EffectStarted | Return | tuple[Event, ...] | None:
    """`ask` the agent's model `number`."""
    asked = _call_model(state, team, member, activation, number)
    return _breached(state, team, member, activation, asked) if isinstance(asked, Breach) else asked


def _breached(
    state: State, team: Team, member: Member, activation: Activation, breach: Breach
) -> EffectStarted | Return | tuple[Event, ...] | None:
    """What the limits say of their own breach: ask somebody, a cheaper model, another agent; or stop."""
    limits = activation.scopes[breach.scope].limits
    if limits.breach == "ask" and breach.raisable and state.options.attended and not activation.declined:
        return EffectStarted(
            f"{activation.id}/{activation.turn}.l{activation.raised + 1}",
            "wait",
            USER,
            purpose="limit",
            text=f"{breach.why}. Allow as much again?",
            scope=breach.scope,
        )
    if limits.breach == "degrade" and breach.outcome == "budget":
        choices = team.models[activation.agent]
        for number, choice in enumerate(choices):
            if limits.to in (choice.spare, choice.model.name):
                asked = _call_model(state, team, member, activation, number, "", f"degraded: {breach.why}")
                if not isinstance(asked, Breach):
                    return asked
    if limits.breach == "hand_over" and not activation.declined and limits.to in team.members:
        # Money that is used up is nobody's to spend: the other agent needs books outside of these.
        outside = breach.scope + 1 if breach.outcome == "budget" else 0
        if outside < len(activation.scopes) and not no_more_calls(activation.scopes):
            return _hand_over(team, activation, limits.to, outside, breach.why)
    if breach.outcome == "limit" and member.agent.last_word:
        number = activation.fallback
        asked = _call_model(state, team, member, activation, number, "final", breach.why)
        if not isinstance(asked, Breach):
            return asked
        breach = asked
    return Return(breach.outcome, activation.said, breach.why)


def _hand_over(team: Team, activation: Activation, to: str, outside: int, why: str) -> tuple[Event, ...]:
    """Another agent goes on: its result is this activation's own."""
    task = next((each.content for each in activation.transcript.messages if each.role == "user"), "")
    text = f"{task}\n\n[system] {activation.agent} began this and had to stop: {why}."
    if activation.said:
        text += f" What it had so far:\n{activation.said}"
    asked = ToolCall("hand_over", CALL_AGENT, msgspec.json.encode(CallAgent(to, text)).decode())
    callee = team.members[to]
    return (
        TurnFinished(activation.id, more=True),
        TurnStarted(activation.id, 0, (asked,)),
        EffectStarted(
            f"{activation.id}/{activation.turn + 1}.c1",
            "call",
            to,
            purpose="limit",
            digest=callee.head.digest,
            limits=callee.agent.limits,
            ends=True,
            text=why,
            scope=outside,
        ),
    )


def _call_model(
    state: State, team: Team, member: Member, activation: Activation, number: int,
    purpose: Literal["", "compact", "final"] = "", text: str = "",
) -> EffectStarted | Return | Breach | None:  # fmt: skip
    """Start a call of the agent's model `number`, its worst case held in all books first."""
    choices = team.models[activation.agent]
    if not choices:
        return Return("failed", "", f"{activation.agent} has no model to ask; give it one, or the run")
    if state.failures:
        number = _closed_circuit(state, choices, number)
    if number < 0:
        names = ", ".join(choice.model.name for choice in choices if not choice.spare)
        return Return(
            "failed", activation.said, f"overloaded: {names} failed {CIRCUIT} times in a row; not asked now"
        )
    choice, head = choices[number], member.head if activation.caller else member.entry_head
    size, so_far = activation.transcript.measure()
    size += head.size + (_beside(member.agent) if purpose else _bytes(activation.tail))
    hold = size + member.agent.max_output
    cost = choice.most(size, member.agent.max_output)
    for place, scope in enumerate(activation.scopes):
        if cost is None and scope.limits.usd is not None:
            why = f"the price of {choice.model.name} is unknown, and there is a limit in USD; give it a price"
            return Breach("budget", why, place, raisable=False)
        fit = fits(scope, hold, cost or 0)
        if fit == "never":
            return Breach("budget", _spent(scope, hold), place)
        if fit == "later":
            state.parked.append(activation)
            return None
    return EffectStarted(
        f"{activation.id}/{activation.turn}.m{activation.attempt + 1}",
        "model",
        choice.model.name,
        purpose,
        digest=_asked(head, so_far, activation),
        head=head.digest if head.digest != activation.head else "",
        hold=hold,
        text=text,
        cost=cost or 0,
        fallback=number,
    )


def _asked(head: Head, so_far: bytes, activation: Activation) -> str:
    """The digest of exactly what a model is asked."""
    if not activation.tail and activation.only is None:
        return blake2b(head.seed + so_far, digest_size=8).hexdigest()
    of_this_turn = encode_value((activation.tail, activation.only))
    return blake2b(head.seed + so_far + of_this_turn, digest_size=8).hexdigest()


def _beside(agent: Agent) -> int:
    """Bytes that are asked beside the conversation, at most."""
    return 1_000 + _bytes(question(agent.compaction or Compaction()))


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "replace"))


def _closed_circuit(state: State, choices: tuple[Choice, ...], number: int) -> int:
    """The first model from `number` on that may be asked now, -1 for none."""
    for index in range(number, len(choices)):
        if choices[index].spare and index != number:
            continue
        failed, last = state.failures.get(choices[index].model.name, (0, 0.0))
        if failed < CIRCUIT or state.at - last >= COOL_DOWN:
            return index
    return -1


def _spent(scope: Scope, hold: int) -> str:
    limits = scope.limits
    if limits.usd is not None and (limits.tokens is None or scope.tokens + hold <= limits.tokens):
        return f"the budget is used up: ${scope.spent / NANO:.4f} of ${limits.usd:.4f} are spent"
    spent = f"{scope.tokens:,} of {limits.tokens:,} tokens are spent"
    return f"the budget is used up: {spent}, up to {hold:,} needed"


def make_room(
    state: State, team: Team, member: Member, activation: Activation
) -> HistoryCompacted | EffectStarted | Return | None:
    """Shorten what the model is shown, when it is time to; None when there is nothing to do."""
    if activation.answer is not None:
        return _compacted(member.agent, activation, activation.answer)
    choices = team.models[activation.agent]
    if not choices:
        return None
    window = choices[activation.fallback].window
    total = _shown_at_most(state.options.outputs.total, window)
    if total is not None and activation.shown > total:
        return HistoryCompacted(activation.id, trimmed=_to_trim(activation, total))
    compaction = member.agent.compaction
    if compaction is None or activation.forced == "done":
        return None
    full = window is not None and compaction.auto and activation.window_used >= threshold(compaction, window)
    if not (full or activation.forced):
        return None
    known = to_compact(activation.transcript.messages)
    # A conversation that has only begun has nothing to say about itself.
    if not known or (not activation.forced and len(activation.transcript.messages) <= 2):
        return None
    asked = _call_model(state, team, member, activation, activation.fallback, "compact")
    return asked if isinstance(asked, EffectStarted) else None


def _compacted(agent: Agent, activation: Activation, answer: str) -> HistoryCompacted:
    gist = read_gist(answer) or Gist()
    revise = agent.compaction.revise if agent.compaction is not None else None
    if revise is not None and gist.summary:
        try:
            replaced = revise(gist.summary)
        except Exception:  # noqa: BLE001 - a listener may not spoil what the model wrote
            replaced = None
        gist = Gist(gist.retain, whole(replaced), gist.next) if isinstance(replaced, str) else gist
    turns = agent.compaction.last_turns if agent.compaction is not None else 0
    return HistoryCompacted(activation.id, gist.retain, gist.summary, gist.next, turns)


def _shown_at_most(total: int | None, window: int | None) -> int | None:
    """Tokens of results that are shown: a quarter of the window, if that is less, but not too few."""
    return total if total is None or window is None else min(total, max(window // 4, LEAST))


def _to_trim(activation: Activation, total: int) -> int:
    """How many of the oldest results go so that three quarters of the total are left."""
    excess, count = activation.shown - total * 3 // 4, 0
    for message in activation.transcript.messages:
        if excess <= 0:
            break
        if message.role == "tool" and message.ref:
            excess -= tokens_of(message.content)
            count += 1
    return count


def retry(
    state: State, team: Team, member: Member, activation: Activation
) -> EffectStarted | Return | tuple[Event, ...] | None:
    """After a failed call: wait and ask again, ask the next model, or end the activation.

    None: the next model must wait for room in the budget.
    """
    failure, rules = activation.failure, member.agent.retry
    if failure is None:
        return Return("failed", activation.said, "the model call failed")
    why = failure.why
    kind = why.partition(":")[0]
    again = kind in RETRYABLE
    if rules.statuses is not None and failure.status:
        again = failure.status in rules.statuses
    if again and activation.tries < rules.attempts:
        effect_id = f"{activation.id}/{activation.turn}.w{activation.attempt}"
        delay, longest = failure.retry_after, rules.ceiling if rules.longest is None else rules.longest
        if delay is None:
            delay = min(rules.base * 2.0 ** (activation.tries - 1), rules.ceiling) * _jitter(effect_id)
            longest = delay
        if delay <= longest and state.at - activation.asking_since + delay <= rules.window:
            said = f"attempt {activation.tries + 1} of {rules.attempts}"
            return EffectStarted(effect_id, "wait", purpose="retry", until=state.at + delay, text=said)
        if delay > longest:
            why += f" (asked to wait {delay:,.0f} s, more than the {longest:,.0f} s allowed)"
        else:
            why += f" (the {rules.window:,.0f} s in which it may be asked again are over)"
    if kind == "context" and not activation.squeezed and member.agent.compaction is not None:
        shorter = _squeeze(state, team, member, activation)
        if shorter is not None:
            return shorter
    choices, following = team.models[activation.agent], activation.fallback + 1
    if kind not in ("validation", "refused") and following < len(choices) and not choices[following].spare:
        return ask_number(state, team, member, activation, following)
    return Return("failed", activation.said, why)


def _squeeze(state: State, team: Team, member: Member, activation: Activation) -> EffectStarted | None:
    """The provider says that the conversation is too long: have it compacted, once in a turn."""
    if not to_compact(activation.transcript.messages) or len(activation.transcript.messages) <= 2:
        return None
    asked = _call_model(state, team, member, activation, activation.fallback, "compact")
    return asked if isinstance(asked, EffectStarted) else None


def _jitter(effect_id: str) -> float:
    """Between 0.5 and 1, from the id alone, so that a replay waits the same."""
    return 0.5 + blake2b(effect_id.encode(), digest_size=2).digest()[0] / 512


def deadline(state: State, activation: Activation) -> Generator[Event, None, Return | None]:
    """Keep the time limits of an activation's own books: a wait, put off while people are waited for."""
    outer = len(state.activations[activation.caller].scopes) - state.open[activation.call].effect.scope
    own = activation.scopes[: len(activation.scopes) - outer]
    limits = [scope.limits.seconds for scope in own if scope.limits.seconds is not None]
    if not limits or (activation.overdue and own[0].asking):
        return None
    left = state.open[activation.call].since + min(limits) + waited(own[0], state.at) - state.at
    if left <= 0:
        return Return("limit", activation.said, f"the limit of {min(limits):,g} s is used up")
    place = f"{activation.id}/{activation.turn}.d{activation.deadlines + 1}"
    yield EffectStarted(place, "wait", purpose="deadline", until=state.at + max(left, 0.05))
    return None
