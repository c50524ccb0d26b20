"""How one effect of each kind is performed. Every performer returns the event of its end.

An agent call needs no performer: it ends when the activation that it is returns.
"""

from __future__ import annotations

import asyncio
import queue
import threading
import types
from collections.abc import Callable, Coroutine, Generator
from contextlib import suppress
from typing import Any

import msgspec

from antiphon.errors import ModelError, ToolError
from antiphon.kernel.facts.activation import Activation, Open
from antiphon.kernel.facts.events import EffectFinished
from antiphon.kernel.rules.request import request
from antiphon.kernel.rules.team import Choice, Member
from antiphon.values.codec import encode_value, mend, whole
from antiphon.values.model import Emit, Reply
from antiphon.values.tool import Done, Tool, ToolContext, result_of


async def ask_model(
    choice: Choice, member: Member, activation: Activation, opened: Open, emit: Emit, session: str = ""
) -> EffectFinished:
    """Ask the model once. Any failure is an event; only cancellation escapes."""
    effect_id, model = opened.effect.id, choice.model
    try:
        asked = request(member, model.name, activation, opened.effect, session)
        reply = _received(await model.complete(asked, emit))
    except ModelError as error:
        why = whole(f"{error.kind}: {error.text}")
        return EffectFinished(
            effect_id, "failed", why=why, retry_after=error.retry_after, status=error.status
        )
    except Exception as error:  # noqa: BLE001 - an adapter's bug must end its effect, not the run
        return EffectFinished(effect_id, "failed", why=whole(f"provider: {type(error).__name__}: {error}"))
    bill = choice.bill(reply.usage) if choice.bill is not None else None
    return EffectFinished(effect_id, reply=reply, cost=bill)


_decode_reply = msgspec.json.Decoder(Reply).decode


def _received(reply: Reply) -> Reply:
    """A reply as it will be read back, whatever the adapter made it of. Raises TypeError, ValueError."""
    try:
        return _decode_reply(encode_value(reply))
    except UnicodeEncodeError:
        return _decode_reply(encode_value(mend(reply)))


async def use_tool(
    tool: Tool | None, arguments: str, opened: Open, context: ToolContext | None, threads: Threads
) -> EffectFinished:
    """Run a tool; after a crash, do again only what its contract allows."""
    effect_id = opened.effect.id
    if tool is None:
        return _in_doubt(effect_id, f"{opened.effect.name} is no longer among the agent's tools")
    try:
        if opened.lost and tool.effect == "once":
            return await _reconcile(tool, effect_id, context, threads)
        bound = tool.bind(arguments, context)
        found = result_of(await _call(bound, tool.is_async, tool.timeout, threads))
    except TimeoutError as error:
        why = whole(f"[{tool.name}] {str(error) or f'no result after {tool.timeout:g} s'}")
        return _in_doubt(effect_id, why) if tool.acting else EffectFinished(effect_id, "failed", why=why)
    except Done as done:
        return EffectFinished(effect_id, content=whole(done.result), ends=True)
    except Exception as error:  # noqa: BLE001 - a tool's failure is a result that the model is shown
        text = str(error) if isinstance(error, ToolError) or str(error) else type(error).__name__
        return EffectFinished(effect_id, "failed", why=whole(f"[{tool.name}] {text}"))
    if found.is_error:
        return EffectFinished(
            effect_id, "failed", attachments=found.attachments, why=f"[{tool.name}] {found.content}"
        )
    return EffectFinished(effect_id, content=found.content, attachments=found.attachments, ends=found.ends)


def _in_doubt(effect_id: str, why: str) -> EffectFinished:
    return EffectFinished(effect_id, "unknown", why=f"{why}; it may or may not have taken effect")


async def _reconcile(
    tool: Tool, effect_id: str, context: ToolContext | None, threads: Threads
) -> EffectFinished:
    """Ask what became of a `once` effect that a crash cut off; None from `reconcile`: nobody knows."""
    reconcile = tool.reconcile
    if reconcile is not None:
        is_async = asyncio.iscoroutinefunction(reconcile)
        found = await _call(lambda: reconcile(context), is_async, tool.timeout, threads)
        if found is not None:
            known = result_of(found)
            return EffectFinished(effect_id, content=known.content, attachments=known.attachments)
    return _in_doubt(effect_id, f"[{tool.name}] the process stopped while it ran")


async def _call(bound: Callable[[], Any], is_async: bool, timeout: float, threads: Threads) -> Any:
    if not is_async:
        async with asyncio.timeout(timeout):
            return await threads.run(bound)
    coroutine = bound()
    try:
        waits_for = coroutine.send(None)
    except StopIteration as finished:
        return finished.value
    # Only a tool that really waits pays for a timer.
    async with asyncio.timeout(timeout):
        return await _go_on(coroutine, waits_for)


@types.coroutine
def _go_on(coroutine: Coroutine[Any, Any, Any], waits_for: Any) -> Generator[Any, Any, Any]:
    """The rest of a coroutine that has already been started and waits for something."""
    try:
        while True:
            try:
                value = yield waits_for
            except BaseException as error:  # noqa: BLE001 - a cancellation above all: it is the coroutine's to handle
                waits_for = coroutine.throw(error)
            else:
                waits_for = coroutine.send(value)
    except StopIteration as finished:
        return finished.value
    finally:
        coroutine.close()


class Threads:
    """Daemon threads for synchronous tools, `limit` at most; a call beyond them waits its turn.

    A call that is abandoned keeps its thread until the function returns; the result is dropped.
    """

    def __init__(self, limit: int = 32) -> None:
        self._limit = limit
        self._threads = 0
        self._idle = 0
        self._jobs: queue.SimpleQueue[tuple[Callable[[], Any], asyncio.Future[Any]] | None] = (
            queue.SimpleQueue()
        )

    def run(self, function: Callable[[], Any]) -> asyncio.Future[Any]:
        """Run `function` in a thread; the future belongs to the running loop."""
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        if not self._idle and self._threads < self._limit:
            self._threads += 1
            threading.Thread(target=self._work, name="antiphon-tool", daemon=True).start()
        else:
            self._idle -= 1
        self._jobs.put((function, future))
        return future

    def close(self) -> None:
        """Let every thread end once its function has returned."""
        for _ in range(self._threads):
            self._jobs.put(None)

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            function, future = job
            loop = future.get_loop()
            try:
                outcome: Any = function()
                failed = False
            except BaseException as error:  # noqa: BLE001 - it belongs to whoever awaits the future
                outcome, failed = error, True
            # The loop may be gone by now: the call was abandoned and nobody waits.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(self._done, future, outcome, failed)

    def _done(self, future: asyncio.Future[Any], outcome: Any, failed: bool) -> None:
        self._idle += 1
        if future.done():
            return
        if failed:
            future.set_exception(outcome)
        else:
            future.set_result(outcome)
