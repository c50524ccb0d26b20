"""What went wrong, as one of the port's kinds, in words that are safe to show."""

from __future__ import annotations

import math
import socket
import ssl
import time
from collections.abc import Iterator, Mapping, Sequence
from email.utils import parsedate_to_datetime
from typing import Any

import httpx2
import msgspec

from antiphon.errors import HINT, ModelError, ModelErrorKind
from antiphon.values.secret import shown

_BY_CODE: dict[str, ModelErrorKind] = {
    "insufficient_quota": "quota",
    "billing_hard_limit_reached": "quota",
    "billing_not_active": "quota",
    "insufficient_balance": "quota",
    "exceeded_current_quota_error": "quota",
    "rate_limit_exceeded": "rate_limit",
    "rate_limit_error": "rate_limit",
    "rate_limit_reached_error": "rate_limit",
    "too_many_requests": "rate_limit",
    "invalid_api_key": "auth",
    "authentication_error": "auth",
    "invalid_authentication_error": "auth",
    "permission_error": "permission",
    "permission_denied": "permission",
    "model_not_found": "validation",
    "not_found_error": "validation",
    "context_length_exceeded": "context_length",
    "context_window_exceeded": "context_length",
    "exceed_context_size_error": "context_length",
    "string_above_max_length": "context_length",
    "request_too_large": "context_length",
    "content_filter": "refusal",
    "content_policy_violation": "refusal",
    "overloaded": "overloaded",
    "overloaded_error": "overloaded",
    "engine_overloaded_error": "overloaded",
    "server_overloaded": "overloaded",
    "server_error": "overloaded",
    "internal_server_error": "overloaded",
    "internal_error": "overloaded",
    "api_error": "overloaded",
    "service_unavailable": "overloaded",
    "timeout": "timeout",
    "timeout_error": "timeout",
    "invalid_request_error": "validation",
}
_BY_STATUS: dict[int, ModelErrorKind] = {
    401: "auth",
    402: "quota",
    403: "permission",
    408: "timeout",
    409: "overloaded",
    413: "context_length",
    425: "overloaded",
    429: "rate_limit",
    501: "provider",
    505: "provider",
}
_CONTEXT_WORDS = (
    "context length",
    "context window",
    "context size",
    "prompt is too long",
    "input is too long",
    "too many tokens",
    "maximum number of tokens",
)


class ErrorBody(msgspec.Struct, frozen=True):
    """What an error body says: a code (its `code`, else its `type`) and a text."""

    codes: tuple[str, ...] = ()
    text: str = ""


def read_error(body: bytes | Any) -> ErrorBody:
    """The code and text of an error body in any of the spellings in use; never raises."""
    if isinstance(body, bytes):
        try:
            body = msgspec.json.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return ErrorBody((), body.decode("utf-8", "replace"))
    if isinstance(body, list) and body:
        body = body[0]
    if not isinstance(body, Mapping):
        return ErrorBody((), str(body))
    error = body.get("error") or body
    if not isinstance(error, Mapping):
        return ErrorBody((), str(error))
    codes = tuple(str(error[key]).lower() for key in ("code", "type", "status") if error.get(key))
    text = next((error[key] for key in ("message", "detail", "msg", "error") if error.get(key)), "")
    return ErrorBody(codes, text if isinstance(text, str) else msgspec.json.encode(text).decode())


def kind_of(status: int, said: ErrorBody) -> ModelErrorKind:
    """The kind by body code, then status: a code is the more exact of the two."""
    lowered = said.text.lower()
    for code in said.codes:
        if code.isdigit() and len(code) == 3 and not status:
            # A gateway's error inside a stream: its code is the status it could not send any more.
            status = int(code)
    about_size = any(words in lowered for words in _CONTEXT_WORDS)
    for code in said.codes:
        known = _BY_CODE.get(code)
        if known == "validation" and about_size:
            return "context_length"
        if known == "validation" and status in _BY_STATUS:
            continue
        if known == "overloaded" and 400 <= status < 500 and status != 429:
            # A type like api_error is some servers' only one: the status says more.
            continue
        if known:
            return known
    if about_size and status not in (401, 403, 429):
        return "context_length"
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    if status >= 500:
        return "overloaded"
    return "validation" if status >= 300 else "provider"


def status_error(
    status: int, headers: Mapping[str, str], body: bytes, where: str, model: str, secrets: Sequence[str] = ()
) -> ModelError:
    """The error for an answer whose status says that there is no reply; `secrets` are in no part of it."""
    if 300 <= status < 400:
        target = shown(headers.get("location", "").partition("?")[0], secrets, 120)
        text = f"{where} redirects to {target or 'nowhere'}, which is not followed; correct base_url"
        return ModelError("validation", text, status=status)
    said = read_error(body)
    kind = kind_of(status, said)
    hint = HINT.get(kind, "")
    if status == 404:
        hint = f"is the model name {model!r} right, and does base_url end as this server expects (often /v1)?"
    # What a provider says about a bad key tends to quote the key: only its code is repeated.
    words = shown(", ".join(said.codes) if kind == "auth" else said.text, secrets)
    parts = [f"{where} answered {status}", words, hint]
    return ModelError(kind, _joined(parts), retry_after=retry_after(headers), status=status)


def body_error(error: Any, where: str, secrets: Sequence[str] = ()) -> ModelError:
    """The error for an error object inside an answer that began well; `secrets` are in no part of it."""
    said = read_error(error)
    kind = kind_of(0, said)
    words = shown(", ".join(said.codes) if kind == "auth" else said.text, secrets)
    return ModelError(kind, _joined([f"{where} ended its answer with an error", words, HINT.get(kind, "")]))


def transport_error(error: Exception, where: str, local: bool, status: int) -> ModelError:
    """The error for a connection that could not be made, or broke before the answer's first byte.

    local: the endpoint is on this machine. status: what it had answered by then, or 0.
    """
    if status:
        return broken(error, where)
    causes = list(_causes(error))
    if isinstance(error, httpx2.TimeoutException):
        what = "connecting took too long" if isinstance(error, httpx2.ConnectTimeout) else "it took too long"
        return ModelError("timeout", f"{where}: {what}")
    if isinstance(error, (httpx2.ConnectError, httpx2.ProxyError)):
        if any(isinstance(cause, ssl.SSLError) for cause in causes):
            text = f"{where}: no TLS connection; is this an https address with a trusted certificate?"
            return ModelError("network", text)
        if any(isinstance(cause, socket.gaierror) for cause in causes):
            return ModelError("network", f"{where}: the host name is unknown; check base_url and the network")
        if local:
            text = (
                f"Nothing answers at {where}. Is the server running, on that port? (Ollama: `ollama serve`)"
            )
            return ModelError("network", text)
        return ModelError("network", f"{where} cannot be reached; check base_url, the network and any proxy")
    if isinstance(error, (httpx2.LocalProtocolError, httpx2.UnsupportedProtocol)):
        return ModelError("validation", f"{where} cannot be asked this way: check base_url and headers")
    if isinstance(error, httpx2.RemoteProtocolError):
        return ModelError(
            "network", f"{where} hung up or does not speak HTTP: {shown(str(error), limit=100)}"
        )
    return ModelError("network", f"The connection to {where} broke before an answer began")


def broken(error: Exception, where: str) -> ModelError:
    """The error for an answer that began and broke off."""
    if isinstance(error, httpx2.DecodingError):
        return ModelError("disconnected", f"{where} sent a compressed answer that cannot be unpacked")
    return ModelError(
        "disconnected", f"{where} broke off in the middle of its answer ({type(error).__name__})"
    )


def retry_after(headers: Mapping[str, str], now: float | None = None) -> float | None:
    """Seconds to wait, from `retry-after-ms` or `retry-after` (seconds, "20s", "150ms", an HTTP date).

    None when absent or nonsense: negative, not finite, longer than a day.
    """
    if (wait := _number(headers.get("retry-after-ms", ""), 0.001)) is not None:
        return wait
    value = headers.get("retry-after", "").strip()
    for suffix, factor in (("ms", 0.001), ("s", 1.0), ("", 1.0)):
        if value.endswith(suffix) and (wait := _number(value.removesuffix(suffix), factor)) is not None:
            return wait
    if "," in value and len(value) < 64:
        try:
            until = parsedate_to_datetime(value).timestamp()
        except (ValueError, OverflowError):
            return None
        wait = max(0.0, until - (time.time() if now is None else now))
        return wait if wait <= 86_400 else None
    return None


def _number(text: str, factor: float) -> float | None:
    try:
        value = float(text.strip()) * factor
    except ValueError:
        return None
    return value if math.isfinite(value) and 0 <= value <= 86_400 else None


def _joined(parts: list[str]) -> str:
    return ": ".join(part.rstrip(".: ") for part in parts if part)


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """The error and everything that led to it, groups included."""
    seen = 0
    while error is not None and seen < 20:
        seen += 1
        yield error
        if isinstance(error, BaseExceptionGroup):
            yield from error.exceptions
        error = error.__cause__ or error.__context__
