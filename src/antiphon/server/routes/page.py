"""The web page: a program that draws runs, and asks this server for everything it shows."""

from __future__ import annotations

import mimetypes
import re
from importlib.resources import files

from litestar import Response, get
from litestar.params import FromPath

from antiphon.server.permissions import allowed
from antiphon.server.problems import Refusal

_NAME = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)+")
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; connect-src 'self';"
    " img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""What the page may load: its own files, and nothing that an agent wrote."""
_KEPT = "public, max-age=31536000, immutable"
_SAFE = {"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer"}


@get("/", summary="The web page", media_type="text/html", **allowed("public"))
async def page() -> Response[bytes]:
    """A page that shows runs, what waits for people, and teams; it asks for a token."""
    headers = _SAFE | {"Cache-Control": "no-cache", "Content-Security-Policy": POLICY}
    return Response(_asset("index.html"), media_type="text/html", headers=headers)


@get("/assets/{name:str}", summary="A file of the web page", **allowed("public"))
async def asset(name: FromPath[str]) -> Response[bytes]:
    """A script, style or font; its name changes with what it holds."""
    if _NAME.fullmatch(name) is None:
        raise Refusal(404, "no_asset", "The page has no such file", "Load the page again")
    kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
    data = _asset("assets", name)
    return Response(data, media_type=kind, headers=_SAFE | {"Cache-Control": _KEPT})


def _asset(*path: str) -> bytes:
    try:
        return files("antiphon.view.page").joinpath("assets", "served", *path).read_bytes()
    except (FileNotFoundError, IsADirectoryError):
        raise Refusal(
            404, "no_asset", "The page has no such file, or was not built", "In a checkout: scripts/page.sh"
        ) from None
