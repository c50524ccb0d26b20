"""How one effect of each kind is performed. Every performer returns the event of its end.

An agent call needs no performer: it ends when the activation that it is returns.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any

import msgspec
from msgspec.structs import astuple, replace

from antiphon.errors import ModelError, ToolError, UserError
from antiphon.journal.port import Journal, Lease
from antiphon.kernel.context.request import model_request, side_request
from antiphon.kernel.facts.activation import Activation, OpenEffect
from antiphon.kernel.facts.events import (
    ActionEffect,
    EffectFinished,
    InstructionsEffect,
    ModelEffect,
    TimerEffect,
    ToolEffect,
)
from antiphon.kernel.facts.state import RunState
from antiphon.kernel.rules.calls import judge
from antiphon.kernel.rules.team.compiled import CompiledAgent, CompiledTeam, ModelOption, at_work, prefix_of
from antiphon.kernel.run.live.feed import Feed
from antiphon.kernel.run.live.progress import ProgressReport
from antiphon.kernel.run.log.failures import Failures, trace_of
from antiphon.kernel.run.log.records import gave_up_thread
from antiphon.kernel.run.stopping import Stoppable
from antiphon.kernel.run.tools.earlier import earlier_calls
from antiphon.kernel.run.tools.ends import (
    ToolEnd,
    attached,
    ended,
    in_doubt,
    left_undone,
    not_begun,
    with_changes,
)
from antiphon.kernel.run.tools.isolated import ChildCall
from antiphon.kernel.run.tools.start_token import LeaseStale, NotBegun, StartToken
from antiphon.kernel.run.tools.threads import NoResult, Threads
from antiphon.kernel.run.tools.timeouts import Timeout
from antiphon.kernel.run.tools.unshown import unshown
from antiphon.kernel.run.toolsets.uses import ToolsetUses
from antiphon.values.codec import (
    clean_fields,
    clean_text,
    encode_shallow,
    encode_value,
    text_of,
    type_and_text,
)
from antiphon.values.fields import check_fields, shown
from antiphon.values.model import MAX_CALLS, NO_USAGE, Emit, ModelRequest, Reply, Usage, too_many_calls
from antiphon.values.result import Failure
from antiphon.values.tool import Done, Tool, ToolContext, result_of
from antiphon.values.tool.definition import ToolDoor

Failed = Callable[[BaseException, OpenEffect], str]
"""Is told of an exception in an effect; returns what the journal keeps of it."""
PERFORMED = frozenset({ModelEffect, ToolEffect, TimerEffect, ActionEffect, InstructionsEffect})
"""Effects that the runtime performs; the others end by an answer, a deadline or another effect."""


def capped(activation: Activation) -> bool:
    """Whether what an activation spends is limited in USD."""
    return any(scope.limits.usd is not None for scope in activation.scopes)


async def once(
    ready: Callable[[], Awaitable[None]], work: Coroutine[Any, Any, EffectFinished]
) -> EffectFinished:
    """Do the work once something is so: money with a limit is spent only when the row that says so cannot be
    lost any more."""
    try:
        await ready()
    except BaseException:
        work.close()
        raise
    return await work


async def ask_model(
    option: ModelOption, member: CompiledAgent, activation: Activation, opened: OpenEffect, emit: Emit,
    failures: Failures, session: str = "",
) -> EffectFinished:  # fmt: skip
    """Ask the model once. Any failure is an event; only cancellation escapes."""
    effect_id, model = opened.id, option.model
    try:
        asked = request_of(model.name, member, activation, opened, session)
        reply = _received(await model.complete(asked, emit), free=option.free)
        bill = 0 if option.free else None
        if bill is None and option.bill is not None and reply.usage is not None:
            bill = option.bill(reply.usage)
    except Exception as error:  # noqa: BLE001 - an adapter's bug must end its effect, not the run
        trace = failures.note(error, effect_id, activation.agent, model.name, activation.request)
        # What a provider said is no fault in anybody's code.
        trace = "" if isinstance(error, ModelError) else trace
        return EffectFinished(effect_id, "failed", failure=_failure(error), trace=trace)
    # Without a bill a call costs what was held for it.
    return EffectFinished(effect_id, reply=reply, cost_nano_usd=bill)


def _failure(error: Exception) -> Failure:
    """Why a model call failed; whatever an adapter raises, it can be stored."""
    if isinstance(error, ModelError):
        try:
            return Failure(error.kind, error.text, error.status, error.retry_after)
        except (UserError, AttributeError):
            return Failure("provider", type_and_text(error))
    return Failure("provider", type_and_text(error))


def request_of(
    model: str, member: CompiledAgent, activation: Activation, opened: OpenEffect, session: str = ""
) -> ModelRequest:
    """The request of a model call that has just been started."""
    detail, transcript = opened.detail, activation.conversation.transcript
    prefix = member.prefix if activation.caller else member.entry_prefix
    if member.write_prefixes is not None:
        prefix = prefix_of(member, activation)
    if type(detail) is ModelEffect and detail.purpose != "reply":
        return side_request(
            model, member.agent, prefix, transcript, effect_id=opened.id, session=session,
            purpose=detail.purpose, question=detail.question, oldest=detail.oldest,
        )  # fmt: skip
    turn = activation.turn
    return model_request(
        model, member.agent, prefix, transcript, effect_id=opened.id, session=session,
        examples=member.examples, schema=member.answer.schema if member.answer is not None else None,
        suffix=turn.suffix, offered=turn.offered_tools,
    )  # fmt: skip


_decode_reply = msgspec.json.Decoder(Reply).decode


def _received(reply: Reply, *, free: bool) -> Reply:
    """A reply as it will be read back, whatever the adapter made it of.

    free: the model is known to cost nothing, so that a usage of zeros is one. Raises UserError, TypeError,
    ValueError; ModelError when it holds more calls than an event loop can bear.
    """
    if len(getattr(reply, "calls", ())) > MAX_CALLS:
        raise too_many_calls("the model", len(reply.calls))
    try:
        found = _decode_reply(encode_value(reply) if reply.opaque is None else encode_shallow(reply))
    except (TypeError, ValueError, AttributeError):
        found = _decode_reply(encode_shallow(clean_fields(_converted(reply))))
    used = found.usage
    if used is None or (free and used == NO_USAGE) or Usage.reported(*astuple(used)) is not None:
        return found
    return replace(found, usage=None)


def _converted(reply: Any) -> Reply:
    """A reply whose parts are what they declare. Raises UserError naming the one that cannot be."""
    if not isinstance(reply, Reply):
        raise UserError(f"complete takes a Reply to return; got {shown(reply)}")
    used: Any = reply.usage
    known = isinstance(used, Usage)
    try:
        if known:
            check_fields(used)
    except UserError:
        # Nonsense that nobody can be charged by: what was held is.
        known = False
    found: Reply = reply if known else replace(reply, usage=None)
    check_fields(found)
    for call in found.calls:
        check_fields(call)
    return found


class ToolExecutor:
    """Uses the tools of one run.

    may_act: returns once nothing that an act may rest on can be lost, and the run is still this owner's.
    door: what one call of a tool asks the run through.
    """

    def __init__(
        self, journal: Journal, lease: Lease, state: RunState, may_act: Callable[[], Awaitable[None]],
        door: Callable[[Activation, OpenEffect, Tool], ToolDoor], deps: Any,
        overrides: Mapping[str, Callable[[ToolContext], Any]] | None, feed: Feed, failures: Failures,
        toolsets: ToolsetUses | None,
    ) -> None:  # fmt: skip
        self._failures, self._door, self._feed, self._toolsets = failures, door, feed, toolsets
        self._journal, self._lease, self._state, self._may_act = journal, lease, state, may_act
        self._deps, self._overrides = deps, overrides or {}
        self._is_fresh = partial(journal.is_fresh, lease)
        self._made: Threads | None = None
        self._tokens: dict[str, StartToken] = {}

    def withhold(self, effects: Collection[str], team: CompiledTeam) -> tuple[str, ...]:
        """Those of `effects` that are acts and had not begun; from now on they cannot begin here.

        One that was cut off by a crash stays: whatever follows, nobody knows whether it began then.
        """
        found = []
        for effect_id in effects:
            opened = self._state.open.get(effect_id)
            if opened is None or type(opened.detail) is not ToolEffect or opened.crashes:
                continue
            activation = self._state.activations[opened.activation]
            member = at_work(team.members[activation.agent], activation)
            tool, token = member.tools.get(opened.detail.name), self._tokens.get(effect_id)
            if tool is None or tool.effect == "read":
                continue
            if token is not None:
                token.revoke()
            if token is None or token.revoked:
                found.append(effect_id)
        return tuple(found)

    def close(self) -> list[str]:
        """Let go of the threads; the names of the tools whose functions still run."""
        return self._made.close() if self._made is not None else []

    def _threads(self) -> Threads:
        if self._made is None:
            self._made = Threads(partial(gave_up_thread, self._lease.run_id))
        return self._made

    def use(
        self, opened: OpenEffect, activation: Activation, team: CompiledTeam, member: CompiledAgent,
        reached: Tool | None = None,
    ) -> Coroutine[Any, Any, ToolEnd]:  # fmt: skip
        """Use the tool of an effect that has started; how it ended. reached: it, of a toolset that is up."""
        detail = opened.detail
        if type(detail) is not ToolEffect:
            raise RuntimeError(f"{opened.id} is nothing that is performed")
        tool = reached or member.tools.get(detail.name)
        arguments = detail.arguments or activation.turn.calls[opened.index].arguments
        if tool is None:
            return use_tool(None, arguments, opened, ToolContext, self._threads)
        if detail.name in member.sources and reached is None and self._toolsets is not None:
            return self._of_toolset(self._toolsets, tool, opened, activation, team, member)
        context = partial(self._context, opened, activation, tool)
        if tool.effect == "read":
            return use_tool(tool, arguments, opened, context, self._threads, None, self._failed)
        again = opened.carried_over
        if opened.crashes:
            again = tool.effect == "idempotent" or resumes(tool, opened)
        if again:
            return self._act_again(tool, arguments, opened, context, activation, team)
        return self._act(tool, arguments, opened, context)

    async def _of_toolset(
        self, toolsets: ToolsetUses, tool: Tool, opened: OpenEffect, activation: Activation,
        team: CompiledTeam, member: CompiledAgent,
    ) -> ToolEnd:  # fmt: skip
        """Use the tool of a toolset, once its provider is up."""
        found = await toolsets.reached(member.sources[tool.name], tool, self._threads)
        if isinstance(found, Tool):
            return await self.use(opened, activation, team, member, found)
        if tool.has_side_effects and opened.crashes:
            return in_doubt(opened.id, found)
        return EffectFinished(opened.id, "failed", reason=found)

    def _failed(self, error: BaseException, opened: OpenEffect) -> str:
        activation = self._state.activations[opened.activation]
        what = getattr(opened.detail, "name", "")
        return self._failures.note(error, opened.id, activation.agent, what, activation.request)

    def _context(self, opened: OpenEffect, activation: Activation, tool: Tool) -> ToolContext:
        return ToolContext(
            self._state.run_id,
            opened.id,
            activation.agent,
            f"{opened.run_id}:{opened.id}",
            1 + opened.crashes,
            self._deps,
            read_output=partial(self._shown_before, activation),
            earlier_calls=partial(earlier_calls, self._state, activation, opened.id),
            report_progress=ProgressReport(self._feed, opened).report,
            is_cancelled=lambda: opened.ended,
            dependency_overrides=self._overrides,
            door=self._door(activation, opened, tool),
        )

    def _shown_before(self, activation: Activation, handle: str) -> str | None:
        """The whole of a result that the agent itself was shown in part; of another's nothing."""
        own = handle.startswith(f"{activation.id}/")
        return self._state.outputs.texts.get(handle) if own else None

    async def _act(
        self, tool: Tool, arguments: str, opened: OpenEffect, context: Callable[[], ToolContext]
    ) -> ToolEnd:
        try:
            while True:
                await self._may_act()
                token = self._tokens[opened.id] = StartToken(opened, self._is_fresh)
                try:
                    return await use_tool(
                        tool, arguments, opened, context, self._threads, token, self._failed
                    )
                except LeaseStale:
                    # It waited too long for a thread: the journal is asked again, and may refuse.
                    continue
        finally:
            self._tokens.pop(opened.id, None)

    async def _act_again(
        self, tool: Tool, arguments: str, opened: OpenEffect, context: Callable[[], ToolContext],
        activation: Activation, team: CompiledTeam,
    ) -> ToolEnd:  # fmt: skip
        """Act after a crash, or for an owner who left first, if it is still what was allowed, and not
        denied by now."""
        not_again = in_doubt if opened.crashes else left_undone
        if opened.foreign:
            return not_again(opened.id, f"[{tool.name}] it began elsewhere, before the run was taken in here")
        if await self._has_changed(tool, opened, activation):
            return not_again(opened.id, f"[{tool.name}] it has changed since this call was allowed")
        member = team.members[activation.agent]
        ruling, reason, *_ = judge(self._state, team, member, activation, tool, arguments)
        if ruling == "deny":
            return not_again(opened.id, f"[{tool.name}] it is not run again: {reason}")
        return await self._act(tool, arguments, opened, context)

    async def _has_changed(self, tool: Tool, opened: OpenEffect, activation: Activation) -> bool:
        """Whether the tool is not the one that was allowed; what older rows do not say is unchanged."""
        detail, allowed = opened.detail, ""
        if type(detail) is ToolEffect and detail.digest:
            allowed = detail.digest
        elif opened.manifest and opened.manifest != self._state.owner.manifest:
            data = await self._journal.blob(self._lease.run_id, opened.manifest)
            tools = msgspec.json.decode(data)["agents"].get(activation.agent, {}).get("tools", {})
            allowed = tools.get(tool.name, {}).get("digest", "")
        return bool(allowed) and allowed != tool.digest


async def use_tool(
    tool: Tool | None, arguments: str, opened: OpenEffect, context: Callable[[], ToolContext],
    threads: Callable[[], Threads], token: StartToken | None = None,
    failed: Failed = lambda error, _: trace_of(error),
) -> ToolEnd:  # fmt: skip
    """Run a tool; after a crash, do again only what its contract allows.

    token: of an acting tool, redeemed where its function begins. failed: is told of an exception, and says
    what the journal keeps of it. Raises LeaseStale when the token is refused.
    """
    effect_id, known = opened.id, None
    if tool is None:
        name = opened.detail.name if type(opened.detail) is ToolEffect else "it"
        return in_doubt(effect_id, f"{name} is no longer among the agent's tools")
    try:
        cut_off = opened.crashes and tool.effect == "once" and not resumes(tool, opened)
        if tool.takes_context or cut_off:
            known = context()
        if cut_off:
            return await _reconcile(tool, effect_id, known, threads)
        if tool.isolated:
            child = ChildCall(tool, arguments, known)
            found = await _in_thread(child, tool, threads, token, child.stop)
        else:
            bound = tool.bind(arguments, known)
            found = result_of(await _call(bound, tool, tool.is_async, threads, token, known))
    except LeaseStale:
        raise
    except (NotBegun, NoResult, TimeoutError) as error:
        if token is not None and not token.begun:
            return not_begun(opened, f"[{tool.name}] it was given up before it began")
        reason = f"[{tool.name}] {text_of(error) if error.args else f'no result after {tool.timeout:g} s'}"
        return (
            in_doubt(effect_id, reason)
            if tool.has_side_effects
            else EffectFinished(effect_id, "failed", reason=reason)
        )
    except Done as done:
        return EffectFinished(
            effect_id, content=clean_text(done.result), finishes=True, files=attached(known)
        )
    except Exception as error:  # noqa: BLE001 - a tool's failure is a result that the model is shown
        reason = f"[{tool.name}] {text_of(error)}"
        if token is not None and not token.begun:
            return not_begun(opened, reason)
        # What a tool raises as its answer is no fault in its code.
        trace = "" if isinstance(error, ToolError) else failed(error, opened)
        return EffectFinished(effect_id, "failed", reason=reason, trace=trace)
    finally:
        if known is not None:
            known.door.close()
    if found.is_error or found.changes or found.attachments:
        return ended(opened, tool.name, found, known)
    return EffectFinished(
        effect_id, content=found.content, finishes=found.finishes,
        files=() if known is None else attached(known), labels=found.labels,
    )  # fmt: skip


def resumes(tool: Tool, opened: OpenEffect) -> bool:
    """Whether a `once` tool that was cut off goes on: it waited, and says that it does nothing meanwhile."""
    return opened.waited and tool.reconcile == "resume"


async def _reconcile(
    tool: Tool, effect_id: str, context: ToolContext | None, threads: Callable[[], Threads]
) -> ToolEnd:
    """Ask what became of a `once` effect that a crash cut off; None from `reconcile`: nobody knows."""
    reconcile = tool.reconcile
    if callable(reconcile):
        is_async = asyncio.iscoroutinefunction(reconcile)
        found = await _call(partial(reconcile, context), tool, is_async, threads, None, context)
        if found is not None:
            known = result_of(found)
            end = EffectFinished(
                effect_id, content=known.content, attachments=unshown(known.attachments),
                files=attached(context), labels=known.labels,
            )  # fmt: skip
            return with_changes(end, known)
    return in_doubt(effect_id, f"[{tool.name}] the process stopped while it ran")


async def _call(
    bound: Callable[[], Any],
    tool: Tool,
    is_async: bool,
    threads: Callable[[], Threads],
    token: StartToken | None = None,
    known: ToolContext | None = None,
) -> Any:
    """What a tool's function returns or raises; NoResult when it took too long."""
    limit = known.door.own_time if known is not None else None
    if not is_async:
        return await _in_thread(bound, tool, threads, token, limit=limit)
    if token is not None:
        token.redeem()
    coroutine = bound()
    try:
        waits_for = coroutine.send(None)
    except StopIteration as finished:
        return finished.value
    rest = Stoppable(coroutine, waits_for)
    # Only a tool that really waits pays for a timer.
    try:
        if limit is not None:
            async with limit:
                return await rest
        with Timeout(tool.timeout):
            return await rest
    except TimeoutError:
        if rest.closed:
            raise TimeoutError(
                f"no result after {tool.timeout:g} s; it ignored that and was closed"
            ) from None
        raise


async def _in_thread(
    function: Callable[[], Any], tool: Tool, threads: Callable[[], Threads], token: StartToken | None,
    stop: Callable[[], None] | None = None, limit: AbstractAsyncContextManager[Any] | None = None,
) -> Any:  # fmt: skip
    begin = function if token is None else partial(_begin, token, function)
    try:
        return await threads().run(begin, tool.name, tool.timeout, stop, limit)
    finally:
        if token is not None:
            token.revoke()


def _begin(token: StartToken, bound: Callable[[], Any]) -> Any:
    token.redeem()
    return bound()
