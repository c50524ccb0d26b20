"""Commands: what an outsider may leave for the owner of a run. Only the owner appends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any, Protocol, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from antiphon.errors import UserError
from antiphon.journal.port import Journal
from antiphon.kernel.facts.agent_call import AgentCall
from antiphon.kernel.facts.events import (
    CallEffect,
    CancelRequested,
    EffectFinished,
    Event,
    HumanInput,
    MessagePosted,
    QuestionEffect,
    Ruling,
)
from antiphon.kernel.facts.fold.inbox import full
from antiphon.kernel.facts.fold.transcript_edits import check_history
from antiphon.kernel.facts.state import RunState
from antiphon.kernel.rules.answers import check_answer
from antiphon.kernel.rules.team.compiled import CompiledTeam
from antiphon.values.agent import Agent, RequestOptions
from antiphon.values.codec import clean_fields, clean_text, encode_shallow
from antiphon.values.fields import fit, unchecked
from antiphon.values.limits import Limits
from antiphon.values.message import USER, Attachment, Message, ToolCall, new_id
from antiphon.values.model import ChatMessage
from antiphon.values.policy import Grant
from antiphon.values.result import Outcome
from antiphon.values.schema.arguments import Invalid

COMMANDS_PER_YIELD = 64
"""Commands that are taken in before others have the loop."""
HEARTBEAT_SECONDS = 5.0
"""Seconds between two signs of life of an owner."""
FOREVER = 1 << 62


class Signal(Protocol):
    """What may stop a request from outside: an `asyncio.Event`, for one."""

    def is_set(self) -> bool: ...

    async def wait(self) -> object:
        """Return once it is set."""
        ...


class AskAgent(Struct, frozen=True, tag=True, omit_defaults=True):
    """A request: call `agent` with `text`, as the user.

    intent, task_id, data: the message's. calls: what the agent does before it asks its model. inbox:
    messages that it finds in its inbox beside this one. limits: of this request. traceparent: of whoever
    asks, see MessagePosted. history: what was said before, see AgentCall. options: what holds for this
    request alone.
    """

    agent: str
    text: str
    attachments: tuple[Attachment, ...] = ()
    intent: str = ""
    task_id: str = ""
    data: Any = None
    calls: tuple[ToolCall, ...] = ()
    inbox: tuple[Message, ...] = ()
    limits: Limits | None = None
    traceparent: str = ""
    history: tuple[ChatMessage, ...] = ()
    options: RequestOptions | None = None


class PostMessage(Struct, frozen=True, tag=True, omit_defaults=True):
    """A message to the agent that works on the open call `call_id`; `message` stands in for the text."""

    call_id: str
    text: str
    attachments: tuple[Attachment, ...] = ()
    message: Message | None = None


class AnswerInput(Struct, frozen=True, tag=True, omit_defaults=True):
    """A person's answer to the open question or approval `effect_id`.

    To an approval `yes`, `no` or `always`; `arguments` (JSON) replaces what was asked for; `grant`
    says how far `always` reaches. Of a `no`, `reason` is told to the model, and `ends_turn` ends the turn.
    To the call of an outside tool its result, or as `reason` alone why it failed.
    """

    effect_id: str
    content: str
    arguments: str = ""
    by: str = USER
    grant: Grant | None = None
    reason: str = ""
    ends_turn: bool = False


class CallTool(Struct, frozen=True, tag=True, omit_defaults=True):
    """A call of a tool of `agent`, as the user and without its model.

    It is one that the agent's own hook answers at once, such as a change of its team's plan. arguments: JSON.
    by: who calls.
    """

    agent: str
    tool: str
    arguments: str = "{}"
    by: str = USER


class CancelEffect(Struct, frozen=True, tag=True, omit_defaults=True):
    """Stop the effect `target` and all under it; empty: every request."""

    target: str = ""
    reason: str = ""


class FinishEffect(Struct, frozen=True, tag=True, omit_defaults=True):
    """End an effect in flight that somebody else has done, or given up: its performer is stopped.

    Not a call of an agent, which has work of its own under it: that is cancelled.
    """

    effect_id: str
    content: str = ""
    outcome: Outcome = "completed"
    reason: str = ""
    by: str = USER
    source: str = ""
    """The run or system that the end comes from."""


Command = AskAgent | PostMessage | AnswerInput | CallTool | CancelEffect | FinishEffect

_message = unchecked(Message)
encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Command).decode
OUTSIDER = "outsider"
"""Who answers through the journal; a name that they gave themselves stands behind it."""


def decode(body: bytes) -> Command:
    """A command as it was posted, under whatever names. Raises msgspec.DecodeError, RecursionError."""
    try:
        found: Command = _decode(_renamed(body))
    except UnicodeDecodeError as error:
        raise msgspec.DecodeError(str(error)) from error
    return found


def request(command: AskAgent) -> Message:
    """The user's request as a message: it carries the call that the user's turn will do."""
    asked = AgentCall(
        command.agent, command.text, intent=command.intent, task_id=command.task_id, data=command.data,
        calls=command.calls, inbox=command.inbox, limits=command.limits, history=command.history,
        request=command.options,
    )  # fmt: skip
    arguments = msgspec.json.encode(asked).decode()
    return _message(
        "forward", USER, USER, "", calls=(ToolCall("request", "call_agent", arguments, command.attachments),)
    )


def tool_call(command: CallTool) -> Message:
    """A person's call of an agent's tool as a message: it carries the call that the user's turn will do."""
    call = ToolCall("call", command.tool, command.arguments)
    return _message("forward", USER, command.agent, "", source=command.by, calls=(call,))


def known_history(messages: Iterable[ChatMessage]) -> tuple[ChatMessage, ...]:
    """What was said before a request. Raises UserError for what no provider would take."""
    found = tuple(messages)
    try:
        check_history(found)
    except ValueError as error:
        raise UserError(f"Not a conversation that a provider would take: {error}") from error
    return found


def known_options(
    options: RequestOptions | None, agent: Agent[Any, Any] | None = None
) -> RequestOptions | None:
    """The options of a request. Raises UserError where no agent, or not this one, can be asked so."""
    options = fit(options, RequestOptions | None, "options")
    if options is not None:
        wrong = options.wrong() if agent is None else options.wrong_for(agent)
        if wrong:
            raise UserError(f"Not asked: {wrong}")
    return options


_Posted = TypeVar("_Posted", bound=Command)


def posted(command: _Posted) -> _Posted:
    """A command as it would come from the queue. Raises UserError for one that JSON cannot hold."""
    try:
        found: Any = decode(encode_shallow(clean_fields(command)))
    except (TypeError, ValueError, RecursionError) as error:
        raise UserError(f"Not posted: it must be what JSON can hold: {error}") from error
    return found  # type: ignore[no-any-return]


def apply_command(state: RunState, team: CompiledTeam, command: Command, at: float, number: int = 0) -> Event:
    """The event that a clean command becomes; one that comes too late, or does not fit, is a dead letter.

    at: the time, Unix seconds.
    """
    if isinstance(command, AskAgent):
        return MessagePosted(request(command), command=number, traceparent=command.traceparent)
    if isinstance(command, CallTool):
        return MessagePosted(tool_call(command), command=number)
    if isinstance(command, CancelEffect):
        return CancelRequested(command.target, command.reason, number)
    if isinstance(command, FinishEffect):
        return _finished(state, team, command, at, number)
    if isinstance(command, AnswerInput):
        return _answered(state, team, command, at, number)
    opened = state.open.get(command.call_id)
    if opened is None or not opened.child:
        waits = opened is not None and opened.queued is not None
        why = "waits for the requests before it" if waits else "is not an open call"
        return _dead(command.text, command.call_id, f"{command.call_id} {why}", number)
    receiver = state.activations[opened.child]
    message = command.message or _message(
        "forward",
        USER,
        receiver.agent,
        command.text,
        command.call_id,
        new_id(),
        attachments=command.attachments,
    )
    return MessagePosted(message, receiver.id, number, full(receiver, state.options.limits))


def _answered(state: RunState, team: CompiledTeam, command: AnswerInput, at: float, number: int) -> Event:
    opened = state.open.get(command.effect_id)
    if opened is None or not isinstance(opened.detail, HumanInput):
        reason = f"{command.effect_id} is not an open question"
        return _dead(command.content, command.effect_id, reason, number)
    reason = command.reason
    found = check_answer(state, team, opened, command.content, command.arguments, at, reason)
    if isinstance(found, Invalid):
        return _dead(command.content, command.effect_id, found.text, number)
    content, arguments = found
    tool = opened.detail.tool if type(opened.detail) is QuestionEffect else ""
    failed = bool(tool and reason)
    return EffectFinished(
        command.effect_id,
        "failed" if failed else "completed",
        content,
        arguments=arguments,
        decided_by=command.by,
        command=number,
        grant=command.grant if content == "always" else None,
        reason=f"[{tool}] {reason}" if failed else reason,
        finishes=command.ends_turn and content == "no",
    )


def _finished(state: RunState, team: CompiledTeam, command: FinishEffect, at: float, number: int) -> Event:
    opened = state.open.get(command.effect_id)
    if opened is None or isinstance(opened.detail, CallEffect | Ruling):
        reason = f"{command.effect_id} is no open effect that could be ended so"
        return _dead(command.content, command.effect_id, reason, number)
    content = command.content
    if type(opened.detail) is QuestionEffect and command.outcome == "completed":
        found = check_answer(state, team, opened, content, at=at)
        if isinstance(found, Invalid):
            return _dead(content, command.effect_id, found.text, number)
        content, _ = found
    return EffectFinished(
        command.effect_id, command.outcome, content, reason=command.reason, decided_by=command.by,
        source=command.source, command=number,
    )  # fmt: skip


def apply_stored(state: RunState, team: CompiledTeam, body: bytes, at: float, number: int) -> Event:
    """`apply_command` for one as it was posted; what is no command is a dead letter, and stops no run."""
    try:
        command = from_outside(clean_fields(decode(body)))
    except (msgspec.DecodeError, RecursionError) as error:
        return _dead("", USER, f"command {number} cannot be read: {clean_text(str(error))}", number)
    return apply_command(state, team, command, at, number)


async def read_commands(
    journal: Journal, state: RunState, team: CompiledTeam, now: Callable[[], float],
    record: Callable[[Event], None],
) -> None:  # fmt: skip
    """Take in what outsiders post, until the run is closed."""
    while not state.closed:
        for command in await journal.commands(state.run_id, state.command):
            record(apply_stored(state, team, command.body, now(), command.number))
            if command.number % COMMANDS_PER_YIELD == 0:
                await asyncio.sleep(0)
        await journal.wait(state.run_id, FOREVER, state.command)


async def beat(journal: Journal) -> None:
    """Say that the owner lives."""
    while True:
        await asyncio.sleep(HEARTBEAT_SECONDS)
        await journal.beat()


def from_outside(command: Command) -> Command:
    """A stored command without the names that its poster chose.

    The journal does not know who posted, only that it was no code of the owner's: so nobody gets to be
    an agent, or the owner's own user. An answer and a call keep the name that was given, marked as an
    `OUTSIDER`'s.
    """
    if isinstance(command, AnswerInput | CallTool | FinishEffect):
        name = "" if command.by == USER else command.by
        return replace(command, by=f"{OUTSIDER} {name}".strip())
    if isinstance(command, AskAgent) and command.inbox:
        return replace(command, inbox=tuple(_from_user(each) for each in command.inbox))
    if isinstance(command, PostMessage) and command.message is not None:
        return replace(command, message=_from_user(command.message))
    return command


def _from_user(message: Message) -> Message:
    return replace(message, type="forward", sender=USER)


def _dead(text: str, receiver: str, reason: str, number: int) -> MessagePosted:
    return MessagePosted(_message("forward", USER, receiver, text), 0, number, reason)


_OLD_TAGS = {"Ask": "AskAgent", "Tell": "PostMessage", "Answer": "AnswerInput", "Cancel": "CancelEffect"}
_OLD_FIELDS = {"mail": "inbox", "why": "reason"}


def _renamed(body: bytes) -> bytes:
    """A command as it was posted before its kind and fields had today's names."""
    tag = body[9:].partition(b'"')[0].decode("utf-8", "replace") if body.startswith(b'{"type":"') else ""
    if tag not in _OLD_TAGS:
        return body
    held = {_OLD_FIELDS.get(name, name): value for name, value in msgspec.json.decode(body).items()}
    return encode(held | {"type": _OLD_TAGS[tag]})
