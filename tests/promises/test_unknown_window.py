"""A window that nobody knows is learned from the first failure: the conversation is compacted and goes on."""

import asyncio
from typing import Any

import msgspec
import pytest

from antiphon import Agent, ModelError, ModelOptions, RunFailed, Usage, open_run, run_sync, tool
from antiphon.journal.memory import MemoryJournal
from antiphon.kernel.context.compaction import COMPACT, SUMMARY
from antiphon.models.script import Script, call
from antiphon.testing.invariants import check_journal
from antiphon.values.model import ModelRequest, Reply

encode = msgspec.json.Encoder().encode


def bytes_of(request: ModelRequest) -> int:
    return len(request.system) + sum(len(encode(each)) for each in request.messages)


class Hidden:
    """A model that says nothing of its window, and refuses what exceeds it; it looks, then answers."""

    name = "hidden"

    def __init__(self, window: int, looks: int) -> None:
        self._window, self._looks = window, looks
        self.refused: list[int] = []
        self.summed_up = 0
        self.requests: list[ModelRequest] = []

    async def complete(self, request: ModelRequest, emit: Any) -> Reply:
        self.requests.append(request)
        _whole(request)
        if bytes_of(request) > self._window:
            self.refused.append(bytes_of(request))
            raise ModelError("context_length", "too long", status=400)
        if request.tool_choice == "none":
            self.summed_up += 1
            return Reply(
                f"<retain>fact {self.summed_up}</retain><summary>so far</summary>", usage=Usage(1, 1)
            )
        if self._looks:
            self._looks -= 1
            return Reply("", (call("look", n=self._looks),), "calls", usage=Usage(1, 1))
        return Reply("done", usage=Usage(1, 1))


def _whole(request: ModelRequest) -> None:
    """No result without its call, no call without its result."""
    owed: list[str] = []
    for each in request.messages:
        assert (each.role == "tool") == bool(owed), each
        if each.role == "tool":
            assert each.call_id == owed.pop(0)
        elif each.role == "assistant":
            owed = [one.id for one in each.calls]
    assert not owed


SIZE = 3_000


@tool(effect="read")
def look(n: int) -> str:
    """Look at something long."""
    return f"seen {n}: " + "x" * SIZE


@pytest.mark.parametrize("window", [12_000, 20_000, 50_000, 100_000])
def test_a_conversation_outgrows_an_unknown_window_and_goes_on(window: int) -> None:
    model, journal = Hidden(window, looks=60), MemoryJournal()

    async def play() -> str:
        async with open_run([Agent("a", tools=[look], model=model)], journal=journal) as run:
            return (await run.result(await run.post("a", "Find it out"))).output

    assert asyncio.run(play()) == "done"
    asyncio.run(check_journal(journal))
    assert model.summed_up > 0
    # Once learned, nothing as long is sent again but where a summary was too long.
    assert len(model.refused) <= 4, model.refused
    assert sorted(model.refused, reverse=True) == model.refused
    last = model.requests[-1].messages
    assert "user: Find it out" in [f"{each.role}: {each.content}" for each in last]


def test_a_conversation_that_jumps_far_over_the_window_is_summed_up_in_pieces() -> None:
    """One reply with many results: the question about all of them would not fit either."""
    window = 16_000
    model = Hidden(window, looks=0)
    many = [call("look", n=n) for n in range(8)]
    replies = iter([Reply("", (each,), "calls", usage=Usage(1, 1)) for each in many])

    class Wide(Hidden):
        """Its window shrinks after the results are there, as another model's would that takes over."""

        async def complete(self, request: ModelRequest, emit: Any) -> Reply:
            reply = next(replies, None)
            return reply if reply is not None else await super().complete(request, emit)

    model = Wide(window, looks=0)
    result = run_sync(Agent("a", tools=[look]), "go", model=model)
    assert result.output == "done"
    assert model.summed_up >= 2
    asked = [each for each in model.requests if each.tool_choice == "none" and bytes_of(each) <= window]
    assert any(each.content.startswith(SUMMARY) for each in asked[-1].messages)


def test_a_second_model_with_a_smaller_window_is_asked_for_pieces_that_it_can_take() -> None:
    """What it has learned of its own window counts, not what is known of the first one."""
    first = Script([*(call("look", n=n) for n in range(8)), ModelError("auth", "no more")])
    second = Hidden(17_000, looks=0)
    asking = ModelOptions(fallback_models=[second])
    result = run_sync(Agent("a", tools=[look], model=first, asking=asking), "go")
    assert result.output == "done"
    # One request found it too long; all that followed fitted.
    assert len(second.refused) == 1
    assert second.summed_up >= 1


def test_what_cannot_be_made_shorter_fails_and_says_why() -> None:
    model = Hidden(2_000, looks=1)
    with pytest.raises(RunFailed, match="context_length"):
        run_sync(Agent("a", tools=[look]), "x" * 4_000, model=model)
    assert len(model.requests) < 20


@pytest.mark.parametrize(
    ("replies", "said"),
    [
        (["hello"], "Nothing was compacted: the model gave no summary."),
        (["hello", ModelError("auth", "no")], "Nothing was compacted: the model gave no summary."),
        (["hello", ""], "Nothing was compacted: the model gave no summary."),
        (["hello", "<summary>so far</summary>"], "The conversation was compacted."),
    ],
)
def test_compacted_is_said_only_when_something_was(replies: list[Any], said: str) -> None:
    agent = Agent("a", model=Script(replies), context="continue")

    async def play() -> str:
        async with open_run([agent]) as run:
            await run.result(await run.post("a", "hi"))
            return (await run.result(await run.post("a", "", intent=COMPACT))).output

    assert asyncio.run(play()) == said


def test_an_agent_that_may_not_compact_says_that_nothing_was() -> None:
    agent = Agent("a", model=Script(["hello"]), context="continue", asking=ModelOptions(compaction=None))

    async def play() -> str:
        async with open_run([agent]) as run:
            await run.result(await run.post("a", "hi"))
            return (await run.result(await run.post("a", "", intent=COMPACT))).output

    assert asyncio.run(play()).startswith("Nothing was compacted: ")
