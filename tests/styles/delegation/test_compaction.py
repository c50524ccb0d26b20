"""What becomes of a conversation that grew too long."""

from typing import Any

import pytest

from antiphon import Agent, LoopOptions, ModelError, ModelOptions, Usage, tool
from antiphon.kernel.context.compaction import SUMMARY, read_summary
from antiphon.models.script import Script, call
from antiphon.values.agent import Compaction
from antiphon.values.model import Reply
from tests.transcript import lines, recorded, shown

WINDOW = {"script": 200}
DEFAULT = Compaction()


@tool(effect="read")
async def look(n: int) -> str:
    """Look."""
    return f"seen {n}"


def long(*after: Any, compaction: Compaction | None = DEFAULT) -> tuple[str, Script, list[str]]:
    """A run whose fourth reply fills the window."""
    steps = [
        Reply(f"step {n}", (call("look", n=n),), "calls", Usage(180 if n == 3 else 1, 1)) for n in range(4)
    ]
    model = Script([*steps, *after])
    result, records = recorded(
        Agent("a", tools=[look], asking=ModelOptions(compaction=compaction)),
        "go",
        model=model,
        context_windows=WINDOW,
    )
    return result.output, model, lines(records)


def test_the_summary_comes_before_the_next_call() -> None:
    output, model, told = long("<summary>so far</summary>", "done")
    assert (output, model.asked) == ("done", 6)
    assert (model.requests[4].tools, model.requests[4].tool_choice) == ((), "none")
    after = shown(model.requests[5])
    assert after[0] == f"user: {SUMMARY}\nso far"
    assert len(after) >= 3
    assert not any(text.startswith("tool") for text in after)
    assert "user: go" in after
    assert "1 a compacted: so far" in told


@pytest.mark.parametrize("failure", [ModelError("provider", "down"), ModelError("overloaded", "busy"), ""])
def test_a_summary_that_fails_changes_nothing(failure: Any) -> None:
    output, model, _ = long(failure, "done")
    assert output == "done"
    assert shown(model.requests[5]) == [*shown(model.requests[4])[:-1]]


def test_a_conversation_that_the_provider_finds_too_long_is_compacted() -> None:
    steps = [[call("look", n=n)] for n in range(3)]
    model = Script([*steps, ModelError("context_length", "too long"), "<summary>so far</summary>", "done"])
    result, _ = recorded(Agent("a", tools=[look]), "go", model=model)
    assert (result.output, model.asked) == ("done", 6)
    assert shown(model.requests[5])[0] == f"user: {SUMMARY}\nso far"


def test_it_is_compacted_once_in_a_turn() -> None:
    steps = [[call("look", n=n)] for n in range(3)]
    long = ModelError("context_length", "too long")
    model = Script([*steps, long, "<summary>so far</summary>", long])
    result, _ = recorded(Agent("a", tools=[look]), "go", model=model)
    assert (result.outcome, model.asked) == ("failed", 6)
    assert result.reason.startswith("context_length")


def test_a_conversation_that_has_only_begun_is_left_alone() -> None:
    full = Reply("x", usage=Usage(199, 1))
    model = Script([full, "done"])
    recorded(
        Agent("a", completion="finish", loop=LoopOptions(max_reminders=0)),
        "go",
        model=model,
        context_windows=WINDOW,
    )
    assert model.asked == 1


@pytest.mark.parametrize(
    ("text", "summary", "steps"),
    [
        ("no tags at all", "no tags at all", ""),
        ("<summary>s</summary><next_steps>None</next_steps>", "s", ""),
        ("<summary>s</summary><next_steps>n/a</next_steps>", "s", ""),
        ("<summary>s</summary><next_steps></next_steps>", "s", ""),
        ("<summary>s</summary><next_steps>write it</next_steps>", "s", "write it"),
    ],
)
def test_summary_and_next_steps(text: str, summary: str, steps: str) -> None:
    found = read_summary(text)
    assert found is not None
    assert (found.summary, found.next) == (summary, steps)


def test_next_steps_are_shown() -> None:
    _, model, _ = long("<summary>s</summary><next_steps>write it</next_steps>", "done")
    assert shown(model.requests[5])[0] == f"user: {SUMMARY}\ns\nNext steps: write it"


def test_a_callback_replaces_the_summary() -> None:
    _, model, told = long(
        "<summary>s</summary>", "done", compaction=Compaction(revise=lambda text: f"mine: {text}")
    )
    assert shown(model.requests[5])[0] == f"user: {SUMMARY}\nmine: s"
    assert "1 a compacted: mine: s" in told


def test_a_callback_that_raises_is_ignored() -> None:
    def broken(text: str) -> str:
        raise ValueError("no")

    output, model, _ = long("<summary>s</summary>", "done", compaction=Compaction(revise=broken))
    assert (output, shown(model.requests[5])[0]) == ("done", f"user: {SUMMARY}\ns")
