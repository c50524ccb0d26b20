"""One agent, many items, one budget: `map`. Each item is a request of one run, and known by a key of its own.

So a run that is opened again says by itself which items have their answer.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from hashlib import blake2b
from inspect import isawaitable
from math import isfinite
from typing import Any, Unpack, overload

import msgspec

from antiphon.errors import RunFailed, UnknownName, UserError
from antiphon.kernel.run.batch.progress import ProgressBar, progress_bar
from antiphon.kernel.run.blocking import run_here
from antiphon.kernel.run.open import open_run
from antiphon.kernel.run.options import Item, MapOptions, OpenOptions
from antiphon.kernel.run.run import InputHandler, Run
from antiphon.values.agent import Agent, AgentSource, AnyAgent, agents_of, equip
from antiphon.values.codec import clean_text, encode_value
from antiphon.values.fields import shown
from antiphon.values.generic import Deps, Out
from antiphon.values.limits import RunLimits
from antiphon.values.message import Attachment
from antiphon.values.result import Result
from antiphon.values.tool import Tool


@overload
async def map(
    agent: Agent[Deps, Out], items: Iterable[Item], *, deps: Deps = ..., **options: Unpack[MapOptions[Item]]
) -> list[Result[Out]]: ...


@overload
async def map(
    agent: str | AgentSource,
    items: Iterable[Item],
    *,
    deps: object = ...,
    **options: Unpack[MapOptions[Item]],
) -> list[Result]: ...


async def map(
    agent: AnyAgent | str, items: Iterable[Item], *, message: Callable[[Item], str] | None = None,
    attachments: Callable[[Item], Iterable[Attachment]] | None = None,
    key: Callable[[Item], str] | None = None, concurrency: int = 10,
    agents: Iterable[AnyAgent] = (), tools: Iterable[Tool | Callable[..., object]] = (),
    on_input: InputHandler | None = None,
    on_result: Callable[[int, Result], object] | None = None, progress: bool = False, deps: Any = None,
    **options: Unpack[OpenOptions],
) -> list[Any]:  # fmt: skip
    """Ask an agent about each item, all in one run; the results stand in the order of the items.

    agent: as in `run`, with `agents` and `tools`; each item begins anew. message: what the agent is told of
    an item; without it a text is told as it is, anything else as JSON. attachments: what goes with it.
    concurrency: items at the same time. run_limits: the budget of all items together; `limits`, with the
    other options of `open_run`, is that of each. Items that come when it is used up end with `budget`.
    run_id: a name of one's own. If the journal has that run, the items that it completed are not asked
    again, those in flight go on, and all others are asked. key: what an item is known by then; without it
    that is all that the agent is told. on_input: as in `run`. on_result: a function or coroutine function
    that is told each item's position and result, in the order in which they end, those of the journal
    included. progress: draw a bar on standard error.
    An item that fails is a Result whose outcome is `failed`. Raises UserError, RunSuspended; what `items`,
    `message`, `key` or `on_result` raise ends the call, and the run can be gone on with by its `run_id`.
    """
    if isinstance(items, str | bytes | Mapping) or not isinstance(items, Iterable):
        raise UserError(f"map(agent, items) takes a list of items, or an iterator; got {shown(items)}")
    if type(concurrency) is not int or concurrency < 1:
        raise UserError(f"map(concurrency=...) is a whole number from 1 on; got {shown(concurrency)}")
    team, name = _line_up(agent, agents, tuple(tools))
    total = len(items) if isinstance(items, Sized) else None
    options["create"] = True
    # A scope of its own from the beginning, so that a budget can be given when it is gone on with.
    options["run_limits"] = options.get("run_limits") or RunLimits()
    async with open_run(team, interactive=on_input is not None, deps=deps, **options) as opened:
        if on_input is not None:
            opened.on_input(on_input)
        with progress_bar(name, total, progress) as bar:
            batch = _Batch(opened, name, items, _Asks(message, attachments, key), on_result, bar)
            await batch.resume()
            at_once = concurrency if total is None else min(concurrency, max(total, 1))
            lanes = [opened._runtime.spawn(batch.work()) for _ in range(at_once)]
            ended, _ = await asyncio.wait(lanes, return_when=asyncio.FIRST_EXCEPTION)
            for lane in ended:
                lane.result()
        return batch.results()


@overload
def map_sync(
    agent: Agent[Deps, Out], items: Iterable[Item], *, deps: Deps = ..., **options: Unpack[MapOptions[Item]]
) -> list[Result[Out]]: ...


@overload
def map_sync(
    agent: str | AgentSource,
    items: Iterable[Item],
    *,
    deps: object = ...,
    **options: Unpack[MapOptions[Item]],
) -> list[Result]: ...


def map_sync(
    agent: AnyAgent | str, items: Iterable[Item], *, deps: Any = None, **options: Unpack[MapOptions[Item]]
) -> list[Any]:
    """`map` for programs without an event loop, and for notebooks: see `run_sync`."""
    asked: Any = map
    return run_here(asked(agent, items, deps=deps, **options))


class _Batch:
    """The items of one `map`, taken by whoever is free."""

    def __init__(
        self, opened: Run, agent: str, items: Iterable[Any], asks: _Asks,
        on_result: Callable[[int, Result], object] | None, bar: ProgressBar | None,
    ) -> None:  # fmt: skip
        self._run, self._agent, self._asks = opened, agent, asks
        self._on_result, self._bar = on_result, bar
        self._items: Iterator[tuple[int, Any]] = enumerate(items)
        self._results: dict[int, Result] = {}
        self._answered: dict[str, Result] = {}
        self._in_flight: dict[str, str] = {}

    async def resume(self) -> None:
        """Find what an earlier owner of the run has asked: what is answered, what is in flight."""
        # First, since what is in flight may end while the journal is read.
        self._in_flight = {info.task_id: info.call for info in self._run.activations() if not info.caller}
        async for result in self._run.results():
            if result.task_id and result.outcome == "completed":
                self._answered[result.task_id] = result

    async def work(self) -> None:
        """Do one item after the other, until there are no more."""
        for number, item in self._items:
            result = await self._ask(*self._asks.of(number, item))
            self._results[number] = result
            if self._bar is not None:
                self._bar.done(result)
            heard = self._on_result(number, result) if self._on_result is not None else None
            if isawaitable(heard):
                await heard

    async def _ask(self, key: str, message: str, files: tuple[Attachment, ...]) -> Result:
        task_id = f"{self._agent}:{key}"
        if task_id in self._answered:
            return self._answered.pop(task_id)
        request = self._in_flight.pop(task_id, "")
        if not request:
            request = await self._run.post(self._agent, message, attachments=files, task_id=task_id)
        try:
            return await self._run.result(request)
        except RunFailed as failed:
            result: Result = failed.result
            return result

    def results(self) -> list[Result]:
        """How each item ended, in their order."""
        return [self._results[number] for number in range(len(self._results))]


class _Asks:
    """What the agent is asked about an item, and the key that the item is known by."""

    def __init__(
        self, message: Callable[[Any], str] | None, attachments: Callable[[Any], Iterable[Attachment]] | None,
        key: Callable[[Any], str] | None,
    ) -> None:  # fmt: skip
        self._message, self._attachments, self._key = message, attachments, key
        self._known: Counter[str] = Counter()

    def of(self, number: int, item: Any) -> tuple[str, str, tuple[Attachment, ...]]:
        """The key, the text and the files. Raises UserError for what cannot be asked, or a key used twice."""
        # As it will be stored: a file that is no UTF-8 has halves of characters.
        text = clean_text(self._text(number, item))
        files = () if self._attachments is None else tuple(self._attachments(item))
        if self._key is None:
            # The same item once more is another item: it is asked, too.
            key = blake2b(encode_value((text, files)), digest_size=12).hexdigest()
        else:
            given: object = self._key(item)
            if not isinstance(given, str) or not given:
                raise UserError(f"map(key=...) returned {shown(given)} for item {number}; a key is a text")
            key = clean_text(given)
        self._known[key] += 1
        if self._known[key] == 1:
            return key, text, files
        if self._key is not None:
            raise UserError(f"map(key=...) returned {key!r} for item {number} and for one before it")
        return f"{key}.{self._known[key]}", text, files

    def _text(self, number: int, item: Any) -> str:
        if self._message is not None:
            said: object = self._message(item)
            if not isinstance(said, str):
                raise UserError(f"map(message=...) returned {shown(said)} for item {number}; it takes a text")
            return said
        if isinstance(item, str):
            return item
        try:
            told = encode_value(item).decode()
            if "null" in told:
                _check_numbers(msgspec.to_builtins(item))
            return told
        except (TypeError, ValueError, RecursionError) as error:
            raise UserError(
                f"Item {number} of map is no text and nothing that JSON can hold ({error}). Say what the "
                "agent is told of it: map(..., message=lambda item: ...)"
            ) from error


def _check_numbers(value: Any) -> None:
    """Raises ValueError for a number that JSON would have as null: two items that differ would be one."""
    if isinstance(value, float) and not isfinite(value):
        raise ValueError(f"{value} is no number in JSON")
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _check_numbers(each)


def _line_up(
    agent: AnyAgent | str, agents: Iterable[AnyAgent], tools: tuple[Tool | Callable[..., object], ...]
) -> tuple[list[AnyAgent], str]:
    """The team, the agent included and equipped, and its name. Raises UserError, UnknownName."""
    team: list[Agent[Any, Any]] = [each for one in agents for each in agents_of(one)]
    asked = () if isinstance(agent, str) else agents_of(agent)
    team += [each for each in asked if each not in team]
    name = agent if isinstance(agent, str) else asked[0].name
    found = next((each for each in team if each.name == name), None)
    if found is None:
        raise UnknownName("agent", name, [each.name for each in team])
    if found.context == "continue":
        raise UserError(
            f"map asks {name} about each item anew, but it goes on with its conversation: say context='fresh'"
        )
    equipped: list[AnyAgent] = [equip(each, tools) if each is found else each for each in team]
    return equipped, name
