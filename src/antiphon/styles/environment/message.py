"""Message: what roles say to each other, in its design document's words; a façade over the kernel's message.

    message = Message("Draw a plan", cause_by=WriteRequirement, send_to={Architect, "Bob"})
    message.cause_by, message.send_to     # texts: a class stands for its path

Structured content is stored as plain data, never with the name of a type: who reads it says what it
is, with `message.instruct_as(Plan)`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from copy import copy
from typing import Any

import msgspec
from msgspec import Struct, field

from antiphon.errors import UserError
from antiphon.styles.environment.topic import (
    MESSAGE_ROUTE_TO_ALL,
    USER_REQUIREMENT,
    addresses_of,
    topic_of,
)
from antiphon.values.codec import clean_text
from antiphon.values.fields import unchecked
from antiphon.values.message import Message as KernelMessage
from antiphon.values.message import new_id
from antiphon.values.schema.fitted import fitted
from antiphon.values.schema.standins import convert, to_json


class Message:
    """One message. `id` is made unless given; unknown fields are passed over.

    instruct_content: structured content beside the text: a Struct, a dataclass, a pydantic model or
    plain JSON data. A message that was stored or sent holds it as plain data, see `instruct_as`.
    role: `system`, `user` or `assistant`. metadata: JSON of the user's own.
    cause_by: the topic, by default that a user requires something. sent_from: who said it.
    send_to: addresses, by default `<all>`; an empty set assigned later stays empty. Wherever a topic or an
    address is wanted, a class or an instance stands for the path of the class.

    caused: whether somebody said what caused it.

    Two messages are equal when their ids and all their fields are. Raises UserError for what is no
    text, or cannot be written as JSON.
    """

    def __init__(
        self,
        content: str = "",
        *,
        id: str = "",
        instruct_content: Any = None,
        role: str = "user",
        cause_by: Any = "",
        sent_from: Any = "",
        send_to: Any = (),
        metadata: dict[str, Any] | None = None,
        **ignored: Any,
    ) -> None:
        if not isinstance(content, str):
            raise UserError(
                f"The content of a message is a text, not {type(content).__name__}; "
                "structured data goes into instruct_content"
            )
        self.id = id or new_id()
        self.content = clean_text(content)
        self.instruct_content = instruct_content
        self.role = role
        self.caused, self._cause_by = bool(cause_by), topic_of(cause_by)
        self._sent_from = topic_of(sent_from, "") if sent_from else ""
        self._send_to = (addresses_of(send_to) if send_to else None) or {MESSAGE_ROUTE_TO_ALL}
        self.metadata: dict[str, Any] = metadata if metadata is not None else {}
        if instruct_content is not None or self.metadata:
            self._written()

    @property
    def cause_by(self) -> str:
        """The topic: the path of the action that made the message, or any text."""
        return self._cause_by

    @cause_by.setter
    def cause_by(self, value: Any) -> None:
        self.caused = bool(value)
        self._cause_by = topic_of(value)

    @property
    def sent_from(self) -> str:
        """Who sent it; empty when nobody said so."""
        return self._sent_from

    @sent_from.setter
    def sent_from(self, value: Any) -> None:
        self._sent_from = topic_of(value, "")

    @property
    def send_to(self) -> set[str]:
        """The addresses it goes to."""
        return self._send_to

    @send_to.setter
    def send_to(self, value: Any) -> None:
        self._send_to = addresses_of(value)

    def instruct_as(self, kind: Any) -> Any:
        """The structured content as a `kind`: a Struct, dataclass, pydantic model, or what JSON holds.

        The object itself when the message was made with one of that type, else a new one made of
        the stored data. Raises UserError that says what does not fit, and where.
        """
        if isinstance(kind, type) and isinstance(self.instruct_content, kind):
            return self.instruct_content
        found = fitted(kind)
        if found is str and kind is not str:
            raise UserError(f"{kind!r} cannot be read from JSON; name a Struct, dataclass or pydantic model")
        data = self._written().instruct_content
        try:
            return convert(data, found)
        except msgspec.ValidationError as error:
            name = getattr(kind, "__name__", str(kind))
            raise UserError(f"instruct_content of message {self.id} is no {name}: {error}") from error

    def dump(self) -> str:
        """The message as JSON; `load` reads it."""
        return msgspec.json.encode(self._written()).decode()

    @staticmethod
    def load(text: str) -> Message | None:
        """The message in a JSON text, None when it is not JSON. Raises UserError when it is no message."""
        try:
            return _read(msgspec.json.decode(text, type=_Written))
        except (msgspec.ValidationError, RecursionError) as error:
            raise UserError(f"This JSON is no message: {error}") from error
        except (msgspec.DecodeError, UnicodeEncodeError):
            return None

    def _written(self) -> _Written:
        fields = _Written(
            self.content,
            self.id,
            self.instruct_content,
            self.role,
            self._cause_by,
            self._sent_from,
            sorted(addresses_of(self._send_to)),
            self.metadata,
        )
        try:
            return msgspec.json.decode(msgspec.json.encode(fields, enc_hook=to_json), type=_Written)
        except (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError) as error:
            content, metadata = self.instruct_content, self.metadata
            where = _unwritable(content, "instruct_content") or _unwritable(metadata, "metadata")
            place = f" at {where}" if where else ""
            raise UserError(f"Message {self.id} cannot be written as JSON{place}: {error}") from error

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Message):
            return NotImplemented
        return self is other or (self.id == other.id and self._written() == other._written())

    def read_as(self, kinds: Collection[Any]) -> Message:
        """The message with its structured content as one of these types, by a copy; as it is if none fits.

        One that writes exactly this content comes before one that only takes it.
        """
        if not kinds or self.instruct_content is None:
            return self
        taken: list[Any] = []
        data = self._written().instruct_content
        for kind in kinds:
            try:
                found = self.instruct_as(kind)
            except UserError:
                continue
            if _as_data(found) == data:
                taken = [found]
                break
            taken.append(found)
        if not taken:
            return self
        typed = copy(self)
        typed.instruct_content = taken[0]
        return typed

    def __str__(self) -> str:
        if self.content or self.instruct_content is None:
            return f"{self.role}: {self.content}"
        return f"{self.role}: {msgspec.json.encode(self._written().instruct_content).decode()}"

    # Roles put lists of messages into prompts as they are; an id there would tell a model nothing.
    __repr__ = __str__


class UserMessage(Message):
    """A message whose role is `user`."""

    def __init__(self, content: str = "", **fields: Any) -> None:
        super().__init__(content, **{**fields, "role": "user"})


class SystemMessage(Message):
    """A message whose role is `system`."""

    def __init__(self, content: str = "", **fields: Any) -> None:
        super().__init__(content, **{**fields, "role": "system"})


class AIMessage(Message):
    """A message whose role is `assistant`."""

    def __init__(self, content: str = "", **fields: Any) -> None:
        super().__init__(content, **{**fields, "role": "assistant"})

    def with_agent(self, name: str) -> AIMessage:
        """The same message, with the agent that said it in its metadata."""
        self.metadata["agent"] = name
        return self

    @property
    def agent(self) -> str:
        """Who said it, as `with_agent` noted; empty when it did not."""
        return str(self.metadata.get("agent", ""))


class _Written(Struct, frozen=True):
    """A message as it is written down."""

    content: str
    id: str = ""
    instruct_content: Any = None
    role: str = "user"
    cause_by: str = ""
    sent_from: str = ""
    send_to: list[str] = field(default_factory=lambda: [MESSAGE_ROUTE_TO_ALL])
    metadata: dict[str, Any] = {}


class _Rest(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a message says beyond the fields of the kernel's; the kernel carries it and never looks.

    sent_from: where the message says something else than who published it.
    """

    role: str
    send_to: list[str]
    instruct_content: Any = None
    metadata: dict[str, Any] = {}
    sent_from: str | None = None


_kernel_message = unchecked(KernelMessage)
_DEEP = 100
"""Levels in which the place of what cannot be written is looked for."""


def _unwritable(value: Any, path: str, level: int = 0) -> str:
    """The path of the first thing in a value that JSON cannot hold; empty when there is none."""
    several: Iterable[tuple[Any, Any]] = ()
    if isinstance(value, dict) and level < _DEEP:
        several = value.items()
    elif isinstance(value, list | tuple) and level < _DEEP:
        several = enumerate(value)
    for key, each in several:
        found = _unwritable(each, f"{path}[{key!r}]", level + 1)
        if found:
            return found
    try:
        msgspec.json.encode(value, enc_hook=to_json)
    except (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError):
        return path
    return ""


def _as_data(content: Any) -> Any:
    """Structured content as JSON has it."""
    return msgspec.json.decode(msgspec.json.encode(content, enc_hook=to_json))


def _read(written: _Written) -> Message:
    message = Message(
        written.content,
        id=written.id,
        instruct_content=written.instruct_content,
        role=written.role,
        cause_by=written.cause_by,
        sent_from=written.sent_from,
        metadata=written.metadata,
    )
    message.send_to = written.send_to
    return message


def to_kernel(message: Message, receiver: str, publisher: str | None = None) -> KernelMessage:
    """The message as the kernel sends it to `receiver`: `cause_by` is its topic.

    publisher: its sender, where that is not what `sent_from` says.
    """
    said_by, content, message_id = message._sent_from, message.content, message.id
    sender = said_by if publisher is None else publisher
    data: dict[str, Any] = {"role": message.role, "send_to": sorted(message._send_to)}
    if message.instruct_content is not None or message.metadata:
        written = message._written()
        data["instruct_content"], data["metadata"] = written.instruct_content, written.metadata
    if sender != said_by:
        data["sent_from"] = said_by
    topic, make = message._cause_by, _kernel_message
    for text in (sender, receiver, content, message_id, topic):
        if type(text) is not str or not text.isascii():
            make = KernelMessage  # which finds what is wrong with it, if anything
    return make("forward", sender, receiver, content, id=message_id, topic=topic, data=data)


def from_kernel(message: KernelMessage) -> Message:
    """What the kernel delivered; `data` that is not ours becomes its structured content."""
    try:
        rest = msgspec.convert(message.data, _Rest)
    except msgspec.ValidationError:
        rest = _Rest("user", [MESSAGE_ROUTE_TO_ALL], message.data)
    # What was published has been found good; it is not looked through again for every reader.
    found = Message.__new__(Message)
    found.id, found.content, found.role = message.id, message.content, rest.role
    found.instruct_content, found.metadata = rest.instruct_content, rest.metadata
    found.caused, found._cause_by = bool(message.topic), message.topic or USER_REQUIREMENT
    found._sent_from = message.sender if rest.sent_from is None else rest.sent_from
    found._send_to = set(rest.send_to)
    return found


def messages_json(messages: Iterable[Message]) -> str:
    """Several messages as one JSON list; `read_messages` reads it."""
    return msgspec.json.encode([message._written() for message in messages]).decode()


def read_messages(text: str) -> list[Message]:
    """The messages of a JSON list. Raises UserError that says where it is none."""
    try:
        return [_read(written) for written in msgspec.json.decode(text, type=list[_Written])]
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
        raise UserError(f"Expected a JSON list of messages: {error}") from error


def message_of(said: str | Message | list[str]) -> Message:
    """What somebody says, as a message: a text, several lines, or a message as it is."""
    if isinstance(said, Message):
        return said
    return Message("\n".join(said) if isinstance(said, list) else said)
