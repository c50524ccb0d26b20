"""What a route lets whom do. A route that does not say so cannot be registered."""

from __future__ import annotations

from typing import Any, Literal, get_args

from litestar.connection import ASGIConnection
from litestar.handlers import BaseRouteHandler
from litestar.openapi.datastructures import ResponseSpec
from litestar.plugins import ReceiveRoutePlugin
from litestar.routes import BaseRoute

from antiphon.errors import UserError
from antiphon.server.problems import READ_ONLY, Problem, Refusal
from antiphon.server.served import Served
from antiphon.server.subjects import Subject

Permission = Literal["public", "read", "write", "first_frame"]
"""`public`: anybody. `read` and `write`: a subject with that scope. `first_frame`: whoever names a token or a
ticket in the first frame of a WebSocket."""

_DECLARED = "permission"
_REFUSALS = {
    401: "No valid token.",
    403: "The token does not allow this, or the request comes from another site.",
    400: "A parameter or the body is not what is expected.",
    404: "There is no such run, project, team or part of one, or no such file.",
    409: "It cannot be done now: somebody drives the run, it is closed, or it was done before.",
    413: "The body is larger than 1 MiB; a file larger than 50 MB.",
    429: "Too many requests or connections.",
    500: "A fault of the server, or a journal that cannot be read.",
    503: "The server is being left.",
}
"""What any route may refuse with, but for those that are public."""


def allowed(permission: Permission) -> dict[str, Any]:
    """The options of a route that says what it needs: `@get("/runs", **allowed("read"))`."""
    if permission == "first_frame":
        return {"opt": {_DECLARED: permission}}
    open_to_all = permission == "public"
    codes = (400, 403, 404, 413, 429, 500, 503) if open_to_all else tuple(_REFUSALS)
    return {
        "opt": {_DECLARED: permission},
        "security": [] if open_to_all else [{"token": []}],
        "raises": [],
        "responses": {
            code: ResponseSpec(
                Problem, description=_REFUSALS[code], media_type=PROBLEM, generate_examples=False
            )
            for code in codes
        },
    }


PROBLEM: Any = "application/problem+json"


class DeclaredPermissions(ReceiveRoutePlugin):
    """Refuses every route with a way in that has no declared permission, whenever it is registered."""

    def receive_route(self, route: BaseRoute) -> None:
        """See litestar. Raises UserError."""
        found = getattr(route, "route_handlers", None) or [getattr(route, "route_handler", None)]
        for each in found:
            if each is not None and permission_of(each) is None and not _answers_options(each):
                raise UserError(
                    f"The route {route.path} declares no permission: pass **allowed(...) to its decorator"
                )


def permission_of(route: BaseRouteHandler) -> Permission | None:
    """What a route needs; None for one that does not say it."""
    found = route.opt.get(_DECLARED)
    return found if found in get_args(Permission) else None


def _answers_options(route: BaseRouteHandler) -> bool:
    """Whether it is litestar's own answer to OPTIONS, which only lists methods."""
    return getattr(route, "http_methods", None) == {"OPTIONS"}


def check_permission(connection: ASGIConnection[Any, Any, Any, Any], route: BaseRouteHandler) -> None:
    """Let a request through whose subject has the route's permission. Raises Refusal."""
    needed = permission_of(route)
    if needed in ("public", "first_frame") or _answers_options(route):
        return
    check_scope(connection.scope.get("user"), needed, connection.app.state.served)


def check_scope(subject: object, needed: Permission | None, served: Served) -> Subject:
    """Whoever asks, who has a permission. Raises Refusal."""
    if not isinstance(subject, Subject):
        raise Refusal(401, "no_token", "This needs a token", "Send the header `Authorization: Bearer TOKEN`")
    if needed is None or needed not in subject.scopes:
        raise scope_refusal(needed, served)
    return subject


def scope_refusal(needed: Permission | None, served: Served) -> Refusal:
    """Why somebody who is known may not do what needs that scope."""
    if needed == "write" and not served.host.drives:
        return Refusal(403, "read_only", "This is a read-only look: nothing can be changed here", READ_ONLY)
    return Refusal(403, "scope", f"This needs a token with the scope {needed}", "Ask for another token")
