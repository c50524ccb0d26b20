"""Which options hold for a model: of each field the highest layer's word, in it the most specific key's."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from difflib import get_close_matches
from typing import TypeAlias

from antiphon.errors import ConfigError, UserError
from antiphon.models.model_string import IN_PROCESS, PROVIDERS, ModelString, parse, provider_of
from antiphon.values.agent import EndpointOptions
from antiphon.values.fields import shown

Endpoints: TypeAlias = Mapping[str, EndpointOptions]
"""Options by a provider (`openai`), a model string (`openai:gpt-x`) or `*`."""
ALL = "*"
NOTHING = EndpointOptions()


def key_of(given: str, models: Collection[str]) -> str:
    """A key as `options_for` looks it up. models: the model strings of the run.

    Raises ConfigError for one that names no provider, no model of a known one and no model of the run.
    """
    text = given.strip()
    if text == ALL:
        return ALL
    if provider := provider_of(text):
        return provider
    string = parse(text)
    if string.prefix in IN_PROCESS or text.lower() in IN_PROCESS:
        raise ConfigError(f"{shown(given)} runs in this process: it has no endpoint that could be set up")
    asked = [parse(each) for each in models]
    known = {each.text for each in asked}
    if text and (not string.plain or string.text in known):
        return string.text
    written = [*PROVIDERS, *models, *known, *(each.model for each in asked)]
    close = get_close_matches(text[:100], written, 1)
    raise ConfigError(
        f"{shown(given)} names no provider and no model that is asked here"
        + (f"; did you mean {close[0]!r}?" if close else ".")
        + f" Expected a provider ({', '.join(PROVIDERS)}), a model string such as openai:gpt-x, or * for all"
    )


def checked(given: object, models: Collection[str], what: str) -> dict[str, EndpointOptions]:
    """Endpoints with their keys as `options_for` looks them up. what: the argument, for errors.

    Raises UserError for another type, ConfigError as `key_of` and for a key that is there twice.
    """
    if not isinstance(given, Mapping):
        raise UserError(f"{what} takes a mapping from a provider or model string; got {shown(given)}")
    found: dict[str, EndpointOptions] = {}
    for name, options in given.items():
        if not isinstance(name, str) or not isinstance(options, EndpointOptions):
            raise UserError(
                f"{what} takes EndpointOptions by provider or model string; got {shown({name: options})}"
            )
        try:
            key = key_of(name, models)
        except ConfigError as error:
            raise ConfigError(f"{what}: {error}") from None
        if key in found:
            raise ConfigError(f"{what}: {name!r} is there twice, perhaps by another name ({key})")
        found[key] = options
    return found


def options_for(model: ModelString, endpoints: Endpoints) -> EndpointOptions:
    """What one layer says of a model: of each field the most specific key's."""
    found = endpoints.get(model.text, NOTHING)
    if model.text != model.provider:
        found = found.over(endpoints.get(model.provider, NOTHING))
    return found.over(endpoints.get(ALL, NOTHING))


def above(over: Endpoints, under: Endpoints) -> dict[str, EndpointOptions]:
    """Two layers as one: whatever `over` says of a model, with any key, goes before what `under` says of it.

    The keys of both are as `key_of` gives them.
    """
    return {key: _at(key, over).over(_at(key, under)) for key in (*under, *over)}


def _at(key: str, endpoints: Endpoints) -> EndpointOptions:
    """What a layer says of all models that a key stands for."""
    if key == ALL or key in PROVIDERS:
        return endpoints.get(key, NOTHING).over(endpoints.get(ALL, NOTHING))
    return options_for(parse(key), endpoints)


def unused(endpoints: Endpoints, models: Iterable[str]) -> list[str]:
    """The keys that stand for none of these models."""
    asked = [parse(each) for each in models]
    reached = {ALL, *(each.text for each in asked), *(each.provider for each in asked)}
    return [key for key in endpoints if key not in reached]
