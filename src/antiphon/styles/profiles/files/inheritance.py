"""inheritance: what a file takes over from the one it is based on.

Mappings are merged key by key. Lists whose items have an `id` (inbox strategies: a `source`) are merged item
by item: a new one with a known id stands in the place of the old one. Other lists are joined without
repetition. Anything else is replaced, and null takes away what was inherited.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from antiphon.styles.profiles.files.profile import InboxStrategy

OWN = ("name", "profile_id", "llm_config_id", "rev", "is_active", "is_deleted", "timestamp")
"""What belongs to one file and is never inherited."""


def inherit(base: Mapping[str, Any], fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a file with those of its base under them."""
    return merge({key: value for key, value in base.items() if key not in OWN}, fields)


def merge(base: Mapping[str, Any], fields: Mapping[str, Any]) -> dict[str, Any]:
    """Two mappings as one; what `fields` says counts."""
    merged = dict(base)
    for key, value in fields.items():
        under = merged.get(key)
        if isinstance(under, dict) and isinstance(value, dict):
            merged[key] = merge(under, value)
        elif isinstance(under, tuple) and isinstance(value, tuple):
            merged[key] = tuple(_joined((*under, *value)))
        elif isinstance(under, list) and isinstance(value, list):
            merged[key] = _joined((*under, *value))
        else:
            merged[key] = value
    return merged


def _joined(items: Sequence[Any]) -> list[Any]:
    names = [_name(item) for item in items]
    if all(names):
        return list(dict(zip(names, items, strict=True)).values())
    found: dict[bytes, Any] = {}
    for item in items:
        found.setdefault(msgspec.json.encode(item), item)
    return list(found.values())


def _name(item: Any) -> str:
    if isinstance(item, InboxStrategy):
        return item.source
    return str(item.get("id", "")) if isinstance(item, dict) else str(getattr(item, "id", ""))


def bases_first(bases: Mapping[str, str]) -> tuple[list[str], list[list[str]]]:
    """Names so that each comes after its base, given the base of each; and the circles there are.

    A base that is not among the names counts as none.
    """
    order: list[str] = []
    circles: list[list[str]] = []
    placed: set[str] = set()
    for name in bases:
        chain: dict[str, int] = {}
        while name in bases and name not in placed and name not in chain:
            chain[name] = len(chain)
            name = bases[name]
        if name in chain:
            circles.append(list(chain)[chain[name] :])
        placed.update(chain)
        order += reversed(chain)
    return order, circles
