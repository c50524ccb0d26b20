"""A provider of tools that does what a test says: it comes up, changes what it offers, hangs and dies."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from antiphon.values.tool import Tool
from antiphon.values.tool.toolset import Offered, Toolset, ToolsetLink


class ScriptedProvider:
    """Stands for a server in tests: `Agent("a", tools=[provider.toolset("github")])`.

    opens: what each opening does, in order: an exception is raised, `hang` never returns; when there are no
    more, it comes up with the tools. opened, closed: how often.
    """

    def __init__(
        self, *tools: Tool | Callable[..., object], opens: tuple[BaseException | str, ...] = ()
    ) -> None:
        self.tools: Offered = tools
        self.opens = list(opens)
        self.opened = self.closed = 0
        self.link: ToolsetLink | None = None

    def toolset(self, name: str, **fields: Any) -> Toolset:
        """The toolset that it provides; fields: those of `Toolset`."""
        return Toolset(name, self.open, self.close, **fields)

    async def open(self, link: ToolsetLink) -> Offered:
        """As the script says."""
        self.opened += 1
        does = self.opens.pop(0) if self.opens else None
        if does == "hang":
            await asyncio.get_running_loop().create_future()
        if isinstance(does, BaseException):
            raise does
        self.link = link
        return self.tools

    async def close(self, link: ToolsetLink) -> None:
        """Note that it was let go of."""
        self.closed += 1

    def offer(self, *tools: Tool | Callable[..., object]) -> None:
        """From now on it offers these."""
        self.tools = tools
        if self.link is not None:
            self.link.offer(tools)

    def die(self, reason: str, *then: BaseException | str) -> None:
        """It is gone; `then` is what the next openings do."""
        self.opens.extend(then)
        link, self.link = self.link, None
        if link is not None:
            link.lost(reason)
