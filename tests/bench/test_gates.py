"""A turn costs the same early and late, in time and in bytes; and the gates bite."""

import asyncio
from collections.abc import Callable

import msgspec
import pytest

from antiphon import Agent, Tool, ToolContext, run, tool
from antiphon.kernel.context.transcript import Transcript
from antiphon.values.model import ChatMessage, Emit, ModelRequest, Reply
from bench import gates
from bench.antiphon_cells import add, prepare_turns
from bench.cell import Go, Marks
from bench.fake import AMPLE, Fake, turns


def growth(prepare: Callable[[int, Marks | None], Go], runs: int = gates.RUNS) -> float:
    return asyncio.run(gates.turn_growth(prepare, runs))


# What is watched costs what watching it costs.
pytestmark = pytest.mark.unwatched


@pytest.mark.slow
def test_turn_1000_costs_what_turn_10_costs() -> None:
    # What else the machine does may weigh on late turns once; what walks the history does each time.
    measured = (growth(prepare_turns) for _ in range(4))
    assert any(not gates.faults_of_growth(each) for each in measured)


class Counting(Fake):
    """Writes the whole conversation out in every call: 100 ns a message, where the gate lets 5 by."""

    async def complete(self, request: ModelRequest, emit: Emit) -> Reply:
        "".join(f"{message.role}: {message.content}" for message in request.messages)
        return await super().complete(request, emit)


def prepare_counting(n: int, marks: Marks | None) -> Go:
    agent = Agent("a", "You add.", tools=[add], model=Counting(turns(n, "add", '{"a":1,"b":2}'), 0.0, marks))
    return lambda: run(agent, "go", limits=AMPLE)


@pytest.mark.slow
def test_the_gate_sees_a_model_that_walks_its_history() -> None:
    assert gates.faults_of_growth(growth(prepare_counting, 3))


@pytest.mark.slow
def test_the_gate_sees_a_transcript_that_is_encoded_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    append = Transcript.append

    def encoding_all(transcript: Transcript, message: ChatMessage, origin: str = "") -> None:
        append(transcript, message, origin)
        msgspec.json.encode(transcript.messages)

    monkeypatch.setattr(Transcript, "append", encoding_all)
    assert gates.faults_of_growth(growth(prepare_turns, 3))


def found_bytes(**offered: Tool) -> dict[int, float]:
    return dict(asyncio.run(gates.turn_bytes(**offered)))


@pytest.mark.slow
def test_turns_of_a_long_run_take_no_more_bytes_than_those_of_a_short_one() -> None:
    assert not gates.faults_of_bytes(found_bytes())


@pytest.mark.slow
def test_the_gate_sees_a_journal_that_keeps_the_history_in_every_turn() -> None:
    @tool
    async def note(text: str, ctx: ToolContext) -> str:
        """Answer with as many words as there were turns."""
        turn = int(ctx.effect_id.partition("/")[2].partition(".")[0])
        return "more " * turn

    assert any("grow with the run" in fault for fault in gates.faults_of_bytes(found_bytes(offered=note)))


@pytest.mark.parametrize(
    ("short", "long", "faults"), [(599, 602, 0), (603, 603, 2), (500, 511, 1), (500, 509, 0), (599, 640, 2)]
)
def test_the_gate_sees_what_is_too_large_or_grows(short: float, long: float, faults: int) -> None:
    assert len(gates.faults_of_bytes({50: short, 1000: long})) == faults
