"""Endpoints in one line: `openai concurrency=8 idle_timeout=30; ollama concurrency=1`.

Each part begins with a provider, a model string or `*`, and gives fields of `EndpointOptions` their values;
`retry.max_attempts=5` is a field of its `retry`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from difflib import get_close_matches
from typing import Any

from antiphon.errors import ConfigError, UserError
from antiphon.models.endpoints.choice import key_of
from antiphon.values.agent import EndpointOptions, RetryPolicy
from antiphon.values.fields import shown

VARIABLE = "ANTIPHON_ENDPOINTS"
"""The setting that holds endpoints for all runs of a process."""
_RETRY = "retry."


def _statuses(text: str) -> tuple[int, ...]:
    return tuple(int(each) for each in text.split(","))


_COUNTS = ("concurrency", "requests_per_minute", "tokens_per_minute")
_READ: Mapping[str, Callable[[str], Any]] = {
    **{
        name: int if name in _COUNTS else float
        for name in EndpointOptions.__struct_fields__
        if name != "retry"
    },
    **{f"{_RETRY}{name}": float for name in RetryPolicy.__struct_fields__},
    f"{_RETRY}max_attempts": int,
    f"{_RETRY}statuses": _statuses,
}
"""How the value of a field is read."""


def read_endpoints(texts: Iterable[str], models: Collection[str], source: str) -> dict[str, EndpointOptions]:
    """Options by key, as `choice` looks them up. models: see `key_of`. source: whose text it is, for errors.

    Parts with the same key add up. Raises ConfigError for what cannot be read, and a field given twice.
    """
    fields: dict[str, dict[str, Any]] = {}
    for part in (part for text in texts for part in text.split(";")):
        words = part.split()
        if not words:
            continue
        try:
            _take(words, fields, models)
        except ConfigError as error:
            raise ConfigError(f"{source}: {error}") from None
    try:
        return {key: _options(values) for key, values in fields.items()}
    except UserError as error:
        raise ConfigError(f"{source}: {error}") from None


def _take(words: list[str], fields: dict[str, dict[str, Any]], models: Collection[str]) -> None:
    name, *settings = words
    if "=" in name:
        raise ConfigError(f"{shown(name)} stands where a provider, a model string or * was expected")
    if not settings:
        raise ConfigError(f"{shown(name)} says nothing; expected fields after it, such as concurrency=8")
    own = fields.setdefault(key_of(name, models), {})
    for setting in settings:
        field, mark, value = setting.partition("=")
        read = _READ.get(field)
        if not mark or read is None:
            close = get_close_matches(field[:100], _READ, 1)
            raise ConfigError(
                f"{shown(setting)} after {name}: expected FIELD=VALUE with one of {', '.join(_READ)}"
                + (f"; did you mean {close[0]}?" if close else "")
            )
        if field in own:
            raise ConfigError(f"{field} is given twice for {name}")
        try:
            own[field] = read(value)
        except ValueError:
            kind = {int: "a whole number", float: "a number"}.get(read, "whole numbers with commas")  # type: ignore[call-overload]
            raise ConfigError(f"{field} of {name} is {kind}; got {shown(value)}") from None


def _options(values: Mapping[str, Any]) -> EndpointOptions:
    retry = {name.removeprefix(_RETRY): value for name, value in values.items() if name.startswith(_RETRY)}
    own = {name: value for name, value in values.items() if not name.startswith(_RETRY)}
    return EndpointOptions(**own, retry=RetryPolicy(**retry) if retry else None)
