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

from collections.abc import Mapping
from typing import cast

from antiphon.config.endpoint import Endpoint, paired
from antiphon.errors import ConfigError
from antiphon.models.providers import KNOWN, ProviderModel
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
    text = spec.strip()
    prefix, colon, rest = text.partition(":")
    if not colon or not rest:
        prefix, slash, rest = text.partition("/")
        # A plain id may hold a slash (vendor/model on a compatible server): only known prefixes count.
        if not slash or prefix.lower() not in {"openai", "ollama", "openrouter", "local", *KNOWN}:
            prefix, rest = "", text
    if not text or not (rest or text):
        raise ConfigError(f"The model string is empty: {_WHAT_TO_SET}")
    return _named(prefix.lower().strip(), rest.strip(), text, env)


def _named(prefix: str, rest: str, text: str, env: Mapping[str, str]) -> Model:
    if prefix == "script":
        from antiphon.models.script import Script

        return Script.load(rest)
    if prefix == "local":
        return _local(rest)
    if prefix == "ollama":
        found = paired(env, Endpoint(text, ("OLLAMA_API_KEY",), ("OLLAMA_HOST",)))
        return _compatible(rest, _ollama_url(found), found.get("OLLAMA_API_KEY", ""), text)
    if prefix == "openrouter":
        home = (OPENROUTER_URL,)
        env = paired(env, Endpoint(text, ("OPENROUTER_API_KEY",), ("OPENROUTER_BASE_URL",), home))
        key = env.get("OPENROUTER_API_KEY", "")
        if not key:
            raise ConfigError(f"{text} needs a key: set OPENROUTER_API_KEY")
        return _compatible(rest, env.get("OPENROUTER_BASE_URL", "") or OPENROUTER_URL, key, text)
    if prefix in KNOWN:
        return ProviderModel(f"{prefix}:{rest}", env=env)
    if prefix not in ("", "openai"):
        # Ollama writes its tags with a colon (llama3:8b), so an unknown prefix may be a plain id.
        rest = text
    urls = ("OPENAI_BASE_URL", "OPENAI_API_BASE")
    env = paired(env, Endpoint(text, ("OPENAI_API_KEY",), urls, (OPENAI_URL,)))
    url = env.get("OPENAI_BASE_URL", "") or env.get("OPENAI_API_BASE", "")
    key = env.get("OPENAI_API_KEY", "")
    if not key and not url:
        raise ConfigError(
            f"{text} needs a key: set OPENAI_API_KEY (in the environment or in .env), or OPENAI_BASE_URL for "
            'a server that needs none. Without a key: "ollama:llama3" or "local:smollm2"'
        )
    return _compatible(rest, url or OPENAI_URL, key, f"openai:{rest}")


def _compatible(model: str, url: str, key: str, name: str) -> Model:
    from antiphon.models.openai import OpenAIModel, OutputCap

    # Ollama passes over max_completion_tokens without a word, so a refusal could not teach it.
    cap: OutputCap = "max_tokens" if name.startswith("ollama") else "max_completion_tokens"
    return OpenAIModel(model, base_url=url, api_key=Secret(key), name=name, output_cap=cap)


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
