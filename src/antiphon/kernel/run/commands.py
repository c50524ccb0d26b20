"""Commands: what an outsider may leave for the owner of a run. Only the owner appends."""

from __future__ import annotations

from typing import Any, Protocol

import msgspec
from msgspec import Struct

from antiphon.errors import UserError
from antiphon.kernel.facts.agent_call import AgentCall
from antiphon.kernel.facts.events import (
    ApprovalEffect,
    CancelRequested,
    EffectFinished,
    Event,
    MessagePosted,
    QuestionEffect,
    Ruling,
)
from antiphon.kernel.facts.fold.inbox import full
from antiphon.kernel.facts.state import RunState
from antiphon.values.codec import mend, whole
from antiphon.values.limits import Limits
from antiphon.values.message import USER, Attachment, Message, ToolCall, new_id
from antiphon.values.policy import Grant


class Signal(Protocol):
    """What may stop a request from outside: an `asyncio.Event`, for one."""

    def is_set(self) -> bool: ...

    async def wait(self) -> object:
        """Return once it is set."""
        ...


class Ask(Struct, frozen=True, tag=True, omit_defaults=True):
    """A request: call `agent` with `text`, as the user.

    intent, task_id, data: the message's. calls: what the agent does before it asks its model. mail:
    messages that it finds in its inbox beside this one. limits: of this request.
    """

    agent: str
    text: str
    attachments: tuple[Attachment, ...] = ()
    intent: str = ""
    task_id: str = ""
    data: Any = None
    calls: tuple[ToolCall, ...] = ()
    mail: tuple[Message, ...] = ()
    limits: Limits | None = None


class Tell(Struct, frozen=True, tag=True, omit_defaults=True):
    """A message to the agent that works on the open call `call_id`; `message` stands in for the text."""

    call_id: str
    text: str
    attachments: tuple[Attachment, ...] = ()
    message: Message | None = None


class Answer(Struct, frozen=True, tag=True, omit_defaults=True):
    """A person's answer to the open question or approval `effect_id`.

    To an approval `yes`, `no` or `always`; `arguments` (JSON) replaces what was asked for; `grant`
    says how far `always` reaches.
    """

    effect_id: str
    content: str
    arguments: str = ""
    by: str = USER
    grant: Grant | None = None


class Cancel(Struct, frozen=True, tag=True, omit_defaults=True):
    """Stop the effect `target` and all under it; empty: every request."""

    target: str = ""
    why: str = ""


Letter = Ask | Tell | Answer | Cancel

encode = msgspec.json.Encoder().encode
decode = msgspec.json.Decoder(Letter).decode
VERDICTS = ("yes", "no", "always")


def request(letter: Ask) -> Message:
    """The user's request as a message: it carries the call that the user's turn will do."""
    asked = AgentCall(
        letter.agent, letter.text, intent=letter.intent, task_id=letter.task_id, data=letter.data,
        calls=letter.calls, inbox=letter.mail, limits=letter.limits,
    )  # fmt: skip
    arguments = msgspec.json.encode(asked).decode()
    return Message(
        "forward", USER, USER, "", calls=(ToolCall("request", "call_agent", arguments, letter.attachments),)
    )


def posted(letter: Letter) -> Letter:
    """A letter as it would come by mail. Raises UserError for one that JSON cannot hold."""
    try:
        found: Letter = decode(encode(mend(letter)))
    except (TypeError, ValueError, RecursionError) as error:
        raise UserError(f"Not posted: it must be what JSON can hold: {error}") from error
    return found


def take_in(state: RunState, letter: Letter, mail: int = 0) -> Event:
    """The event that a letter becomes; one that comes too late is a dead letter."""
    letter = mend(letter)
    if isinstance(letter, Ask):
        return MessagePosted(request(letter), command=mail)
    if isinstance(letter, Cancel):
        return CancelRequested(letter.target, letter.why, mail)
    if isinstance(letter, Answer):
        opened = state.open.get(letter.effect_id)
        detail = opened.detail if opened is not None else None
        decides = isinstance(detail, Ruling) and letter.content in VERDICTS
        if decides or type(detail) is QuestionEffect:
            # An answer binds the arguments that were shown, whatever the tool would make of them later.
            shown = detail.arguments if type(detail) is ApprovalEffect else ""
            return EffectFinished(
                letter.effect_id,
                content=letter.content,
                arguments=letter.arguments or shown,
                decided_by=letter.by,
                command=mail,
                grant=letter.grant if letter.content == "always" else None,
            )
        return _dead(letter.content, letter.effect_id, f"{letter.effect_id} is not an open question", mail)
    opened = state.open.get(letter.call_id)
    if opened is None or not opened.child:
        return _dead(letter.text, letter.call_id, f"{letter.call_id} is not an open call", mail)
    receiver = state.activations[opened.child]
    message = letter.message or Message(
        "forward",
        USER,
        receiver.agent,
        letter.text,
        letter.call_id,
        new_id(),
        attachments=letter.attachments,
    )
    return MessagePosted(message, receiver.id, mail, full(receiver, state.options.limits))


def take_in_mail(state: RunState, body: bytes, mail: int) -> Event:
    """`take_in` for a letter as it was posted; what is no letter is dead, and does not stop the run."""
    try:
        letter = decode(body)
    except (msgspec.DecodeError, RecursionError) as error:
        return _dead("", USER, f"mail {mail} is no letter: {whole(str(error))}", mail)
    return take_in(state, letter, mail)


def _dead(text: str, receiver: str, why: str, mail: int) -> MessagePosted:
    return MessagePosted(Message("forward", USER, receiver, text), 0, mail, why)
