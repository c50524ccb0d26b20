"""What one run has of its toolsets: it counts as a use, records what they offer, and calls their tools."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from typing import Any

from msgspec.structs import replace

from antiphon.errors import ToolError, ToolsetUnavailable, UserError
from antiphon.kernel.facts.events import Event, ToolsetOffered
from antiphon.kernel.facts.state import RunState
from antiphon.kernel.facts.toolsets import OfferedToolset, offered_toolset
from antiphon.kernel.run.tools.threads import NoResult, Threads
from antiphon.kernel.run.toolsets.provider import ToolProvider, provider_of
from antiphon.values.agent import Agent, own_tools
from antiphon.values.codec import encode_value
from antiphon.values.tool import Tool, ToolContext
from antiphon.values.tool.offered import offer_of
from antiphon.values.tool.toolset import ProviderLost, Toolset

_LOG = logging.getLogger("antiphon.toolsets")


class ToolsetUses:
    """The toolsets of one run, each a use of its provider until `close`.

    news: something has changed that is not on record.
    """

    def __init__(self, toolsets: Mapping[str, Toolset]) -> None:
        self._toolsets = toolsets
        self._providers: dict[str, ToolProvider] = {}
        self._known: dict[str, tuple[object, OfferedToolset]] = {}
        self.news = bool(toolsets)

    async def open(self, agents: Iterable[Agent[Any, Any]]) -> None:
        """Have all providers opened, side by side, and wait as long as each may take.

        Raises ToolsetUnavailable for a required one that cannot be reached, UserError where an agent would
        have two tools of one name; nothing is in use then.
        """
        for name, toolset in self._toolsets.items():
            provider = self._providers[name] = provider_of(toolset)
            provider.take(self)
        try:
            for provider in self._providers.values():
                # They are opened side by side: together these waits take as long as the slowest.
                await provider.until_up()
            for name, toolset in self._toolsets.items():
                if toolset.required and self._providers[name].reason:
                    raise ToolsetUnavailable(name, self._providers[name].reason)
            for agent in agents:
                self._check_names(agent)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """The run uses them no more."""
        for provider in self._providers.values():
            provider.release(self)
        self._providers = {}

    def changed(self) -> None:
        """See ProviderUser."""
        self.news = True

    def _check_names(self, agent: Agent[Any, Any]) -> None:
        taken = {tool.name: "the agent's own tools" for tool in own_tools(agent)}
        for toolset in agent.toolsets:
            for name in self._providers[toolset.name].tools:
                if toolset.only and name not in toolset.only:
                    continue
                if name in taken:
                    raise UserError(
                        f"{agent.name} would have two tools named {name!r}: one of {taken[name]}, one of the "
                        f"toolset {toolset.name}; give one another name, or leave it out with only=(...)"
                    )
                taken[name] = f"the toolset {toolset.name}"

    # -- the record ---------------------------------------------------------------------------

    def record(self, emit: Callable[[Event], None], run: RunState) -> None:
        """Emit what has changed since it was recorded last."""
        self.news = False
        if run.closed:
            return
        for name, provider in self._providers.items():
            offered = provider.offered
            known = run.owner.toolsets.get(name)
            tools = None
            if offered is not None and (known is None or self._offered(name, provider) != known):
                tools = offered
            if tools is not None or provider.reason != run.owner.down.get(name, ""):
                emit(ToolsetOffered(name, tools, provider.reason))

    def _offered(self, name: str, provider: ToolProvider) -> OfferedToolset:
        """What it offers, digested once."""
        offered = provider.offered or ()
        before = self._known.get(name)
        if before is None or before[0] is not offered:
            before = self._known[name] = offered, offered_toolset(name, offered)
        return before[1]

    # -- calls --------------------------------------------------------------------------------

    async def reached(self, name: str, tool: Tool, threads: Callable[[], Threads]) -> Tool | str:
        """The tool as it was offered, with the code that its provider has for it now; or why it cannot be
        called. Waits for a provider that is down, so long as it may take to connect."""
        provider = self._providers.get(name)
        if provider is None:
            return f"[{tool.name}] the toolset {name} is not there any more"
        reason = await provider.until_up()
        if reason:
            return f"[{tool.name}] the toolset {name} is down: {reason}"
        return _callable(provider, name, tool, threads)


def _callable(provider: ToolProvider, name: str, tool: Tool, threads: Callable[[], Threads]) -> Tool:
    """The tool as it was offered, with the code that its provider has for it now."""
    live = provider.tools.get(tool.name)

    async def call(ctx: ToolContext, arguments: dict[str, Any]) -> Any:
        if live is None or not _same(live, tool):
            what = "is no longer offered" if live is None else "has changed since it was offered"
            raise _undone(ctx, f"{what}; your next reply sees the tools as they are")
        if provider.reason:
            raise _undone(ctx, f"the toolset {name} is down: {provider.reason}")
        bound = live.bind(encode_value(arguments).decode(), ctx)
        lost = asyncio.timeout(None)
        link = provider.begin_call(lost, lambda: ctx.door.waits)
        try:
            async with lost:
                if live.is_async:
                    return await bound()
                # Its time is that of the call around it.
                return await threads().run(bound, live.name, live.timeout, limit=nullcontext())
        except ProviderLost as error:
            provider.end_call(lost)
            provider.lost(link, str(error))
            raise NoResult(f"the toolset {name} was lost: {error}") from error
        except TimeoutError:
            if lost.expired():
                raise NoResult(f"the toolset {name} was lost: {provider.reason}") from None
            raise
        finally:
            provider.end_call(lost)

    reconcile = live.reconcile if live is not None else None
    return replace(tool, function=call, reconcile=reconcile)


def _same(live: Tool, offered: Tool) -> bool:
    """Whether a provider's tool is the one that the record describes, in all that anybody was told of it."""
    return encode_value(offer_of(live)) == encode_value(offer_of(offered))


def _undone(ctx: ToolContext, reason: str) -> Exception:
    """Nothing was done, unless an earlier attempt did it."""
    return ToolError(reason) if ctx.attempt == 1 else NoResult(reason)
