"""Where a scenario is played: one journal, one clock, and models whose questions are kept.

@scenario
async def one_tool(stage):
    await stage.ask(Agent("a", tools=[look], model=stage.script([call("look"), "done"])))
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import aclosing
from pathlib import Path
from typing import Any

from antiphon import Agent, Record, Result, RunFailed, open_run
from antiphon.journal.memory import MemoryJournal
from antiphon.kernel.run.commands import encode
from antiphon.kernel.run.rows import read
from antiphon.models.script import Script
from antiphon.testing.clock import VirtualClock
from tests.oracle.format import asked, normal, said

Scenario = Callable[["Stage"], Awaitable[None]]
SCENARIOS: dict[str, Scenario] = {}
"""All of them by name, which is their transcript's."""
PATIENCE = 60
"""Seconds after which what should have happened has not; never reached when all is well."""


def scenario(play: Scenario) -> Scenario:
    """Add a scenario under its function's name."""
    if play.__name__ in SCENARIOS:
        raise ValueError(f"two scenarios are named {play.__name__}")
    SCENARIOS[play.__name__] = play
    return play


class Stage:
    """What a scenario plays with. folder: an empty place of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.journal, self.clock = folder, MemoryJournal(), VirtualClock()
        self.kept_models: list[Script] = []
        self._ends: list[str] = []

    def script(self, replies: Any, **options: Any) -> Script:
        """A scripted model; what it is asked becomes part of the transcript."""
        return self.kept(Script(replies, **options))

    def kept(self, model: Script) -> Script:
        """The same for a script that was made elsewhere."""
        self.kept_models.append(model)
        return model

    def open(self, *agents: Agent, **options: Any) -> Any:
        """`open_run` with this journal and clock."""
        return open_run(agents, journal=self.journal, clock=self.clock, env={}, **options)

    async def ask(
        self, *agents: Agent, message: str = "go", asking: Mapping[str, Any] = {}, **options: Any
    ) -> None:
        """A run of its own: ask the first agent, and note what it came to."""
        options.setdefault("interactive", False)
        async with self.open(*agents, **options) as run:
            await self.ended(run, await run.post(agents[0], message, **asking))

    async def ended(self, run: Any, request: str) -> None:
        """Wait for a request's end and note it."""
        async with asyncio.timeout(PATIENCE):
            try:
                self.note(await run.result(request))
            except RunFailed as failed:
                self.note(failed.result)

    def note(self, result: Result | str) -> None:
        """Have the transcript say what something came to."""
        if isinstance(result, Result):
            why = f" ({result.reason})" if result.reason else ""
            result = f"{result.call_id} {result.outcome}: {result.output!r}{why}, {result.usage.total} tokens"
        self._ends.append(result)

    async def until(self, run: Any, *lines: str) -> None:
        """Read the run's records until each of these began one of their lines."""
        wanted = list(lines)
        events = run.events(deltas=False)
        async with asyncio.timeout(PATIENCE), aclosing(events):
            async for record in events:
                wanted = [each for each in wanted if not said(record).startswith(each)]
                if not wanted:
                    return

    def play_outside(self, run: Any, outside: Callable[[Record], Any]) -> asyncio.Task[None]:
        """Post what somebody outside says when they see a record; until the task is cancelled."""

        async def watch() -> None:
            async with aclosing(run.events(deltas=False)) as events:
                async for record in events:
                    for key, command in outside(record):
                        await self.journal.post(run.run_id, key, encode(command))

        return asyncio.ensure_future(watch())

    async def transcript(self, play: Scenario) -> str:
        """Play, and write down every run there was."""
        await play(self)
        lines: list[str] = []
        runs = [entry.run_id for entry in reversed(await self.journal.runs())]
        for number, run_id in enumerate(runs, 1):
            records = await read(self.journal, run_id, 0)
            given = {row.seq: row.given for row in await self.journal.read(run_id)}
            lines += [f"run {number}", *_marked(records, given), ""]
        lines += [
            each
            for model in self.kept_models
            if model.asked
            for each in [f"model {model.name}", *asked(model.requests), ""]
        ]
        await self.journal.close()
        return normal([*lines, *self._ends], str(self.folder))


def _marked(records: list[Record], given: dict[int, int]) -> Iterator[str]:
    """The lines of a run; those that came from outside are marked."""
    first = 1
    outside: set[int] = set()
    for last, count in sorted(given.items()):
        outside.update(range(first, first + count))
        first = last + 1
    for record in records:
        yield f"{'>' if record.seq in outside else ' '} {said(record)}"
