"""McpServer: what is known of an MCP server before anybody connects to it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict, force_setattr

from antiphon.errors import UserError
from antiphon.values.fields import check_fields
from antiphon.values.secret import Secret
from antiphon.values.tool import Effect

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,31}")
"""A server's name: it begins the names of its tools, which models take up to 64 characters of."""
URL = re.compile(r"https?://[^\s/?#@]+(?::[0-9]{1,5})?(?:[/?][^\s#]*)?", re.IGNORECASE)


class McpServer(Struct, frozen=True):
    """An MCP server: a program that is started (`command`), or an address (`url`).

    Raises UserError for one that is neither, or both.
    """

    name: str
    """1 to 32 letters, digits, `_` and `-`; its tools are named `name_tool`."""
    command: str = ""
    """The program, looked up on the PATH."""
    args: tuple[str, ...] = ()
    """Its arguments."""
    env: Mapping[str, Secret] = {}
    """Environment variables for it. Of ours it is given those alone that programs need to start (PATH, HOME
    and the like)."""
    cwd: str = ""
    """The folder that it runs in; empty: ours."""
    url: str = ""
    """Of a server that is reached over streamable HTTP."""
    headers: Mapping[str, Secret] = {}
    """Sent with each request to `url`, and to no other place."""
    required: bool = False
    """A run does not start without it."""
    timeout: float = 60.0
    """Seconds that a call may take."""
    tools: tuple[str, ...] = ()
    """Which of its tools are taken, by the names that it gives them; empty: all."""
    effect: Effect = "read"
    """The most that the server's word on its tools is believed for: `read` takes it as it is, `idempotent`
    lets none be `read`, `once` believes nothing."""
    effects: Mapping[str, Effect] = {}
    """Your own word on single tools, which counts instead of the server's."""
    pins: str = ""
    """The file in which its tools are pinned: one whose definition changes is suspended until a person has
    approved it. Empty: they are taken as they come."""
    origin: str = ""
    """The file it stands in."""

    def __post_init__(self) -> None:
        for name in ("env", "headers"):
            given: Any = getattr(self, name)
            if not isinstance(given, Mapping) or not all(
                isinstance(each, str | Secret) for each in given.values()
            ):
                raise UserError(f"McpServer({name}=...) takes texts, or Secrets, by name")
            force_setattr(self, name, {key: Secret(value) for key, value in given.items()})
        check_fields(self)
        if not NAME.fullmatch(self.name):
            raise UserError(
                f"An MCP server's name is 1 to 32 letters, digits, '_' and '-'; got {self.name[:80]!r}"
            )
        if bool(self.command) == bool(self.url):
            raise UserError(
                f"MCP server {self.name}: give a command or a url, not {'both' if self.url else 'neither'}"
            )
        if self.url and not URL.fullmatch(self.url):
            raise UserError(
                f"MCP server {self.name}: url is no http or https address without user and fragment"
            )
        if not 0 < self.timeout <= 86_400:
            raise UserError(f"MCP server {self.name}: timeout is more than 0 and at most 86,400 seconds")

    @property
    def secrets(self) -> tuple[str, ...]:
        """What no error and no log may show."""
        return tuple([each.reveal() for each in (*self.env.values(), *self.headers.values())])

    @property
    def place(self) -> tuple[object, ...]:
        """The same for all connections to one server, whatever the credentials."""
        return self.command, self.args, self.cwd, self.url

    @property
    def key(self) -> tuple[object, ...]:
        """The same for servers that one session serves: same program or address, same credentials."""
        said = asdict(self)
        for other in ("required", "tools", "origin"):
            del said[other]
        return tuple([
            tuple(sorted(each.items(), key=str)) if isinstance(each, dict) else each for each in said.values()
        ])  # fmt: skip
