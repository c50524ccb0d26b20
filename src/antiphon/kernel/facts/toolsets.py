"""What toolsets offer, as recorded."""

from __future__ import annotations

from hashlib import blake2b

from msgspec import Struct

from antiphon.values.codec import encode_value
from antiphon.values.tool.offer import ToolOffer


class OfferedToolset(Struct, frozen=True, eq=False):
    """What a toolset offers. Two that offer the same are equal."""

    name: str
    tools: tuple[ToolOffer, ...]
    digest: bytes
    """Of all that the tools are, so that no record can pass one off as another."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OfferedToolset) and (self.name, self.digest) == (other.name, other.digest)

    def __ne__(self, other: object) -> bool:
        # A struct's own would compare as the struct does.
        return not self == other

    def __hash__(self) -> int:
        return hash((self.name, self.digest))


def offered_toolset(name: str, tools: tuple[ToolOffer, ...]) -> OfferedToolset:
    """What a toolset offers, to be compared with what it offered before."""
    return OfferedToolset(name, tools, blake2b(encode_value(tools), digest_size=16).digest())
