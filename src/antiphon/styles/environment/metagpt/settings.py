"""Settings: which models a team thinks with, from a `config2.yaml` in the words of its design document.

    llm:                              # everyone's, unless said otherwise
      api_type: openai
      model: gpt-4.1-mini
      base_url: https://api.openai.com/v1
      api_key_env: OPENAI_API_KEY     # or api_key: the key itself
      temperature: 0.2                # sent to the model as it is
    models:                           # more of them, by name
      small: {model: "ollama:llama3"}
    roles:                            # those that think with another one
      - {role: Reviewer, llm: small}  # a class name or role id; a name from `models`, or a model itself

Other sections belong to other tools and are passed over. Every error says file, line and column.
"""

from __future__ import annotations

import difflib
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from msgspec import Struct

from antiphon.config.dotenv import Layer, LayeredSettings, layered
from antiphon.config.yaml import YamlReader, compose_file, is_null
from antiphon.errors import ConfigError, UnknownName
from antiphon.values.secret import Secret

FILE = "config2.yaml"
SECTIONS = ("llm", "models", "roles")
PLACEHOLDER = "YOUR_API_KEY"


class _Provider(Struct, frozen=True):
    """prefix: of its model strings. key, url: the variables it is set up with, empty for none."""

    prefix: str
    key: str = ""
    url: str = ""


_ANTHROPIC = _Provider("anthropic", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL")
_GOOGLE = _Provider("google", "GOOGLE_API_KEY", "GOOGLE_GEMINI_BASE_URL")
_VERTEX = _Provider("google-vertex")
PROVIDERS: Mapping[str, _Provider] = {
    "openai": _Provider("openai", "OPENAI_API_KEY", "OPENAI_BASE_URL"),
    "openai-responses": _Provider("openai-responses", "OPENAI_API_KEY", "OPENAI_BASE_URL"),
    "azure": _Provider("azure", "AZURE_OPENAI_API_KEY", "AZURE_OPENAI_ENDPOINT"),
    "anthropic": _ANTHROPIC,
    "claude": _ANTHROPIC,
    "google": _GOOGLE,
    "gemini": _GOOGLE,
    "google-gla": _GOOGLE,
    "google-vertex": _VERTEX,
    "google-cloud": _VERTEX,
    "ollama": _Provider("ollama", "OLLAMA_API_KEY", "OLLAMA_HOST"),
    "openrouter": _Provider("openrouter", "OPENROUTER_API_KEY", "OPENROUTER_BASE_URL"),
    "mistral": _Provider("mistral", "MISTRAL_API_KEY"),
    "groq": _Provider("groq", "GROQ_API_KEY", "GROQ_BASE_URL"),
    "cohere": _Provider("cohere", "CO_API_KEY"),
    "bedrock": _Provider("bedrock", "AWS_BEARER_TOKEN_BEDROCK", "AWS_ENDPOINT_URL_BEDROCK_RUNTIME"),
    "local": _Provider("local"),
    "script": _Provider("script"),
}
"""By `api_type`, which is also the prefix of a model string."""
SAMPLING = ("temperature", "top_p", "top_k", "stop", "seed", "presence_penalty", "frequency_penalty")


class ModelSettings(Struct, frozen=True):
    """One model as a file describes it.

    model: Antiphon's model string, such as `openai:gpt-4.1-mini`. api_key_env: the variable that
    holds the key, instead of the key. max_output: tokens of one reply, None when nothing is said.
    settings: what is sent to the model as it is. file: where this stands; empty for settings made in code.
    """

    model: str
    base_url: str = ""
    api_key: Secret | None = None
    api_key_env: str = ""
    max_output: int | None = None
    settings: Mapping[str, Any] = {}
    file: str = ""

    def environment(self, env: Mapping[str, str]) -> LayeredSettings:
        """`env` with this model's key and address, under the names its provider reads them by.

        What a file gives is trusted less than `env`: see `antiphon.config.endpoint`. The key stands in
        it openly: use it to make the model, and keep it nowhere. Raises ConfigError when the variable
        that should hold the key is not set.
        """
        provider = provider_of(self.model)
        own: dict[str, str] = {}
        taken: dict[str, str] = {}
        if self.base_url:
            own[provider.url] = self.base_url
        if self.api_key is not None:
            own[provider.key] = self.api_key.reveal()
        elif self.api_key_env:
            if not env.get(self.api_key_env):
                raise ConfigError(f"{self.model}: the key is to be in {self.api_key_env}, which is not set")
            taken[provider.key] = self.api_key_env
        if self.file:
            return layered(env).overlaid(self.file, own, taken)
        own.update({name: env[variable] for name, variable in taken.items()})
        return LayeredSettings(Layer("the settings made in code", own), *layered(env).layers)


class Settings(Struct, frozen=True):
    """A whole file: everyone's model, models by name, and what each role named thinks with."""

    llm: ModelSettings | None = None
    models: Mapping[str, ModelSettings] = {}
    roles: Mapping[str, ModelSettings] = {}

    def model_of(self, *names: str) -> ModelSettings | None:
        """The model of a role that goes by these names (class name, role id); else everyone's."""
        return next((self.roles[name] for name in names if name in self.roles), self.llm)

    def model_named(self, name: str) -> ModelSettings:
        """A model from `models`. Raises UnknownName."""
        if name not in self.models:
            raise UnknownName("model", name, self.models)
        return self.models[name]


def provider_of(model: str) -> _Provider:
    """Who serves a model string; an id without a known prefix belongs to `openai`."""
    prefix = model.partition(":")[0] if ":" in model else model.partition("/")[0]
    return PROVIDERS.get(prefix.strip().lower(), PROVIDERS["openai"])


def find_settings(folder: str | os.PathLike[str] = ".") -> Path | None:
    """`config2.yaml` in a folder, else in `~/.metagpt`; None when there is none."""
    places = (Path(folder) / FILE, Path.home() / ".metagpt" / FILE)
    return next((path for path in places if path.is_file()), None)


def read_settings(path: str | os.PathLike[str]) -> Settings:
    """The settings of a file. Raises ConfigError."""
    root = compose_file(path)
    return Settings() if root is None else _SettingsParser(os.fspath(path)).settings(root)


class _SettingsParser(YamlReader):
    """Nodes to settings."""

    def settings(self, root: yaml.Node) -> Settings:
        pairs = self.pairs(root, "the settings")
        for key, (place, _) in pairs.items():
            meant = difflib.get_close_matches(key, SECTIONS, 1, 0.8)
            if key not in SECTIONS and meant:
                raise self.wrong(place, f"unknown section {key!r}; did you mean {meant[0]!r}?")
        found = {key: node for key, (_, node) in pairs.items() if not is_null(node)}
        named = self._models(found["models"]) if "models" in found else {}
        roles = self._roles(found["roles"], named) if "roles" in found else {}
        return Settings(self._model(found["llm"]) if "llm" in found else None, named, roles)

    def _models(self, node: yaml.Node) -> dict[str, ModelSettings]:
        return {name: self._model(each) for name, each in self.values(node, "models").items()}

    def _roles(self, node: yaml.Node, named: Mapping[str, ModelSettings]) -> dict[str, ModelSettings]:
        roles: dict[str, ModelSettings] = {}
        for each in self.items(node, "roles"):
            fields = self.pairs(each, "a role", ("role", "llm"))
            for field in ("role", "llm"):
                if field not in fields:
                    raise self.wrong(each, f"a role needs `{field}`")
            role, llm = self.text(fields["role"][1], "role"), fields["llm"][1]
            if role in roles:
                raise self.wrong(fields["role"][1], f"the role {role} stands here twice")
            if isinstance(llm, yaml.ScalarNode):
                name = self.text(llm, "llm")
                if name not in named:
                    listed = ", ".join(sorted(named)) or "(none)"
                    raise self.wrong(llm, f"`models` has no {name!r}; it has: {listed}")
                roles[role] = named[name]
            else:
                roles[role] = self._model(llm)
        return roles

    def _model(self, node: yaml.Node) -> ModelSettings:
        known = ("api_type", "model", "base_url", "api_key", "api_key_env", "max_token", *SAMPLING)
        fields = self.pairs(node, "a model", known)
        texts = {
            name: self.text(fields[name][1], name)
            for name in ("api_type", "model", "base_url", "api_key", "api_key_env")
            if name in fields
        }
        if "model" not in texts:
            raise self.wrong(node, "a model needs `model`: its name, such as gpt-4.1-mini")
        model = texts["model"]
        if "api_type" in texts:
            model = self._prefixed(texts["api_type"], model, fields["api_type"][1])
        provider = provider_of(model)
        for name, variable in (
            ("base_url", provider.url),
            ("api_key", provider.key),
            ("api_key_env", provider.key),
        ):
            if name in texts and not variable:
                raise self.wrong(fields[name][0], f"{provider.prefix} takes no {name}")
        if texts.get("api_key") == PLACEHOLDER:
            said = "put your key in place of the placeholder, or name its variable in `api_key_env`"
            raise self.wrong(fields["api_key"][1], said)
        if "api_key" in texts and "api_key_env" in texts:
            raise self.wrong(fields["api_key_env"][0], "give api_key or api_key_env, not both")
        return ModelSettings(
            model,
            texts.get("base_url", ""),
            Secret(texts["api_key"]) if "api_key" in texts else None,
            texts.get("api_key_env", ""),
            self._whole(fields["max_token"][1], "max_token") if "max_token" in fields else None,
            {name: self._sampling(fields[name][1], name) for name in SAMPLING if name in fields},
            self._path,
        )

    def _prefixed(self, api_type: str, model: str, node: yaml.Node) -> str:
        provider = PROVIDERS.get(api_type.lower())
        if provider is None:
            listed = ", ".join(sorted(PROVIDERS))
            raise self.wrong(
                node,
                f"unknown api_type {api_type!r}; known: {listed}. A server that speaks OpenAI's protocol is "
                "openai with a base_url",
            )
        prefix = f"{provider.prefix}:"
        return model if model.startswith(prefix) else prefix + model

    def _whole(self, node: yaml.Node, what: str) -> int:
        text = self.text(node, what)
        if not (text.isascii() and text.isdigit() and 0 < len(text) < 12 and int(text)):
            raise self.wrong(node, f"{what}: expected a whole number above 0, not {text!r}")
        return int(text)

    def _sampling(self, node: yaml.Node, what: str) -> Any:
        """A number; `stop` is a text or a list of texts."""
        if what == "stop":
            several = isinstance(node, yaml.SequenceNode)
            return [self.text(each, what) for each in node.value] if several else self.text(node, what)
        text = self.text(node, what)
        for kind in (int, float):
            try:
                number = kind(text)
            except ValueError:
                continue
            if math.isfinite(number):
                return number
        raise self.wrong(node, f"{what}: expected a number, not {text!r}")
