"""How a refusal reads: RFC 9457 problems, over HTTP and in a WebSocket's `error` messages alike."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec
from litestar import Request, Response
from litestar.exceptions import HTTPException
from msgspec import Struct

from antiphon.errors import (
    AgentsMissing,
    AnsweredAlready,
    AntiphonError,
    JournalError,
    LeaseLost,
    RunInUse,
    RunIsClosed,
    RunSuspended,
    UnknownName,
    UserError,
)
from antiphon.host.host import HostReadsOnly
from antiphon.host.projects.files import FolderFull, NameTaken
from antiphon.host.removal import ProjectBusy
from antiphon.host.starting import HostDraining, KeyUsed, NotMoved

MEDIA_TYPE = "application/problem+json"


class FieldProblem(Struct, frozen=True, omit_defaults=True):
    """What is wrong in one place of what was sent."""

    path: str
    """Where: a JSON path, `$.limits.turns`; of a parameter its name."""
    expected: str
    """What belongs there."""
    got: str = ""
    """What was there, where that can be said."""


class Problem(Struct, frozen=True, omit_defaults=True):
    """A refusal, in the words of RFC 9457."""

    title: str
    """What is wrong, in a sentence."""
    status: int
    """The HTTP status."""
    type: str = "about:blank"
    """The code: `urn:antiphon:problem:CODE`."""
    detail: str = ""
    """What to do."""
    errors: tuple[FieldProblem, ...] = ()
    """The places that are wrong, where it is what was sent."""


class Refusal(Exception):
    """A request is refused with a problem. code: a word that programs tell refusals apart by."""

    def __init__(
        self, status: int, code: str, title: str, detail: str = "", errors: tuple[FieldProblem, ...] = ()
    ) -> None:
        super().__init__(title)
        self.code = code
        self.problem = Problem(title, status, f"urn:antiphon:problem:{code}", detail, errors)


READ_ONLY = (
    "In a terminal: `antiphon answer RUN` answers, `antiphon runs resume RUN TARGET` goes on,"
    " `antiphon serve TARGET` serves a page that may do both"
)
"""How to go on from a look that changes nothing."""
_EXPECTED = re.compile(r"Expected (?P<expected>.+?)(?:, got (?P<got>.+?))?(?: - at `(?P<path>.+)`)?$")
_UNKNOWN = re.compile(r"Object contains unknown field `(?P<name>.+?)`(?: - at `(?P<path>.+)`)?$")
_MISSING = re.compile(r"Object missing required field `(?P<name>.+?)`(?: - at `(?P<path>.+)`)?$")


def field_problem(said: str, path: str = "$") -> FieldProblem:
    """What msgspec says of one place. path: where it is told to be, when the text does not say it."""
    for pattern, expected, got in (
        (_UNKNOWN, "no such field", "{name}"),
        (_MISSING, "a value", "nothing"),
    ):
        if found := pattern.match(said):
            place = f"{found['path'] or path}.{found['name']}"
            return FieldProblem(place, expected, found["name"] if got == "{name}" else got)
    if found := _EXPECTED.match(said):
        return FieldProblem(found["path"] or path, found["expected"], found["got"] or "")
    return FieldProblem(path, said)


def invalid(error: msgspec.MsgspecError | RecursionError | UnicodeError) -> Refusal:
    """What was sent is not what is expected, or not JSON."""
    if isinstance(error, msgspec.ValidationError):
        found = field_problem(str(error))
        return Refusal(400, "invalid", "The body is not what is expected", _correct(found), (found,))
    return Refusal(400, "not_json", f"The body is not JSON: {error}", "Send one JSON object, UTF-8")


def _correct(found: FieldProblem) -> str:
    return f"Correct {found.path}: expected {found.expected}" + (f", got {found.got}" if found.got else "")


def refusal_of(error: Exception) -> Refusal:
    """An error of Antiphon's as a refusal; anything else is a fault that says nothing of itself."""
    if isinstance(error, Refusal):
        return error
    text = str(error)
    match error:
        case RecursionError():
            return Refusal(400, "too_deep", "The body is nested too deeply", "Send a flatter one")
        case KeyUsed():
            return Refusal(409, "key_used", text, "Use a new key")
        case UnknownName(what="run"):
            return Refusal(404, "unknown_run", text, "See GET /runs")
        case UnknownName(what="project"):
            return Refusal(404, "unknown_project", text, "See GET /projects")
        case UnknownName():
            return Refusal(404, "unknown_name", text, "Use one of those that are known")
        case RunInUse() | LeaseLost():
            return Refusal(409, "in_use", text, "Post to it, or wait until its owner lets it go")
        case RunSuspended():
            return Refusal(409, "suspended", text, "Resume it")
        case AgentsMissing():
            return Refusal(409, "agents_missing", text)
        case JournalError():
            return Refusal(500, "journal", text, "Look at the journal with `antiphon journal check`")
        case RunIsClosed():
            return Refusal(409, "closed", text, "Start a new run")
        case AnsweredAlready():
            return Refusal(409, "answered", text)
        case NameTaken():
            return Refusal(409, "name_taken", text, "Use another name")
        case FolderFull():
            return Refusal(409, "full", text, "Delete some first")
        case ProjectBusy():
            return Refusal(409, "in_use", text, "Ask again in a moment")
        case NotMoved():
            return Refusal(409, "not_moved", text, "Move it to a project that has its team")
        case HostDraining():
            return Refusal(503, "draining", text, "Ask again in a moment")
        case HostReadsOnly():
            return Refusal(403, "read_only", text, READ_ONLY)
        case UserError():
            return Refusal(400, "refused", text)
        case AntiphonError():
            return Refusal(500, "failed", text)
    return Refusal(500, "fault", "A fault of the server; what was recorded is safe", "See the server's log")


def of_http(error: HTTPException) -> Refusal:
    """What litestar refuses: no such route, a method, a parameter, a body."""
    status = error.status_code
    if status == 404:
        return Refusal(404, "no_route", "There is nothing at this address", "See GET /schema/openapi.json")
    if status == 405:
        return Refusal(
            405, "method", "This address does not take that method", "See GET /schema/openapi.json"
        )
    if status == 413:
        return Refusal(413, "too_large", "The body is larger than 1 MiB", "Send less at once")
    if status == 400:
        extra = error.extra if isinstance(error.extra, list) else []
        found = tuple(_of_parameter(each) for each in extra if isinstance(each, Mapping))
        if found:
            return Refusal(400, "invalid", "The request is not what is expected", _correct(found[0]), found)
        return Refusal(
            400, "not_json", f"The request cannot be read: {error.detail}", "Send one JSON object, UTF-8"
        )
    return Refusal(status, "refused", error.detail if status < 500 else "A fault of the server")


def _of_parameter(said: Mapping[str, Any]) -> FieldProblem:
    key, text = str(said.get("key", "")), str(said.get("message", ""))
    name = key.removeprefix("data").lstrip(".")
    in_body = said.get("source") == "body" or key.startswith("data")
    return field_problem(text, (f"$.{name}" if name else "$") if in_body else name)


def answer(request: Request[Any, Any, Any], error: Exception) -> Response[bytes]:
    """The HTTP response of any exception; litestar's exception handler."""
    found = of_http(error) if isinstance(error, HTTPException) else refusal_of(error)
    if found.code == "fault":
        request.app.state.served.tell_fault(error)
    return problem_response(found)


def problem_response(found: Refusal) -> Response[bytes]:
    """A refusal over HTTP."""
    headers = {"WWW-Authenticate": "Bearer"} if found.problem.status == 401 else {}
    if found.problem.status in (429, 503):
        headers["Retry-After"] = "1"
    return Response(
        msgspec.json.encode(found.problem), status_code=found.problem.status, media_type=MEDIA_TYPE,
        headers=headers,
    )  # fmt: skip
