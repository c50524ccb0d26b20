"""Writing a server into a file of servers; nothing else in it changes but its white space."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

from antiphon.config.json_file import read_json
from antiphon.errors import ConfigError, UserError
from antiphon.tools.mcp import read_servers


class _EverySet(dict[str, str]):
    """An environment in which every variable is set: a file is right before its variables are."""

    def get(self, key: str, default: Any = None) -> Any:
        return "x"


def added(path: Path, name: str, server: Mapping[str, Any], *, replace: bool) -> None:
    """Write a server into the file, which is made when it is not there.

    Raises McpConfigError when the file, or the server, is not right, UserError when it has one of that name;
    then nothing changes.
    """
    data: Any = {"mcpServers": {}}
    if path.exists():
        read_servers(path, _EverySet())
        data = read_json(path).data
    if name in data["mcpServers"] and not replace:
        raise UserError(f"{path} has a server {name!r} already; give --replace, or another name")
    data["mcpServers"][name] = server
    _write(path, json.dumps(data, indent=2, ensure_ascii=False) + "\n")


def _write(path: Path, text: str) -> None:
    """All of it or nothing, once it is right."""
    path.parent.mkdir(parents=True, exist_ok=True)
    mode = path.stat().st_mode & 0o777 if path.exists() else 0o600
    with NamedTemporaryFile("w", encoding="utf-8", dir=path.parent, prefix=".mcp-", delete=False) as file:
        file.write(text)
    try:
        read_servers(file.name, _EverySet())
        os.chmod(file.name, mode)
        os.replace(file.name, path)
    except ConfigError as error:
        raise UserError("\n".join(each.text for each in getattr(error, "faults", (error,)))) from None
    finally:
        with suppress(FileNotFoundError):
            os.unlink(file.name)
