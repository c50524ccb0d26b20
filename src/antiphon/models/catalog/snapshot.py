"""The catalog's own figures: a file beside this one, written by `scripts/refresh_catalog.py`."""

from __future__ import annotations

from decimal import Decimal
from functools import cache
from pathlib import Path

import msgspec
from msgspec import Struct

from antiphon.models.catalog.spec import ModelSpec, Prices, Tier

FILE = Path(__file__).with_name("snapshot.json")
_ABLE = {"y": True, "n": False}
_MODALITIES = {"t": "text", "i": "image", "a": "audio", "v": "video", "p": "pdf"}


class CatalogRow(Struct, array_like=True, frozen=True):
    """One model, as the file holds it. Prices are whole millionths of a dollar per million tokens.

    able: of tools, reasoning and structured output, one letter each: y, n, or ? for not known.
    takes, gives: modalities by their first letters. tiers: the threshold in tokens, then prices.
    """

    context: int | None = None
    max_input: int | None = None
    max_output: int | None = None
    able: str = "???"
    takes: str = ""
    gives: str = ""
    prices: tuple[int | None, ...] = ()
    tiers: tuple[tuple[int | None, ...], ...] = ()


class CatalogProvider(Struct, frozen=True):
    """The models of one provider by id; `aliases` are other names of theirs."""

    aliases: dict[str, str] = {}
    models: dict[str, CatalogRow] = {}


class Snapshot(Struct, frozen=True):
    """The whole file. Providers stand in order: those that make models first."""

    as_of: str
    sources: tuple[str, ...]
    providers: dict[str, CatalogProvider]


@cache
def figures() -> Snapshot:
    """The snapshot, read once per process, at the first lookup and never at import."""
    return msgspec.json.decode(FILE.read_bytes(), type=Snapshot)


def spec_of(provider: str, id: str, row: CatalogRow, aliases: tuple[str, ...]) -> ModelSpec:
    """A row of the file as what it says."""
    tools, reasoning, structured = (_ABLE.get(letter) for letter in row.able)
    return ModelSpec(
        id,
        provider,
        aliases,
        row.context,
        row.max_input,
        row.max_output,
        tools,
        reasoning,
        structured,
        tuple(_MODALITIES[letter] for letter in row.takes),
        tuple(_MODALITIES[letter] for letter in row.gives),
        Prices(*_five(row.prices), tiers=tuple(Tier(tier[0] or 0, *_five(tier[1:])) for tier in row.tiers)),
    )


_Five = tuple[Decimal | None, Decimal | None, Decimal | None, Decimal | None, Decimal | None]


def _five(prices: tuple[int | None, ...]) -> _Five:
    """Input, output, cached input, cache write, reasoning; the file leaves out those at the end."""
    first, second, third, fourth, fifth = (_dollars(price) for price in (*prices, *([None] * 5))[:5])
    return first, second, third, fourth, fifth


def _dollars(millionths: int | None) -> Decimal | None:
    if millionths is None:
        return None
    whole, rest = divmod(millionths, 1_000_000)
    # Not normalize() alone, which writes 50 as 5E+1.
    return Decimal(millionths).scaleb(-6).normalize() if rest else Decimal(whole)
