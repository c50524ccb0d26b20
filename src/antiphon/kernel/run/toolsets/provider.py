"""A provider that lives and dies: opened once in an event loop, again when it is lost, closed when idle.

Each has one task, which belongs to the loop and not to a run, since runs share it; its table is kept on the
loop, whose lifetime it has. All is said in the loop's own thread, so nothing needs a lock.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Hashable
from contextlib import suppress
from functools import partial
from threading import get_ident
from typing import Any, Protocol

from antiphon.errors import DuplicateName, ToolDefinitionError
from antiphon.values.codec import clean_text, text_of
from antiphon.values.tool import Tool, as_tool
from antiphon.values.tool.offer import ToolOffer
from antiphon.values.tool.offered import offer_of
from antiphon.values.tool.toolset import Offered, Toolset

CLOSE_SECONDS = 5.0
"""What `close` gets; a provider that takes longer is let go of."""
PAUSES = (0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0)
"""Seconds between attempts to open a provider that is down: the first after so much, and so on."""
STEADY_SECONDS = 30.0
"""Who stayed up for so long and is lost is opened again after the first pause."""
GRACE = 0.5
"""Seconds beyond its connect timeout in which a provider that ignores that is waited for."""
MAX_TOOLS = 10_000
"""Tools of one provider."""
MAX_REASON = 500
"""Characters of a provider's word on why it is down."""
_KEPT_AS = "antiphon_providers"
_LOG = logging.getLogger("antiphon.toolsets")


class ProviderUser(Protocol):
    """Somebody who uses a provider."""

    def changed(self) -> None:
        """It offers other tools, has come up, or has gone."""
        ...


class Link:
    """One opening of a provider; see ToolsetLink."""

    __slots__ = ("_loop", "_provider", "_thread", "session")

    def __init__(self, provider: ToolProvider) -> None:
        self._provider: ToolProvider | None = provider
        self._loop, self._thread = asyncio.get_running_loop(), get_ident()
        self.session: Any = None

    def offer(self, tools: Offered) -> None:
        """See ToolsetLink.offer. Nothing, once the provider was lost."""
        provider = self._provider
        if provider is not None:
            found = provider.checked(tools)
            self._say(partial(provider.offers, self, found))

    def lost(self, reason: str) -> None:
        """See ToolsetLink.lost; the first word counts."""
        provider = self._provider
        if provider is not None:
            self._say(partial(provider.lost, self, reason))

    def _say(self, word: Callable[[], None]) -> None:
        """At once, or in the loop's own thread as soon as that can be; nothing where the loop is over."""
        if get_ident() == self._thread:
            word()
            return
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(word)

    def end(self) -> None:
        """Nothing that is said by it counts any more."""
        self._provider = None


class ToolProvider:
    """The provider of toolsets that share one. Made by `provider_of`, in the loop that it belongs to."""

    def __init__(self, toolset: Toolset, key: Hashable) -> None:
        self._toolset, self.key = toolset, key
        self._listeners: list[ProviderUser] = []
        self._link: Link | None = None
        self._tried = asyncio.Event()
        self._gone = asyncio.Event()
        self._wanted = asyncio.Event()
        self._calls: dict[asyncio.Timeout, Callable[[], bool]] = {}
        self._idle: asyncio.TimerHandle | None = None
        self._failed_at: float | None = None
        self.tools: dict[str, Tool] = {}
        self.offered: tuple[ToolOffer, ...] | None = None
        """The latest; None before it ever came up."""
        self.reason = "it was not reached yet"
        """Why it is down; empty while it is up."""
        self.task: asyncio.Task[None] | None = None
        self._closing = False
        self.over = False
        """It is closed, or is about to be: who wants it gets another one."""

    # -- who uses it --------------------------------------------------------------------------

    def take(self, listener: ProviderUser) -> None:
        """Somebody uses it from now on."""
        self._listeners.append(listener)
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None

    def release(self, listener: ProviderUser) -> None:
        """They do no more; the last one leaves it to be closed after a while."""
        self._listeners.remove(listener)
        if not self._listeners:
            loop = asyncio.get_running_loop()
            self._idle = loop.call_later(self._toolset.idle_seconds, self.close)

    @property
    def unreached(self) -> bool:
        """Whether its first opening has not come to an end."""
        return self.offered is None and self._failed_at is None

    @property
    def unused(self) -> bool:
        """Whether nobody uses it."""
        return not self._listeners

    async def until_up(self) -> str:
        """Why it is down; empty once it is up.

        Who asks has it opened at once and waits for that, so long as it may take to connect; but right after
        an opening that failed nobody waits.
        """
        if not self.reason:
            return ""
        if self._failed_at is not None:
            if asyncio.get_running_loop().time() - self._failed_at < PAUSES[0]:
                return self.reason
            self._failed_at = None
            self._tried.clear()
        self._wanted.set()
        # A moment more than its own time: whoever ignores that keeps nobody waiting.
        await _within(self._tried, self._toolset.connect_timeout + GRACE)
        return self.reason

    # -- its calls ----------------------------------------------------------------------------

    def begin_call(self, call: asyncio.Timeout, waits: Callable[[], bool]) -> Link | None:
        """From now on `call` goes off when the provider is lost, unless it `waits` for others. Returns the
        opening that it is a call of."""
        self._calls[call] = waits
        return self._link

    def end_call(self, call: asyncio.Timeout) -> None:
        """It is over."""
        self._calls.pop(call, None)

    # -- what it says -------------------------------------------------------------------------

    def checked(self, tools: Offered) -> dict[str, Tool]:
        """Tools that can be offered, by name. Raises ToolDefinitionError, DuplicateName."""
        found: dict[str, Tool] = {}
        for each in tools:
            made = as_tool(each)
            if made.name in found:
                raise DuplicateName(f"tool of the toolset {self._toolset.name}", made.name)
            if len(found) >= MAX_TOOLS:
                raise ToolDefinitionError(f"{self._toolset.name} offers more than {MAX_TOOLS:,} tools")
            offer_of(made)
            found[made.name] = made
        return found

    def offers(self, link: Link, tools: dict[str, Tool]) -> None:
        """It offers these tools."""
        if link is not self._link:
            return
        offered = tuple([offer_of(each) for each in tools.values()])
        self.tools = tools
        if offered != self.offered:
            self.offered = offered
            self._tell()

    def lost(self, link: Link | None, reason: str) -> None:
        """It has gone; the calls under way end."""
        if link is not None and link is self._link and not self._gone.is_set():
            # At once: whoever asks from now on has it opened again.
            self._tried.clear()
            self._down(reason)
            self._gone.set()

    def _down(self, reason: str) -> None:
        reason = clean_text(str(reason)).strip()[:MAX_REASON] or "it said nothing of why"
        if self.reason != reason:
            self.reason = reason
            _LOG.warning("toolset %s is down: %s", self._toolset.name, reason)
            self._tell()
        now = asyncio.get_running_loop().time()
        for each in [each for each, waits in self._calls.items() if not waits()]:
            each.reschedule(now)
            del self._calls[each]

    def _tell(self) -> None:
        for each in list(self._listeners):
            each.changed()

    # -- its task -----------------------------------------------------------------------------

    async def live(self) -> None:
        """Open it, and again when it is lost, until this is cancelled."""
        loop, failures = asyncio.get_running_loop(), 0
        while True:
            since = loop.time()
            self._wanted.clear()
            await self._one_life()
            if self.over:
                return
            failures = 0 if loop.time() - since >= STEADY_SECONDS else failures + 1
            await _within(self._wanted, PAUSES[min(max(failures - 1, 0), len(PAUSES) - 1)])

    async def _one_life(self) -> None:
        """From one opening to its close."""
        toolset, link = self._toolset, Link(self)
        self._link, opened = link, False
        self._gone.clear()
        self._tried.clear()
        try:
            async with asyncio.timeout(toolset.connect_timeout):
                offered = await toolset.open(link)
            self.offers(link, self.checked(offered))
            if not self._gone.is_set():
                opened, self.reason = True, ""
                self._tell()
                self._tried.set()
            await self._gone.wait()
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            self._down("its own code was cancelled")
        except TimeoutError:
            self._down(f"it was not reached within {toolset.connect_timeout:g} s")
        except Exception as error:  # noqa: BLE001 - whatever a provider raises, runs go on without it
            self._down(f"it was not reached: {text_of(error)}")
        finally:
            if not opened:
                self._failed_at = asyncio.get_running_loop().time()
                self._tried.set()
            self._link = None
            link.end()
            await self._close(link)

    async def _close(self, link: Link) -> None:
        if self._toolset.close is None:
            return
        self._closing = True
        try:
            async with asyncio.timeout(CLOSE_SECONDS):
                await self._toolset.close(link)
        except TimeoutError:
            _LOG.warning("toolset %s was not closed within %g s", self._toolset.name, CLOSE_SECONDS)
        except Exception as error:  # noqa: BLE001 - as above
            _LOG.warning("toolset %s was not closed: %s", self._toolset.name, text_of(error))
        finally:
            self._closing = False

    def close(self) -> asyncio.Task[None] | None:
        """Nobody gets it any more: its task closes it."""
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None
        if self.task is not None and not self.over and not self._closing:
            self.task.cancel()
        self.over = True
        return self.task


async def _within(event: asyncio.Event, seconds: float) -> None:
    """Wait for an event, so long at most."""
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return


def provider_of(toolset: Toolset) -> ToolProvider:
    """The provider of a toolset in the running loop; the first who asks has it opened."""
    loop = asyncio.get_running_loop()
    known: dict[Hashable, ToolProvider] | None = getattr(loop, _KEPT_AS, None)
    if known is None:
        known = {}
        setattr(loop, _KEPT_AS, known)
    key = toolset.provider
    found = known.get(key)
    if found is None or found.over or found.task is None or found.task.cancelling() or found.task.done():

        def closed(_: asyncio.Task[None]) -> None:
            if known.get(key) is made:
                del known[key]

        found = made = known[key] = ToolProvider(toolset, key)
        made.task = loop.create_task(made.live(), name=f"toolset {toolset.name}")
        made.task.add_done_callback(closed)
    return found


def known_provider(toolset: Toolset) -> ToolProvider | None:
    """The provider of a toolset in the running loop, if somebody has had it opened."""
    known: dict[Hashable, ToolProvider] = getattr(asyncio.get_running_loop(), _KEPT_AS, {})
    return known.get(toolset.provider)


def unused_tasks(loop: asyncio.AbstractEventLoop) -> set[asyncio.Task[None]]:
    """The tasks of a loop's providers that no run uses: they end when they are idle, or with the loop."""
    known: dict[Hashable, ToolProvider] = getattr(loop, _KEPT_AS, {})
    return {each.task for each in known.values() if each.unused and each.task is not None}


async def close_unused() -> None:
    """Close every provider of the running loop that no run uses, at once; return when they are closed."""
    known: dict[Hashable, ToolProvider] = getattr(asyncio.get_running_loop(), _KEPT_AS, {})
    tasks = []
    for each in list(known.values()):
        if each.unused:
            tasks.append(each.close())
    running = [each for each in tasks if each is not None]
    if running:
        await asyncio.wait(running, timeout=CLOSE_SECONDS + 1.0)
