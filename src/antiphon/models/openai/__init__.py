"""Any endpoint that speaks OpenAI's chat completions: OpenAI, Ollama, vLLM, llama.cpp, OpenRouter …"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Literal

import httpcore2  # noqa: F401 - loaded here, or the first call would stop its event loop to load it
import httpx2
from msgspec import Struct

from antiphon.errors import ConfigError, ModelError
from antiphon.models.openai.answer import ResponseBody
from antiphon.models.openai.failures import broken, status_error, transport_error
from antiphon.models.openai.tags import strip_reasoning
from antiphon.models.openai.wire import Dialect, encode_request, encode_tools
from antiphon.models.timeouts import DEFAULT, Timeouts, lateness
from antiphon.values.model import Emit, ModelRequest, Reply, ToolSpec
from antiphon.values.secret import Secret, redact, shown

__all__ = ["OpenAIModel", "OutputCap", "strip_reasoning"]

_PATH = "/chat/completions"
_ERROR_BYTES = 64 * 1024
_ERROR_SECONDS = 5.0
_LINGER_BYTES = 64 * 1024
_LINGER_SECONDS = 0.05
_LOCAL = ("127.0.0.1", "localhost", "::1", "[::1]", "0.0.0.0")  # noqa: S104 - recognised, never bound
OutputCap = Literal["max_completion_tokens", "max_tokens"]


class OpenAIModel:
    """A model behind a chat-completions endpoint.

    model: the id the endpoint knows; it is what is asked, whatever `Request.model` says.
    base_url: up to and without `/chat/completions`.
    api_key: None or empty for servers that ask for none.
    name: what the journal calls it; `openai:MODEL` unless given.
    stream: False asks for whole answers; one that comes whole although a stream was asked is taken too.
    connect_timeout, first_timeout, idle_timeout, total_timeout: seconds until connected; until the first
        piece of the answer, connecting included; between two pieces of it; and for all of it.
    output_cap: the parameter for `Request.max_output`; the other is tried when the endpoint refuses it.
    reasoning_tags: whether `<think>…</think>` in a text is reasoning.
    max_response: bytes of one answer, after decompression.
    headers: sent with each call; a Secret among them is shown nowhere.

    Connections are shared by all calls in one event loop and closed with it, or by `aclose()`.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str,
        api_key: Secret | str | None = None,
        name: str = "",
        stream: bool = True,
        connect_timeout: float = DEFAULT.connect,
        first_timeout: float = DEFAULT.first,
        idle_timeout: float = DEFAULT.idle,
        total_timeout: float = DEFAULT.total,
        output_cap: OutputCap = "max_completion_tokens",
        reasoning_tags: bool = True,
        max_response: int = 64 << 20,
        headers: Mapping[str, str | Secret] | None = None,
    ) -> None:
        if not model:
            raise ConfigError("The model's name is empty")
        self._url = _endpoint(base_url)
        self._where = str(self._url).removesuffix(_PATH)
        self._local = self._url.host in _LOCAL
        self._model, self._name, self._stream = model, name or f"openai:{model}", stream
        self._timeouts = Timeouts(connect_timeout, first_timeout, idle_timeout, total_timeout)
        self._tags, self._max_response = reasoning_tags, max_response
        self._headers = _headers(Secret(api_key or ""), headers or {}, stream)
        self._dialect = Dialect(cap=output_cap)
        self._tools: tuple[tuple[ToolSpec, ...], bytes] = ((), b"")
        self._clients: dict[asyncio.AbstractEventLoop, _Client] = {}
        # Loading the trust store takes 20 ms and more: not in an event loop, and not where there is no TLS.
        tls = self._url.scheme == "https"
        self._verify = httpx2.create_ssl_context() if tls else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)

    @property
    def name(self) -> str:
        return self._name

    @property
    def base_url(self) -> str:
        """Where it is asked, as it may be shown."""
        return self._where

    def __repr__(self) -> str:
        return f"OpenAIModel({self._model!r}, base_url={self._where!r})"

    async def aclose(self) -> None:
        """Close the connections of the running event loop; the model can be used again."""
        client = self._clients.get(asyncio.get_running_loop())
        if client is not None:
            await client.keeper.aclose()

    async def complete(self, request: ModelRequest, emit: Emit) -> Reply:
        """Ask once. Cancelling closes the connection; raises `ModelError` only."""
        left = 3
        while True:
            body = self._body(request)
            left -= 1
            try:
                return await self._ask(body, emit)
            except ModelError as error:
                self._hide(error)
                # A parameter the endpoint does not know is left out, now and from now on.
                if not left or error.status not in (400, 422) or not self._dialect.learn(error.text):
                    raise

    def _body(self, request: ModelRequest) -> bytes:
        try:
            if self._tools[0] is not request.tools:
                self._tools = (request.tools, encode_tools(request.tools))
            tools = self._tools[1]
            return encode_request(self._model, request, self._dialect, stream=self._stream, tools=tools)
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            text = f"The request cannot be written as JSON: {shown(str(error), limit=100)}"
            raise ModelError("validation", text) from error

    async def _ask(self, body: bytes, emit: Emit) -> Reply:
        """One exchange. An answer that is whole counts, whatever the connection does after it."""
        answer = ResponseBody(
            emit, self._where, self._model,
            tags=self._tags, limit=self._max_response, secrets=_secrets(self._headers),
        )  # fmt: skip
        try:
            async with asyncio.timeout(min(self._timeouts.first, self._timeouts.total)) as timer:
                await self._exchange(body, answer, timer)
        except TimeoutError:
            if not answer.ended:
                late = lateness(self._where, bool(answer.size), self._timeouts)
                raise ModelError("timeout", late) from None
        except (httpx2.HTTPError, httpx2.StreamError, OSError) as error:
            if not answer.ended:
                if answer.size:
                    raise broken(error, self._where) from error
                raise transport_error(error, self._where, self._local, answer.status) from error
        return answer.reply()

    async def _exchange(self, body: bytes, answer: ResponseBody, timer: asyncio.Timeout) -> None:
        """Send, then pass on what comes until the answer is whole or the endpoint has closed it."""
        loop = asyncio.get_running_loop()
        patience = self._timeouts
        end = loop.time() + patience.total
        http = (await self._client()).http
        headers = {key: _plain(value) for key, value in self._headers.items()}
        # Reading is timed here, not by the client: what may take how long changes with the first byte.
        limits = httpx2.Timeout(None, connect=patience.connect)
        sent = http.stream("POST", self._url, content=body, headers=headers, timeout=limits)
        async with sent as response:
            answer.status = response.status_code
            if not response.is_success:
                words = await _words(response)
                raise status_error(
                    response.status_code, response.headers, words, self._where, self._model,
                    _secrets(self._headers),
                )  # fmt: skip
            async with aclosing(response.aiter_bytes()) as pieces:
                async for piece in pieces:
                    timer.reschedule(min(loop.time() + patience.idle, end))
                    if answer.feed(piece):
                        break
                # The connection can serve again only if all of the answer was read; it is not worth much.
                timer.reschedule(loop.time() + (_LINGER_SECONDS if answer.ended else patience.idle))
                left = _LINGER_BYTES
                async for piece in pieces:
                    left -= len(piece)
                    if left < 0:
                        return
            answer.close()

    def _hide(self, error: ModelError) -> None:
        """Take our own secrets out of what is left of an endpoint's words, wherever they came from."""
        error.text = redact(error.text, _secrets(self._headers))
        error.args = (error.text,)

    async def _client(self) -> _Client:
        """The running loop's client, made at its first call."""
        loop = asyncio.get_running_loop()
        client = self._clients.get(loop)
        if client is None:
            for other in [one for one in self._clients if one.is_closed()]:
                del self._clients[other]
            http = httpx2.AsyncClient(
                limits=httpx2.Limits(max_connections=None, max_keepalive_connections=20),
                follow_redirects=False,
                trust_env=not self._local,
                verify=self._verify,
            )
            client = self._clients[loop] = _Client(http, _keeping(http, self._clients, loop))
            # A running loop closes its asynchronous generators before it ends: so it closes the client.
            await anext(client.keeper)
        return client


class _Client(Struct, frozen=True):
    http: httpx2.AsyncClient
    keeper: AsyncGenerator[None, None]


async def _keeping(
    http: httpx2.AsyncClient,
    clients: dict[asyncio.AbstractEventLoop, _Client],
    loop: asyncio.AbstractEventLoop,
) -> AsyncGenerator[None, None]:
    try:
        yield
    finally:
        clients.pop(loop, None)
        await http.aclose()


async def _words(response: httpx2.Response) -> bytes:
    """The body of a refusal as far as it comes, in bounds: its status says what matters."""
    body = bytearray()
    try:
        async with asyncio.timeout(_ERROR_SECONDS), aclosing(response.aiter_bytes()) as pieces:
            async for piece in pieces:
                body += piece[:_ERROR_BYTES]
                if len(body) >= _ERROR_BYTES:
                    break
    except (httpx2.HTTPError, TimeoutError):
        return bytes(body)
    return bytes(body)


def _endpoint(base_url: str) -> httpx2.URL:
    """The address to post to; `ConfigError` for one that cannot be, or that carries credentials."""
    text = base_url.strip().rstrip("/")
    try:
        url = httpx2.URL(text if text.endswith(_PATH) else text + _PATH)
    except httpx2.InvalidURL as error:
        raise ConfigError(f"base_url is no URL: {shown(str(error), limit=80)}") from None
    if url.scheme not in ("http", "https") or not url.host:
        text = shown(text, limit=80)
        raise ConfigError(f"base_url must look like http://127.0.0.1:8000/v1 or https://…, not {text!r}")
    if url.userinfo or url.query or url.fragment:
        raise ConfigError("base_url may hold no credentials, query or fragment: use api_key and headers")
    return url


def _headers(key: Secret, extra: Mapping[str, str | Secret], stream: bool) -> dict[str, str | Secret]:
    """The headers of every call; a value that HTTP forbids is refused here, before it could be shown."""
    headers: dict[str, str | Secret] = {
        "content-type": "application/json",
        "accept": "text/event-stream" if stream else "application/json",
        "accept-encoding": "identity",
        "user-agent": "antiphon",
    }
    if key:
        headers["authorization"] = Secret(f"Bearer {key.reveal().strip()}")
    headers.update({name.lower(): value for name, value in extra.items()})
    for name, value in headers.items():
        plain = _plain(value)
        if not (plain.isascii() and plain.isprintable()):
            what = "api_key" if name == "authorization" else f"header {name}"
            raise ConfigError(f"The {what} holds characters that cannot be sent: a line break, an accent?")
    return headers


def _secrets(headers: Mapping[str, str | Secret]) -> tuple[str, ...]:
    """What of the headers may be shown nowhere: the last word of each, `Bearer` is no secret."""
    return tuple(value.reveal().rpartition(" ")[2] for value in headers.values() if isinstance(value, Secret))


def _plain(value: str | Secret) -> str:
    return value.reveal() if isinstance(value, Secret) else value
