"""Messages between agents: what was said, by whom, to whom.

There are exactly two transport types, `forward` (caller to callee) and `return` (callee to
caller). Everything else that a message may be is a label on it: `intent`, `topic`, `source`.
"""

from __future__ import annotations

import os
from base64 import b64decode, b64encode
from hashlib import blake2b
from typing import Any, Literal

from msgspec import Struct, field
from msgspec.structs import force_setattr, replace

from antiphon.values.fields import CheckedWhenMade, check_fields

MAX_LABELS, LABEL = 16, 64
"""Labels of a tool or a result, and characters of one."""
MAX_KEPT_FILE = 2**20
"""Bytes of a file that a record of its change holds."""
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
    shown: bool = True
    """Whether a model is shown it as part of a tool's result. One that is not is named there, and read with
    `read_output`; what no model takes, or is too large for one, becomes so by itself."""

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


class FileState(CheckedWhenMade, frozen=True, gc=False, omit_defaults=True):
    """A file at one time."""

    version: str
    """32 hex characters of BLAKE2b over its bytes; where these are not kept, perhaps over what else is known
    of it, such as its size and time of change."""
    mode: int = 0o644
    """Its permission bits."""
    text: str = ""
    """What it holds, if that is UTF-8."""
    data: str = ""
    """What it holds otherwise, in base64."""
    kept: bool = True
    """False: what it holds is not on record, for it is large, looks like a secret, or is a link."""

    @classmethod
    def of(cls, data: bytes, mode: int = 0o644) -> FileState:
        """A file with these bytes."""
        version = blake2b(data, digest_size=16).hexdigest()
        if len(data) > MAX_KEPT_FILE:
            return cls(version, mode, kept=False)
        try:
            return cls(version, mode, data.decode())
        except UnicodeDecodeError:
            return cls(version, mode, data=b64encode(data).decode())

    def content(self) -> bytes | None:
        """Its bytes; None where they were not kept."""
        if not self.kept:
            return None
        return b64decode(self.data) if self.data else self.text.encode()


class FileChange(CheckedWhenMade, frozen=True, gc=False, omit_defaults=True):
    """What a call of a tool made of one file; with both states it can be told, shown and undone."""

    folder: str
    """The absolute path of the folder that the tool works in, where the run was."""
    path: str
    """The file in it, with `/` between names."""
    before: FileState | None = None
    """None: there was no file."""
    after: FileState | None = None
    """None: there is no file any more."""


def settled(changes: tuple[FileChange, ...]) -> tuple[FileChange, ...]:
    """Each file once, from what it was first to what it became last; without those that are as they were."""
    found: dict[tuple[str, str], FileChange] = {}
    for each in changes:
        place = each.folder, each.path
        found[place] = replace(each, before=found[place].before) if place in found else each
    return tuple([each for each in found.values() if each.before != each.after])


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
    changes: tuple[FileChange, ...] = ()
    """Which files it made others of; they go on record with its end."""


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


def labels_fit(labels: tuple[str, ...]) -> bool:
    """Whether they are as few and as short as labels may be, which are kept with every call."""
    return len(labels) <= MAX_LABELS and all(len(each) <= LABEL for each in labels)
