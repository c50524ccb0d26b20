"""A user's own figures, in YAML or JSON:

    openai:my-model:                    # a model string; a plain id belongs to `openai`
      context_window: 32000
      prices: {input: 0.5, output: 1.5} # USD per million tokens
    anthropic:claude-sonnet-4-5:
      max_output: 8000                  # one field of a known model; the others stay
      prices: null                      # not known after all

A field that is named counts, `null` included; one that is not stays as the snapshot has it. Naming a
price takes the snapshot's tiers away, unless `tiers` is named as well.
"""

from __future__ import annotations

import os
from decimal import Decimal, InvalidOperation
from typing import Any

import yaml

from antiphon.config.yaml import YamlReader, compose_file, is_null

TOKENS = ("context_window", "max_input", "max_output")
ABLE = ("tools", "reasoning", "structured_output")
KINDS = ("modalities", "output_modalities")
PRICES = ("input", "output", "cached_input", "cache_write", "reasoning")
MODALITIES = ("text", "image", "audio", "video", "pdf")


def read_models(path: str | os.PathLike[str]) -> dict[str, dict[str, Any]]:
    """The fields each model names; `ConfigError` says file, line and column of what is wrong."""
    root = compose_file(path)
    return {} if root is None else _CatalogParser(os.fspath(path)).models(root)


class _CatalogParser(YamlReader):
    """Nodes to the fields they name."""

    def models(self, root: yaml.Node) -> dict[str, dict[str, Any]]:
        return {name: self._fields(node) for name, node in self.values(root, "models").items()}

    def _fields(self, node: yaml.Node) -> dict[str, Any]:
        fields: dict[str, Any] = {}
        known = (*TOKENS, *ABLE, *KINDS, "aliases", "prices")
        for key, value in self.values(node, "a model", known).items():
            if key == "prices":
                fields[key] = None if is_null(value) else self._prices(value)
            elif key in TOKENS:
                fields[key] = None if is_null(value) else self._whole(value)
            elif key in ABLE:
                fields[key] = None if is_null(value) else self._yes_or_no(value)
            else:
                fields[key] = self._texts(value, MODALITIES if key in KINDS else ())
        return fields

    def _prices(self, node: yaml.Node) -> dict[str, Any]:
        fields: dict[str, Any] = {}
        for key, value in self.values(node, "prices", (*PRICES, "tiers")).items():
            if key != "tiers":
                fields[key] = None if is_null(value) else self._price(value)
                continue
            tiers = [self._tier(one) for one in self.items(value, "tiers")]
            fields[key] = sorted(tiers, key=lambda tier: int(tier["above"]))
        return fields

    def _tier(self, node: yaml.Node) -> dict[str, Any]:
        tier: dict[str, Any] = {
            key: self._whole(value) if key == "above" else self._price(value)
            for key, value in self.values(node, "a tier", ("above", *PRICES)).items()
        }
        if "above" not in tier:
            raise self.wrong(node, "a tier needs `above`: the input tokens it begins beyond")
        return tier

    def _texts(self, node: yaml.Node, known: tuple[str, ...]) -> tuple[str, ...]:
        texts = []
        for item in self.items(node, ""):
            text = self.text(item, "")
            if known and text not in known:
                raise self.wrong(item, f"{text!r} is none of {', '.join(known)}")
            texts.append(text)
        return tuple(texts)

    def _yes_or_no(self, node: yaml.Node) -> bool:
        text = self.text(node, "").lower()
        if text not in ("true", "false"):
            raise self.wrong(node, f"expected true or false, not {text!r}")
        return text == "true"

    def _whole(self, node: yaml.Node) -> int:
        text = self.text(node, "").replace("_", "")
        if not (text.isascii() and text.isdigit() and len(text) < 12):
            raise self.wrong(node, f"expected a whole number of tokens, not {text!r}")
        return int(text)

    def _price(self, node: yaml.Node) -> Decimal:
        """The price as it is written: a float would not be exact."""
        text = self.text(node, "")
        try:
            price = Decimal(text)
        except InvalidOperation:
            raise self.wrong(node, f"expected USD per million tokens, not {text!r}") from None
        if not price.is_finite() or price < 0 or price.adjusted() > 9 or price.adjusted() < -12:
            raise self.wrong(node, f"{text} cannot be USD per million tokens")
        return price
