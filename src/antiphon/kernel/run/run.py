"""Run: an open run, as users hold it. They ask, tell, answer, cancel and watch with it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import aclosing
from functools import partial
from math import inf
from typing import Any
from weakref import WeakValueDictionary

import msgspec

from antiphon.errors import RunFailed, UnknownName, UserError
from antiphon.journal import Journal
from antiphon.kernel.context.compaction import HISTORY
from antiphon.kernel.facts.activation import Activation, FinishedCall, OpenEffect
from antiphon.kernel.facts.agent_call import AgentCall
from antiphon.kernel.facts.events import (
    VERDICTS,
    ApprovalEffect,
    CallEffect,
    EffectStarted,
    Event,
    HumanInput,
    QuestionEffect,
    Ruling,
)
from antiphon.kernel.facts.fold.inbox import full
from antiphon.kernel.facts.fold.transcript_edits import read_history
from antiphon.kernel.facts.ids import activation_of
from antiphon.kernel.facts.ledger import NANO
from antiphon.kernel.facts.records import Record
from antiphon.kernel.rules.answers import check_answer
from antiphon.kernel.rules.builtins import options_refused
from antiphon.kernel.rules.team.compiled import answer_for
from antiphon.kernel.run.commands import (
    AnswerInput,
    AskAgent,
    CancelEffect,
    FinishEffect,
    PostMessage,
    Signal,
    known_options,
    posted,
)
from antiphon.kernel.run.live.feed import Subscription
from antiphon.kernel.run.requests import ended_requests, messages_of
from antiphon.kernel.run.rows import read
from antiphon.kernel.run.runtime import Runtime
from antiphon.kernel.run.stopping import DRAINED, next_due, rests
from antiphon.values.agent import AnyAgent, RequestOptions, agents_of
from antiphon.values.fields import fit
from antiphon.values.limits import Limits
from antiphon.values.message import USER, Attachment, Message, ToolCall
from antiphon.values.model import ChatMessage, Usage
from antiphon.values.policy import Grant
from antiphon.values.result import ActivationInfo, Outcome, Result
from antiphon.values.schema.arguments import Invalid

_KEPT_AS = "_antiphon_runs"
InputHandler = Callable[[Message], Awaitable[Any]]
ANSWERS_TRIED = 10
"""How often a handler is asked for an answer that fits."""


class Run:
    """An open run. Made by `open_run`; use it inside its `async with` block only."""

    def __init__(self, runtime: Runtime, journal: Journal) -> None:
        self._runtime, self._journal = runtime, journal
        # Whoever connects to it in this event loop finds it; the loop's own, since a run belongs to one.
        loop = asyncio.get_running_loop()
        if not hasattr(loop, _KEPT_AS):
            setattr(loop, _KEPT_AS, WeakValueDictionary())
        getattr(loop, _KEPT_AS)[journal.place, runtime.feed.run_id] = self

    @property
    def run_id(self) -> str:
        """The run's id; with the same journal it opens the run again."""
        return self._runtime.run_id

    @property
    def seq(self) -> int:
        """The number of the last record."""
        return self._runtime.seq

    @property
    def is_over(self) -> bool:
        """Whether nothing follows here: it was closed or left, or has stopped with an error."""
        return self._runtime.feed.over

    @property
    def at_rest(self) -> bool:
        """Whether nothing happens here until somebody posts or answers, or a timer ends (`due_at`).

        To leave it then cuts nothing off.
        """
        return rests(self._runtime.state)

    @property
    def asks(self) -> bool:
        """Whether a person is asked something now."""
        return any(isinstance(each.detail, HumanInput) for each in self._runtime.state.open.values())

    @property
    def due_at(self) -> float | None:
        """When the next timer of the run ends, Unix seconds; None without one."""
        return next_due(self._runtime.state)

    @property
    def command(self) -> int:
        """The number of the last command that was taken in; 0 for none."""
        return self._runtime.state.command

    @property
    def usage(self) -> Mapping[str, Usage]:
        """Tokens so far, by model."""
        return dict(self._runtime.state.totals.usage)

    @property
    def cost_usd(self) -> float:
        """US dollars spent so far, as far as prices are known."""
        return self._runtime.state.totals.nano_usd / NANO

    async def post(
        self, to: str | AnyAgent, text: str | Message = "", *, attachments: Iterable[Attachment] = (),
        intent: str = "", task_id: str = "", data: Any = None, calls: Iterable[ToolCall] = (),
        inbox: Iterable[Message] = (), limits: Limits | None = None, history: Iterable[ChatMessage] = (),
        options: RequestOptions | None = None,
    ) -> str:  # fmt: skip
        """Ask an agent, or tell the one that works on an open call something more.

        to: an agent, its name, or the id of an open call; only that takes a whole Message. intent: a
        label of the request; `compact` has a continued conversation compacted, `history` has it
        replaced by the messages that the text holds (JSON of ChatMessages), and neither asks anything.
        task_id: the thread. data: JSON for the agent's own hooks and action. calls: tool calls that the
        agent does before it asks its model. inbox: messages it finds there beside the text.
        limits: of this request, within those of the run. history: what was said before, with which the
        agent's conversation begins; only its first request takes one. options: what holds for this request
        alone. Returns the id of the call. Raises UnknownName; UserError for what cannot be asked so, when the
        inbox is full, or the run closed or drained.
        """
        state = self._runtime.state
        if state.owner.draining is not None:
            raise UserError(f"Not posted: {DRAINED}. Post it there")
        name = to if isinstance(to, str) else agents_of(to)[0].name
        opened = state.open.get(name)
        if opened is not None and opened.child:
            refused = full(state.activations[opened.child], state.options.limits)
            whole, said = (text, "") if isinstance(text, Message) else (None, text)
            self._runtime.apply_command(PostMessage(name, said, tuple(attachments), whole))
            if refused:
                raise UserError(f"Not delivered: {refused}")
            return name
        if name not in self._runtime.team.members:
            if opened is not None and opened.queued is not None:
                raise UserError(f"{name} waits for the requests before it; tell it more once it has begun")
            number, slash, _ = name.partition("/")
            if slash and number.isdigit():
                calls_open = [key for key, each in state.open.items() if each.child]
                raise UnknownName("open call", name, calls_open)
            raise UnknownName("agent", name, self._runtime.team.members)
        if isinstance(text, Message):
            raise UserError(f"{name} is an agent: ask it with a text, and give it messages as `inbox`")
        if intent == HISTORY:
            try:
                read_history(text)
            except ValueError as error:
                raise UserError(f"Not a conversation that a provider would take: {error}") from error
        asked = AskAgent(
            name, text, tuple(attachments), intent, task_id, data, tuple(calls), tuple(inbox), limits,
            history=tuple(history), options=None if options is None else known_options(options),
        )  # fmt: skip
        call, user = AgentCall(name, history=asked.history, request=asked.options), state.activations[0]
        more = call.request or call.history
        if more and (wrong := options_refused(state, self._runtime.team, user, call)):
            raise UserError(f"Not asked: {wrong}")
        self._runtime.apply_command(asked)
        return f"0/{user.turn.number}.c1"

    async def result(self, call_id: str) -> Result:
        """Wait for a request that `post` made.

        Raises RunFailed for the outcome `failed`, RunSuspended; UserError in a tool of a request that this
        one waits for, which would wait for itself.
        """
        self._refuse_waiting_for_itself(call_id)
        ended = await self._runtime.result(call_id)
        found = self._result(ended, ended.messages or messages_of(self._runtime.state, call_id))
        cause = self._runtime.failures.take(call_id)
        if found.outcome == "failed":
            raise RunFailed(found) from cause
        return found

    def _refuse_waiting_for_itself(self, call_id: str) -> None:
        state = self._runtime.state
        opened = state.open.get(call_id)
        if opened is None or opened.queued is None or not isinstance(opened.detail, CallEffect):
            return
        effect_id = self._runtime.performed_by(asyncio.current_task())
        activation = state.activations.get(activation_of(effect_id)) if effect_id else None
        line = (state.activations[0].mailbox.requests or {})[opened.detail.agent]
        if activation is not None and activation.request in line[: line.index(call_id)]:
            raise UserError(
                f"{effect_id} waits for {call_id}, which waits until {activation.request} has ended, for"
                f" which {effect_id} works; do not wait for it here, or ask another agent"
            )

    async def results(self) -> AsyncIterator[Result]:
        """How the requests ended that have ended so far, failed ones too, in that order.

        Reads the whole run from the journal. Raises RunSuspended.
        """
        await self._runtime.until_durable()
        async with aclosing(ended_requests(self._journal, self.run_id)) as requests:
            async for ended in requests:
                yield self._result(ended, ended.messages)

    def _result(self, ended: FinishedCall, messages: tuple[Message, ...]) -> Result:
        event = ended.event
        # A request that could not even be made (no such agent, too long) failed.
        outcome: Outcome = (
            "failed" if event.outcome in ("not_found", "invalid_arguments", "denied") else event.outcome
        )
        member = self._runtime.team.members.get(ended.agent)
        answer = answer_for(member, ended.request) if member and outcome == "completed" else None
        return Result(
            event.content,
            outcome,
            event.reason,
            self.run_id,
            event.id,
            ended.usage,
            messages,
            event.attachments + event.files,
            answer.read(event.content) if answer is not None else None,
            event.incomplete,
            ended.task_id,
        )

    async def answer(
        self, effect_id: str, content: str, *, arguments: str = "", by: str = "user",
        grant: Grant | None = None, reason: str = "", ends_turn: bool = False,
    ) -> None:  # fmt: skip
        """Answer an open question; or an approval, or a limit to be raised, with `yes`, `no` or `always`.

        arguments: JSON that replaces the arguments asked for; the tool must take them. grant: how far
        `always` reaches. reason: of a `no`, told to the model; of an outside tool's call that failed, why, in
        place of a content; ends_turn: with the `no` the turn ends too. Raises UserError when the effect asks
        nothing, or the answer does not fit: it says where, what is expected and what was given, and the
        question stays open.
        """
        opened = self._runtime.state.open.get(effect_id)
        if opened is None or not isinstance(opened.detail, HumanInput):
            raise UserError(f"{effect_id} is not an open question or approval")
        if grant is not None and content != "always":
            raise UserError(f"Only `always` is remembered, and so takes a grant; got {content!r}")
        command = posted(AnswerInput(effect_id, content, arguments, by, grant, reason, ends_turn))
        found = check_answer(
            self._runtime.state, self._runtime.team, opened, command.content, command.arguments,
            self._runtime.clock.now(), command.reason,
        )  # fmt: skip
        if isinstance(found, Invalid):
            raise UserError(f"{effect_id} is not answered: {found.text}")
        self._runtime.apply_command(command)

    async def cancel(self, target: str = "", reason: str = "") -> bool:
        """Stop a call or tool and all under it; without a target, every request.

        target: an effect's id. Returns whether there was anything to stop: False for what has ended, or
        never was.
        """
        state = self._runtime.state
        found = target in state.open if target else bool(state.activations[0].open)
        self._runtime.apply_command(CancelEffect(target, reason))
        return found

    def cancel_when(self, signal: Signal, target: str, reason: str = "") -> Callable[[], object]:
        """Cancel `target` once `signal` (an asyncio.Event, say) is set; call the result to stop listening."""
        return self.when(signal, partial(self._runtime.cancel_open, target, reason))

    def performs(self, task: object) -> bool:
        """Whether a task works for this run: whatever is called in it, a tool say, is awaited by the run."""
        return self._runtime.performs(task)

    def when(self, signal: Signal, do: Callable[[], object]) -> Callable[[], object]:
        """Call `do` once `signal` is set, while the run is open; call the result to stop listening."""
        return self._runtime.spawn(_when(signal, do)).cancel

    def on_input(self, handler: InputHandler) -> Callable[[], object]:
        """Show questions and approvals to `handler` from now on; call the result to stop. See `run`.

        One that raises refuses: an approval is answered `no`, a question with the error, and one that has a
        form fails with it.
        """
        asked, later = list(self._runtime.state.open.values()), self.events(self.seq, deltas=False)
        return self._runtime.spawn(self._answer_with(handler, asked, later)).cancel

    async def _answer_with(
        self, handler: InputHandler, open_now: list[OpenEffect], events: Subscription
    ) -> None:
        async with aclosing(events):
            for each in open_now:
                agent = self._runtime.state.activations[each.activation].agent
                asked = EffectStarted(each.id, each.detail)
                await self._put(asked, agent, handler, fails="no")
            async for item in events:
                if isinstance(item, Record):
                    await self._put(item.event, item.agent, handler, fails="no")

    async def _put(self, event: Event, agent: str, on_input: InputHandler, *, fails: str = "") -> None:
        """Show a question to a person and send the answer back. fails: the answer when that raises."""
        detail = event.detail if isinstance(event, EffectStarted) else None
        if not isinstance(event, EffectStarted) or not isinstance(detail, HumanInput):
            return
        if getattr(detail, "joins", ""):
            return
        message, wrong = _shown(event.id, agent, detail), ""
        for _ in range(ANSWERS_TRIED):
            if wrong:
                message = msgspec.structs.replace(message, data={**(message.data or {}), "refused": wrong})
            try:
                answer = str(await on_input(message))
            except Exception as error:
                if not fails:
                    raise
                await self._refuse(event.id, detail, f"No answer: {error}")
                return
            wrong = await self._give(event.id, detail, answer)
            if not wrong:
                return
        said = f"{ANSWERS_TRIED} answers did not fit; the last one: {wrong}"
        if not fails:
            raise UserError(f"on_input: {said}")
        await self._refuse(event.id, detail, f"No answer: {said}")

    async def _give(self, effect_id: str, detail: HumanInput, answer: str) -> str:
        """Give an answer, as the user; why it did not fit. To an approval what is no clear yes is a no."""
        if isinstance(detail, Ruling) and answer not in VERDICTS:
            answer = "no"
        if effect_id in self._runtime.state.open:
            try:
                await self.answer(effect_id, answer)
            except UserError as error:
                if effect_id in self._runtime.state.open and not self.is_over:
                    return str(error)
                raise
        return ""

    async def _refuse(self, effect_id: str, detail: HumanInput, reason: str) -> None:
        """What nobody can be asked: an approval is answered `no`, a question with the reason, one with a form
        fails for it."""
        if effect_id not in self._runtime.state.open:
            return
        if type(detail) is QuestionEffect and (detail.options or detail.tool or detail.schema is not None):
            self._runtime.apply_command(FinishEffect(effect_id, "", "failed", reason, "nobody"))
        else:
            await self.answer(effect_id, "no" if isinstance(detail, Ruling) else reason, by="nobody")

    def transcript(self, agent: str | AnyAgent) -> tuple[ChatMessage, ...]:
        """What an agent with `context="continue"` would go on with; empty when the user never asked it."""
        state = self._runtime.state
        name = agent if isinstance(agent, str) else agents_of(agent)[0].name
        number = state.dormant.get((0, name))
        return tuple(state.activations[number].conversation.transcript.messages) if number is not None else ()

    def events(self, after: int = 0, *, deltas: bool = True) -> Subscription:
        """An async iterator over records numbered above `after`, and deltas as they come.

        A reply that is being written now comes as one piece, as far as it is said. Once the iterator has
        ended, its `ended` says why: `closed`, `suspended` (the run was left, and can be resumed), `failed`.
        """
        return Subscription(self._runtime.feed, self._journal, after, deltas, self._runtime.seq)

    async def records(self, after: int = 0) -> list[Record]:
        """The records numbered above `after`, of the whole run so far."""
        await self._runtime.until_durable()
        return await read(self._journal, self.run_id, after)

    async def until_durable(self) -> None:
        """Return once everything so far is as durable as the journal makes it. Raises RunSuspended."""
        await self._runtime.until_durable()

    def activation(self, number: int) -> ActivationInfo:
        """What one live activation sees. Raises UnknownName when there is none of that number."""
        found = self._runtime.state.activations.get(number)
        if found is None:
            known = map(str, self._runtime.state.activations)
            raise UnknownName("activation", str(number), known)
        return activation_info(found)

    def activations(self) -> tuple[ActivationInfo, ...]:
        """What every activation sees, dormant ones too, in the order they were created."""
        return tuple(
            activation_info(each) for _, each in sorted(self._runtime.state.activations.items()) if each.id
        )

    async def open_requests(self) -> tuple[str, ...]:
        """The ids of the user's requests that are still open."""
        return tuple(self._runtime.state.activations[0].open)

    async def drain(self, seconds: float) -> tuple[str, ...]:
        """Prepare to leave without harm: nothing new starts, and what is in flight gets `seconds` to end.

        Tools, model calls, instructions and steps of actions that run may end, and are recorded; timers,
        people and actions that wait for these are not waited for. A reply that comes starts no tool, and a
        tool with side effects that had not begun does not begin: whoever opens the run next goes on there.
        From the call on messages are refused, answers and cancels are recorded, and what others post through
        the journal stays in its queue; when it returns, those who wait for a request that is still open get
        RunSuspended. The ids of the effects that still run then are returned; leaving the block cuts them
        off. A second call waits for the same. Raises UserError for what is no number of seconds of 0 or
        more, RunSuspended.
        """
        bound = fit(seconds, float, "Run.drain(seconds)")
        if not 0 <= bound < inf:
            raise UserError(f"Run.drain(seconds) takes a number of seconds, 0 or more; got {bound!r}")
        return () if self._runtime.state.closed else await self._runtime.drain(bound)

    async def until_over(self) -> None:
        """Return once nothing follows here: the run was left, or has stopped with an error."""
        await asyncio.wait((self._runtime.spawn(_as_long_as_it_is_open()),))

    async def close(self, reason: str = "") -> None:
        """End the run for good; what is still open is cancelled first. `events` end with its last record."""
        if self._runtime.state.activations[0].open:
            await self.cancel(reason=reason or "the run was closed")
        await self._runtime.close(reason)
        self._runtime.feed.end("closed")


def _shown(effect_id: str, agent: str, detail: HumanInput) -> Message:
    """What a person is asked, as a message to them."""
    intent, data = "", dict[str, Any]()
    if type(detail) is ApprovalEffect:
        intent, data = "approval", {"tool": detail.name, "arguments": detail.arguments}
    elif type(detail) is QuestionEffect:
        data = {"options": list(detail.options)} if detail.options else data
        data = {"schema": detail.schema} if detail.schema is not None else data
        if detail.tool:
            intent = "tool"
            data |= {"tool": detail.tool, "arguments": detail.arguments, "call_id": detail.call_id}
    else:
        intent = "limit"
    if detail.deadline is not None:
        data["deadline"] = detail.deadline
    return Message("forward", agent, USER, detail.text, effect_id, intent=intent, data=data or None)


def open_here(journal: Journal, run_id: str) -> Run | None:
    """The run, if the running event loop drives it, under whatever object for the same journal."""
    known = getattr(asyncio.get_running_loop(), _KEPT_AS, {})
    found: Run | None = known.get((journal.place, run_id))
    return found if found is not None and not found.is_over else None


async def _as_long_as_it_is_open() -> None:
    await asyncio.get_running_loop().create_future()


async def _when(signal: Signal, do: Callable[[], object]) -> None:
    await signal.wait()
    do()


def activation_info(activation: Activation) -> ActivationInfo:
    """What an activation sees, as users are told it."""
    return ActivationInfo(
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
        activation.call,
        activation.task_id,
    )
