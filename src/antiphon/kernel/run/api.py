"""One request, from its entry agents to its result: run, run_sync, stream."""

from __future__ import annotations

import warnings
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Generic, TypeAlias, Unpack, cast, overload

import msgspec

from antiphon.errors import RunFailed, UserError
from antiphon.journal import ONE_SHOT
from antiphon.kernel.facts.events import EffectFinished
from antiphon.kernel.facts.records import Record, ReplyDelta
from antiphon.kernel.run.blocking import run_here
from antiphon.kernel.run.live.feed import Subscription
from antiphon.kernel.run.open import open_run
from antiphon.kernel.run.options import OpenOptions, RunOptions, StreamOptions
from antiphon.kernel.run.run import InputHandler, Run
from antiphon.values.agent import Agent, AgentSource, AnyAgent, agents_of, equip
from antiphon.values.generic import Deps, Out
from antiphon.values.message import Attachment
from antiphon.values.model import Usage
from antiphon.values.result import Result
from antiphon.values.tool import Tool

Entry: TypeAlias = AnyAgent | str | Sequence[AnyAgent | str]
"""Whom a request goes to: an agent, a name among the agents, or several of these."""


@overload
async def run(
    entry: Agent[Deps, Out], message: str, *, deps: Deps = ..., **options: Unpack[RunOptions]
) -> Result[Out]: ...


@overload
async def run(
    entry: str | AgentSource | Sequence[AnyAgent | str],
    message: str,
    *,
    deps: object = ...,
    **options: Unpack[RunOptions],
) -> Result: ...


async def run(
    entry: Entry, message: str, *, agents: Iterable[AnyAgent] = (), attachments: Iterable[Attachment] = (),
    on_input: InputHandler | None = None, tools: Iterable[Tool | Callable[..., object]] = (),
    deps: Any = None, **options: Unpack[OpenOptions],
) -> Result[Any]:  # fmt: skip
    """Ask the entry agent and wait for its answer; all other options are those of `open_run`.

    entry: an agent, a name among `agents`, or several, which then all work on the message: their
    outputs are joined as `[name]…[/name]`. tools: for this run and the entry agents only, after their
    own; of two of one name the agent's own stays. on_input: an async function that is shown each
    message an agent has for the user and returns the answer; a message with the intent `approval`
    or `limit` asks for `yes`, `no` or `always`, and any other answer is no. `message.data` says what form
    an answer has (`options`, `schema`, `deadline`); one that does not fit is asked for again, with `refused`
    there, up to 10 times. Raises RunFailed for the outcome `failed`, UserError, RunSuspended.
    """
    team, names = _line_up(entry, agents, tuple(tools))
    if on_input is None and len(names) == 1 and options.get("journal") is None:
        # Nobody but who asks it sees the run: there is nothing to keep.
        options["journal"] = ONE_SHOT
    async with open_run(team, interactive=on_input is not None, deps=deps, **options) as opened:
        asked: Stream[Any] = await _ask(opened, names, message, attachments)
        if on_input is not None:
            await asked.serve(on_input)
        try:
            return await asked.result()
        finally:
            await asked.close()


@overload
def run_sync(
    entry: Agent[Deps, Out], message: str, *, deps: Deps = ..., **options: Unpack[RunOptions]
) -> Result[Out]: ...


@overload
def run_sync(
    entry: str | AgentSource | Sequence[AnyAgent | str],
    message: str,
    *,
    deps: object = ...,
    **options: Unpack[RunOptions],
) -> Result: ...


def run_sync(
    entry: Entry, message: str, *, deps: Any = None, **options: Unpack[RunOptions]
) -> Result[Any]:  # fmt: skip
    """`run` for programs without an event loop, and for notebooks: beside a running one it has a thread."""
    asked: Any = run
    return run_here(asked(entry, message, deps=deps, **options))


class _Watch:
    """What a subscription shows, up to the end of the calls that are watched."""

    def __init__(self, subscription: Subscription, calls: set[str]) -> None:
        self._subscription, self._calls = subscription, calls

    def __aiter__(self) -> _Watch:
        return self

    async def __anext__(self) -> Record | ReplyDelta:
        if not self._calls:
            self._subscription.close()
            raise StopAsyncIteration
        item = await anext(self._subscription)
        if isinstance(item, Record) and isinstance(item.event, EffectFinished):
            self._calls.discard(item.event.id)
        return item


class Stream(Generic[Out]):
    """The live records and pieces of one request, until it has ended. Made by `stream`."""

    def __init__(self, opened: Run, names: Sequence[str], calls: Sequence[str]) -> None:
        self.run, self._names, self._calls = opened, names, calls

    @property
    def run_id(self) -> str:
        """The run's id."""
        return self.run.run_id

    def __aiter__(self) -> AsyncIterator[Record | ReplyDelta]:
        return _Watch(self.run.events(), set(self._calls))

    async def serve(self, on_input: InputHandler) -> None:
        """Show every question and approval to `on_input` and send back what it returns."""
        async for item in self:
            if isinstance(item, Record):
                await self.run._put(item.event, item.agent, on_input)

    async def result(self) -> Result[Out]:
        """The result, once there is one; see `run`."""
        if len(self._calls) == 1:
            return cast("Result[Out]", await self.run.result(self._calls[0]))
        results = [await self._outcome(call) for call in self._calls]
        joined = "\n\n".join(
            f"[{name}]{each.output}[/{name}]" for name, each in zip(self._names, results, strict=True)
        )
        worst = min(results, key=lambda each: {"failed": 0, "completed": 2}.get(each.outcome, 1))
        usage = sum((each.usage for each in results), Usage())
        messages = tuple(message for each in results for message in each.messages)
        found: Result[Any] = msgspec.structs.replace(worst, output=joined, usage=usage, messages=messages)
        if found.outcome == "failed":
            raise RunFailed(found)
        return found

    async def close(self) -> None:
        """End the run, unless something is still open in it."""
        if not await self.run.open_requests():
            await self.run.close()

    async def _outcome(self, call: str) -> Result:
        try:
            return await self.run.result(call)
        except RunFailed as failed:
            result: Result = failed.result
            return result


@overload
def stream(
    entry: Agent[Deps, Out], message: str, *, deps: Deps = ..., **options: Unpack[StreamOptions]
) -> AbstractAsyncContextManager[Stream[Out]]: ...


@overload
def stream(
    entry: str | AgentSource | Sequence[AnyAgent | str], message: str, *, deps: object = ...,
    **options: Unpack[StreamOptions],
) -> AbstractAsyncContextManager[Stream]: ...  # fmt: skip


@asynccontextmanager
async def stream(
    entry: Entry, message: str, *, agents: Iterable[AnyAgent] = (), attachments: Iterable[Attachment] = (),
    interactive: bool = False, tools: Iterable[Tool | Callable[..., object]] = (), deps: Any = None,
    **options: Unpack[OpenOptions],
) -> AsyncIterator[Stream[Any]]:  # fmt: skip
    """Ask as `run` does, and hand out what happens while it happens.

    Leaving the block before the end does not cancel: with a durable journal the run can be opened
    again, and goes on.
    """
    team, names = _line_up(entry, agents, tuple(tools))
    async with open_run(team, interactive=interactive, deps=deps, **options) as opened:
        asked: Stream[Any] = await _ask(opened, names, message, attachments)
        yield asked
        await asked.close()


def _line_up(
    entry: Entry, agents: Iterable[AnyAgent], tools: tuple[Tool | Callable[..., object], ...]
) -> tuple[list[AnyAgent], list[str]]:
    """The team, entry agents included and equipped, and whom the user asks."""
    team = [each for one in agents for each in agents_of(one)]
    # What stands for agents is no list of them, though it may be a sequence of something.
    one = isinstance(entry, Agent | str) or agents_of(entry) != (entry,)
    entries = [entry] if one else list(cast("Iterable[Any]", entry))
    if not entries:
        raise UserError("A run needs an entry agent")
    stands_for = [(each,) if isinstance(each, str) else agents_of(each) for each in entries]
    missing = [each for found in stands_for for each in found if isinstance(each, Agent) and each not in team]
    first = [found[0] for found in stands_for if found[0] in missing]
    if team and first:
        named = ", ".join(each.name for each in first)
        warnings.warn(f"{named} is not among the agents; it takes part all the same", stacklevel=3)
    names = [each if isinstance(each, str) else each.name for each, *_ in stands_for]
    everyone = [*team, *missing]
    return [equip(each, tools) if tools and each.name in names else each for each in everyone], names


async def _ask(opened: Run, names: list[str], message: str, attachments: Iterable[Attachment]) -> Stream[Any]:
    files = tuple(attachments)
    return Stream(opened, names, [await opened.post(name, message, attachments=files) for name in names])
