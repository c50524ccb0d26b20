"""Whatever is cancelled, killed, compacted, trimmed or timed out: what is sent is always valid."""

import asyncio
import random
from contextlib import aclosing
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from antiphon import (
    Agent,
    Limits,
    LoopOptions,
    ModelError,
    ModelOptions,
    Run,
    RunFailed,
    Usage,
    open_run,
    tool,
)
from antiphon.journal.memory import MemoryJournal
from antiphon.kernel.context.compaction import COMPACT
from antiphon.kernel.run.rows import fold
from antiphon.models.script import Script, call
from antiphon.testing.clock import VirtualClock
from antiphon.values.limits import OutputLimits
from antiphon.values.model import ModelRequest, Reply


def openai_shape(request: ModelRequest) -> None:
    """Each call is answered, in order, before anything else is said; no result is without its call."""
    owed: list[str] = []
    for message in request.messages:
        if message.role == "tool":
            assert owed, f"a result without a call: {message.content[:60]}"
            assert message.call_id == owed.pop(0)
            assert not message.calls
            continue
        assert not owed, f"calls without results: {owed}"
        assert message.role in ("user", "assistant")
        assert message.content or message.calls or message.attachments
        owed = [each.id for each in message.calls]
        assert len(set(owed)) == len(owed)
    assert not owed, f"calls without results at the end: {owed}"


def anthropic_shape(request: ModelRequest) -> None:
    """As above; it begins with a user, ends with a user or results, and no text is empty."""
    openai_shape(request)
    assert request.messages[0].role == "user"
    assert request.messages[-1].role in ("user", "tool")
    for message in request.messages:
        assert message.calls or message.role == "tool" or message.content.strip()


@tool(effect="read")
async def look(n: int = 0) -> str:
    """Look."""
    return f"seen {n}"


@tool
async def big(n: int = 0) -> str:
    """Say much."""
    return "\n".join(f"line {line}" for line in range(n * 50))


@tool
async def boom() -> str:
    """Fail."""
    raise ValueError("boom")


@tool(effect="idempotent", timeout=0.001)
async def late() -> str:
    """Take too long."""
    await asyncio.Event().wait()
    return "never"


@tool
async def hang() -> str:
    """Wait until it is stopped."""
    await asyncio.Event().wait()
    return "never"


@tool(finishes=True)
async def submit(text: str = "") -> str:
    """End the task."""
    return text


class Fickle:
    """A model that does anything, and checks everything it is sent."""

    name, window = "fickle", 2_000

    def __init__(self, dice: random.Random) -> None:
        self._dice, self.asked = dice, 0
        self.wrong: list[str] = []

    async def complete(self, request: ModelRequest, emit: Any) -> Reply:
        self.asked += 1
        try:
            anthropic_shape(request)
        except AssertionError as error:
            # Raised here it would only be another failure of the model.
            shown = [
                (each.role, each.content[:40], [one.id for one in each.calls]) for each in request.messages
            ]
            self.wrong.append(f"{error}: {shown}")
        dice, usage = self._dice, Usage(self._dice.choice((10, 500, 1_900)), 5)
        what = dice.random()
        if what < 0.08:
            await asyncio.Event().wait()
        if what < 0.2:
            raise ModelError(dice.choice(("overloaded", "disconnected", "auth", "context_length")), "no")
        if request.tool_choice == "none":
            summary = dice.choice(("<summary>S</summary>", "<retain>R</retain>", "", "words"))
            return Reply(summary, usage=usage)
        if what < 0.45:
            return Reply(f"text {self.asked}", usage=usage)
        names = [dice.choice(("look", "big", "boom", "late", "hang", "submit", "nobody")) for _ in range(3)]
        calls = tuple(
            call(name, **({"n": dice.randrange(9)} if name in ("look", "big") else {}))
            for name in names[: dice.randint(1, 3)]
        )
        named = tuple(
            replace(each, id=f"c{self.asked}-{index}", arguments=dice.choice((each.arguments, "{bad")))
            for index, each in enumerate(calls)
        )
        return Reply(dice.choice(("", "beside")), named, "calls", usage)


def agent_of(dice: random.Random) -> Agent:
    return Agent(
        "a",
        tools=[look, big, boom, late, hang, submit],
        context="continue",
        standalone=True,
        loop=LoopOptions(summarize_at_limit=True, finish_mode=dice.choice(("wins", "in_order"))),
        asking=ModelOptions(
            max_output_tokens=50,
            fallback_models=[Script(["spare"] * 100, name="spare", record=1)] if dice.random() < 0.5 else [],
        ),
        tool_execution=dice.choice(("parallel", "sequential", "single")),
        completion=dice.choice(("text", "finish")),
        limits=Limits(turns=6),
    )


class Tally(NamedTuple):
    """What a conversation went through: model calls, crashes, and how many of those met a request at work."""

    asked: int = 0
    crashes: int = 0
    at_work: int = 0


async def as_left(journal: MemoryJournal, run_id: str, seq: int) -> MemoryJournal:
    """What is on record once a process has died that had come to `seq`: its rows up to there, unreleased."""
    left = MemoryJournal()
    lease = await left.claim(run_id, create=True)
    for row in await journal.read(run_id):
        if row.seq > seq:
            break
        while lease.epoch < row.epoch:
            await left.release(lease)
            lease = await left.claim(run_id)
        names = {*row.blobs, *(name for _, name in row.refs)}
        left.append(lease, row, {name: await journal.blob(run_id, name) for name in names}, _taken)
    # Memory has one process: that this owner died there is no other way to say.
    await left.release(lease)
    return left


def _taken(error: BaseException | None) -> None:
    assert error is None, error


async def some_laps(run: Run, request: str, laps: int) -> None:
    """Let a request go on for a while, with somebody who watches."""
    async with aclosing(run.events(run.seq, deltas=False)):
        for _ in range(laps):
            if request not in await run.open_requests():
                return
            await asyncio.sleep(0)


async def live(seed: int) -> Tally:
    """Some requests of one conversation, disturbed at random."""
    dice = random.Random(seed)
    journal, agent, model = MemoryJournal(), agent_of(dice), Fickle(dice)
    outputs = OutputLimits(message=400, total=dice.choice((100, 1_000)))
    run_id, crashes, at_work = None, 0, 0
    for _ in range(5):
        async with open_run(
            [agent], journal=journal, run_id=run_id, model=model, clock=VirtualClock(), output_limits=outputs,
            limits=Limits(timeout_seconds=dice.choice((None, 5.0))),
        ) as run:  # fmt: skip
            run_id = run.run_id
            for left in await run.open_requests():
                await some_laps(run, left, dice.choice((0, 5, 25)))
                await run.cancel(left)
            await converse(run, dice)
            for message in run.transcript("a"):
                assert message.role != "system"
            if dice.random() < 0.6:
                # Whatever is done from here on was never done: the next one opens what is left.
                seq = run.seq - dice.choice((0, dice.randrange(12), dice.randrange(run.seq)))
                journal = await as_left(journal, run_id, max(seq, 1))
                crashes += 1
                at_work += bool((await fold(journal, run_id)).activations[0].open)
    assert not model.wrong, model.wrong[0]
    return Tally(model.asked, crashes, at_work)


async def converse(run: Run, dice: random.Random) -> None:
    """Up to three requests, each stopped after a while; perhaps it is left while one is at work."""
    for _ in range(3):
        forced = dice.random() < 0.2
        request = await run.post("a", "" if forced else "go", intent=COMPACT * forced)
        await some_laps(run, request, dice.randint(3, 25))
        if dice.random() < 0.2:
            return
        await run.cancel(request, "enough")
        try:
            await run.result(request)
        except RunFailed:
            continue


@pytest.mark.slow
@settings(max_examples=60)
@given(st.integers(0, 2**32))
def test_every_request_is_valid_for_its_provider(seed: int) -> None:
    asyncio.run(live(seed))


@pytest.mark.slow
def test_the_disturbed_conversations_are_worth_the_name() -> None:
    lives = [asyncio.run(live(seed)) for seed in range(10)]
    asked, crashes, at_work = map(sum, zip(*lives, strict=True))
    assert asked > 60
    assert crashes > 20
    assert at_work > 10
