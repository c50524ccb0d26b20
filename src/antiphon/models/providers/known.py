"""Which providers there are, what they need, and how each one's model is made.

Nothing of `pydantic_ai` is loaded before a model is made.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from antiphon.config.endpoint import Endpoint, paired
from antiphon.errors import ConfigError


class ProviderSpec(Struct, frozen=True):
    """A provider. `settings`: of each tuple one variable must be set. `secrets`: variables never shown.

    url: the variable that names another address than `home`. sent, ambient: see `Endpoint`.
    """

    name: str
    extra: str
    settings: tuple[tuple[str, ...], ...]
    secrets: tuple[str, ...] = ()
    url: str = ""
    home: tuple[str, ...] = ()
    sent: tuple[str, ...] = ()
    ambient: bool = False


_GOOGLE_KEYS = ("GOOGLE_API_KEY", "GEMINI_API_KEY")
_AWS_SECRETS = ("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_BEARER_TOKEN_BEDROCK")
_ANTHROPIC = ProviderSpec(
    "anthropic",
    "anthropic",
    (("ANTHROPIC_API_KEY",),),
    ("ANTHROPIC_API_KEY",),
    "ANTHROPIC_BASE_URL",
    ("https://api.anthropic.com",),
    ("ANTHROPIC_CUSTOM_HEADERS",),
)
_GOOGLE = ProviderSpec(
    "google",
    "google",
    (_GOOGLE_KEYS,),
    _GOOGLE_KEYS,
    "GOOGLE_GEMINI_BASE_URL",
    ("https://generativelanguage.googleapis.com",),
)
_VERTEX = ProviderSpec("google-vertex", "google", (("GOOGLE_CLOUD_PROJECT",),))

KNOWN: dict[str, ProviderSpec] = {
    "anthropic": _ANTHROPIC,
    "claude": _ANTHROPIC,
    "google": _GOOGLE,
    "gemini": _GOOGLE,
    "google-gla": _GOOGLE,
    "google-vertex": _VERTEX,
    "google-cloud": _VERTEX,
    "bedrock": ProviderSpec(
        "bedrock",
        "bedrock",
        (("AWS_DEFAULT_REGION", "AWS_REGION"),),
        _AWS_SECRETS,
        "AWS_ENDPOINT_URL_BEDROCK_RUNTIME",
        ambient=True,
    ),
    "azure": ProviderSpec(
        "azure",
        "azure",
        (("AZURE_OPENAI_ENDPOINT",), ("AZURE_OPENAI_API_KEY",)),
        ("AZURE_OPENAI_API_KEY",),
        "AZURE_OPENAI_ENDPOINT",
        sent=("OPENAI_CUSTOM_HEADERS",),
    ),
    "mistral": ProviderSpec("mistral", "mistral", (("MISTRAL_API_KEY",),), ("MISTRAL_API_KEY",)),
    "groq": ProviderSpec(
        "groq", "groq", (("GROQ_API_KEY",),), ("GROQ_API_KEY",), "GROQ_BASE_URL", ("https://api.groq.com",)
    ),
    "cohere": ProviderSpec(
        "cohere", "cohere", (("CO_API_KEY", "COHERE_API_KEY"),), ("CO_API_KEY", "COHERE_API_KEY")
    ),
    "openai-responses": ProviderSpec(
        "openai-responses",
        "openai",
        (("OPENAI_API_KEY",),),
        ("OPENAI_API_KEY",),
        "OPENAI_BASE_URL",
        ("https://api.openai.com/v1",),
        ("OPENAI_CUSTOM_HEADERS",),
    ),
}
"""By the prefix of a model string."""


def key_setting(known: ProviderSpec) -> str:
    """The variable that its one key is in; empty where it takes none, or several things instead."""
    names = [each[0] for each in known.settings if each[0] in known.secrets]
    return names[0] if len(names) == 1 else ""


def check_settings(known: ProviderSpec, text: str, env: Mapping[str, str]) -> None:
    """`ConfigError` that names what is not set, and the extra, unless all is there."""
    missing = [" or ".join(names) for names in known.settings if not any(env.get(name) for name in names)]
    if missing:
        raise ConfigError(
            f"{text}: set {' and '.join(missing)} (in the environment or in .env); "
            f"it also needs {wanted(known)}"
        )


def own_settings(known: ProviderSpec, text: str, env: Mapping[str, str]) -> dict[str, str]:
    """The settings without keys that may not go to this provider's address. Raises ConfigError."""
    if not known.url:
        return dict(env)
    endpoint = Endpoint(text, known.secrets, (known.url,), known.home, known.sent, known.ambient)
    return paired(env, endpoint)


def wanted(known: ProviderSpec) -> str:
    """The extra, and how it is installed."""
    return f"the extra `{known.extra}`: pip install 'antiphon[{known.extra}]'"


def secrets(known: ProviderSpec, env: Mapping[str, str]) -> tuple[str, ...]:
    """The values that may be shown nowhere."""
    return tuple(value for name in known.secrets if (value := env.get(name, "").strip()))


def make(known: ProviderSpec, model: str, env: Mapping[str, str]) -> Any:
    """A fresh `pydantic_ai` model with connections of its own. Raises ImportError without the extra."""
    return _MAKE[known.name](model, env)


def _first(env: Mapping[str, str], *names: str) -> str | None:
    return next((value for name in names if (value := env.get(name, "").strip())), None)


def _anthropic(model: str, env: Mapping[str, str]) -> Any:
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    key, url = _first(env, "ANTHROPIC_API_KEY"), _first(env, "ANTHROPIC_BASE_URL")
    return AnthropicModel(model, provider=AnthropicProvider(api_key=key, base_url=url))


def _google(model: str, env: Mapping[str, str]) -> Any:
    from pydantic_ai.models.google import GoogleModel
    from pydantic_ai.providers.google import GoogleProvider

    key, url = _first(env, *_GOOGLE_KEYS), _first(env, "GOOGLE_GEMINI_BASE_URL")
    return GoogleModel(model, provider=GoogleProvider(api_key=key, base_url=url))


def _vertex(model: str, env: Mapping[str, str]) -> Any:
    from pydantic_ai.models.google import GoogleModel
    from pydantic_ai.providers.google_cloud import GoogleCloudProvider

    provider = GoogleCloudProvider(
        project=_first(env, "GOOGLE_CLOUD_PROJECT"), location=_first(env, "GOOGLE_CLOUD_LOCATION")
    )
    return GoogleModel(model, provider=provider)


def _bedrock(model: str, env: Mapping[str, str]) -> Any:
    from pydantic_ai.models.bedrock import BedrockConverseModel
    from pydantic_ai.providers.bedrock import BedrockProvider

    region, token = _first(env, "AWS_DEFAULT_REGION", "AWS_REGION"), _first(env, "AWS_BEARER_TOKEN_BEDROCK")
    url = _first(env, "AWS_ENDPOINT_URL_BEDROCK_RUNTIME")
    if token:
        provider = BedrockProvider(api_key=token, region_name=region, base_url=url)
    else:
        provider = BedrockProvider(
            region_name=region,
            base_url=url,
            profile_name=_first(env, "AWS_PROFILE"),
            aws_access_key_id=_first(env, "AWS_ACCESS_KEY_ID"),
            aws_secret_access_key=_first(env, "AWS_SECRET_ACCESS_KEY"),
            aws_session_token=_first(env, "AWS_SESSION_TOKEN"),
        )
    # This one SDK takes no number of retries per request: its own rule for them is taken out.
    provider.client.meta.events.unregister(
        "needs-retry.bedrock-runtime", unique_id="retry-config-bedrock-runtime"
    )
    return BedrockConverseModel(model, provider=provider)


def _azure(model: str, env: Mapping[str, str]) -> Any:
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.azure import AzureProvider

    provider = AzureProvider(
        azure_endpoint=_first(env, "AZURE_OPENAI_ENDPOINT"),
        api_version=_first(env, "OPENAI_API_VERSION"),
        api_key=_first(env, "AZURE_OPENAI_API_KEY"),
    )
    return OpenAIChatModel(model, provider=provider)


def _mistral(model: str, env: Mapping[str, str]) -> Any:
    from pydantic_ai.models.mistral import MistralModel
    from pydantic_ai.providers.mistral import MistralProvider

    return MistralModel(model, provider=MistralProvider(api_key=_first(env, "MISTRAL_API_KEY")))


def _groq(model: str, env: Mapping[str, str]) -> Any:
    from pydantic_ai.models.groq import GroqModel
    from pydantic_ai.providers.groq import GroqProvider

    key, url = _first(env, "GROQ_API_KEY"), _first(env, "GROQ_BASE_URL")
    return GroqModel(model, provider=GroqProvider(api_key=key, base_url=url))


def _cohere(model: str, env: Mapping[str, str]) -> Any:
    from pydantic_ai.models.cohere import CohereModel
    from pydantic_ai.providers.cohere import CohereProvider

    return CohereModel(model, provider=CohereProvider(api_key=_first(env, "CO_API_KEY", "COHERE_API_KEY")))


def _responses(model: str, env: Mapping[str, str]) -> Any:
    from pydantic_ai.models.openai import OpenAIResponsesModel
    from pydantic_ai.providers.openai import OpenAIProvider

    key, url = _first(env, "OPENAI_API_KEY"), _first(env, "OPENAI_BASE_URL")
    return OpenAIResponsesModel(model, provider=OpenAIProvider(api_key=key, base_url=url))


_MAKE = {
    "anthropic": _anthropic,
    "google": _google,
    "google-vertex": _vertex,
    "bedrock": _bedrock,
    "azure": _azure,
    "mistral": _mistral,
    "groq": _groq,
    "cohere": _cohere,
    "openai-responses": _responses,
}
