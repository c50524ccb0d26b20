"""Requests to a server, in bounds: whatever it answers is a value of ours or one clear error.

Nothing is followed elsewhere: a redirect is an error that names where it leads, so a token is sent to one
address only. A body has a largest size and a longest time, and is decoded into the Structs that the server
itself is made of.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import Any, TypeVar
from urllib.parse import urljoin, urlsplit

import httpx2
import msgspec
from msgspec import Struct

from antiphon.cli import exit_codes
from antiphon.cli.remote.address import ServerAddress
from antiphon.errors import JournalError
from antiphon.values.secret import shown

CONNECT_SECONDS = 10.0
ANSWER_SECONDS = 60.0
"""How long an answer may take, all of it."""
LONG_SECONDS = 600.0
"""The same for a whole run as a file."""
MAX_ANSWER = 64 << 20
"""Bytes of an answer."""
MAX_FILE = 1 << 30
"""Bytes of a run as a file."""
PAUSES = (0.2, 0.5, 1.0, 2.0, 4.0)
"""Seconds between attempts to reach a server, where it is waited for."""
MAX_REFUSAL = 64 << 10
T = TypeVar("T")


class ServerFault(JournalError):
    """The server cannot be reached, or says what no server of runs says: exit code 5, as of a journal.

    passing: the same may succeed soon.
    """

    def __init__(self, text: str, *, passing: bool = False) -> None:
        super().__init__(text)
        self.passing = passing


class ServerRefused(exit_codes.Refused):
    """The server has refused a request. code: its word for why, empty where it gave none."""

    def __init__(self, text: str, code: str = "", status: int = 0) -> None:
        super().__init__(text)
        self.code, self.status, self.passing = code, status, status in _AGAIN
        self.exit_code = _EXITS.get(code, exit_codes.CONFIG if status < 500 else exit_codes.FAILED)


_EXITS: Mapping[str, int] = {
    "in_use": exit_codes.TAKEN,
    "suspended": exit_codes.SUSPENDED,
    "journal": exit_codes.JOURNAL,
    "damaged": exit_codes.JOURNAL,
    "rate": exit_codes.FAILED,
    "connections": exit_codes.FAILED,
    "draining": exit_codes.FAILED,
}
"""Exit codes by the word; of others by the status."""
_UNKNOWN = frozenset({"unknown_run", "unknown_name", "unknown_blob"})
_AGAIN = frozenset({429, 502, 503, 504})
"""Statuses that say: not now."""


class ProblemField(Struct, frozen=True):
    """A place that is wrong, as the server says it."""

    path: str = ""
    expected: str = ""
    got: str = ""


class ServerProblem(Struct, frozen=True):
    """A refusal in the words of RFC 9457, of whatever stands before the server too: nothing must be there."""

    title: str = ""
    type: str = ""
    detail: str = ""
    errors: tuple[ProblemField, ...] = ()


class ServerClient:
    """One server; use it as an async context manager. transport: what carries requests, in tests."""

    def __init__(self, address: ServerAddress, transport: httpx2.AsyncBaseTransport | None = None) -> None:
        self.url = address.url
        self.patient = False
        """Whether a server that is not there is waited for, for a few seconds: while a run is followed."""
        self._token = address.token
        # A proxy of the environment is for other machines.
        tls = address.url.startswith("https:")
        self._http = httpx2.AsyncClient(
            transport=transport, follow_redirects=False, trust_env=tls and not address.is_here,
            verify=httpx2.create_ssl_context() if tls else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
            timeout=httpx2.Timeout(None, connect=CONNECT_SECONDS),
        )  # fmt: skip

    async def __aenter__(self) -> ServerClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.aclose()

    async def ask(
        self, method: str, path: str, kind: type[T], *, body: Any = None,
        query: Mapping[str, Any] | None = None, headers: Mapping[str, str] | None = None, long: bool = False,
    ) -> T:  # fmt: skip
        """One request and its answer. path: each part of it quoted. body: JSON, or bytes as they are.

        query: what is None is left out. long: a whole run comes or goes. Raises ServerFault, ServerRefused
        and what `refusal_of` makes of a refusal.
        """
        _, data = await self.fetch(method, path, body=body, query=query, headers=headers, long=long)
        return self.decoded(data, kind)

    async def fetch(
        self, method: str, path: str, *, body: Any = None, query: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None, long: bool = False,
    ) -> tuple[httpx2.Headers, bytes]:  # fmt: skip
        """As `ask`: the headers and the body as it came."""
        seconds, limit = (LONG_SECONDS, MAX_FILE) if long else (ANSWER_SECONDS, MAX_ANSWER)
        pauses = iter(PAUSES if self.patient else ())
        while True:
            try:
                async with (
                    asyncio.timeout(seconds),
                    self.stream(method, path, body=body, query=query, headers=headers) as answer,
                ):
                    return answer.headers, await self._body(answer, limit)
            except TimeoutError:
                raise ServerFault(
                    f"The server at {self.url} took longer than {seconds:g} s to answer"
                ) from None
            except ServerFault as error:
                # Nothing was sent where nobody was there.
                pause = next(pauses, None) if isinstance(error.__cause__, httpx2.ConnectError) else None
                if pause is None:
                    raise
                await asyncio.sleep(pause)

    @asynccontextmanager
    async def stream(
        self, method: str, path: str, *, body: Any = None, query: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> AsyncIterator[httpx2.Response]:  # fmt: skip
        """An answer that is no refusal, its body unread. Raises as `ask`, also for what its reading meets."""
        content = body if isinstance(body, bytes) else None if body is None else msgspec.json.encode(body)
        given = {key: _text(value) for key, value in (query or {}).items() if value is not None}
        sent = self._http.stream(
            method, self.url + path, content=content, params=given or None,
            headers={
                "authorization": f"Bearer {self._token.reveal()}", "accept-encoding": "identity",
                "user-agent": "antiphon", **({"content-type": "application/json"} if content else {}),
                **(headers or {}),
            },
        )  # fmt: skip
        try:
            async with sent as answer:
                if not answer.is_success:
                    raise await self._refusal(answer)
                yield answer
        except (httpx2.HTTPError, httpx2.StreamError, httpx2.InvalidURL, OSError) as error:
            why = self.said(str(error) or type(error).__name__)
            raise ServerFault(f"The server at {self.url} cannot be reached: {why}", passing=True) from error

    def said(self, text: str) -> str:
        """Words of the server's as an error repeats them: one line, and never the token."""
        return shown(text, (self._token.reveal(),), 500)

    def decoded(self, data: bytes, kind: type[T]) -> T:
        """What the server sent, as a value of ours. Raises ServerFault."""
        try:
            return msgspec.json.decode(data, type=kind)
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            raise ServerFault(
                f"The server at {self.url} says what no Antiphon server of this version says:"
                f" {self.said(str(error))}. Is it one?"
            ) from error

    async def _body(self, answer: httpx2.Response, limit: int) -> bytes:
        body = bytearray()
        async with aclosing(answer.aiter_bytes()) as pieces:
            async for piece in pieces:
                body += piece
                if len(body) > limit:
                    raise ServerFault(f"The server at {self.url} answers with more than {limit:,} bytes")
        return bytes(body)

    async def _refusal(self, answer: httpx2.Response) -> Exception:
        """What a refusal is raised as: where a journal would have the same error, that one."""
        if 300 <= answer.status_code < 400:
            return ServerFault(self._elsewhere(answer))
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                found = msgspec.json.decode(await self._body(answer, MAX_REFUSAL), type=ServerProblem)
        except (
            TimeoutError,
            ServerFault,
            httpx2.HTTPError,
            msgspec.MsgspecError,
            ValueError,
            RecursionError,
        ):
            found = ServerProblem()
        return self.refusal_of(found, answer.status_code)

    def refusal_of(self, found: ServerProblem, status: int) -> Exception:
        """A problem as the error it is raised as."""
        code = found.type.rpartition(":")[2] if found.type.startswith("urn:antiphon:problem:") else ""
        if not found.title or not code:
            word = (
                "cannot answer now" if status in _AGAIN else "is no Antiphon server, or not at this address"
            )
            said = f"What answers at {self.url} {word}: HTTP {status} {self.said(found.title)}".strip()
            return ServerFault(said, passing=status in _AGAIN)
        text = self.said(found.title)
        if code in _UNKNOWN:
            return exit_codes.NotFound(text)
        if code == "answered":
            return exit_codes.Settled(text)
        more = [self.said(found.detail)] if found.detail else []
        if not found.detail:
            more += [
                f"{self.said(each.path)}: expected {self.said(each.expected)}" for each in found.errors[:5]
            ]
        if code in ("token", "no_token"):
            more = ["Set ANTIPHON_SERVER_TOKEN, or --token-file, to the one that the server knows"]
        return ServerRefused(". ".join([text.rstrip("."), *more]), code, status)

    def _elsewhere(self, answer: httpx2.Response) -> str:
        try:
            parts = urlsplit(urljoin(self.url, answer.headers.get("location", "")))
            place = self.said(f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}")
        except ValueError:
            place = "elsewhere"
        return (
            f"The server at {self.url} redirects to {place}; nothing was sent there. If that is the server"
            " that you mean, name it"
        )


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
