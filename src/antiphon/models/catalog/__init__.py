"""What is known of models: windows, abilities, prices. Unknown is None, never zero.

catalog = load_catalog()                        # with the file that ANTIPHON_MODELS names, if any
spec = catalog.find("anthropic:claude-sonnet-4-5")
cost(usage, spec)                               # USD, exact; None when a price is not known
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from msgspec.structs import replace

from antiphon.models.catalog.file import read_models
from antiphon.models.catalog.snapshot import Snapshot, figures, spec_of
from antiphon.models.catalog.spec import ModelSpec, Prices, Tier, cost

__all__ = ["Catalog", "ModelSpec", "Prices", "Tier", "cost", "load_catalog"]

_DATE = re.compile(r"[-@](?:\d{4}-\d{2}-\d{2}|\d{8})$")
_REGION = re.compile(r"^(?:us|us-gov|eu|apac|ap|au|jp|ca|in|sa|global)\.")
_SAME = {
    "amazon-bedrock": "bedrock",
    "aws": "bedrock",
    "claude": "anthropic",
    "gemini": "google",
    "google-cloud": "google-vertex",
    "google-gla": "google",
    "mistralai": "mistral",
    "openai-chat": "openai",
    "openai-responses": "openai",
    "vertex": "google-vertex",
    "x-ai": "xai",
}
"""Other names of providers."""

_NOTHING = Decimal()
_FREE = Prices(_NOTHING, _NOTHING, _NOTHING, _NOTHING, _NOTHING)
_IN_HERE = ("local", "script")
"""Providers that run in this process: nobody bills for them."""


def load_catalog(path: str | os.PathLike[str] | None = None, env: Mapping[str, str] | None = None) -> Catalog:
    """The snapshot with a user's file on top: `path`, else what ANTIPHON_MODELS names in `env`, else none.

    env: os.environ when None. Raises `ConfigError` for a file that cannot be read or is wrong.
    """
    if path is None:
        path = (os.environ if env is None else env).get("ANTIPHON_MODELS", "").strip() or None
    return Catalog(read_models(path) if path is not None else {})


class Catalog:
    """Finds what is known of a model. `own` is what `catalog.file.read_models` gives.

    The snapshot is read at the first lookup.
    """

    def __init__(self, own: Mapping[str, Mapping[str, Any]] | None = None) -> None:
        self._named = own or {}
        self._merged: dict[str, dict[str, ModelSpec]] | None = None
        self._found: dict[tuple[str, str], ModelSpec | None] = {}

    @property
    def as_of(self) -> str:
        """The day of the snapshot's prices, as YYYY-MM-DD."""
        return figures().as_of

    def find(self, model: str, provider: str = "") -> ModelSpec | None:
        """The spec of a model string, a provider's id of a model, or an alias; None when it is not known.

        With a provider (given, or as prefix): its id, then its alias. Without: the id at the provider that
        makes the model, else at the only one that has it, else an alias that only one has. Where nothing
        is found it is tried again without a date at the end, then without a prefix.
        """
        key = (model, provider)
        if key not in self._found:
            if len(self._found) >= 1024:
                self._found.clear()
            self._found[key] = self._find(model.strip(), provider)
        return self._found[key]

    def models(self, provider: str = "") -> Iterator[ModelSpec]:
        """Every known model, or those of one provider; by provider, then id."""
        own, data = self._own(), figures()
        wanted = _SAME.get(provider, provider)
        for name in dict.fromkeys((*data.providers, *own)):
            if wanted in ("", name):
                ids = set(own.get(name, ())) | set(
                    data.providers[name].models if name in data.providers else ()
                )
                for id_ in sorted(ids):
                    if (spec := self._exact(name, id_)) is not None:
                        yield spec

    def _find(self, model: str, provider: str) -> ModelSpec | None:
        if provider:
            return self._within(_SAME.get(provider.lower(), provider.lower()), model)
        for mark in ":/":
            prefix, found, rest = model.partition(mark)
            name = _SAME.get(prefix.lower(), prefix.lower())
            if found and rest and self._knows(name):
                spec = self._within(name, rest)
                # With a slash it may have been a plain id after all, as OpenRouter's are.
                if spec is not None or mark == ":":
                    return spec
        if model == "script":
            return self._within("script", model)
        return self._anywhere(model)

    def _knows(self, provider: str) -> bool:
        return provider in figures().providers or provider in self._own() or provider in _IN_HERE

    def _within(self, provider: str, id_: str) -> ModelSpec | None:
        for spelling in _spellings(id_):
            if spec := self._exact(provider, spelling) or self._by_alias(provider, spelling):
                return spec
        return ModelSpec(id_, provider, prices=_FREE) if provider in _IN_HERE else None

    def _anywhere(self, id_: str) -> ModelSpec | None:
        providers = list(dict.fromkeys((*self._own(), *figures().providers)))
        for spelling in _spellings(id_):
            holders = [spec for name in providers if (spec := self._exact(name, spelling))]
            makers = [spec for spec in holders if spec.provider in MAKERS]
            if len(holders) == 1 or len(makers) == 1:
                return (makers or holders)[0]
            if holders:
                return None
            known = [spec for name in providers if (spec := self._by_alias(name, spelling))]
            if known:
                return known[0] if len(known) == 1 else None
        return None

    def _exact(self, provider: str, id_: str) -> ModelSpec | None:
        if (spec := self._own().get(provider, {}).get(id_)) is not None:
            return spec
        return _from(figures(), provider, id_)

    def _by_alias(self, provider: str, alias: str) -> ModelSpec | None:
        for spec in self._own().get(provider, {}).values():
            if alias in spec.aliases:
                return spec
        known = figures().providers.get(provider)
        return self._exact(provider, known.aliases[alias]) if known and alias in known.aliases else None

    def _own(self) -> dict[str, dict[str, ModelSpec]]:
        """The user's models by provider and id, each on top of what the snapshot says of it."""
        if self._merged is None:
            merged: dict[str, dict[str, ModelSpec]] = {}
            plain = Catalog()
            for name, fields in self._named.items():
                known = plain.find(name)
                if known is None:
                    prefix, colon, rest = name.partition(":")
                    known = ModelSpec(rest, _SAME.get(prefix, prefix)) if colon else ModelSpec(name, "openai")
                merged.setdefault(known.provider, {})[known.id] = _overridden(known, fields)
            self._merged = merged
        return self._merged


MAKERS = frozenset(
    {
        "anthropic",
        "cohere",
        "deepseek",
        "google",
        "minimax",
        "mistral",
        "moonshotai",
        "openai",
        "perplexity",
        "xai",
        "zai",
    }
)
"""Providers whose models are their own: a plain id means theirs."""


def _spellings(id_: str) -> Iterator[str]:
    """The id, then without its date, its region, what stands before a slash."""
    tried: list[str] = []
    for text in (id_, _REGION.sub("", id_), id_.rpartition("/")[2]):
        for spelling in (text, _DATE.sub("", text)):
            if spelling and spelling not in tried:
                tried.append(spelling)
                yield spelling


def _from(data: Snapshot, provider: str, id_: str) -> ModelSpec | None:
    known = data.providers.get(provider)
    if known is None or (row := known.models.get(id_)) is None:
        return None
    names = tuple(alias for alias, target in known.aliases.items() if target == id_)
    return spec_of(provider, id_, row, names)


def _overridden(spec: ModelSpec, fields: Mapping[str, Any]) -> ModelSpec:
    changed = dict(fields)
    if "prices" in changed:
        prices = dict(changed["prices"] or ())
        tiers = tuple(Tier(**tier) for tier in prices.pop("tiers", ()))
        # Nothing named is nothing known; the snapshot's tiers would contradict a price of the user's.
        known = spec.prices if changed["prices"] else Prices()
        changed["prices"] = replace(known, tiers=tiers, **prices)
    if "aliases" in changed:
        changed["aliases"] = tuple(dict.fromkeys((*spec.aliases, *changed["aliases"])))
    return replace(spec, **changed)
