"""acting: how an action is performed, and what it wishes for granted."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any

import msgspec

from antiphon.errors import EffectFailed, UserError
from antiphon.kernel.facts.activation import Activation, OpenEffect
from antiphon.kernel.facts.events import EffectFinished, Event, StateChanged
from antiphon.kernel.facts.fold.calls import shown_content
from antiphon.kernel.facts.state import RunState
from antiphon.kernel.rules.actions import LEFT, begin, end
from antiphon.kernel.rules.next import Emit
from antiphon.kernel.rules.team.compiled import CompiledTeam
from antiphon.kernel.run.log.failures import Failures
from antiphon.kernel.run.stopping import Stoppable
from antiphon.values.actions import Act, ActionContext, Operation, StepOperation, perform
from antiphon.values.codec import clean_text, text_of, type_and_text
from antiphon.values.result import Outcome

_OUTCOMES: frozenset[str] = frozenset({"cancelled", "limit", "budget", "no_progress", "interrupted"})
"""Outcomes of what an action wished for that are its own when it lets them through."""


Given = Callable[[Emit], None]
"""Emits facts that come from outside the rules."""


class ActionExecutor:
    """The door of one action: what it wishes for is recorded, performed or waited for, and remembered.

    record: lets an event in. ended: waits for the end of an effect. durable: waits until all that
    is recorded cannot be lost. may_start: waits while nothing new may start.
    """

    def __init__(
        self, state: RunState, team: CompiledTeam, activation: Activation,
        record: Callable[[Event | Given], None], ended: Callable[[str], Awaitable[EffectFinished]],
        durable: Callable[[], Awaitable[None]], may_start: Callable[[str], Awaitable[None]],
    ) -> None:  # fmt: skip
        self._state, self._team, self._activation = state, team, activation
        self._record, self._ended, self._durable = record, ended, durable
        self._may_start = may_start

    async def execute(self, effect_id: str, operation: Operation) -> Any:
        """See `OperationExecutor.execute`."""
        activation = self._activation
        action = effect_id[: effect_id.index(":")]
        if action not in activation.open:
            raise EffectFailed("cancelled", f"the action {action} has ended; nothing can follow in it")
        if effect_id not in self._finished and effect_id not in activation.open:
            await self._may_start(effect_id)
            self._record(lambda emit: begin(emit, self._state, self._team, activation, effect_id, operation))
        found = self._finished.get(effect_id)
        if found is None and isinstance(operation, StepOperation):
            found = await self._take(effect_id, operation)
        elif found is None:
            found = await self._ended(effect_id)
        if found.outcome != "completed":
            raise EffectFailed(found.outcome, found.reason, found.content)
        if isinstance(operation, StepOperation):
            return msgspec.json.decode(found.content)
        return shown_content(found)

    async def _take(self, effect_id: str, step: StepOperation) -> EffectFinished:
        """Run a step, when nothing it may rest on can be lost any more; a failure is raised as it came."""
        activation = self._activation
        await self._durable()
        if effect_id in activation.open:
            try:
                found = EffectFinished(effect_id, content=await perform(step))
            except EffectFailed as error:
                self._end(EffectFinished(effect_id, "failed", reason=text_of(error)))
                raise
            self._end(found)
        return self._finished.get(effect_id) or EffectFinished(effect_id, "cancelled", reason=LEFT)

    @property
    def _finished(self) -> Mapping[str, EffectFinished]:
        """Operations that have ended, in this process or before a crash."""
        return self._activation.turn.finished_operations or {}

    def _end(self, found: EffectFinished) -> None:
        """Record the end of a step; one that was cancelled meanwhile has had its end."""
        if found.id in self._activation.open:
            self._record(found)


async def act(
    state: RunState,
    team: CompiledTeam,
    activation: Activation,
    opened: OpenEffect,
    executor: ActionExecutor,
    deps: Any,
    failures: Failures,
) -> Given:
    """Run an agent's action; what emits its end. Only cancellation escapes."""
    action: Act | None = team.members[activation.agent].agent.hooks.act
    caller = team.members.get(state.activations[activation.caller].agent)
    context = ActionContext(
        executor,
        opened.id,
        activation.agent,
        activation.turn.messages,
        activation.message_log or (),
        dict(activation.data),
        run_id=state.run_id,
        attempt=1 + opened.crashes,
        deps=deps,
        can_publish=caller is not None and caller.agent.hooks.plan_turn is not None,
    )
    outcome: Outcome = "completed"
    content = reason = trace = ""
    try:
        if action is None:
            raise UserError(f"{activation.agent} has no action any more")
        content = _text(await _stoppable(action(context)))
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        outcome, reason = "failed", "it cancelled itself"
    except EffectFailed as error:
        known = next((each for each in _OUTCOMES if each == error.outcome), "failed")
        outcome, reason, content = known, text_of(error), _partial(error)  # type: ignore[assignment]
    except Exception as error:  # noqa: BLE001 - an action that raises fails its activation, never the run
        outcome, reason = "failed", type_and_text(error)
        trace = failures.note(error, opened.id, activation.agent, "the action", activation.request)
    changed = None
    if context.changed or context.appended:
        changed = StateChanged(activation.id, context.changed, context.appended)
    published = context.published if outcome == "completed" else ()
    ended = EffectFinished(opened.id, outcome, clean_text(content), reason=reason, trace=trace)
    return lambda emit: end(emit, state, activation, ended, changed, published)


async def _stoppable(acting: Awaitable[Any]) -> Any:
    if not isinstance(acting, Coroutine):
        return await acting
    try:
        return await Stoppable(acting, acting.send(None))
    except StopIteration as finished:
        return finished.value


def _partial(error: EffectFailed) -> str:
    try:
        return str(error.partial)
    except Exception:  # noqa: BLE001 - what cannot be written is left out
        return ""


def _text(found: Any) -> str:
    """What an action returned, as text: a text as it is, nothing as an empty one, all else as JSON."""
    if found is None or isinstance(found, str):
        return found or ""
    return msgspec.json.encode(found).decode()
