"""A coroutine run to its end, for programs without an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from antiphon import UserError

Given = TypeVar("Given")
Found = TypeVar("Found")


def blocking(ask: Callable[[Given], Coroutine[Any, Any, Found]], given: Given) -> Found:
    """What `ask(given)` comes to. Raises UserError where an event loop runs already."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(ask(given))
    raise UserError(f"An event loop is running here: await {ask.__name__}(...) instead")
