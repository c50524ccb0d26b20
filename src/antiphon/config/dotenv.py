"""`.env` files: settings beside a project, read into a mapping and never into the process."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from antiphon.errors import ConfigError

_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", '"': '"', "\\": "\\", "$": "$"}
_MAX_BYTES = 1_000_000


def environment(
    path: str | os.PathLike[str] = ".env", env: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The settings of `path` with those of `env` (the process, unless given) on top.

    A missing file is no settings. `ConfigError` says which line cannot be read; values are never
    part of its text. Nothing is written to the process's own environment.
    """
    outer = os.environ if env is None else env
    try:
        raw = Path(path).read_bytes()
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return dict(outer)
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}", os.fspath(path)) from error
    if len(raw) > _MAX_BYTES:
        raise ConfigError("is larger than 1 MB; this is no settings file", os.fspath(path))
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError("is not UTF-8", os.fspath(path), raw.count(b"\n", 0, error.start) + 1) from None
    return {**parse_dotenv(text, os.fspath(path)), **outer}


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
