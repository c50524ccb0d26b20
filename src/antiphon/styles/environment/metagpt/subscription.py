"""SubscriptionRunner: lets roles work whenever something happens outside, until nothing more can.

runner = SubscriptionRunner()
await runner.subscribe(reporter, every_morning(), send_mail)
await runner.run()
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Protocol

from antiphon.errors import UserError

LOG = logging.getLogger(__name__)


class Runnable(Protocol):
    """A role, as far as a subscription needs one."""

    async def run(self, with_message: Any) -> Any: ...


@dataclass(eq=False)
class _TriggerSubscription:
    """task: what serves it, once the runner runs."""

    role: Runnable
    trigger: AsyncGenerator[Any, None]
    callback: Callable[[Any], Awaitable[Any]]
    task: asyncio.Task[None] | None = None


class SubscriptionRunner:
    """Runs each subscribed role with what its trigger yields, and hands the answer to its callback.

    One message of a trigger after the other; triggers at the same time. Each role has one subscription.
    """

    def __init__(self) -> None:
        self._subscriptions: dict[int, _TriggerSubscription] = {}
        self._group: asyncio.TaskGroup | None = None
        self._raises = True

    async def subscribe(
        self,
        role: Runnable,
        trigger: AsyncGenerator[Any, None],
        callback: Callable[[Any], Awaitable[Any]],
    ) -> None:
        """Let a role answer what `trigger` yields: at once while `run` runs, else as soon as it does.

        Raises UserError when the role is subscribed already.
        """
        if id(role) in self._subscriptions:
            raise UserError(f"{role} is subscribed already; unsubscribe it first")
        subscription = self._subscriptions[id(role)] = _TriggerSubscription(role, trigger, callback)
        self._start(subscription)

    async def unsubscribe(self, role: Runnable) -> None:
        """End a role's subscription, in the middle of an answer too. Raises UserError when it has none."""
        subscription = self._subscriptions.pop(id(role), None)
        if subscription is None:
            names = ", ".join(sorted(str(each.role) for each in self._subscriptions.values())) or "(none)"
            raise UserError(f"{role} is not subscribed. Subscribed: {names}")
        if subscription.task is not None:
            subscription.task.cancel()
        else:
            await subscription.trigger.aclose()

    async def run(self, raise_exception: bool = True) -> None:
        """Serve every subscription until none is left; one whose trigger ends is logged and removed.

        What a role, trigger or callback raises ends them all and is raised, with a note that names the
        role; or, without `raise_exception`, ends its own subscription and is logged.
        """
        if self._group is not None:
            raise UserError("The runner runs already")
        self._raises = raise_exception
        try:
            async with asyncio.TaskGroup() as self._group:
                for subscription in self._subscriptions.values():
                    self._start(subscription)
        except ExceptionGroup as failures:
            raise failures.exceptions[0] from None
        finally:
            self._group = None
            self._subscriptions.clear()

    def _start(self, subscription: _TriggerSubscription) -> None:
        if self._group is not None:
            subscription.task = self._group.create_task(self._serve(subscription))

    async def _serve(self, subscription: _TriggerSubscription) -> None:
        role = subscription.role
        try:
            async with aclosing(subscription.trigger) as trigger:
                async for message in trigger:
                    await subscription.callback(await role.run(message))
            LOG.warning("The subscription of %s has ended: its trigger yields no more", role)
        except Exception as error:  # what a user's code raises may be anything
            error.add_note(f"The subscription of {role} ended with this")
            if self._raises:
                raise
            LOG.error("The subscription of %s has failed", role, exc_info=error)
        if self._subscriptions.get(id(role)) is subscription:
            del self._subscriptions[id(role)]
