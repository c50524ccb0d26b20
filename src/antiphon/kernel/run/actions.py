"""acting: how an action is performed, and what it wishes for granted."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import msgspec

from antiphon.errors import EffectFailed, UserError
from antiphon.kernel.facts.activation import Activation, Open
from antiphon.kernel.facts.events import EffectFinished, Event, StateChanged
from antiphon.kernel.facts.state import State
from antiphon.kernel.rules.actions import LEFT, begin, end
from antiphon.kernel.rules.team import Team
from antiphon.values.actions import Act, ActionContext, Step, Wish, perform
from antiphon.values.codec import whole
from antiphon.values.result import Outcome

_OUTCOMES: frozenset[str] = frozenset({"cancelled", "limit", "budget", "no_progress", "interrupted"})
"""Outcomes of what an action wished for that are its own when it lets them through."""


class Gate:
    """The door of one action: what it wishes for is recorded, performed or waited for, and remembered.

    record: lets an event in. ended: waits for the end of an effect. durable: waits until all that
    is recorded cannot be lost.
    """

    def __init__(
        self, state: State, team: Team, activation: Activation, record: Callable[[Event], None],
        ended: Callable[[str], Awaitable[EffectFinished]], durable: Callable[[], Awaitable[None]],
    ) -> None:  # fmt: skip
        self._state, self._team, self._activation = state, team, activation
        self._record, self._ended, self._durable = record, ended, durable

    async def grant(self, effect_id: str, wish: Wish) -> Any:
        """See `Door.grant`."""
        activation = self._activation
        action = effect_id[: effect_id.index(":")]
        if action not in activation.open:
            raise EffectFailed("cancelled", f"the action {action} has ended; nothing can follow in it")
        if effect_id not in activation.memo and effect_id not in activation.open:
            self._record(begin(self._state, self._team, activation, effect_id, wish))
        found = activation.memo.get(effect_id)
        if found is None and isinstance(wish, Step):
            found = await self._take(effect_id, wish)
        elif found is None:
            found = await self._ended(effect_id)
        if found.outcome != "completed":
            raise EffectFailed(found.outcome, found.why, found.content)
        return msgspec.json.decode(found.content) if isinstance(wish, Step) else found.content

    async def _take(self, effect_id: str, step: Step) -> EffectFinished:
        """Run a step, when nothing it may rest on can be lost any more; a failure is raised as it came."""
        activation = self._activation
        await self._durable()
        if effect_id in activation.open:
            try:
                found = EffectFinished(effect_id, content=await perform(step))
            except EffectFailed as error:
                self._end(EffectFinished(effect_id, "failed", why=whole(str(error))))
                raise
            self._end(found)
        return activation.memo.get(effect_id) or EffectFinished(effect_id, "cancelled", why=LEFT)

    def _end(self, found: EffectFinished) -> None:
        """Record the end of a step; one that was cancelled meanwhile has had its end."""
        if found.id in self._activation.open:
            self._record(found)


async def act(
    state: State, team: Team, activation: Activation, opened: Open, gate: Gate, deps: Any
) -> Iterator[Event]:
    """Run an agent's action; the events of its end. Only cancellation escapes."""
    action: Act | None = team.members[activation.agent].agent.act
    caller = team.members.get(state.activations[activation.caller].agent)
    context = ActionContext(
        gate,
        opened.effect.id,
        activation.agent,
        activation.taken,
        activation.past or (),
        dict(activation.data),
        run_id=state.run_id,
        attempt=1 + opened.lost,
        deps=deps,
        distributes=caller is not None and caller.agent.plan is not None,
    )
    outcome: Outcome = "completed"
    content = why = ""
    try:
        if action is None:
            raise UserError(f"{activation.agent} has no action any more")
        content = _text(await action(context))
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        outcome, why = "failed", "it cancelled itself"
    except EffectFailed as error:
        outcome = error.outcome if error.outcome in _OUTCOMES else "failed"  # type: ignore[assignment]
        why, content = whole(str(error)), str(error.partial)
    except Exception as error:  # noqa: BLE001 - an action that raises fails its activation, never the run
        outcome, why = "failed", whole(f"{type(error).__name__}: {error}")
    changed = None
    if context.changed or context.appended:
        changed = StateChanged(activation.id, context.changed, context.appended)
    published = context.published if outcome == "completed" else ()
    return end(state, activation, opened.effect.id, outcome, whole(content), why, changed, published)


def _text(found: Any) -> str:
    """What an action returned, as text: a text as it is, nothing as an empty one, all else as JSON."""
    if found is None or isinstance(found, str):
        return found or ""
    return msgspec.json.encode(found).decode()
