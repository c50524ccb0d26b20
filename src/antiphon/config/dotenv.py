"""Settings and the layers they come from: `.env` files, read into a mapping and never into the process."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from antiphon.errors import ConfigError

_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", '"': '"', "\\": "\\", "$": "$"}
_MAX_BYTES = 1_000_000


class Layer(Struct, frozen=True):
    """Settings from one place: the process's environment, a file, an argument."""

    place: str
    values: Mapping[str, str]


class LayeredSettings(dict[str, str]):
    """Several layers as one mapping; `layers` begins with the one that is trusted most, and it wins."""

    def __init__(self, *layers: Layer) -> None:
        super().__init__()
        self.layers = layers
        self._ranks: dict[str, int] = {}
        for rank in reversed(range(len(layers))):
            self.update(layers[rank].values)
            self._ranks.update(dict.fromkeys(layers[rank].values, rank))

    def rank(self, name: str) -> int:
        """The index of the layer that a setting comes from; it is set."""
        return self._ranks[name]

    def overlaid(
        self, place: str, own: Mapping[str, str], taken: Mapping[str, str] | None = None
    ) -> LayeredSettings:
        """With what a configuration file says on top, which wins here and is trusted least all the same.

        own: settings that the file gives. taken: settings for which it names a variable instead; their
        layer is that variable's.
        """
        found = LayeredSettings(*self.layers, Layer(place, own))
        found.update(own)
        found._ranks.update(dict.fromkeys(own, len(self.layers)))
        for name, variable in (taken or {}).items():
            found[name] = self[variable]
            found._ranks[name] = self.rank(variable)
        return found


def layered(env: Mapping[str, str]) -> LayeredSettings:
    """The settings with their layers; a mapping that knows of none is one layer."""
    if isinstance(env, LayeredSettings):
        return env
    return LayeredSettings(
        Layer("the environment" if env is os.environ else "the settings given in code", env)
    )


def environment(
    path: str | os.PathLike[str] = ".env", env: Mapping[str, str] | None = None
) -> LayeredSettings:
    """The settings of `path` with those of `env` (the process, unless given) on top, each with its place.

    A missing file is no settings. `ConfigError` says which line cannot be read; values are never
    part of its text. Nothing is written to the process's own environment.
    """
    outer = layered(os.environ if env is None else env)
    try:
        raw = Path(path).read_bytes()
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return outer
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}", os.fspath(path)) from error
    if len(raw) > _MAX_BYTES:
        raise ConfigError("is larger than 1 MB; this is no settings file", os.fspath(path))
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError("is not UTF-8", os.fspath(path), raw.count(b"\n", 0, error.start) + 1) from None
    name = os.fspath(path)
    return LayeredSettings(*outer.layers, Layer(name, parse_dotenv(text, name)))


def parse_dotenv(text: str, path: str = ".env") -> dict[str, str]:
    """`KEY=VALUE` lines: `export`, `#` comments, '…' as it stands, "…" with \\n \\" \\\\, over lines too.

    An unquoted value ends at ` #` and is stripped. The last of two equal keys holds. Nothing is
    expanded: `$NAME` stays as written.
    """
    values: dict[str, str] = {}
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    at = 0
    while at < len(lines):
        start, line = at + 1, lines[at].lstrip()
        at += 1
        if not line.strip() or line.startswith("#"):
            continue
        name, equals, rest = line.partition("=")
        name = name.removeprefix("export ").strip()
        if not equals or not name.replace("_", "a").replace(".", "a").isalnum() or name[0].isdigit():
            raise ConfigError("expected KEY=VALUE, a comment or an empty line", path, start, 1)
        rest = rest.lstrip()
        if rest[:1] in ("'", '"'):
            quote, body = rest[0], [rest[1:]]
            while (end := _closing(body[-1], quote)) < 0 and at < len(lines):
                body.append(lines[at])
                at += 1
            if end < 0:
                raise ConfigError(f"the value of {name} opens with {quote} that is never closed", path, start)
            after = body[-1][end + 1 :].strip()
            if after and not after.startswith("#"):
                raise ConfigError(f"text after the closing {quote} of {name}", path, at)
            value = "\n".join([*body[:-1], body[-1][:end]])
            values[name] = value if quote == "'" else _unescaped(value)
        else:
            values[name] = "" if rest.startswith("#") else rest.split(" #")[0].split("\t#")[0].rstrip()
    return values


def _closing(body: str, quote: str) -> int:
    """Where `quote` closes in one line, -1 if it does not; a backslash protects inside double quotes."""
    at = 0
    while at < len(body):
        if body[at] == "\\" and quote == '"':
            at += 2
            continue
        if body[at] == quote:
            return at
        at += 1
    return -1


def _unescaped(body: str) -> str:
    out: list[str] = []
    at = 0
    while at < len(body):
        if body[at] == "\\" and at + 1 < len(body):
            out.append(_ESCAPES.get(body[at + 1], body[at : at + 2]))
            at += 2
        else:
            out.append(body[at])
            at += 1
    return "".join(out)
