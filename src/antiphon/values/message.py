"""Messages between agents: what was said, by whom, to whom.

There are exactly two transport types, `forward` (caller to callee) and `return` (callee to
caller). Everything else that a message may be is a label on it: `intent`, `topic`, `source`.
"""

from __future__ import annotations

import os
from base64 import b64encode
from typing import Any, Literal

from msgspec import Struct, field
from msgspec.structs import force_setattr, replace

from antiphon.values.fields import CheckedWhenMade, check_fields

USER = "user"
"""The name of activation 0, the agent without a model."""


def new_id() -> str:
    """A fresh 128-bit id, 32 hex characters."""
    return os.urandom(16).hex()


class Attachment(CheckedWhenMade, frozen=True, gc=False, omit_defaults=True):
    """A file beside a text: base64 `data` (bytes become that), or a `url`; `media_type` as in MIME.

    Raises UserError for a field that does not hold what it declares, as all that goes over the wire.
    """

    media_type: str
    data: str = ""
    url: str = ""
    name: str = ""

    def __post_init__(self) -> None:
        data: object = self.data
        if isinstance(data, bytes):
            force_setattr(self, "data", b64encode(data).decode())


class ToolCall(Struct, frozen=True, gc=False, omit_defaults=True):
    """A call that a model asks for: `name`; `arguments` is its JSON text exactly as given.

    Made in every turn, and so checked with the reply or the message that it is part of.

    attachments: files that go with an agent call; only a user's request has them.
    """

    id: str
    name: str
    arguments: str = "{}"
    attachments: tuple[Attachment, ...] = ()


class ToolResult(Struct, frozen=True, gc=False, omit_defaults=True):
    """What a call gave back, as the model is shown it. With `finishes` it ends the agent's task.

    Checked where a tool returns it.
    """

    content: str
    attachments: tuple[Attachment, ...] = ()
    is_error: bool = False
    finishes: bool = False
    labels: tuple[str, ...] = ()
    """What it carries beside the labels of its tool, such as `untrusted` or `private`."""


class Message(CheckedWhenMade, frozen=True, gc=False, omit_defaults=True):
    """One message. `call_id` names the call it opens (forward) or answers (return).

    task_id: the thread; stays the same through replies.
    in_reply_to: the `id` of the message answered.
    data: the user's own JSON; never interpreted.
    calls: tool calls that the receiver's next turn performs before it asks a model.
    priority: of what waits in an inbox the lowest number is read first, and of equal ones the oldest.
    """

    type: Literal["forward", "return"]
    sender: str
    receiver: str
    content: str
    call_id: str = ""
    id: str = field(default_factory=new_id)
    task_id: str = ""
    in_reply_to: str = ""
    intent: str = ""
    topic: str = ""
    source: str = ""
    attachments: tuple[Attachment, ...] = ()
    calls: tuple[ToolCall, ...] = ()
    labels: tuple[str, ...] = ()
    data: Any = None
    priority: int = 0

    def reply(self, content: str, **fields: Any) -> Message:
        """The return that answers this message: sender and receiver swapped, same thread."""
        answer = Message(
            "return",
            self.receiver,
            self.sender,
            content,
            call_id=self.call_id,
            task_id=self.task_id or self.id,
            in_reply_to=self.id,
        )
        if fields:
            answer = replace(answer, **fields)
            check_fields(answer)
        return answer
