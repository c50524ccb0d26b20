"""A provider of searches, asked over HTTP."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from itertools import islice
from typing import TYPE_CHECKING

from antiphon.errors import ConfigError, ToolError, UnknownName, UserError
from antiphon.tools.web.search.port import WebHit
from antiphon.tools.web.search.providers import PROVIDERS, SearchProvider, SearchRequest
from antiphon.values.secret import Secret, shown

if TYPE_CHECKING:
    from httpx2 import AsyncBaseTransport

SETTING = "ANTIPHON_WEB_SEARCH"
"""Names the provider, or `none`; unset: the first whose key or address is set."""
SECONDS = 20.0
MAX_ANSWER = 4_000_000
"""Bytes of an answer."""
MAX_HITS = 20


class HttpWebSearch:
    """One of `PROVIDERS`.

    key: what it knows you by. address: asked instead of its usual one; SearXNG has none, it is the address of
    the instance that you use. seconds: how long an answer is waited for. A redirect is not followed,
    since the key would go along. Raises UnknownName, UserError.
    """

    def __init__(
        self,
        provider: str,
        key: str | Secret = "",
        *,
        address: str = "",
        seconds: float = SECONDS,
        transport: AsyncBaseTransport | None = None,
    ) -> None:
        if provider not in PROVIDERS:
            raise UnknownName("web search", provider, PROVIDERS)
        self.provider = PROVIDERS[provider]
        self.name = provider
        self._key, self._seconds, self._transport = Secret(key), seconds, transport
        if self.provider.needs == "key" and not self._key:
            raise UserError(f"HttpWebSearch({provider!r}) needs a key")
        self._address = _address(provider, address or self.provider.address)

    async def search(self, query: str, count: int) -> Sequence[WebHit]:
        """See `WebSearch`."""
        count = min(max(count, 1), MAX_HITS, self.provider.most)
        answer = await self._answer(self.provider.ask(query, count, self._key.reveal()))
        return list(islice(self.provider.hits(answer), count))

    async def _answer(self, request: SearchRequest) -> object:
        """What it answers, as JSON. Raises ToolError."""
        # Not at import, nor when a team is read: it takes longer than all the rest of this.
        import httpx2

        try:
            async with (
                asyncio.timeout(self._seconds),
                httpx2.AsyncClient(trust_env=True, transport=self._transport, timeout=self._seconds) as http,
                http.stream(
                    "GET" if request.content is None else "POST",
                    f"{self._address}{request.path}",
                    params=dict(request.query),
                    headers={"Accept": "application/json", **request.headers},
                    json=request.content,
                ) as response,
            ):
                body = bytearray()
                async with aclosing(response.aiter_bytes()) as pieces:
                    async for piece in pieces:
                        body += piece
                        if len(body) > MAX_ANSWER:
                            raise ToolError(f"{self.name} answered with more than {MAX_ANSWER:,} bytes")
        except TimeoutError as error:
            raise ToolError(f"{self.name} did not answer within {self._seconds:g} seconds") from error
        except (httpx2.HTTPError, httpx2.StreamError, OSError) as error:
            raise ToolError(f"{self.name} was not reached: {self._shown(str(error))}") from error
        if response.status_code != 200:
            raise ToolError(self._refusal(response.status_code, bytes(body[:2000])))
        try:
            return json.loads(bytes(body))
        except (ValueError, RecursionError) as error:
            raise ToolError(f"{self.name} did not answer with JSON{self._hint}") from error

    @property
    def _hint(self) -> str:
        """What is most often wrong with an instance of one's own."""
        return (
            " (its settings must list json under search.formats)" if self.provider.needs == "address" else ""
        )

    def _refusal(self, status: int, body: bytes) -> str:
        if status in (401, 403):
            what = (
                f"does not take the key in {self.provider.variable}" if self._key else f"refuses{self._hint}"
            )
        elif status == 402:
            what = "has no credit left for this key"
        elif status == 429:
            what = "has been asked too often for now; search later, or read what was found before"
        else:
            what = "did not answer"
        said = self._shown(body.decode("utf-8", "replace"))
        return f"{self.name} {what} ({status}{f': {said}' if said else ''})"

    def _shown(self, text: str) -> str:
        return shown(text, [self._key.reveal()], limit=200)


def _address(provider: str, text: str) -> str:
    known = PROVIDERS[provider].address
    if text and text == known:
        return known
    import httpx2

    try:
        url = httpx2.URL(text)
    except httpx2.InvalidURL as error:
        raise UserError(f"{provider}: {shown(text)} is no address: {error}") from error
    if url.scheme not in ("http", "https") or not url.host or url.userinfo or url.query or url.fragment:
        raise UserError(f"{provider}: {shown(text)} is no http or https address without user and query")
    return text.rstrip("/")


def configured_search(env: Mapping[str, str]) -> HttpWebSearch | None:
    """Whom the settings name: `ANTIPHON_WEB_SEARCH`, else the first whose key or address is set; None:
    nobody.

    Raises ConfigError that names the setting.
    """
    named = env.get(SETTING, "").strip().lower()
    if named == "none":
        return None
    if named and named not in PROVIDERS:
        raise ConfigError(f"{SETTING} is {shown(named)}; it is none or one of: {', '.join(PROVIDERS)}")
    for each in [PROVIDERS[named]] if named else PROVIDERS.values():
        if given := env.get(each.variable, "").strip():
            return _made(each, given)
        if named:
            raise ConfigError(f"{SETTING} is {named}, and {each.variable}, its {each.needs}, is not set")
    return None


def provider_search(name: str, env: Mapping[str, str]) -> HttpWebSearch:
    """A provider by its name, with the key or the address that the settings have for it.

    Raises UnknownName, ConfigError that names the setting.
    """
    if name not in PROVIDERS:
        raise UnknownName("search of the web", name, PROVIDERS)
    provider = PROVIDERS[name]
    if given := env.get(provider.variable, "").strip():
        return _made(provider, given)
    raise ConfigError(f"{provider.variable}, the {provider.needs} of {name}, is not set")


def _made(provider: SearchProvider, given: str) -> HttpWebSearch:
    if provider.needs == "key":
        return HttpWebSearch(provider.name, given)
    try:
        return HttpWebSearch(provider.name, address=given)
    except UserError as error:
        raise ConfigError(f"{provider.variable}: {error}") from error
