"""Pages asked for: each address judged before it is connected to, each redirect like the first, all of
it bounded."""

from __future__ import annotations

import asyncio
import functools
import ssl
import time
from collections.abc import Callable, Mapping
from contextlib import aclosing
from email.utils import parsedate_to_datetime
from http import HTTPStatus

import httpx2
from msgspec import Struct

from antiphon.errors import ToolError
from antiphon.tools.web.address import port_of, web_url
from antiphon.tools.web.courtesy import Courtesy
from antiphon.tools.web.guard import Resolve, WebGuard, resolved
from antiphon.tools.web.options import WebOptions
from antiphon.tools.web.robots import EVERYTHING, MAX_ROBOTS, NOTHING, RobotRules, robot_rules
from antiphon.values.secret import shown

MAX_REDIRECTS = 5
CONNECT_SECONDS = 10.0
"""Seconds that connecting to one address may take."""
MAX_TRIED = 4
"""Addresses of a host that are tried."""
ROBOTS_SECONDS = 3600.0
"""How long what a host asks of programs is believed to be the same."""
MAX_DELAY = 10.0
"""Seconds between two requests that a robots.txt may ask for."""
MAX_HOSTS = 500
_ENCODINGS = ("", "identity", "gzip", "x-gzip", "deflate")
_ACCEPT = (
    "text/html, application/xhtml+xml, text/*, application/json, application/pdf, image/*;q=0.5, */*;q=0.1"
)

Transport = Callable[[], httpx2.AsyncBaseTransport]
"""Makes what sends one request; its URL has an address in place of the host."""


class WebAnswer(Struct, frozen=True):
    """What a host answered."""

    url: httpx2.URL
    """Where it stands in the end, after redirects."""
    headers: Mapping[str, str]
    """By names in small letters."""
    body: bytes
    """Unpacked."""

    @property
    def kind(self) -> str:
        """Its media type, in small letters; empty when nothing is said."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()


class _Received(Struct, frozen=True):
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def moved(self) -> str:
        """Where it says that the page is now; empty when it says nothing of that."""
        return self.headers.get("location", "") if self.status in (301, 302, 303, 307, 308) else ""


class WebClient:
    """Asks for pages with GET, as a good guest. For any number of runs and event loops.

    resolve: looks hosts up. transport: sends requests. courtesy: spaces those to one host. A proxy that the
    environment names is not used: through it nobody could say what is connected to.
    """

    def __init__(
        self,
        options: WebOptions | None = None,
        *,
        resolve: Resolve = resolved,
        transport: Transport | None = None,
        courtesy: Courtesy | None = None,
    ) -> None:
        self.options = options or WebOptions()
        self._guard = WebGuard(self.options, resolve)
        self._transport = transport or _transport
        self._courtesy = courtesy or Courtesy()
        self._robots: dict[str, tuple[float, RobotRules]] = {}

    async def get(self, text: str) -> WebAnswer:
        """What stands at an address. Raises ToolError: not visited, by whose word; not there; not in
        time; too large."""
        url = web_url(text)
        for _ in range(MAX_REDIRECTS + 1):
            await self._admit(url)
            reply = await self._in_time(url, self.options.max_bytes)
            if not reply.moved:
                break
            url = web_url(reply.moved, url)
        else:
            raise ToolError(f"{_told(web_url(text))} leads on and on: more than {MAX_REDIRECTS} redirects")
        if reply.status >= 300 or reply.status < 200:
            raise ToolError(f"{_told(url)} answered {_words(reply.status)}{self._later(url, reply)}")
        return WebAnswer(url, reply.headers, reply.body)

    async def _admit(self, url: httpx2.URL) -> None:
        """Wait until a host may be asked for a page of it. Raises ToolError when it does not want that."""
        # Judged before anything else: of a host that is not visited robots.txt is not asked for either.
        await self._guard.addresses(url)
        rules = await self._asked(url) if self.options.obey_robots else EVERYTHING
        if not rules.allows(url.raw_path.decode("ascii", "replace")):
            raise ToolError(
                f"{_told(url)} is not for programs: the robots.txt of its host asks to leave it alone"
            )
        await self._courtesy.turn(_place(url), max(self.options.pause, min(rules.delay, MAX_DELAY)))

    async def _asked(self, url: httpx2.URL) -> RobotRules:
        """What a host asks of us."""
        place, now = f"{url.scheme}://{_place(url)}", time.monotonic()
        known = self._robots.pop(place, None)
        if known is None or known[0] < now:
            known = now + ROBOTS_SECONDS, await self._robot_rules(url.copy_with(raw_path=b"/robots.txt"))
        self._robots[place] = known
        while len(self._robots) > MAX_HOSTS:
            self._robots.pop(next(iter(self._robots)))
        return known[1]

    async def _robot_rules(self, url: httpx2.URL) -> RobotRules:
        reply = await self._in_time(url, MAX_ROBOTS, whole=False)
        for _ in range(MAX_REDIRECTS):
            if not reply.moved:
                break
            url = web_url(reply.moved, url)
            reply = await self._in_time(url, MAX_ROBOTS, whole=False)
        if 200 <= reply.status < 300:
            return robot_rules(reply.body.decode("utf-8", "replace"), self.options.product)
        # Of a host that has none nothing is asked; one that cannot say it now may ask for anything.
        return NOTHING if reply.status >= 500 else EVERYTHING

    async def _in_time(self, url: httpx2.URL, limit: int, *, whole: bool = True) -> _Received:
        try:
            async with asyncio.timeout(self.options.seconds):
                return await self._exchange(url, await self._guard.addresses(url), limit, whole)
        except TimeoutError as error:
            raise ToolError(f"{_told(url)} did not answer within {self.options.seconds:g} seconds") from error
        except (httpx2.HTTPError, httpx2.StreamError, OSError) as error:
            why = shown(str(error)) or type(error).__name__
            raise ToolError(f"{_told(url)} could not be read: {why}") from error

    async def _exchange(self, url: httpx2.URL, addresses: list[str], limit: int, whole: bool) -> _Received:
        """Ask the first of these addresses that can be connected to, and no other."""
        for tried, address in enumerate(addresses[:MAX_TRIED], 1):
            try:
                return await self._ask(url, address, limit, whole)
            except (httpx2.ConnectError, httpx2.ConnectTimeout):
                if tried == min(len(addresses), MAX_TRIED):
                    raise
        raise ToolError(f"There is no host {shown(url.host)}")

    async def _ask(self, url: httpx2.URL, address: str, limit: int, whole: bool) -> _Received:
        host = url.raw_host.decode("ascii")
        headers = {
            "Host": url.netloc.decode("ascii"), "User-Agent": self.options.user_agent, "Accept": _ACCEPT,
            "Accept-Encoding": "gzip, deflate", "Connection": "close",
        }  # fmt: skip
        # The certificate is that of the name, though the address is what is connected to.
        patience = httpx2.Timeout(self.options.seconds, connect=CONNECT_SECONDS)
        extensions = {"sni_hostname": host.rstrip("."), "timeout": patience.as_dict()}
        request = httpx2.Request("GET", url.copy_with(host=address), headers=headers, extensions=extensions)
        async with self._transport() as transport:
            response = await transport.handle_async_request(request)
            try:
                found = {name.lower(): value for name, value in response.headers.items()}
                moved = response.status_code in (301, 302, 303, 307, 308)
                body = b"" if moved else await _body(response, url, limit, whole)
            finally:
                await response.aclose()
        return _Received(response.status_code, found, body)

    def _later(self, url: httpx2.URL, reply: _Received) -> str:
        """What it says of when to come again, which is remembered."""
        seconds = _retry_after(reply.headers.get("retry-after", ""))
        if reply.status not in (429, 503) or not seconds:
            return ""
        self._courtesy.ask_later(_place(url), seconds)
        return f", and asks not to be visited for {seconds:.0f} seconds"


async def _body(response: httpx2.Response, url: httpx2.URL, limit: int, whole: bool) -> bytes:
    """The body, unpacked. whole: one that is larger is refused; else its beginning is what there is."""
    packed = response.headers.get("content-encoding", "").strip().lower()
    if packed not in _ENCODINGS:
        raise ToolError(f"{_told(url)} is packed in a way that was not asked for: {shown(packed)}")
    found = bytearray()
    async with aclosing(response.aiter_bytes()) as pieces:
        async for piece in pieces:
            found += piece
            if len(found) > limit:
                break
    if whole and len(found) > limit:
        raise ToolError(f"{_told(url)} has more than {limit:,} bytes")
    return bytes(found[:limit])


def _transport() -> httpx2.AsyncHTTPTransport:
    # A connection is used once: it is known by its address alone, and another host may share that.
    limits = httpx2.Limits(max_connections=1, max_keepalive_connections=0)
    return httpx2.AsyncHTTPTransport(verify=_certificates(), trust_env=False, limits=limits)


@functools.cache
def _certificates() -> ssl.SSLContext:
    """Made once: it takes as long as many a page."""
    return httpx2.create_ssl_context()


def _place(url: httpx2.URL) -> str:
    """A host and its port, which is what is asked and what asks."""
    return f"{url.raw_host.decode('ascii')}:{port_of(url)}"


def _retry_after(text: str) -> float:
    """Seconds, from a number or a date; 0 for what is neither."""
    try:
        found = float(text)
    except ValueError:
        try:
            found = parsedate_to_datetime(text).timestamp() - time.time()
        except (TypeError, ValueError, OverflowError):
            return 0.0
    return min(found, 86_400.0) if found > 0 else 0.0


def _words(status: int) -> str:
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)


def _told(url: httpx2.URL) -> str:
    return shown(str(url))
