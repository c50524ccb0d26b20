"""Thousands of sessions of one LoopAgent at once: each gets its own answer, and nothing stays behind."""

import asyncio
from typing import Any

import pytest

from antiphon import tool
from antiphon.models.script import call
from antiphon.styles.loop import AgentServices, LoopAgent
from antiphon.testing.clock import VirtualClock
from antiphon.values.model import ModelRequest, Reply

STEPS = 4
DELAY = 0.05
"""Seconds of each model call; virtual, so nobody waits for them."""


class Slow:
    """Has its tool called STEPS times, each call for the session's own text, then says what came back."""

    name = "slow"

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock
        self.asking = self.most = 0

    async def complete(self, request: ModelRequest, emit: Any) -> Reply:
        self.asking += 1
        self.most = max(self.most, self.asking)
        await self._clock.sleep_until(self._clock.now() + DELAY)
        self.asking -= 1
        results = [each.content for each in request.messages if each.role == "tool"]
        if len(results) < STEPS:
            return Reply("", (call("sign", text=request.messages[0].content),), "calls")
        return Reply(" ".join(results))


@pytest.mark.parametrize("count", [100, pytest.param(2_000, marks=pytest.mark.deep)])
def test_all_complete_side_by_side_and_leave_nothing(count: int) -> None:
    signed: list[str] = []

    @tool
    async def sign(text: str) -> str:
        """Sign a text."""
        signed.append(text)
        return f"signed {text}"

    async def playing() -> None:
        clock = VirtualClock()
        model, start = Slow(clock), clock.now()
        agent = LoopAgent(llm=model, tools=[sign], services=AgentServices(clock=clock))
        names = [f"session {number}" for number in range(count)]
        answers = await asyncio.gather(*(agent.run(name, session=name) for name in names))
        assert answers == [" ".join([f"signed {name}"] * STEPS) for name in names]
        assert sorted(signed) == sorted(names * STEPS)
        # They waited together: all of it took no longer than one of them.
        assert model.most == count
        assert clock.now() - start == pytest.approx((STEPS + 1) * DELAY)
        assert asyncio.all_tasks() == {asyncio.current_task()}
        for name in (names[0], names[-1]):
            history = await agent.get_history_messages(name)
            assert [each.role for each in history] == ["user", *["assistant", "tool"] * STEPS, "assistant"]
            assert history[0].content == name

    asyncio.run(playing())


@pytest.mark.slow
def test_some_that_fail_or_are_stopped_do_not_touch_the_others() -> None:
    """One in three is cancelled and one in three has a model that breaks; the rest completes."""

    class Frail(Slow):
        async def complete(self, request: ModelRequest, emit: Any) -> Reply:
            if request.messages[0].content.startswith("breaks") and len(request.messages) > 2:
                raise ValueError("broken")
            return await super().complete(request, emit)

    @tool
    async def sign(text: str) -> str:
        """Sign a text; the one who is to be stopped is stopped here."""
        if text.startswith("stops"):
            stops[text].set()
        return f"signed {text}"

    stops: dict[str, asyncio.Event] = {}

    async def playing() -> None:
        clock = VirtualClock()
        agent = LoopAgent(llm=Frail(clock), tools=[sign], services=AgentServices(clock=clock))
        names = [f"{kind} {number}" for number in range(30) for kind in ("stops", "breaks", "goes on")]
        stops.update({name: asyncio.Event() for name in names})
        ends = await asyncio.gather(
            *(agent.run(name, session=name, signal=stops[name]) for name in names), return_exceptions=True
        )
        kinds = [end if isinstance(end, str) else type(end).__name__ for end in ends]
        assert kinds == [
            {"stops": "AbortError", "breaks": "RunFailed"}.get(
                name.split()[0], " ".join([f"signed {name}"] * STEPS)
            )
            for name in names
        ]
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(playing())
