"""Encodings: items that many readers are given as they are sent, made once."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Sequence
from operator import is_
from typing import Any, Generic, TypeVar

ENCODED = 4_096
"""Items."""
ENCODED_BYTES = 8 << 20
PLACES = 8
"""Places in runs at which readers are, for whom chunks are kept."""
CHUNKS_BYTES = 1 << 20
"""Of what is kept for one of them."""


Encoded = TypeVar("Encoded", bound=bytes | str)


class Encodings(Generic[Encoded]):
    """The items that were encoded last, as they are sent.

    An item is known by being that very object, which is held as long as its bytes are: nothing of one run is
    ever taken for something of another. made: how often something was encoded.
    """

    def __init__(self) -> None:
        self.made = self.size = 0
        self._known: OrderedDict[int, tuple[Any, Encoded]] = OrderedDict()

    def of(self, item: Any, encode: Callable[..., Encoded], *more: Any) -> Encoded:
        """An item as it is sent. encode: makes it of the item and what comes more, both the same for all."""
        found = self._known.get(id(item))
        if found is not None:
            return found[1]
        data = encode(item, *more)
        self.made += 1
        self.size += len(data)
        self._known[id(item)] = (item, data)
        while len(self._known) > ENCODED or self.size > ENCODED_BYTES:
            _, (_, gone) = self._known.popitem(last=False)
            self.size -= len(gone)
        return data


class SharedChunks:
    """The chunks that were made last, by their items: readers at one place are sent the same bytes."""

    def __init__(self) -> None:
        self._known = deque[tuple[Sequence[Any], list[bytes]]](maxlen=PLACES)

    def of(self, items: Sequence[Any], make: Callable[[], Iterable[bytes]]) -> list[bytes]:
        """The chunks of these very items."""
        for known, chunks in self._known:
            if len(known) == len(items) and all(map(is_, known, items)):
                return chunks
        made = list(make())
        if sum(map(len, made)) <= CHUNKS_BYTES:
            self._known.append((items, made))
        return made
