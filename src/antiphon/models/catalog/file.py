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

from antiphon.yaml_file import compose_file, wrong

TOKENS = ("context_window", "max_input", "max_output")
ABLE = ("tools", "reasoning", "structured_output")
KINDS = ("modalities", "output_modalities")
PRICES = ("input", "output", "cached_input", "cache_write", "reasoning")
MODALITIES = ("text", "image", "audio", "video", "pdf")


def read_models(path: str | os.PathLike[str]) -> dict[str, dict[str, Any]]:
    """The fields each model names; `ConfigError` says file, line and column of what is wrong."""
    root = compose_file(path)
    return {} if root is None else _Reader(os.fspath(path)).models(root)


class _Reader:
    """Reads the nodes of one file."""

    def __init__(self, path: str) -> None:
        self._path = path

    def models(self, root: yaml.Node) -> dict[str, dict[str, Any]]:
        return {name: self._fields(node) for name, node in self._pairs(root, "models")}

    def _fields(self, node: yaml.Node) -> dict[str, Any]:
        fields: dict[str, Any] = {}
        for key, value in self._pairs(node, "a model", (*TOKENS, *ABLE, *KINDS, "aliases", "prices")):
            if key == "prices":
                fields[key] = None if self._is_null(value) else self._prices(value)
            elif key in TOKENS:
                fields[key] = None if self._is_null(value) else self._whole(value)
            elif key in ABLE:
                fields[key] = None if self._is_null(value) else self._yes_or_no(value)
            else:
                fields[key] = self._texts(value, MODALITIES if key in KINDS else ())
        return fields

    def _prices(self, node: yaml.Node) -> dict[str, Any]:
        fields: dict[str, Any] = {}
        for key, value in self._pairs(node, "prices", (*PRICES, "tiers")):
            if key != "tiers":
                fields[key] = None if self._is_null(value) else self._price(value)
                continue
            tiers = [self._tier(one) for one in self._items(value)]
            fields[key] = sorted(tiers, key=lambda tier: int(tier["above"]))
        return fields

    def _tier(self, node: yaml.Node) -> dict[str, Any]:
        tier: dict[str, Any] = {
            key: self._whole(value) if key == "above" else self._price(value)
            for key, value in self._pairs(node, "a tier", ("above", *PRICES))
        }
        if "above" not in tier:
            raise wrong("a tier needs `above`: the input tokens it begins beyond", self._path, node)
        return tier

    def _pairs(self, node: yaml.Node, what: str, known: tuple[str, ...] = ()) -> list[tuple[str, yaml.Node]]:
        if not isinstance(node, yaml.MappingNode):
            raise wrong(f"{what}: expected a mapping", self._path, node)
        pairs: dict[str, yaml.Node] = {}
        for key, value in node.value:
            name = self._text(key)
            if known and name not in known:
                raise wrong(f"{what}: unknown field {name!r}; known: {', '.join(known)}", self._path, key)
            if name in pairs:
                raise wrong(f"{what}: {name!r} stands here twice", self._path, key)
            pairs[name] = value
        return list(pairs.items())

    def _items(self, node: yaml.Node) -> list[yaml.Node]:
        if not isinstance(node, yaml.SequenceNode):
            raise wrong("expected a list", self._path, node)
        return list(node.value)

    def _texts(self, node: yaml.Node, known: tuple[str, ...]) -> tuple[str, ...]:
        texts = []
        for item in self._items(node):
            text = self._text(item)
            if known and text not in known:
                raise wrong(f"{text!r} is none of {', '.join(known)}", self._path, item)
            texts.append(text)
        return tuple(texts)

    def _is_null(self, node: yaml.Node) -> bool:
        return isinstance(node, yaml.ScalarNode) and node.tag.endswith(":null")

    def _text(self, node: yaml.Node) -> str:
        if not isinstance(node, yaml.ScalarNode) or not node.value:
            raise wrong("expected a text", self._path, node)
        return str(node.value)

    def _yes_or_no(self, node: yaml.Node) -> bool:
        text = self._text(node).lower()
        if text not in ("true", "false"):
            raise wrong(f"expected true or false, not {text!r}", self._path, node)
        return text == "true"

    def _whole(self, node: yaml.Node) -> int:
        text = self._text(node).replace("_", "")
        if not (text.isascii() and text.isdigit() and len(text) < 12):
            raise wrong(f"expected a whole number of tokens, not {text!r}", self._path, node)
        return int(text)

    def _price(self, node: yaml.Node) -> Decimal:
        """The price as it is written: a float would not be exact."""
        text = self._text(node)
        try:
            price = Decimal(text)
        except InvalidOperation:
            raise wrong(f"expected USD per million tokens, not {text!r}", self._path, node) from None
        if not price.is_finite() or price < 0 or price.adjusted() > 9 or price.adjusted() < -12:
            raise wrong(f"{text} cannot be USD per million tokens", self._path, node)
        return price
