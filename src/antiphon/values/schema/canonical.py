"""Decoded arguments as one JSON text: the same arguments are the same text, in any process."""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter
from typing import Any

import msgspec


def writer(enc_hook: Callable[[Any], Any], *, ordered: bool) -> Callable[[Any], bytes]:
    """Writes arguments as canonical JSON. ordered: they hold no set, so that nothing must be sorted."""
    plain = msgspec.json.Encoder(enc_hook=enc_hook).encode
    if ordered:
        return plain
    encode = msgspec.json.Encoder(enc_hook=enc_hook, order="deterministic").encode

    def write(value: Any) -> bytes:
        try:
            return encode(value)
        except TypeError:
            # Members of an enumeration, in a set or as keys, which cannot be compared.
            return plain(_in_order(value, enc_hook))

    return write


def _in_order(value: Any, enc_hook: Callable[[Any], Any]) -> Any:
    """The value as plain JSON values, its sets as lists in the order of their texts."""
    if isinstance(value, set | frozenset):
        return sorted((_in_order(each, enc_hook) for each in value), key=msgspec.json.encode)
    if isinstance(value, list | tuple):
        return [_in_order(each, enc_hook) for each in value]
    if isinstance(value, dict):
        keys = msgspec.to_builtins(dict.fromkeys(value), enc_hook=enc_hook, str_keys=True)
        parts = zip(keys, value.values(), strict=True)
        return {key: _in_order(each, enc_hook) for key, each in sorted(parts, key=itemgetter(0))}
    plain = msgspec.to_builtins(value, enc_hook=enc_hook, str_keys=True)
    if isinstance(plain, dict):
        for name, key in _named(value):
            if key in plain:
                plain[key] = _in_order(getattr(value, name), enc_hook)
    return plain


def _named(value: Any) -> list[tuple[str, str]]:
    """The fields of an object, in Python and in JSON."""
    if isinstance(value, msgspec.Struct):
        return [(each.name, each.encode_name) for each in msgspec.structs.fields(value)]
    # Of a dataclass, without the module that makes them: it is slow to import.
    return [(name, name) for name in getattr(value, "__dataclass_fields__", ())]
