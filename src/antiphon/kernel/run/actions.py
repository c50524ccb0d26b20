"""How an agent's own code is performed, its action or the function that writes its instructions; and how
what an action, or a tool, asks for is recorded, performed and waited for."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from antiphon.errors import EffectFailed, UserError
from antiphon.kernel.facts.activation import Activation, OpenEffect
from antiphon.kernel.facts.events import ActionEffect, EffectFinished, Event, StateChanged
from antiphon.kernel.facts.fold.calls import shown_content
from antiphon.kernel.facts.state import RunState
from antiphon.kernel.rules.actions import LEFT, begin, end
from antiphon.kernel.rules.next import Emit
from antiphon.kernel.rules.team.compiled import CompiledTeam
from antiphon.kernel.run.log.failures import Failures
from antiphon.kernel.run.stopping import Stoppable
from antiphon.values.actions import (
    Act,
    ActionContext,
    Operation,
    Perform,
    QuestionOperation,
    StepOperation,
    perform,
)
from antiphon.values.agent import Agent
from antiphon.values.codec import clean_text, text_of, type_and_text
from antiphon.values.fields import shown
from antiphon.values.form import wrong_form
from antiphon.values.hooks import InstructionsContext
from antiphon.values.result import Outcome

_OUTCOMES: frozenset[str] = frozenset({"cancelled", "limit", "budget", "no_progress", "interrupted"})
"""Outcomes of what an action wished for that are its own when it lets them through."""


Given = Callable[[Emit], None]
"""Emits facts that come from outside the rules."""


class RunAccess(Struct, frozen=True):
    """What the operations of a run's actions and tools need of its runtime."""

    state: RunState
    team: Callable[[], CompiledTeam]
    record: Callable[[Event | Given], None]
    """Lets an event in."""
    waiters: dict[str, asyncio.Future[EffectFinished]]
    """By effect, who waits for its end."""
    durable: Callable[[], Awaitable[None]]
    """Waits until all that is recorded cannot be lost, and the run is still this owner's."""
    may_start: Callable[[str], Awaitable[None]]
    """Waits while nothing new may start."""
    spawn: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]]
    """A task that lives no longer than this ownership."""

    async def ended(self, effect_id: str) -> EffectFinished:
        """The end of an effect that an action or a tool waits for."""
        self.waiters[effect_id] = waiter = asyncio.Future[EffectFinished]()
        return await waiter


class ActionExecutor:
    """The door of one action or tool: what it asks for is recorded, performed or waited for, and remembered.

    elsewhere: runs the functions of steps; None: the event loop does. acts: what was answered is given only
    when it cannot be lost any more, since an act may rest on it. again: whoever takes the run up runs it
    again; one that is not is told when the run is drained, and does not wait for the next owner.
    """

    def __init__(
        self, run: RunAccess, activation: Activation, opened: OpenEffect, *,
        elsewhere: Callable[[], Perform | None] = lambda: None, acts: bool = False, again: bool = True,
    ) -> None:  # fmt: skip
        self._run, self._activation, self._opened = run, activation, opened
        self._elsewhere, self._acts, self._again = elsewhere, acts, again

    async def execute(self, effect_id: str, operation: Operation) -> Any:
        """See `OperationExecutor.execute`."""
        self._check_open()
        _check_form(operation)
        activation, run = self._activation, self._run
        if effect_id not in self._finished and effect_id not in activation.open:
            if not self._again and run.state.owner.draining is not None:
                raise EffectFailed("interrupted", "the run is about to be left; nothing more begins in it")
            await run.may_start(effect_id)
            self._check_open()
            run.record(lambda emit: begin(emit, run.state, run.team(), activation, effect_id, operation))
        found = self._finished.get(effect_id)
        if found is None and isinstance(operation, StepOperation):
            found = await self._take(effect_id, operation)
            await self._kept()
        elif found is None:
            found = await run.ended(effect_id)
            await self._kept()
        if found.outcome != "completed":
            raise EffectFailed(found.outcome, found.reason, found.content)
        if isinstance(operation, StepOperation):
            return msgspec.json.decode(found.content)
        return shown_content(found)

    async def _kept(self) -> None:
        """An act may rest on what is given, so it is given when it cannot be lost any more."""
        if self._acts and not self._opened.ended:
            await self._run.durable()

    async def _take(self, effect_id: str, step: StepOperation) -> EffectFinished:
        """Run a step, when nothing it may rest on can be lost any more; a failure is raised as it came."""
        activation = self._activation
        await self._run.durable()
        if effect_id in activation.open:
            try:
                found = EffectFinished(effect_id, content=await perform(step, self._elsewhere()))
            except EffectFailed as error:
                self._end(EffectFinished(effect_id, "failed", reason=text_of(error)))
                raise
            self._end(found)
        return self._finished.get(effect_id) or EffectFinished(effect_id, "cancelled", reason=LEFT)

    @property
    def _finished(self) -> Mapping[str, EffectFinished]:
        """Operations that have ended, in this process or before a crash."""
        return self._opened.operations or {}

    def _check_open(self) -> None:
        if self._opened.ended:
            kind, where = "action" if type(self._opened.detail) is ActionEffect else "tool", self._opened.id
            raise EffectFailed("cancelled", f"the {kind} {where} has ended; nothing can follow in it")

    def _end(self, found: EffectFinished) -> None:
        """Record the end of a step; one that was cancelled meanwhile has had its end."""
        if found.id in self._activation.open:
            self._run.record(found)


def _check_form(operation: Operation) -> None:
    if isinstance(operation, QuestionOperation):
        wrong = wrong_form(operation.options, operation.schema)
        if wrong:
            raise UserError(f"ask_user: {wrong}")


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


async def write_instructions(
    agent: Agent, run: RunState, activation: Activation, opened: OpenEffect, deps: Any, failures: Failures
) -> EffectFinished:
    """Have the agent's own function write its instructions. Any failure is an event; only cancellation
    escapes."""
    write, trace = agent.instructions, ""
    try:
        # Of a team that is another one by now they may be a text.
        found: Any = write if isinstance(write, str) else write(_instructions_context(run, activation, deps))
        if isinstance(found, Awaitable):
            found = await found
        if isinstance(found, str):
            return EffectFinished(opened.id, content=clean_text(found))
        reason = f"a text is expected, not {shown(found)}"
    except Exception as error:  # noqa: BLE001 - a function that raises fails its activation, never the run
        reason = type_and_text(error)
        trace = failures.note(error, opened.id, activation.agent, "the instructions", activation.request)
    reason = f"the instructions of {activation.agent} could not be written: {reason}"
    return EffectFinished(opened.id, "failed", reason=reason, trace=trace)


def _instructions_context(run: RunState, activation: Activation, deps: Any) -> InstructionsContext:
    messages = tuple(activation.conversation.transcript.messages)
    return InstructionsContext(
        run.run_id, activation.agent, run.at, messages, deps,
        dict(activation.data), dict(run.activations[0].data),
    )  # fmt: skip
