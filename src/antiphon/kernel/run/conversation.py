"""The public face: run, stream, open_run; conversations, requests and their results."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import aclosing, asynccontextmanager
from functools import partial
from typing import Any, Literal

import msgspec

from antiphon.errors import RunFailed, UnknownName, UserError
from antiphon.journal import Journal, open_journal
from antiphon.journal.port import Lease
from antiphon.kernel.context.compaction import HISTORY
from antiphon.kernel.facts import summary
from antiphon.kernel.facts.activation import Activation, OpenEffect
from antiphon.kernel.facts.events import (
    ApprovalEffect,
    CancelRequested,
    EffectStarted,
    Event,
    HumanInput,
    Ruling,
    RunResumed,
    RunStarted,
)
from antiphon.kernel.facts.fold.inbox import full
from antiphon.kernel.facts.fold.transcript_edits import read_history
from antiphon.kernel.facts.ledger import NANO
from antiphon.kernel.facts.options import Options
from antiphon.kernel.facts.records import ActivationIndex, Record
from antiphon.kernel.facts.state import RunState
from antiphon.kernel.rules.next import Emit
from antiphon.kernel.rules.team.compile import make_team
from antiphon.kernel.rules.team.compiled import CompiledTeam, ModelOption
from antiphon.kernel.run.clock import Clock, SystemClock
from antiphon.kernel.run.commands import VERDICTS, AnswerInput, AskAgent, CancelEffect, PostMessage, Signal
from antiphon.kernel.run.feed import Subscription
from antiphon.kernel.run.rows import fold, read
from antiphon.kernel.run.runtime import Runtime
from antiphon.values.agent import Agent
from antiphon.values.codec import whole
from antiphon.values.fields import check_fields
from antiphon.values.limits import DEFAULTS, Limits, OutputLimits
from antiphon.values.message import USER, Attachment, Message, ToolCall, new_id
from antiphon.values.model import ChatMessage, Model, Usage
from antiphon.values.policy import Grant, Policy
from antiphon.values.result import Outcome, Result, View
from antiphon.values.tool import ToolContext

InputHandler = Callable[[Message], Awaitable[Any]]


class Conversation:
    """An open run. Made by `open_run`; use it inside its `async with` block only."""

    def __init__(self, runtime: Runtime, journal: Journal) -> None:
        self._runtime, self._journal = runtime, journal

    @property
    def run_id(self) -> str:
        """The run's id; with the same journal it opens the run again."""
        return self._runtime.run_id

    @property
    def seq(self) -> int:
        """The number of the last record."""
        return self._runtime.seq

    @property
    def usage(self) -> Mapping[str, Usage]:
        """Tokens so far, by model."""
        return dict(self._runtime.state.totals.usage)

    @property
    def spent(self) -> float:
        """US dollars spent so far, as far as prices are known."""
        return self._runtime.state.totals.nano_usd / NANO

    async def post(
        self, to: str | Agent, text: str | Message = "", *, attachments: Iterable[Attachment] = (),
        intent: str = "", task_id: str = "", data: Any = None, calls: Iterable[ToolCall] = (),
        mail: Iterable[Message] = (), limits: Limits | None = None,
    ) -> str:  # fmt: skip
        """Ask an agent, or tell the one that works on an open call something more.

        to: an agent, its name, or the id of an open call; only that takes a whole Message. intent: a
        label of the request; `compact` has a continued conversation compacted, `history` has it
        replaced by the messages that the text holds (JSON of ChatMessages), and neither asks anything.
        task_id: the thread. data: JSON for the agent's own hooks and action. calls: tool calls that the
        agent does before it asks its model. mail: messages it finds in its inbox beside the text.
        limits: of this request, within those of the run.
        Returns the id of the call. Raises UnknownName; UserError when the inbox is full, or the run closed.
        """
        state = self._runtime.state
        name = to.name if isinstance(to, Agent) else to
        opened = state.open.get(name)
        if opened is not None and opened.child:
            refused = full(state.activations[opened.child], state.options.limits)
            whole = text if isinstance(text, Message) else None
            said = "" if isinstance(text, Message) else text
            self._runtime.apply_command(PostMessage(name, said, tuple(attachments), whole))
            if refused:
                raise UserError(f"Not delivered: {refused}")
            return name
        if name not in self._runtime.team.members:
            number, slash, _ = name.partition("/")
            if slash and number.isdigit():
                calls_open = [key for key, each in state.open.items() if each.child]
                raise UnknownName("open call", name, calls_open)
            raise UnknownName("agent", name, self._runtime.team.members)
        if isinstance(text, Message):
            raise UserError(f"{name} is an agent: ask it with a text, and give it messages as `mail`")
        if intent == HISTORY:
            try:
                read_history(text)
            except ValueError as error:
                raise UserError(f"Not a conversation that a provider would take: {error}") from error
        self._runtime.apply_command(
            AskAgent(name, text, tuple(attachments), intent, task_id, data, tuple(calls), tuple(mail), limits)
        )
        return f"0/{state.activations[0].turn.number}.c1"

    async def result(self, call_id: str) -> Result:
        """Wait for a request that `post` made. Raises RunFailed for the outcome `failed`, RunSuspended."""
        ended = await self._runtime.result(call_id)
        event = ended.event
        log = self._runtime.state.log
        messages = tuple(logged.message for logged in log if logged.request == call_id)
        # A request that could not even be made (no such agent, too long) failed.
        outcome: Outcome = (
            "failed" if event.outcome in ("not_found", "invalid_arguments", "denied") else event.outcome
        )
        agent = next((each.receiver for each in messages if each.id == call_id + ">"), "")
        member = self._runtime.team.members.get(agent)
        answer = member.answer if member is not None and outcome == "completed" else None
        found = Result(
            event.content,
            outcome,
            event.reason,
            self.run_id,
            call_id,
            ended.usage,
            messages,
            event.attachments,
            answer.read(event.content) if answer is not None else None,
        )
        if outcome == "failed":
            raise RunFailed(found)
        return found

    async def answer(
        self, effect_id: str, content: str, *, arguments: str = "", by: str = "user",
        grant: Grant | None = None,
    ) -> None:  # fmt: skip
        """Answer an open question; or an approval, or a limit to be raised, with `yes`, `no` or `always`.

        arguments: JSON that replaces the arguments asked for. grant: how far `always` reaches. Raises
        UserError when the effect asks nothing, or the answer is none of those.
        """
        opened = self._runtime.state.open.get(effect_id)
        detail = opened.detail if opened is not None else None
        if not isinstance(detail, HumanInput):
            raise UserError(f"{effect_id} is not an open question or approval")
        if isinstance(detail, Ruling) and content not in VERDICTS:
            raise UserError(f"An approval is answered yes, no or always; got {content!r}")
        if grant is not None and content != "always":
            raise UserError(f"Only `always` is remembered, and so takes a grant; got {content!r}")
        self._runtime.apply_command(AnswerInput(effect_id, content, arguments, by, grant))

    async def cancel(self, target: str = "", why: str = "") -> None:
        """Stop a call or tool and all under it; without a target, every request."""
        self._runtime.apply_command(CancelEffect(target, why))

    def cancel_when(self, signal: Signal, target: str, why: str = "") -> Callable[[], object]:
        """Cancel `target` once `signal` (an asyncio.Event, say) is set; call the result to stop listening."""
        return self._runtime.cancel_when(signal, target, why)

    def attend(self, on_input: InputHandler) -> Callable[[], object]:
        """From now on show questions and approvals to `on_input`, see `run`; call the result to stop.

        One that raises refuses: an approval is answered `no`, a question with the error.
        """
        asked, later = list(self._runtime.state.open.values()), self.events(self.seq, deltas=False)
        return self._runtime.spawn(self._attend(on_input, asked, later)).cancel

    async def _attend(self, on_input: InputHandler, open_now: list[OpenEffect], events: Subscription) -> None:
        async with aclosing(events):
            for each in open_now:
                agent = self._runtime.state.activations[each.activation].agent
                asked = EffectStarted(each.id, each.detail)
                await self._put(asked, agent, on_input, fails="no")
            async for item in events:
                if isinstance(item, Record):
                    await self._put(item.event, item.agent, on_input, fails="no")

    async def _put(self, event: Event, agent: str, on_input: InputHandler, *, fails: str = "") -> None:
        """Show a question to a person and send the answer back. fails: the answer when that raises."""
        detail = event.detail if isinstance(event, EffectStarted) else None
        if not isinstance(event, EffectStarted) or not isinstance(detail, HumanInput):
            return
        approval = isinstance(detail, Ruling)
        message = Message("forward", agent, USER, detail.text, event.id)
        if approval:
            asked = None
            if type(detail) is ApprovalEffect:
                asked = {"tool": detail.name, "arguments": detail.arguments}
            intent = "approval" if asked else "limit"
            message = msgspec.structs.replace(message, intent=intent, data=asked)
        try:
            answer, by = str(await on_input(message)), USER
        except Exception as error:
            if not fails:
                raise
            answer, by = fails if approval else f"No answer: {error}", "nobody"
        if event.id in self._runtime.state.open:
            await self.answer(event.id, answer if not approval or answer in VERDICTS else "no", by=by)

    def history(self, agent: str | Agent) -> tuple[ChatMessage, ...]:
        """What an agent with `context="continue"` would go on with; empty when the user never asked it."""
        state = self._runtime.state
        number = state.dormant.get((0, agent.name if isinstance(agent, Agent) else agent))
        return tuple(state.activations[number].conversation.transcript.messages) if number is not None else ()

    def events(self, after: int = 0, *, deltas: bool = True) -> Subscription:
        """An async iterator over records numbered above `after`, and deltas as they come."""
        return Subscription(self._runtime.feed, self._journal, after, deltas)

    async def records(self, after: int = 0) -> list[Record]:
        """The records numbered above `after`, of the whole run so far."""
        await self._runtime.until_durable()
        return await read(self._journal, self.run_id, after)

    def view(self, activation: int) -> View:
        """What one live activation sees. Raises UnknownName when there is none of that number."""
        found = self._runtime.state.activations.get(activation)
        if found is None:
            known = map(str, self._runtime.state.activations)
            raise UnknownName("activation", str(activation), known)
        return _view(found)

    def views(self) -> tuple[View, ...]:
        """What every activation sees, those at rest too, in the order they were born."""
        return tuple(_view(each) for _, each in sorted(self._runtime.state.activations.items()) if each.id)

    async def requests(self) -> tuple[str, ...]:
        """The ids of the user's requests that are still open."""
        return tuple(self._runtime.state.activations[0].open)

    async def close(self, why: str = "") -> None:
        """End the run for good; what is still open is cancelled first."""
        if self._runtime.state.activations[0].open:
            await self.cancel(why=why or "the run was closed")
        await self._runtime.close(why)


def _view(activation: Activation) -> View:
    return View(
        activation.id,
        activation.agent,
        activation.phase,
        activation.turn.number,
        tuple(activation.conversation.transcript.messages),
        tuple(activation.mailbox.inbox),
        tuple(activation.open),
        activation.caller,
        dict(activation.data),
        tuple(activation.message_log or ()),
        dict(activation.mailbox.unread or {}),
    )


@asynccontextmanager
async def open_run(
    agents: Iterable[Agent] = (),
    *,
    journal: Journal | str | None = None,
    run_id: str | None = None,
    create: bool = False,
    model: str | Model | None = None,
    windows: Mapping[str, int] | None = None,
    limits: Limits | None = None,
    policy: Policy | None = None,
    interactive: bool = True,
    background: bool = False,
    extra_instructions: str | Mapping[str, str] = "",
    extra_scope: Literal["entry", "all"] = "entry",
    disabled_tools: Iterable[str] = (),
    outputs: OutputLimits | None = None,
    deps: Any = None,
    overrides: Mapping[str, Callable[[ToolContext], Any]] | None = None,
    data: Any = None,
    clock: Clock | None = None,
    env: Mapping[str, str] | None = None,
) -> AsyncIterator[Conversation]:
    """Open a new run, or with `run_id` one that the journal holds, and go on with it.

    agents: the team. journal: a Journal, `sqlite:///path`, or None for memory (ANTIPHON_HOME
    makes it durable). model: for every agent, instead of its own. interactive: somebody can answer
    questions. background: agents may call without waiting. extra_instructions: added to the prompt
    of the agents that the user asks, or of `all`; a mapping has a text for each agent it names.
    deps: handed to tools. overrides: what their `ctx.resolve` makes instead, by the dependency's id.
    data: JSON kept with the run. create: start the run under `run_id` if the journal has none.
    windows: tokens that models take, by name. outputs: how much of tool results a model is shown.
    The options of a run that is opened again are those it was started with.
    """
    plain = Options(limits or DEFAULTS, policy or Policy(), interactive, background)
    options = msgspec.structs.replace(
        _instructed(plain, extra_instructions, extra_scope),
        disabled=tuple(disabled_tools),
        outputs=outputs or OutputLimits(),
    )
    check_fields(options)
    store, owned = _journal(journal, os.environ if env is None else env)
    roster = _Roster(tuple(agents), model, env, windows or {})
    try:
        roster.team(options)
        lease, state, cast = await _reopen(store, run_id or new_id(), create or run_id is None)
        runtime = Runtime(store, lease, roster.team, state, cast, clock or SystemClock(), deps, overrides)
        # A process can die between its claim and its first record: then nothing was started yet.
        first = RunResumed(interactive) if lease.seq else RunStarted(lease.run_id, options, data)
        try:
            runtime.start(first)
            if store.durability != "none" or not owned:
                runtime.open_mail()
            yield Conversation(runtime, store)
        finally:
            await runtime.leave(summary.encode(summary.summary_of(runtime.state, runtime.seq)))
    finally:
        await roster.close()
        if owned:
            await store.close()


def _instructed(options: Options, extra: str | Mapping[str, str], scope: Literal["entry", "all"]) -> Options:
    if scope not in ("entry", "all"):
        raise UserError(f"extra_scope is 'entry' or 'all'; got {scope!r}")
    if isinstance(extra, str):
        return msgspec.structs.replace(options, extra=extra, extra_scope=scope)
    return msgspec.structs.replace(options, extra_for=tuple(extra.items()))


async def _reopen(
    store: Journal, run_id: str, create: bool = False
) -> tuple[Lease, RunState, ActivationIndex]:
    """Claim a stored run and fold it; the claim is given back when that fails."""
    lease, cast = await store.claim(run_id, create=create), ActivationIndex()
    if not lease.seq:
        return lease, RunState(), cast
    try:
        state = await fold(store, run_id, cast.learn)
        if state.closed:
            raise UserError(f"Run {run_id} is closed; nothing can follow. Start a new one")
    except BaseException:
        await store.release(lease)
        raise
    return lease, state, cast


async def cancel_run(journal: Journal, run_id: str, why: str = "") -> None:
    """Cancel every request of a run that nobody drives, and close it; its agents are not needed.

    Raises RunInUse when somebody drives it (post a `command.Cancel` then), UnknownName, UserError when
    it is closed.
    """
    lease, state, cast = await _reopen(journal, run_id)
    runtime = Runtime(
        journal, lease, lambda options: CompiledTeam({}, {}, False), state, cast, SystemClock(), None
    )
    try:
        # In one append: nothing that was in flight is taken up again in between.
        first: RunStarted | RunResumed = RunResumed() if lease.seq else RunStarted(run_id)
        runtime.record(partial(_resumed_to_cancel, first, why))
        await runtime.close(why)
    finally:
        await runtime.leave(summary.encode(summary.summary_of(runtime.state, runtime.seq)))


def _resumed_to_cancel(first: Event, why: str, emit: Emit) -> None:
    emit(first)
    emit(CancelRequested("", whole(why)))


def _journal(journal: Journal | str | None, env: Mapping[str, str]) -> tuple[Journal, bool]:
    if journal is None and env.get("ANTIPHON_HOME"):
        journal = "sqlite:///" + os.path.join(env["ANTIPHON_HOME"], "antiphon.db")
    if journal is None or isinstance(journal, str):
        return open_journal(journal), True
    return journal, False


def _choice(model: Model, windows: Mapping[str, int], env: Mapping[str, str]) -> ModelOption:
    """What is known of a model: what the caller says of its window, its own word, else the catalog's."""
    # Not at import: the first lookup reads the catalog, and a model in this process needs none.
    from antiphon.models.rates import rates_of

    known = rates_of(model, env)
    window = windows.get(model.name) or known.window
    return ModelOption(model, window, known.dear_input, known.dear_output, known.bill)


class _Roster:
    """Agents, and the models they name, each made once and closed with the run."""

    def __init__(
        self,
        agents: tuple[Agent, ...],
        model: str | Model | None,
        env: Mapping[str, str] | None,
        windows: Mapping[str, int],
    ) -> None:
        self._agents, self._model, self._env, self._windows = agents, model, env, windows
        self._models: dict[str, Model] = {}
        self._team: tuple[Options, CompiledTeam] | None = None

    def team(self, options: Options) -> CompiledTeam:
        """Compile the team, once for the same options."""
        if self._team is None or self._team[0] != options:
            self._team = options, make_team(self._agents, options, partial(self._models_of, options))
        return self._team[1]

    def _models_of(self, options: Options, agent: Agent) -> tuple[ModelOption, ...]:
        first = self._model if self._model is not None else agent.model
        try:
            models = [self._resolve(spec) for spec in (first, *agent.asking.fallback_models)]
        except UserError:
            if first is None and (agent.hooks.plan_turn is not None or agent.hooks.act is not None):
                # It may never ask one; if it does, it is told so then.
                return ()
            raise
        env = os.environ if self._env is None else self._env
        choices = [_choice(model, self._windows, env) for model in models]
        for limits in (agent.limits, options.limits):
            if limits is not None and limits.on_breach == "degrade":
                spare = _choice(self._resolve(limits.breach_target), self._windows, env)
                choices.append(msgspec.structs.replace(spare, spare=limits.breach_target))
        return tuple(choices)

    def _resolve(self, spec: str | Model | None) -> Model:
        if spec is not None and not isinstance(spec, str):
            return spec
        key = spec or ""
        if key not in self._models:
            # Only a model string needs these, and they are slow to import.
            from antiphon.config.dotenv import environment
            from antiphon.models import resolve_model

            if self._env is None:
                self._env = environment()
            self._models[key] = resolve_model(spec, self._env)
        return self._models[key]

    async def close(self) -> None:
        """Close the models that were made here."""
        for model in self._models.values():
            close = getattr(model, "aclose", None)
            if close is not None:
                await close()
