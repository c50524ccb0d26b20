"""Toolsets: tools whose provider lives and dies, such as a server; what they offer may change meanwhile."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Hashable, Iterable
from typing import Any, Protocol

from msgspec import Struct

from antiphon.errors import UserError
from antiphon.values.fields import check_fields
from antiphon.values.tool import Tool

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
Offered = Iterable[Tool | Callable[..., object]]
"""What a provider offers: tools, or functions that become some."""


class ProviderLost(Exception):
    """Raised in a call when its provider has gone: the provider is opened again. Its text says why."""


class ToolsetLink(Protocol):
    """One opening of a provider: by this `open` tells what happens to it, until its `close`.

    session: whatever `close` needs of `open`; the link is the same object in both. Its methods may be called
    in any thread.
    """

    session: Any

    def offer(self, tools: Offered) -> None:
        """From now on these tools are offered; agents see them from their next turn on.

        Raises ToolDefinitionError, DuplicateName for tools that cannot be, and nothing changes.
        """
        ...

    def lost(self, reason: str) -> None:
        """The provider has gone: calls under way end with the reason; it is opened again after a pause."""
        ...


class Toolset(Struct, frozen=True, eq=False):
    """Tools that a provider offers. Give it to an agent as one of its `tools`; a team shares it.

    Opened with the first run that has it, once for all runs of an event loop, and closed when none has had it
    for `idle_seconds`. `open` and `close` run in one task of their own. While the provider is down its tools
    stay listed, and calls of them end `failed` with the reason. Raises UserError.
    """

    name: str
    """Unique in a team; 1 to 64 letters, digits, `_`, `-` and `.`."""
    open: Callable[[ToolsetLink], Awaitable[Offered]]
    """Connects, and returns what is offered. Raises when the provider cannot be reached. Hashable."""
    close: Callable[[ToolsetLink], Awaitable[object]] | None = None
    """Lets go of what `open` made, also when that raised or was given up."""
    required: bool = False
    """A run does not start without it. Otherwise it starts, and says so."""
    connect_timeout: float = 10.0
    """Seconds that `open` may take, and that a call waits for a provider that is down."""
    idle_seconds: float = 60.0
    """How long it stays open when no run has it."""
    only: tuple[str, ...] = ()
    """Names of the tools that are taken; empty: all."""
    key: Hashable = None
    """Toolsets of one key share one provider; None: each its own."""

    def __post_init__(self) -> None:
        check_fields(self)
        if not _NAME.fullmatch(self.name):
            raise UserError(f"A toolset's name is 1 to 64 letters, digits, '_', '-', '.'; got {self.name!r}")
        if self.connect_timeout <= 0 or self.idle_seconds < 0:
            raise UserError(
                f"Toolset {self.name}: connect_timeout is more than 0 seconds and idle_seconds at least 0; "
                f"got {self.connect_timeout} and {self.idle_seconds}"
            )

    @property
    def provider(self) -> Hashable:
        """What stands for its provider: toolsets that share it have the same."""
        return self.key if self.key is not None else self.open
