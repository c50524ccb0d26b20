"""Asking a model: what the request is, its worst case held first, and who may ask when there is room
again."""

from __future__ import annotations

from collections.abc import Iterable

from antiphon.kernel.context.compaction import question
from antiphon.kernel.context.request import Purpose, request_digest
from antiphon.kernel.facts import ids
from antiphon.kernel.facts.activation import Activation, Attempts
from antiphon.kernel.facts.events import (
    WHOLE,
    ActionEffect,
    EffectFinished,
    EffectStarted,
    Event,
    InstructionsEffect,
    ModelEffect,
    RoomEffect,
)
from antiphon.kernel.facts.ledger import NANO, LedgerScope, fits
from antiphon.kernel.facts.state import RunState
from antiphon.kernel.rules import compacting
from antiphon.kernel.rules.breaches import Breach, joined_end, on_breach
from antiphon.kernel.rules.next import AGAIN, WAIT, Emit, Next
from antiphon.kernel.rules.team.compiled import (
    CompiledAgent,
    CompiledTeam,
    ModelOption,
    at_work,
    prefix_of,
    unwritten,
)
from antiphon.values.agent import Compaction
from antiphon.values.hooks import Return

CIRCUIT_FAILURES = 5
"""Failures of a model in a row after which it is not asked for COOL_DOWN seconds."""
COOL_DOWN = 30.0
ON_DEMAND = {
    "asked": "Nothing was compacted: there is too little to sum up, or the agent may not.",
    "tried": "Nothing was compacted: the model gave no summary.",
    "compacted": "The conversation was compacted.",
    "replaced": "The conversation was replaced.",
}
"""The answer to somebody who asked to compact or replace a conversation, and nothing else."""
_FRESH = Attempts()
"""Of a turn that has not begun; never changed."""

Asked = EffectStarted | Return | Breach

# -- the rules ------------------------------------------------------------------------------------


def ask(emit: Emit, run: RunState, team: CompiledTeam, member: CompiledAgent, activation: Activation) -> Next:
    """Act, or ask the model, once its instructions are written and a conversation too long is shortened."""
    if member.agent.hooks.act is not None and not activation.own_model:
        emit(
            EffectStarted(
                ids.action_id(activation.id, activation.turn.number), ActionEffect(activation.agent)
            )
        )
        return WAIT
    if unwritten(member, activation):
        effect_id = ids.instructions_id(activation.id, activation.turn.number)
        emit(EffectStarted(effect_id, InstructionsEffect(activation.agent)))
        return WAIT
    wanted = compacting.due(run, team, member, activation)
    if wanted == "compact":
        asked = ask_to_compact(run, team, member, activation)
        if isinstance(asked, EffectStarted) and type(asked.detail) is ModelEffect:
            emit(asked)
            return WAIT
    elif wanted is not None:
        emit(wanted)
        return AGAIN
    if activation.conversation.compaction:
        return Return("completed", ON_DEMAND[activation.conversation.compaction])
    return ask_option(emit, run, team, member, activation, activation.turn.attempts.fallback)


def ask_to_compact(run: RunState, team: CompiledTeam, member: CompiledAgent, activation: Activation) -> Asked:
    """Ask for a summary of the conversation, or of as much of it as the model's window is known to take."""
    number = activation.turn.attempts.fallback
    options = team.models[activation.agent]
    model = options[min(number, len(options) - 1)].model.name if options else ""
    beside = question(member.agent.asking.compaction or Compaction())
    oldest = compacting.piece(run, member, activation, model)
    return call_model(run, team, member, activation, number, "compact", beside=beside, oldest=oldest)


def ask_option(
    emit: Emit, run: RunState, team: CompiledTeam, member: CompiledAgent, activation: Activation, number: int
) -> Next:
    """Ask the agent's model `number`, or do what the limits say of their breach."""
    breach = turns_used_up(activation, activation.turn.number)
    found: Asked | Iterable[Event] = breach or call_model(run, team, member, activation, number)
    if isinstance(found, Breach):
        found = on_breach(run, team, member, activation, found, call_model)
    if isinstance(found, Return):
        return found
    if isinstance(found, EffectStarted):
        emit(found)
        return WAIT
    for event in found:
        emit(event)
    return WAIT


def next_turn(
    run: RunState, team: CompiledTeam, member: CompiledAgent, activation: Activation
) -> EffectStarted | None:
    """The model call that the next turn begins with; None where there is more to say of its beginning."""
    if (
        turns_used_up(activation, activation.turn.number + 1) is not None
        or activation.conversation.compaction
        or (member.write_prefixes is not None and unwritten(member, activation))
        or compacting.due(run, team, member, activation) is not None
    ):
        return None
    if run.owner.toolsets is not activation.conversation.toolsets:
        member = at_work(team.members[activation.agent], activation, run.owner.toolsets)
    asked = call_model(run, team, member, activation, 0, next_turn=True)
    return asked if isinstance(asked, EffectStarted) and type(asked.detail) is ModelEffect else None


def resume(
    emit: Emit, run: RunState, team: CompiledTeam, member: CompiledAgent, activation: Activation
) -> Next:
    """Ask again what a crash cut off, or take over the answer to a question that was joined.

    Timers and calls in the background may be open beside it.
    """
    for opened in activation.open.values():
        if opened.answer is not None:
            emit(joined_end(opened))
            return AGAIN
        if opened.crashes and type(opened.detail) is ModelEffect:
            reason = "the process stopped during the call"
            emit(EffectFinished(opened.id, "interrupted", reason=reason))
            return AGAIN
    return WAIT


def admit(emit: Emit, run: RunState) -> Activation | None:
    """Let the first in line ask again, where a budget has room now; who that is."""
    request, _ = run.freed.popitem()
    line = run.waiting.get(request)
    if not line:
        return None
    opened = line[0]
    detail, activation = opened.detail, run.activations[opened.activation]
    if type(detail) is not RoomEffect:
        return None
    for scope in activation.scopes:
        if fits(scope, detail.tokens, detail.nano_usd) == "later":
            return None
    emit(EffectFinished(opened.id))
    return activation


# -- one request ----------------------------------------------------------------------------------


def turns_used_up(activation: Activation, number: int) -> Breach | None:
    """The limit that a turn of that number would exceed."""
    for place, scope in enumerate(activation.scopes):
        turns = scope.limits.turns
        if turns is not None and number - activation.progress.earlier_turns > turns:
            return Breach("limit", f"the limit of {turns} turns of one activation is used up", place)
    return None


def call_model(
    run: RunState, team: CompiledTeam, member: CompiledAgent, activation: Activation, number: int,
    purpose: Purpose = "reply", reason: str = "", *, beside: str = "", next_turn: bool = False,
    oldest: int = 0,
) -> Asked:  # fmt: skip
    """Ask the agent's model `number`, or wait for room; or what stands in the way.

    beside: what is asked after the conversation, and leaves no trace in it. next_turn: as the first of
    the next turn, and not in this one. oldest: see ModelEffect.
    """
    options, turn = team.models[activation.agent], activation.turn
    if not options:
        return Return("failed", "", f"{activation.agent} has no model to ask; give it one, or the run")
    number = min(number, len(options) - 1)  # of another team than the one that began, perhaps
    if run.models.failures:
        closed = _closed_circuit(run, options, number)
        if closed is None:
            return _all_failed(options, activation)
        number = closed
    option, prefix = options[number], member.prefix if activation.caller else member.entry_prefix
    if member.write_prefixes is not None:
        prefix = prefix_of(member, activation)
    suffix = beside or ("" if next_turn else turn.suffix)
    offered = None if next_turn or beside else turn.offered_tools
    size, conversation = activation.conversation.transcript.measure()
    size = prefix.size + (sum(compacting.sizes(activation)[:oldest]) if oldest else size)
    if suffix:
        size += len(suffix.encode()) + (1_000 if beside else 0)
    output = member.agent.asking.max_output_tokens
    tokens = size + output
    nano_usd = 0 if option.free else None
    if nano_usd is None and option.max_input_price is not None:
        nano_usd = option.most(size, output)
    share: float | None = None
    for place, scope in enumerate(activation.scopes):
        if (said := scope.limits.cached_share) is not None:
            share = said if share is None else max(said, share)
        if nano_usd is None and scope.limits.usd is not None:
            return _no_price(option, place)
        fit = fits(scope, tokens, nano_usd or 0)
        if fit == "never":
            return Breach("budget", _spent(scope, tokens), place)
        if fit == "later":
            return _wait_for_room(activation, tokens, nano_usd or 0)
    attempts = _FRESH if next_turn else turn.attempts
    share = option.cached_share if share is None else share
    detail = ModelEffect(
        option.name,
        request_digest(option.seed, prefix.seed, conversation, purpose, suffix, offered, oldest),
        tokens,
        purpose,
        prefix.digest if prefix.digest != activation.conversation.prefix else "",
        nano_usd or 0,
        number,
        beside,
        reason,
        oldest,
        WHOLE if share == WHOLE else share,
    )
    return EffectStarted(ids.model_id(activation.id, turn.number + next_turn, attempts.count + 1), detail)


def _no_price(option: ModelOption, scope: int) -> Breach:
    reason = f"the price of {option.model.name} is unknown, and there is a limit in USD; give it a price"
    return Breach("budget", reason, scope, raisable=False)


def _wait_for_room(activation: Activation, tokens: int, nano_usd: int) -> EffectStarted:
    turn = activation.turn
    room = ids.room_id(activation.id, turn.number, turn.attempts.room + 1)
    return EffectStarted(room, RoomEffect(tokens, nano_usd, after_failure=activation.phase == "failed"))


def _closed_circuit(run: RunState, options: tuple[ModelOption, ...], number: int) -> int | None:
    """The first model from `number` on that may be asked now, None when there is none."""
    for index in range(number, len(options)):
        if options[index].spare and index != number:
            continue
        failed, last = run.models.failures.get(options[index].name, (0, 0.0))
        if failed < CIRCUIT_FAILURES or run.at - last >= COOL_DOWN:
            return index
    return None


def _all_failed(options: tuple[ModelOption, ...], activation: Activation) -> Return:
    names = ", ".join(option.name for option in options if not option.spare)
    reason = f"overloaded: {names} failed {CIRCUIT_FAILURES} times in a row; not asked now"
    return Return("failed", activation.progress.best_text, reason)


def _spent(scope: LedgerScope, tokens: int) -> str:
    limits = scope.limits
    if limits.usd is not None and (limits.tokens is None or scope.tokens + tokens <= limits.tokens):
        return f"the budget is used up: ${scope.nano_usd / NANO:.4f} of ${limits.usd:.4f} are spent"
    spent = f"{scope.tokens:,} of {limits.tokens:,} tokens are spent"
    return f"the budget is used up: {spent}, up to {tokens:,} needed"
