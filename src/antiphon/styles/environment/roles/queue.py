"""MessageQueue: what a role has not read yet, in the order it came."""

from __future__ import annotations

from collections import deque

from antiphon.styles.environment.message import Message, messages_json, read_messages


class MessageQueue:
    """First in, first out."""

    def __init__(self) -> None:
        self._messages: deque[Message] = deque()

    def push(self, message: Message | None) -> None:
        """Put a message behind the others; None is nothing."""
        if message is not None:
            self._messages.append(message)

    def pop(self) -> Message | None:
        """Take the oldest message; None when there is none."""
        return self._messages.popleft() if self._messages else None

    def pop_all(self) -> list[Message]:
        """Take every message, the oldest first."""
        taken = list(self._messages)
        self._messages.clear()
        return taken

    def empty(self) -> bool:
        """Whether nothing waits."""
        return not self._messages

    async def dump(self) -> str:
        """All that waits as a JSON list; it keeps waiting."""
        return messages_json(self._messages)

    @staticmethod
    def load(text: str) -> MessageQueue:
        """The queue that `dump` wrote. Raises UserError when the text is none."""
        queue = MessageQueue()
        queue._messages.extend(read_messages(text))
        return queue
