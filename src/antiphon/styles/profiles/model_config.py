"""thinking: what an LLM config means for an agent: which model, how it is asked, how often."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from antiphon import Model, RetryPolicy
from antiphon.config.dotenv import layered
from antiphon.errors import ConfigError
from antiphon.models.endpoints.shared import ConfiguredModel
from antiphon.models.resolve import settings_of
from antiphon.styles.profiles.files.llm_config import LlmConfig
from antiphon.values.secret import Secret

_ADDRESS = ("base_url", "api_base")
_READ = ("model", "max_tokens", "max_retries", "wait_seconds_on_retry", "api_key", "stream", *_ADDRESS)
"""Keys that mean something here; the others are sent to the model as they are."""


class Thinking(Struct, frozen=True, eq=False):
    """The fields of an Agent that an LLM config decides."""

    model: str | Model | None = None
    settings: Mapping[str, Any] = {}
    max_output: int = 4096
    retry: RetryPolicy = RetryPolicy()


def thinking(config: LlmConfig, env: Mapping[str, str]) -> Thinking:
    """Read a config. `max_retries` counts the calls after the first, `wait_seconds_on_retry` the first wait.

    Raises ConfigError for a variable that is not set, a secret among the settings, a wrong number.
    """
    given = config.resolve(env)
    settings = {key: value for key, value in given.items() if key not in _READ}
    for key, value in settings.items():
        if isinstance(value, Secret):
            raise _wrong(config, f"{key} is a secret, and settings are on record; only api_key may be one")
    retry = RetryPolicy()
    if "max_retries" in given or "wait_seconds_on_retry" in given:
        attempts = 1 + int(_number(config, given, "max_retries", retry.max_attempts - 1))
        retry = RetryPolicy(
            max_attempts=attempts,
            initial_delay=_number(config, given, "wait_seconds_on_retry", retry.initial_delay),
        )
    most = int(_number(config, given, "max_tokens", 4096))
    return Thinking(_model(config, given, env), settings, most, retry)


def _number(config: LlmConfig, given: Mapping[str, Any], key: str, default: float) -> float:
    value = given.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
        raise _wrong(config, f"{key}: expected a number that is not negative, not {value!r}")
    return value


def _model(config: LlmConfig, given: Mapping[str, Any], env: Mapping[str, str]) -> str | Model | None:
    """The model: as a string where nothing but its name is said, so that the run makes and closes it."""
    name = given.get("model")
    if name is None:
        return None
    if not isinstance(name, str) or not name:
        raise _wrong(config, f"model: expected a text, not {name!r}")
    field = next((each for each in _ADDRESS if given.get(each)), "")
    key = given.get("api_key")
    if not field and key is None:
        return name
    address, secret = settings_of(name)
    own: dict[str, str] = {}
    taken: dict[str, str] = {}
    if field:
        if not address:
            raise _wrong(config, f"{field}: {name} has no other address; leave it out, or name another model")
        _place(config, env, field, address, str(given[field]), own, taken)
    if isinstance(key, Secret):
        if not secret:
            raise _wrong(
                config, f"api_key: {name} takes no key of this kind; set what it needs in the environment"
            )
        _place(config, env, "api_key", secret, key.reveal(), own, taken)
    return ConfiguredModel(name, layered(env).overlaid(config.place.file, own, taken))


def _place(
    config: LlmConfig, env: Mapping[str, str], field: str, setting: str, value: str,
    own: dict[str, str], taken: dict[str, str],
) -> None:  # fmt: skip
    """Note under the provider's name for it what the file gives, or which variable it takes it from."""
    if variable := config.variable(field, env):
        taken[setting] = variable
    else:
        own[setting] = value


def _wrong(config: LlmConfig, text: str) -> ConfigError:
    return ConfigError(f"config.{text}", config.place.file, config.place.line, config.place.column)
