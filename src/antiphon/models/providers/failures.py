"""What went wrong at a provider, as one of the port's kinds, in words that are safe to show."""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from typing import Any

from pydantic_ai import exceptions as theirs

from antiphon.errors import HINT, ModelError, ModelErrorKind
from antiphon.values.secret import redact, shown

_BY_TYPE: tuple[tuple[type[Exception], ModelErrorKind], ...] = (
    (theirs.ModelQuotaExceededError, "quota"),
    (theirs.ModelRateLimitError, "rate_limit"),
    (theirs.ModelContextWindowExceededError, "context_length"),
    (theirs.ModelAuthenticationError, "auth"),
    (theirs.ModelNotFoundError, "validation"),
    (theirs.ModelUnavailableError, "overloaded"),
    (theirs.ModelTimeoutError, "timeout"),
    (theirs.ModelRequestTimeout, "timeout"),
    (theirs.ModelConnectionError, "network"),
    (theirs.ModelServerError, "overloaded"),
    (theirs.ModelRequestRejectedError, "validation"),
    (theirs.ContentFilterError, "refusal"),
    (theirs.UnexpectedModelBehavior, "disconnected"),
    (theirs.UserError, "validation"),
)
"""From the particular to the general."""

_BY_STATUS: dict[int, ModelErrorKind] = {
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
_LONGEST_WAIT = 86_400.0


def failure(error: Exception, where: str, begun: bool, secrets: tuple[str, ...]) -> ModelError:
    """The error for whatever a call raised.

    where: the provider as it may be named. begun: whether a piece of the answer had come.
    secrets: values taken out of a provider's own words, which sometimes repeat what they were sent.
    """
    status = int(getattr(error, "status_code", 0) or 0)
    kind = _kind(error, status)
    if begun and kind in ("network", "provider"):
        kind = "disconnected"
    wait = getattr(error, "retry_after", None)
    if not isinstance(wait, (int, float)) or not 0 <= wait <= _LONGEST_WAIT:
        wait = None
    # What a provider says about a bad key tends to quote the key: only its code is repeated.
    said = str(getattr(error, "provider_error_code", "") or "") if kind == "auth" else _said(error)
    head = f"{where} answered {status}" if status else f"{where}: {_what(error, kind)}"
    text = ": ".join(part.rstrip(".: ") for part in (head, shown(said, secrets), HINT.get(kind, "")) if part)
    return ModelError(kind, text, retry_after=wait, status=status)


def is_clean(error: BaseException, secrets: tuple[str, ...]) -> bool:
    """Whether an error, and all that led to it, may be shown as it is."""
    told = "".join(traceback.format_exception(error))
    return redact(told, secrets) == told


def _kind(error: Exception, status: int) -> ModelErrorKind:
    known = next((kind for kind_of, kind in _BY_TYPE if isinstance(error, kind_of)), None)
    if known == "auth" and status == 403:
        return "permission"
    if known in (None, "validation", "overloaded") and status in _BY_STATUS:
        return _BY_STATUS[status]
    if known is not None:
        return known
    if status >= 500:
        return "overloaded"
    if status >= 400:
        return "validation"
    return "network" if isinstance(error, OSError) else "provider"


def _what(error: Exception, kind: ModelErrorKind) -> str:
    if kind == "disconnected":
        return "it broke off in the middle of its answer"
    if kind == "timeout":
        return "it took too long"
    if kind == "network":
        return "it cannot be reached; check the address, the network and any proxy"
    return type(error).__name__


def _said(error: Exception) -> str:
    """The provider's words: the message of its body, not the body, which may hold anything."""
    if isinstance(error, theirs.UserError):
        return str(error.message)
    if not isinstance(error, theirs.ModelAPIError):
        return ""
    body: Any = error.body
    for key in ("error", "Error"):
        if isinstance(body, Mapping) and isinstance(body.get(key), Mapping | str):
            body = body[key]
    if isinstance(body, Mapping):
        body = next((body[key] for key in ("message", "Message", "detail") if body.get(key)), "")
    if isinstance(body, str) and body:
        return body
    return (
        "" if isinstance(error, theirs.ModelHTTPError | theirs.ModelConnectionError) else str(error.message)
    )
