"""Memory: the messages a role has observed and said, none of them twice.

Adding, looking for news and asking what is new since a mark cost the same however much is stored.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from copy import copy
from typing import Any

from antiphon.errors import UserError
from antiphon.styles.environment.message import Message
from antiphon.styles.environment.topic import topic_of

IGNORED_ID = "0"
"""The id of every message in a memory that ignores ids."""


class NotRemembered(UserError, ValueError):
    """A message to be deleted is not in the memory."""


class Memory:
    """Messages, oldest first. What is stored must not be changed.

    storage: all of them. index: those of each topic, by `cause_by`. ignore_id: messages that differ
    in nothing but their id are equal; they are stored as copies with the id `0`.
    """

    def __init__(self, messages: Iterable[Message] = (), *, ignore_id: bool = False) -> None:
        self.storage: list[Message] = []
        self.index: defaultdict[str, list[Message]] = defaultdict(list)
        self.ignore_id = ignore_id
        self._alike: dict[str, list[Message]] = {}
        self._first = 0
        self.add_batch(messages)

    def add(self, message: Message) -> None:
        """Store a message, unless an equal one is stored."""
        kept, key = self._keyed(message) if self.ignore_id else (message, message.id)
        alike = self._alike.get(key)
        if alike is None:
            self._alike[key] = [kept]
        elif kept in alike:
            return
        else:
            alike.append(kept)
        self.storage.append(kept)
        self.index[kept._cause_by].append(kept)

    def add_batch(self, messages: Iterable[Message]) -> None:
        """Store several, one after the other."""
        for message in messages:
            self.add(message)

    def get(self, k: int = 0) -> list[Message]:
        """The last `k`, all for 0."""
        return self.storage[-k:] if k > 0 else list(self.storage)

    def get_by_role(self, role: str) -> list[Message]:
        """Those said in a role: `system`, `user`, `assistant`."""
        return [message for message in self.storage if message.role == role]

    def get_by_content(self, content: str) -> list[Message]:
        """Those whose text holds `content`."""
        return [message for message in self.storage if content in message.content]

    def get_by_action(self, action: Any) -> list[Message]:
        """Those that an action caused; a class stands for its path."""
        return list(self.index.get(topic_of(action), ()))

    def get_by_actions(self, actions: Iterable[Any]) -> list[Message]:
        """Those that any of several actions caused, action by action in the order given."""
        topics = dict.fromkeys(topic_of(action) for action in actions)
        return [message for topic in topics for message in self.index.get(topic, ())]

    def try_remember(self, keyword: str) -> list[Message]:
        """Those whose text holds `keyword`."""
        return self.get_by_content(keyword)

    def find_news(self, observed: Iterable[Message], k: int = 0) -> list[Message]:
        """What of `observed` is not among the last `k` stored, or not stored at all for 0."""
        if k <= 0 and not self.ignore_id:
            alike = self._alike
            # Most are of an id that is not known: they are compared with none.
            return [each for each in observed if each.id not in alike or each not in alike[each.id]]
        if k <= 0:
            return [message for message in observed if not self._holds(message)]
        known = self.get(k)
        return [message for message in observed if self._keyed(message)[0] not in known]

    def delete(self, message: Message) -> None:
        """Forget one message. Raises NotRemembered when none equal to it is stored."""
        kept, _ = self._keyed(message)
        if not self._holds(kept):
            raise NotRemembered(f"Message {message.id} cannot be deleted: it is not in this memory")
        self._outdate()
        self.storage.remove(kept)
        self._forget(kept)

    def delete_newest(self) -> Message | None:
        """Forget the newest message and give it back; None when there is none."""
        if not self.storage:
            return None
        self._outdate()
        newest = self.storage.pop()
        self._forget(newest)
        return newest

    def count(self) -> int:
        """How many are stored."""
        return len(self.storage)

    def clear(self) -> None:
        """Forget everything."""
        self._outdate()
        self.storage.clear()
        self.index.clear()
        self._alike.clear()

    def mark(self) -> int:
        """The place behind the newest message, for `since`."""
        return self._first + len(self.storage)

    def holds(self, mark: int) -> bool:
        """Whether nothing was forgotten after a mark was set, so that `since` is what was added."""
        return 0 <= mark - self._first <= len(self.storage)

    def since(self, mark: int) -> list[Message]:
        """What was stored after a mark; everything when the mark no longer `holds`."""
        first = mark - self._first
        return self.storage[first:] if 0 <= first <= len(self.storage) else list(self.storage)

    def _forget(self, kept: Message) -> None:
        self._alike[self._keyed(kept)[1]].remove(kept)
        self.index[kept.cause_by].remove(kept)

    def _outdate(self) -> None:
        """Make every mark so far invalid; called before anything is taken away."""
        self._first = self.mark() + 1

    def _holds(self, message: Message) -> bool:
        kept, key = self._keyed(message)
        return kept in self._alike.get(key, ())

    def _keyed(self, message: Message) -> tuple[Message, str]:
        """The message as it is stored, and by what it is found."""
        if not self.ignore_id:
            return message, message.id
        if message.id != IGNORED_ID:
            message = copy(message)
            message.id = IGNORED_ID
        return message, message.content
