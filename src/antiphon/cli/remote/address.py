"""Where a server is, and the token for it: checked before anything is sent.

A token goes to the one address that a person has named, over TLS or within this machine. It is taken from
the environment or a file, never from the command line, which every process of the machine can read, and never
from an address, which ends up in logs.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from urllib.parse import urlsplit

from msgspec import Struct

from antiphon.config.endpoint import Endpoint, paired
from antiphon.errors import ConfigError, visible
from antiphon.values.secret import Secret

SERVER = "ANTIPHON_SERVER"
"""The setting with the address of the server that commands on runs work against."""
TOKEN = "ANTIPHON_SERVER_TOKEN"
"""The setting with the token for it."""
MAX_URL = 2_000
MAX_TOKEN = 4_096
"""Bytes of a token, and of the file it stands in."""


class ServerAddress(Struct, frozen=True):
    """A server that is asked."""

    url: str
    """Without a slash at its end."""
    token: Secret
    """Sent in a header with each request."""

    @property
    def is_here(self) -> bool:
        """Whether only this machine can hear what is said to it."""
        return is_loopback(urlsplit(self.url).hostname or "")


def server_address(
    option: str | None, token_file: str | None, plain_http: bool, env: Mapping[str, str]
) -> ServerAddress:
    """The server of `--server`, else of ANTIPHON_SERVER, with its token.

    plain_http: a token may travel unencrypted. Raises ConfigError for an address that cannot be one, for a
    token that is missing or can be none, and where token and address come from places that do not trust each
    other alike (see `antiphon.config.endpoint`).
    """
    named = option if option is not None else env.get(SERVER, "")
    url = checked_url(named.strip(), plain_http)
    if token_file is not None:
        return ServerAddress(url, _checked_token(_read(token_file), token_file))
    # An address that was typed is the person's own; one from a file gets no token of the shell's.
    known = env if option is not None else paired(env, Endpoint("the server", (TOKEN,), (SERVER,)))
    token = known.get(TOKEN, "").strip()
    if not token:
        raise ConfigError(
            f"The server at {url} needs a token: set {TOKEN}, or name a file with it, --token-file PATH."
            " `antiphon serve` prints it"
        )
    return ServerAddress(url, _checked_token(token, TOKEN))


def checked_url(text: str, plain_http: bool = False) -> str:
    """The address of a server, without a slash at its end. Raises ConfigError, without a password."""
    expected = "expected one like http://127.0.0.1:8000 or https://agents.example.org"
    if not text or len(text) > MAX_URL or not text.isprintable() or " " in text:
        raise ConfigError(f"The server's address is none; {expected}")
    try:
        parts = urlsplit(text)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise ConfigError(f"The server's address is none; {expected}") from None
    if "@" in parts.netloc:
        raise ConfigError(
            "The server's address holds a name or a password; leave it out, and give the token in"
            f" {TOKEN} or --token-file"
        )
    if parts.scheme not in ("http", "https") or not host or port == 0:
        raise ConfigError(f"{visible(text[:200])} is no address of a server; {expected}")
    if parts.query or parts.fragment:
        raise ConfigError(
            "The server's address holds a `?` or `#`; give the first one that `antiphon serve` prints,"
            f" and the token in {TOKEN} or --token-file"
        )
    if parts.scheme == "http" and not plain_http and not is_loopback(host):
        raise ConfigError(
            f"http://{visible(host)} is another machine, and the token would travel unencrypted. Use https,"
            " or a tunnel, such as ssh -L; --plain-http sends it all the same"
        )
    return text.rstrip("/")


def is_loopback(host: str) -> bool:
    """Whether a host is this machine by its address, or by the one name that always is."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _read(path: str) -> str:
    try:
        with open(path, "rb") as file:
            data = file.read(MAX_TOKEN + 1)
    except OSError as error:
        raise ConfigError(f"the token cannot be read: {error.strerror}", path) from error
    if len(data) > MAX_TOKEN:
        raise ConfigError(f"is larger than {MAX_TOKEN:,} bytes; a token is one line", path)
    return data.decode("utf-8", "replace").strip()


def _checked_token(text: str, place: str) -> Secret:
    """A token that can stand in a header. The error says where it comes from, and nothing of it."""
    if not text or len(text) > MAX_TOKEN or not text.isascii() or not text.isprintable():
        raise ConfigError(f"{place} holds no token; expected one line of visible ASCII characters")
    return Secret(text)
