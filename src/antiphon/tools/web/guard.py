"""What may be connected to: a host is resolved, its addresses are judged, and one of these is connected to.

A name is looked up once for each connection, so that it cannot mean another machine between the two.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence

import httpx2

from antiphon.errors import ToolError
from antiphon.tools.web.address import port_of
from antiphon.tools.web.networks import is_address, is_inside, why_not_public
from antiphon.tools.web.options import WebOptions
from antiphon.values.secret import shown

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""The addresses of a host. Raises OSError."""


async def resolved(host: str, port: int) -> list[str]:
    """As the system resolves it."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(each[4][0]) for each in found))


class WebGuard:
    """Says which addresses are connected to for a URL."""

    def __init__(self, options: WebOptions, resolve: Resolve = resolved) -> None:
        self._options, self._networks, self._resolve = options, options.known_networks, resolve

    async def addresses(self, url: httpx2.URL) -> list[str]:
        """The addresses that a URL's host has, all of which may be connected to.

        Raises ToolError: not one of the hosts or ports that are visited, no such host, or one of its
        addresses is not public.
        """
        host, port = url.raw_host.decode("ascii"), port_of(url)
        if self._options.hosts and not _is_of(host.rstrip("."), self._options.hosts):
            raise ToolError(f"{shown(host)} is not visited; these are: {', '.join(self._options.hosts)}")
        found = await self._found(host, port)
        inside = [is_inside(each, self._networks) for each in found]
        for each, known in zip(found, inside, strict=True):
            # One that is not public among others would be the one that is connected to next time.
            if not known and (why := why_not_public(each) or _own(each)):
                raise ToolError(f"{shown(host)} leads to {why}; only public addresses are visited")
        if not all(inside) and port not in self._options.ports:
            ports = ", ".join(map(str, self._options.ports))
            raise ToolError(f"{shown(host)} is not visited at port {port}; ports are: {ports}")
        return found

    async def _found(self, host: str, port: int) -> list[str]:
        if is_address(host):
            return [host]
        try:
            found = list(dict.fromkeys(await self._resolve(host, port)))
        except (OSError, UnicodeError) as error:
            raise ToolError(f"There is no host {shown(host)}, or it can not be looked up now") from error
        if not found:
            raise ToolError(f"There is no host {shown(host)}")
        return found


def _is_of(host: str, hosts: Sequence[str]) -> bool:
    return any(host == each or host.endswith(f".{each}") for each in hosts)


def _own(address: str) -> str:
    """Whether a public address is this machine's own, where what listens on every address would answer."""
    return "this machine" if _spoken_from(address) == address else ""


def _spoken_from(address: str) -> str:
    """The address of ours from which the system would speak to another one; empty: it would not."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            # Nothing is sent by this: of a datagram the system only chooses the way.
            probe.connect((address, 9))
            return str(probe.getsockname()[0])
    except OSError:
        return ""
