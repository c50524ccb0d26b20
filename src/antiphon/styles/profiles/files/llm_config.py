"""llm_config: how a model is asked, as an LLM config file says: values, and where values come from.

A value is given as it is, by `{_type: from_env, var, default, required}`, or by
`{_type: json_from_file, path}`. What goes by a secret's name becomes a `Secret`, wherever it comes from.
"""

from __future__ import annotations

import os
from codecs import BOM_UTF8
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from antiphon.config.yaml import MAX_BYTES, plain
from antiphon.errors import ConfigError, ToolError
from antiphon.styles.profiles.files.diagnostics import SourceLocation
from antiphon.tools.folder.root import Root
from antiphon.values.secret import Secret, is_secret_name


class FromEnv(Struct, frozen=True):
    """The value of an environment variable. default: instead of it; UNSET when there is none."""

    var: str
    default: Any = msgspec.UNSET
    required: bool = False


class FromFile(Struct, frozen=True, gc=False):
    """The JSON in a file of the configuration's folder, or of one in it; the path is relative to it."""

    path: str


class LlmConfig(Struct, frozen=True):
    """A configuration with its bases merged in. config: values, FromEnv, FromFile and Secrets."""

    name: str
    place: SourceLocation
    config: Mapping[str, Any] = {}
    description_for_human: str = ""
    rev: int = 1
    bases: tuple[str, ...] = ()

    def resolve(self, env: Mapping[str, str]) -> dict[str, Any]:
        """What the model is asked with. A value that comes to nothing is left out.

        Raises ConfigError for a required variable that is not set, and a file that cannot be read.
        """
        resolved = {key: self._resolved(key, value, env) for key, value in self.config.items()}
        return {key: value for key, value in resolved.items() if value is not None}

    def _resolved(self, key: str, value: Any, env: Mapping[str, str]) -> Any:
        if isinstance(value, FromFile):
            value = self._from_file(key, value)
        elif isinstance(value, FromEnv):
            source, value = value, self._from_env(key, value, env)
            # A file that somebody else wrote may name any variable: what looks like a key stays one.
            return (
                Secret(value) if isinstance(value, str) and is_secret_name(source.var) else sealed(key, value)
            )
        return sealed(key, value)

    def variable(self, key: str, env: Mapping[str, str]) -> str:
        """The variable that a value comes from; empty when the file itself gives it."""
        value = self.config.get(key)
        return value.var if isinstance(value, FromEnv) and env.get(value.var) else ""

    def _from_env(self, key: str, source: FromEnv, env: Mapping[str, str]) -> Any:
        if text := env.get(source.var, ""):
            return text if is_secret_name(key) else plain(text)
        if source.default is not msgspec.UNSET:
            return source.default
        if source.required:
            raise self._wrong(key, f"the variable {source.var} is not set; set it, or give it a default")
        return None

    def _from_file(self, key: str, source: FromFile) -> Any:
        # Whoever wrote the profiles may be a stranger: they read what lies beside them, and nothing else.
        folder = Root(os.path.dirname(self.place.file) or ".")
        try:
            return msgspec.json.decode(folder.read(source.path, MAX_BYTES).removeprefix(BOM_UTF8))
        except ToolError as error:
            raise self._wrong(key, str(error)) from None
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise self._wrong(key, f"{source.path} is not JSON: {error}") from None

    def _wrong(self, key: str, text: str) -> ConfigError:
        return ConfigError(f"config.{key}: {text}", self.place.file, self.place.line, self.place.column)


def sealed(key: str, value: Any) -> Any:
    """The value with every secret in it as a Secret."""
    if isinstance(value, dict):
        return {name: sealed(name, each) for name, each in value.items()}
    if isinstance(value, list):
        return [sealed(key, each) for each in value]
    return (
        Secret(str(value))
        if is_secret_name(key) and value is not None and not isinstance(value, Secret)
        else value
    )


def sourced(key: str, value: Any) -> Any:
    """A value as it is merged from the files, with what says where it comes from read and secrets sealed."""
    kind = value.get("_type") if isinstance(value, dict) else None
    if kind == "from_env":
        default = sealed(key, value["default"]) if "default" in value else msgspec.UNSET
        return FromEnv(value["var"], default, bool(value.get("required")))
    return FromFile(value["path"]) if kind == "json_from_file" else sealed(key, value)
