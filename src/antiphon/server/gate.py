"""Who comes in: checked before any of a request is read.

The Host header is one of ours, so that a name that was pointed at this machine (DNS rebinding) reaches
nothing. A page of another site is refused by its Origin. A token is taken from a header only, never from an
address, which ends up in logs. So many requests a second and so many open connections for each subject and
address.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import msgspec
from litestar.types import ASGIApp, Receive, Scope, Send
from msgspec import Struct

from antiphon.server.problems import MEDIA_TYPE, Refusal
from antiphon.server.subjects import Subject, Subjects, bearer

LOOPBACK = frozenset({"127.0.0.1", "localhost", "[::1]"})
MAX_BODY = 1 << 20
"""Bytes of a request's body, and of a frame."""
_TOKENS = frozenset({"token", "access_token", "ticket", "bearer", "authorization"})
_HOST = re.compile(r"(?P<name>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9.-]+)(?::\d{1,5})?")
KNOWN_CALLERS = 10_000
"""Callers whose rate is remembered."""


class Bounds(Struct, frozen=True):
    """How much one caller may ask for."""

    requests_per_second: float = 100.0
    burst: int = 400
    """Requests at once before that counts."""
    connections: int = 200
    """Streams and WebSockets open at once."""
    all_connections: int = 2_000
    """Of all callers together."""
    runs: int = 1_000
    """Runs of one owner at work or in the line at once; others rest."""


class CallerRates:
    """Token buckets and counters by caller. steady: seconds of a clock that nobody sets."""

    def __init__(self, bounds: Bounds, steady: Callable[[], float]) -> None:
        self.bounds, self._steady = bounds, steady
        self._left: dict[str, tuple[float, float]] = {}
        self._open: dict[str, int] = {}

    def take(self, caller: str) -> bool:
        """Count a request; whether there is room for it."""
        now, bounds = self._steady(), self.bounds
        left, at = self._left.pop(caller, (float(bounds.burst), now))
        left = min(float(bounds.burst), left + (now - at) * bounds.requests_per_second)
        self._left[caller] = (max(left - 1, 0.0), now)
        if len(self._left) > KNOWN_CALLERS:
            del self._left[next(iter(self._left))]
        return left >= 1

    @property
    def connections(self) -> int:
        """How many are open."""
        return sum(self._open.values())

    def connect(self, caller: str) -> None:
        """Count a stream or WebSocket that opens. Raises Refusal when there are too many."""
        mine = self._open.get(caller, 0)
        if mine >= self.bounds.connections or self.connections >= self.bounds.all_connections:
            raise Refusal(
                429, "connections", f"{mine} connections are open, which is as many as may be",
                "Close those that nobody reads; one WebSocket carries many runs",
            )  # fmt: skip
        self._open[caller] = mine + 1

    def disconnect(self, caller: str) -> None:
        """One of them is closed."""
        left = self._open.pop(caller, 0) - 1
        if left > 0:
            self._open[caller] = left


class Gate:
    """ASGI middleware around the whole app. hosts: names by which the server is called."""

    def __init__(
        self,
        app: ASGIApp,
        subjects: Subjects,
        rates: CallerRates,
        hosts: frozenset[str],
        origins: frozenset[str],
    ) -> None:
        self._app, self._subjects, self._rates = app, subjects, rates
        self.hosts, self.origins = hosts, origins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let it through with its subject in `scope["user"]`, or refuse it unread."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        self._subjects.look()
        try:
            self._check_place(scope, headers)
            subject = self._subject(scope, headers)
        except Refusal as refusal:
            await refuse(scope, refusal, send)
            return
        scope["user"] = subject
        scope["auth"] = None
        await self._app(scope, receive, send)

    def _check_place(self, scope: Any, headers: dict[bytes, bytes]) -> None:
        host = headers.get(b"host", b"").decode("latin-1")
        found = _HOST.fullmatch(host)
        if found is None or found["name"].lower() not in self.hosts:
            raise Refusal(403, "host", "This server is not called by that name", "Use its own address")
        origin = headers.get(b"origin")
        if origin is not None and not self._is_ours(origin.decode("latin-1"), host):
            raise Refusal(403, "origin", "A page of another site may not ask here")
        if headers.get(b"sec-fetch-site", b"none") not in (b"none", b"same-origin"):
            raise Refusal(403, "origin", "A page of another site may not ask here")
        named = {
            name.lower()
            for name, _ in parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        }
        if named & _TOKENS:
            raise Refusal(
                400, "token_in_address", "A token in an address is not accepted: addresses are logged",
                "Send the header `Authorization: Bearer TOKEN`, and make a new token",
            )  # fmt: skip

    def _is_ours(self, origin: str, host: str) -> bool:
        try:
            parts = urlsplit(origin.lower())
        except ValueError:
            return False
        ours = parts.scheme in ("http", "https") and parts.netloc == host.lower()
        return ours or origin.lower() in self.origins

    def _subject(self, scope: Any, headers: dict[bytes, bytes]) -> Subject | None:
        token = bearer(headers)
        subject = self._subjects.by_token(token) if token else None
        if not self._rates.take(caller_of(scope, subject)):
            raise Refusal(429, "rate", "Too many requests", "Wait a second, then ask again")
        if token and subject is None:
            raise Refusal(
                401, "token", "The token is unknown, expired or revoked", "Use the one that is shown at start"
            )
        return subject


def caller_of(scope: Any, subject: Subject | None) -> str:
    """Whose rate and connections a request counts for."""
    client = scope.get("client")
    return f"subject {subject.name}" if subject is not None else f"address {client[0] if client else ''}"


async def refuse(scope: Any, refusal: Refusal, send: Send) -> None:
    """Answer a request, or a WebSocket before it is accepted."""
    body = msgspec.json.encode(refusal.problem)
    headers = [
        (b"content-type", MEDIA_TYPE.encode()),
        (b"content-length", b"%d" % len(body)),
        (b"connection", b"close"),
    ]
    if refusal.problem.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    if refusal.problem.status == 429:
        headers.append((b"retry-after", b"1"))
    kind = "http.response"
    if scope["type"] == "websocket":
        if "websocket.http.response" not in (scope.get("extensions") or {}):
            await send({"type": "websocket.close", "code": 1008, "reason": refusal.problem.title})
            return
        kind = "websocket.http.response"
    started: Any = {"type": f"{kind}.start", "status": refusal.problem.status, "headers": headers}
    await send(started)
    body_sent: Any = {"type": f"{kind}.body", "body": body, "more_body": False}
    await send(body_sent)
