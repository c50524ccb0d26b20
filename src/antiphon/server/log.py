"""The log of a server: a line for each request, for what the server does, and for how its runs stand.

No line holds anything that was said in a run, a token, or the query of an address; an exception is its type
and where it came from. A line is a line, whatever stands in it: control characters are made visible.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import PurePath
from traceback import extract_tb
from typing import Any, Literal, TextIO, cast

from litestar.types import ASGIApp, Receive, Scope, Send

from antiphon.errors import UserError
from antiphon.journal.port import check_id
from antiphon.values.codec import visible

LOG = logging.getLogger("antiphon.server")
LOGGERS = ("antiphon.server", "antiphon.run", "antiphon.journal", "antiphon.traces")
"""Those whose records hold names, kinds and numbers only."""
QUIET = ("antiphon.server", "antiphon.traces")
"""Those that are heard when nobody has asked for a log."""
REQUEST_FIELDS = ("method", "route", "status", "ms", "subject")
FIELDS = (*REQUEST_FIELDS, "run_id", "agent", "effect_id")
LONGEST = 500
"""Characters of one text."""
MAX_PLACES = 20
"""Places of one exception, the innermost."""
LogForm = Literal["text", "json"]


class RequestLog:
    """ASGI middleware around everything, so that what the gate refuses is a line too. steady: seconds."""

    def __init__(self, app: ASGIApp, steady: Callable[[], float] = time.monotonic) -> None:
        self._app, self._steady = app, steady

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI."""
        if scope["type"] not in ("http", "websocket") or not LOG.isEnabledFor(logging.INFO):
            await self._app(scope, receive, send)
            return
        began, status = self._steady(), 0

        async def sent(message: Any) -> None:
            nonlocal status
            if message["type"] in ("http.response.start", "websocket.http.response.start"):
                status = message["status"]
            elif message["type"] == "websocket.accept":
                status = 101
            elif message["type"] == "websocket.close" and not status:
                # What is closed before it was accepted is answered so.
                status = 403
            await send(message)

        try:
            await self._app(scope, receive, sent)
        finally:
            self._tell(cast("Any", scope), status, self._steady() - began)

    def _tell(self, scope: Any, status: int, seconds: float) -> None:
        subject = scope.get("user")
        method = scope["method"] if scope["type"] == "http" else "WEBSOCKET"
        told = {
            "method": method,
            "route": scope.get("path_template") or "(none)",
            "status": status,
            "ms": round(seconds * 1000, 1),
            "subject": subject.name if subject is not None else "",
            "run_id": _run_of(scope, status),
        }
        LOG.info("%s %s %d", method, told["route"], status, extra=told)


def _run_of(scope: Any, status: int) -> str:
    """The run that a request was about: one that is there, since anything may stand in an address."""
    found = (scope.get("path_params") or {}).get("run_id", "")
    if status >= 400 and status != 409:
        return ""
    try:
        check_id("run_id", found)
    except UserError:
        return ""
    return str(found)


class JsonLog(logging.Formatter):
    """A record as one line of JSON, in ASCII. `at` is UTC; what a record is not about is left out."""

    def format(self, record: logging.LogRecord) -> str:
        """See `logging.Formatter`."""
        told: dict[str, Any] = {
            "at": _at(record),
            "level": record.levelname,
            "logger": record.name,
            "message": _message(record),
        }
        for name in FIELDS:
            value = getattr(record, name, "")
            if value != "":
                told[name] = _line(value) if isinstance(value, str) else value
        if places := _places(record):
            told["places"] = places
        return json.dumps(told)


class TextLog(logging.Formatter):
    """A record as one line for people."""

    def format(self, record: logging.LogRecord) -> str:
        """See `logging.Formatter`."""
        parts = [_at(record), record.levelname, _message(record)]
        if hasattr(record, "ms"):
            about = (getattr(record, "subject", ""), getattr(record, "run_id", ""))
            parts += [f"{record.ms} ms", *(_line(each) for each in about if each)]
        parts += [f"at {each}" for each in _places(record)]
        return " ".join(parts)


def begin_log(form: LogForm | None, stream: TextIO) -> None:
    """Write the log of this process's server to a stream.

    form: None for what goes wrong in the server, as text.
    """
    made = logging.StreamHandler(stream)
    made.setFormatter(JsonLog() if form == "json" else TextLog())
    for name in LOGGERS if form is not None else QUIET:
        logger = logging.getLogger(name)
        logger.addHandler(made)
        logger.setLevel(logging.WARNING if form is None else logging.INFO)


def _at(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")


def _message(record: logging.LogRecord) -> str:
    return _line(getattr(record, "without_content", "") or record.getMessage())


def _line(text: str) -> str:
    return visible(text[:LONGEST]).replace("\n", "␊").replace("\u2028", "␊").replace("\u2029", "␊")


def _places(record: logging.LogRecord) -> list[str]:
    error = record.exc_info[1] if record.exc_info else None
    return places_of(error) if error is not None else []


def places_of(error: BaseException) -> list[str]:
    """An exception's type, then where it came from. Not its text: that may hold what somebody said."""
    frames = extract_tb(error.__traceback__)[-MAX_PLACES:]
    places = [
        f"{'/'.join(PurePath(each.filename).parts[-2:])}:{each.lineno} in {each.name}" for each in frames
    ]
    return [type(error).__name__, *map(_line, places)]
