"""The secret type: a value that is used, never shown."""

from __future__ import annotations

import hmac
from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn, SupportsIndex

MASK = "***"


@dataclass(init=False, repr=False, eq=False)
class Secret:
    """A text that prints and formats as `***` and encodes to JSON as `{"secret": "***"}`.

    `reveal()` gives the value. Its only field is the mask, so whatever walks over fields (the JSON
    codec, `asdict`, a debugger's printer) meets nothing else. It cannot be pickled.
    """

    secret: str

    def __init__(self, value: str | Secret) -> None:
        self.secret = MASK
        text = value.reveal() if isinstance(value, Secret) else value
        self._reveal: Callable[[], str] = lambda: text

    def reveal(self) -> str:
        """The value; call it where it is sent and keep the result nowhere."""
        return self._reveal()

    def __repr__(self) -> str:
        return f"Secret({MASK!r})"

    def __str__(self) -> str:
        return MASK

    def __bool__(self) -> bool:
        return bool(self._reveal())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        return hmac.compare_digest(self._reveal().encode(), other.reveal().encode())

    def __hash__(self) -> int:
        return hash((Secret, self._reveal()))

    def __copy__(self) -> Secret:
        return self

    def __deepcopy__(self, memo: object) -> Secret:
        return self

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise TypeError("a Secret cannot be pickled")
