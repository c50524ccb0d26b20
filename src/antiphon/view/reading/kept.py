"""KeptReadings: what was made of the runs that were read last, for the next one who reads them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Protocol, TypeVar

KEPT = 1_000
"""Readings."""
KEPT_BYTES = 64 << 20
"""Bytes of memory of all of them together, as each reckons its own."""


class Sized(Protocol):
    """Something that says how large it is."""

    @property
    def size(self) -> int:
        """Bytes."""
        ...


Reading = TypeVar("Reading", bound=Sized)


class KeptReadings:
    """Those used last, by key. Whoever takes one makes sure himself that it is of the run that is there."""

    def __init__(self, count: int = KEPT, size: int = KEPT_BYTES) -> None:
        self._count, self._size = count, size
        self._kept: OrderedDict[Hashable, Sized] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    @property
    def size(self) -> int:
        """Bytes of all of them."""
        return sum(each.size for each in self._kept.values())

    def of(self, key: Hashable, kind: type[Reading], make: Callable[[], Reading]) -> Reading:
        """The one of that key, made where it is not kept. Those not used for the longest time are dropped,
        when they are too many or too large: one that has grown too large alone, too."""
        found = self._kept.pop(key, None)
        size = self.size
        while self._kept and (len(self._kept) >= self._count or size > self._size):
            _, gone = self._kept.popitem(last=False)
            size -= gone.size
        if not isinstance(found, kind) or found.size > self._size:
            found = make()
        self._kept[key] = found
        return found
