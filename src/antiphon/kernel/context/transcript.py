"""A conversation as it grows: append-only, measured and digested once per message."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import blake2b
from typing import Any, overload

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

    __slots__ = ("_digest", "_encodings", "_measured", "_size", "messages", "origins")

    def __init__(self, messages: Iterable[ChatMessage] = (), origins: Iterable[str] = ()) -> None:
        self.messages = list(messages)
        self.origins = list(origins)
        self._measured = self._size = 0
        self._digest: Any = None
        self._encodings: dict[str, list[bytes]] | None = None

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

    def upto_now(self) -> TranscriptView:
        """The messages so far; later ones do not show in it."""
        return TranscriptView(self, len(self.messages))

    def encoded(self, key: str, encode: Callable[[ChatMessage], bytes], count: int) -> Sequence[bytes]:
        """The first `count` messages in an adapter's encoding, each encoded once per `key`."""
        if self._encodings is None:
            self._encodings = {}
        done = self._encodings.setdefault(key, [])
        done.extend(encode(message) for message in self.messages[len(done) : count])
        return done if len(done) == count else done[:count]

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Transcript)
            and self.messages == other.messages
            and self.origins == other.origins
        )

    __hash__ = None  # type: ignore[assignment]

    def __deepcopy__(self, memo: dict[int, Any]) -> Transcript:
        return Transcript(self.messages, self.origins)


class TranscriptView(Sequence[ChatMessage]):
    """The first `count` messages of a transcript, without a copy."""

    __slots__ = ("_count", "_transcript")

    def __init__(self, transcript: Transcript, count: int) -> None:
        self._transcript, self._count = transcript, count

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> ChatMessage: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[ChatMessage]: ...
    def __getitem__(self, index: int | slice) -> ChatMessage | Sequence[ChatMessage]:
        if isinstance(index, slice):
            return self._transcript.messages[: self._count][index]
        if not -self._count <= index < self._count:
            raise IndexError(index)
        return self._transcript.messages[index % self._count]

    def __iter__(self) -> Iterator[ChatMessage]:
        messages = self._transcript.messages
        return (messages[index] for index in range(self._count))

    def encoded(self, key: str, encode: Callable[[ChatMessage], bytes]) -> Sequence[bytes]:
        """Each message in an adapter's encoding; encoded once per `key`, however often asked."""
        return self._transcript.encoded(key, encode, self._count)
