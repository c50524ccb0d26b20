"""A conversation as it grows: append-only, measured and digested once per message."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from hashlib import blake2b
from sys import getrefcount
from typing import Any, NoReturn

import msgspec

from antiphon.values.model import ChatMessage

_encode = msgspec.json.Encoder().encode


def tokens_of(text: str) -> int:
    """The estimate of a text's tokens: a quarter of its UTF-8 bytes, rounded up."""
    return -(-(len(text) if text.isascii() else len(text.encode("utf-8", "replace"))) // 4)


class Transcript:
    """What one activation has said and heard. It only grows; each message is measured once.

    origins: for each message the id of the effect or message that it came from; kept, never sent.
    """

    __slots__ = ("_digest", "_measured", "_shown", "_size", "messages", "origins")

    def __init__(self, messages: Iterable[ChatMessage] = (), origins: Iterable[str] = ()) -> None:
        self.messages = list(messages)
        self.origins = list(origins)
        self._measured = self._size = 0
        self._digest: Any = None
        self._shown: TranscriptSnapshot | None = None

    def append(self, message: ChatMessage, origin: str = "") -> None:
        """Add one message at the end."""
        self.messages.append(message)
        self.origins.append(origin)

    def measure(self) -> tuple[int, bytes]:
        """Bytes of all messages as JSON, an upper bound of their tokens; and 16 bytes of digest over them."""
        messages, digest = self.messages, self._digest
        if digest is None:
            digest = self._digest = blake2b(digest_size=16)
        for index in range(self._measured, len(messages)):
            data = _encode(messages[index])
            self._size += len(data)
            digest.update(data)
        self._measured = len(messages)
        return self._size, digest.digest()

    def upto_now(self) -> TranscriptSnapshot:
        """The messages so far; later ones do not show in it.

        A model is asked in every turn, so this must not copy the conversation: the snapshot that was given
        last grows by what is new, unless somebody still has it.
        """
        if self._shown is None:
            self._shown = TranscriptSnapshot(self.messages, {})
        elif getrefcount(self._shown) > OURS:
            self._shown = TranscriptSnapshot(self.messages, self._shown.encodings)
        else:
            list.extend(self._shown, self.messages[len(self._shown) :])
        return self._shown

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Transcript)
            and self.messages == other.messages
            and self.origins == other.origins
        )

    __hash__ = None  # type: ignore[assignment]

    def __deepcopy__(self, memo: dict[int, Any]) -> Transcript:
        return Transcript(self.messages, self.origins)


def _refuse(messages: Any, *given: Any, **named: Any) -> NoReturn:
    raise TypeError("The messages of a request cannot be changed: change a copy, list(request.messages)")


class TranscriptSnapshot(list[ChatMessage]):
    """The messages of a transcript at one moment: plain data for adapters, which may read and not change it.

    encodings: what adapters made of each message, by their key; shared by all snapshots of a transcript,
    which only grows.
    """

    __slots__ = ("encodings",)

    append = clear = extend = insert = pop = remove = reverse = sort = _refuse
    __delitem__ = __iadd__ = __imul__ = __setitem__ = _refuse

    def __init__(self, messages: Iterable[ChatMessage], encodings: dict[str, list[bytes]]) -> None:
        super().__init__(messages)
        self.encodings = encodings

    def encoded(self, key: str, encode: Callable[[ChatMessage], bytes]) -> Sequence[bytes]:
        """Each message in an adapter's encoding; encoded once per `key`, however often asked."""
        done, count = self.encodings.setdefault(key, []), len(self)
        done.extend(encode(message) for message in self[len(done) :])
        return done if len(done) == count else done[:count]

    def __reduce_ex__(self, protocol: object) -> tuple[type[list[ChatMessage]], tuple[list[ChatMessage]]]:
        """A copy is a list of its own."""
        return list, (list(self),)


def _references(transcript: Transcript) -> int:
    """How often its snapshot is referred to, asked as `upto_now` asks."""
    return getrefcount(transcript._shown)


def _ours() -> int:
    """References to a snapshot that nobody but its transcript has: versions of Python count differently."""
    transcript = Transcript()
    transcript._shown = TranscriptSnapshot((), {})
    return _references(transcript)


OURS = _ours()
