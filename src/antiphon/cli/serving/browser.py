"""A browser for the page of a server: opened where there is one, and never one that takes the terminal."""

from __future__ import annotations

import os
import sys
import threading
import webbrowser
from collections.abc import Mapping
from typing import TYPE_CHECKING

from antiphon.cli.display import output
from antiphon.view.page import is_built

if TYPE_CHECKING:
    from antiphon.server.served import Served

NOT_BUILT = "the page is not built here: scripts/page.sh builds it, with Node 20 or newer; the wheel has it"
_SCREENS = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")


def tell_address(url: str, token: str, path: str = "") -> None:
    """Say where the page is, or how to have one. path: what follows `#`. token: empty for none."""
    output.say(f"in a browser: {address(url, path, 'token', token)}" if is_built() else NOT_BUILT)


def open_browser(served: Served, url: str, token: str, path: str = "") -> None:
    """Open a browser on the page, where there is one; else say so. See `tell_address`.

    The address that the browser is given holds no token: other users of this machine can read it.
    """
    if is_built():
        shown = address(url, path, "opening", served.subjects.opening(token) if token else "")
        # A browser may come back only when it is closed; nobody waits for that.
        threading.Thread(target=_open, args=(shown,), name="antiphon browser", daemon=True).start()


def address(url: str, path: str, name: str, value: str) -> str:
    """An address of the page. name, value: what it reads there and takes away."""
    if not value:
        return f"{url}/#{path}" if path else f"{url}/"
    return f"{url}/#{path}{'?' if path else ''}{name}={value}"


def can_open(env: Mapping[str, str]) -> bool:
    """Whether there is a screen to open a browser on: without one Python would open one in the terminal."""
    return sys.platform in ("darwin", "win32") or any(env.get(name) for name in _SCREENS)


def _open(shown: str) -> None:
    if can_open(os.environ):
        try:
            found = webbrowser.open(shown)
        except (webbrowser.Error, OSError):
            found = False
        if found:
            return
    output.tell("no browser could be opened here: open that address in one")
