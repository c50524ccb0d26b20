"""From a model string to a model.

    openai:gpt-x   openai/gpt-x   gpt-x      any OpenAI-compatible endpoint (OPENAI_BASE_URL)
    ollama:llama3                            a local Ollama (OLLAMA_HOST)
    openrouter:vendor/model                  OpenRouter (OPENROUTER_API_KEY)
    local:smollm2                            in this process, without a network (extra `local`)
    script:file.yaml                         lines from a file: tests and demonstrations
    anthropic:claude-x  google:gemini-x      providers with a protocol of their own (extras of their names);
    bedrock: mistral: groq: cohere: azure:   what each one needs is in `antiphon.models.providers.known`
    openai-responses:gpt-x                   OpenAI's other protocol, which keeps reasoning between calls

Settings are read from the mapping that is given, when it is given: nothing is read at import. A key goes
only to an address that may have it: `antiphon.config.endpoint`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import cast

from msgspec import Struct

from antiphon.config.endpoint import Endpoint, paired
from antiphon.errors import ConfigError
from antiphon.models.model_string import ModelString, parse
from antiphon.models.providers import KNOWN, ProviderModel
from antiphon.models.providers.known import check_settings, key_setting, own_settings
from antiphon.models.timeouts import DEFAULT, Timeouts
from antiphon.values.model import Model
from antiphon.values.secret import Secret

OPENAI_URL = "https://api.openai.com/v1"
OPENROUTER_URL = "https://openrouter.ai/api/v1"
OLLAMA_HOST = "127.0.0.1:11434"

_WHAT_TO_SET = (
    "pass model=..., give the agent one, or set ANTIPHON_MODEL (OPENAI_DEFAULT_MODEL is read too), "
    'for example ANTIPHON_MODEL="openai:gpt-4.1-mini" with OPENAI_API_KEY, '
    '"ollama:llama3" for a local Ollama, or "local:smollm2" without any key'
)


def default_model(env: Mapping[str, str]) -> str:
    """The model string of the environment: ANTIPHON_MODEL, then OPENAI_DEFAULT_MODEL.

    Raises `ConfigError` that says what to set when there is none.
    """
    for name in ("ANTIPHON_MODEL", "OPENAI_DEFAULT_MODEL"):
        if value := env.get(name, "").strip():
            return value
    raise ConfigError(f"No model is set: {_WHAT_TO_SET}")


def resolve_model(spec: Model | str | None, env: Mapping[str, str]) -> Model:
    """The model that `spec` names; a `Model` is given back as it is, None means the default.

    Raises `ConfigError` for a string that names nothing here, or a setting that is missing.
    """
    if spec is None:
        spec = default_model(env)
    if not isinstance(spec, str):
        if not callable(getattr(spec, "complete", None)):
            kind = type(spec).__name__
            raise ConfigError(
                f"A model is a string or has a coroutine complete(request, emit); {kind} has none"
            )
        return spec
    return locate(spec, env).make(DEFAULT)


class Located(Struct, frozen=True):
    """Where a model string leads, before anything is made: `make` makes the model.

    name: what the journal calls it. leads: what decides where its requests go and who pays, in the clear: to
    be digested, and not kept.
    """

    string: ModelString
    name: str
    leads: tuple[str, ...]
    make: Callable[[Timeouts], Model]


def locate(spec: str, env: Mapping[str, str]) -> Located:
    """Find where a model string leads. Raises `ConfigError` as `resolve_model`."""
    string = parse(spec)
    text, prefix, model = spec.strip(), string.prefix, string.model
    if not prefix and not model:
        raise ConfigError(f"The model string is empty: {_WHAT_TO_SET}")
    if prefix == "script":
        from antiphon.models.script import Script

        return Located(string, string.text, (), lambda timeouts: Script.load(model))
    if prefix == "local":
        return Located(string, string.text, (), lambda timeouts: _local(model))
    if prefix in KNOWN:
        known = KNOWN[prefix]
        check_settings(known, text, env)
        own = own_settings(known, text, env)
        # An SDK reads what it likes of the process's environment too.
        leads = (*_pairs(own), *_pairs(os.environ))
        return Located(string, string.text, leads, partial(_of_provider, f"{prefix}:{model}", env))
    url, key, name = _ADDRESS[prefix](string, text, env)
    proxies = {each: value for each, value in os.environ.items() if each.lower().endswith("_proxy")}
    make = partial(_compatible, model, url, Secret(key), name)
    return Located(string, name, (url, key, *_pairs(proxies)), make)


def _pairs(settings: Mapping[str, str]) -> Iterator[str]:
    for name, value in sorted(settings.items()):
        yield name
        yield value


def _ollama(string: ModelString, text: str, env: Mapping[str, str]) -> tuple[str, str, str]:
    found = paired(env, Endpoint(text, ("OLLAMA_API_KEY",), ("OLLAMA_HOST",)))
    return _ollama_url(found), found.get("OLLAMA_API_KEY", ""), string.text


def _openrouter(string: ModelString, text: str, env: Mapping[str, str]) -> tuple[str, str, str]:
    home = (OPENROUTER_URL,)
    env = paired(env, Endpoint(text, ("OPENROUTER_API_KEY",), ("OPENROUTER_BASE_URL",), home))
    key = env.get("OPENROUTER_API_KEY", "")
    if not key:
        raise ConfigError(f"{text} needs a key: set OPENROUTER_API_KEY")
    return env.get("OPENROUTER_BASE_URL", "") or OPENROUTER_URL, key, string.text


def _openai(string: ModelString, text: str, env: Mapping[str, str]) -> tuple[str, str, str]:
    urls = ("OPENAI_BASE_URL", "OPENAI_API_BASE")
    env = paired(env, Endpoint(text, ("OPENAI_API_KEY",), urls, (OPENAI_URL,)))
    url = env.get("OPENAI_BASE_URL", "") or env.get("OPENAI_API_BASE", "")
    key = env.get("OPENAI_API_KEY", "")
    if not key and not url:
        raise ConfigError(
            f"{text} needs a key: set OPENAI_API_KEY (in the environment or in .env), or OPENAI_BASE_URL for "
            'a server that needs none. Without a key: "ollama:llama3" or "local:smollm2"'
        )
    return url or OPENAI_URL, key, string.text


_ADDRESS = {"ollama": _ollama, "openrouter": _openrouter, "openai": _openai}
"""By prefix: the address, the key, and what the journal calls the model."""


def settings_of(spec: str) -> tuple[str, str]:
    """The variables in which a model's address and its key are looked for; empty for one that it has not."""
    prefix = parse(spec).prefix
    if prefix in KNOWN:
        return KNOWN[prefix].url, key_setting(KNOWN[prefix])
    return _VARIABLES.get(prefix, ("", ""))


_VARIABLES = {
    "openai": ("OPENAI_BASE_URL", "OPENAI_API_KEY"),
    "ollama": ("OLLAMA_HOST", "OLLAMA_API_KEY"),
    "openrouter": ("OPENROUTER_BASE_URL", "OPENROUTER_API_KEY"),
}


def _compatible(model: str, url: str, key: Secret, name: str, timeouts: Timeouts) -> Model:
    from antiphon.models.openai import OpenAIModel, OutputCap

    # Ollama passes over max_completion_tokens without a word, so a refusal could not teach it.
    cap: OutputCap = "max_tokens" if name.startswith("ollama") else "max_completion_tokens"
    return OpenAIModel(
        model, base_url=url, api_key=key, name=name, output_cap=cap,
        connect_timeout=timeouts.connect, first_timeout=timeouts.first,
        idle_timeout=timeouts.idle, total_timeout=timeouts.total,
    )  # fmt: skip


def _of_provider(text: str, env: Mapping[str, str], timeouts: Timeouts) -> Model:
    return ProviderModel(
        text, env=env,
        first_timeout=timeouts.first, idle_timeout=timeouts.idle, total_timeout=timeouts.total,
    )  # fmt: skip


def _local(name: str) -> Model:
    try:
        from antiphon.models.local import LocalModel
    except ImportError as error:
        raise ConfigError(
            f"local:{name} needs the extra `local` (missing: {error.name}): pip install 'antiphon[local]'"
        ) from error
    return cast("Model", LocalModel(name))


def _ollama_url(env: Mapping[str, str]) -> str:
    """OLLAMA_HOST as Ollama itself reads it: host, host:port or a URL; 0.0.0.0 means this machine."""
    host = env.get("OLLAMA_HOST", "").strip() or OLLAMA_HOST
    scheme, mark, rest = host.partition("://")
    if not mark:
        scheme, rest = "http", host
    place, slash, path = rest.partition("/")
    name, colon, port = place.rpartition(":")
    if not colon or place.endswith("]"):
        name, port = place, "11434" if not mark else ""
    name = "127.0.0.1" if name in ("", "0.0.0.0") else name  # noqa: S104 - what to call, not to bind
    base = f"{scheme}://{name}{f':{port}' if port else ''}{slash}{path}".rstrip("/")
    return base if base.endswith("/v1") else f"{base}/v1"
