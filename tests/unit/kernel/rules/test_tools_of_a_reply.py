"""The calls of one reply: parallel, sequential or single; and tools whose result ends the task."""

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace

from antiphon import Agent, LoopOptions, Policy, RunFailed, ToolError, run_sync, tool
from antiphon.models.script import Script, call, finish
from tests.transcript import effects, recorded, results_shown


def two_steps(order: list[str]) -> list[Any]:
    @tool(effect="read")
    async def first() -> str:
        """Take a while."""
        order.append("first starts")
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        order.append("first ends")
        return "1"

    @tool(effect="read")
    async def second() -> str:
        """Be quick."""
        order.append("second starts")
        return "2"

    return [first, second]


@pytest.mark.parametrize(
    ("mode", "order", "results"),
    [
        ("parallel", ["first starts", "second starts", "first ends"], ["1", "2"]),
        ("sequential", ["first starts", "first ends", "second starts"], ["1", "2"]),
        ("ordered", ["first starts", "second starts", "first ends"], ["1", "2"]),
        (
            "single",
            ["first starts", "first ends"],
            ["1", "Error: only one call per reply is done; this one was skipped"],
        ),
    ],
)
def test_tool_execution(mode: Any, order: list[str], results: list[str]) -> None:
    done: list[str] = []
    model = Script([[call("first"), call("second")], "end"])
    recorded(Agent("a", tools=two_steps(done), tool_execution=mode), "go", model=model)
    assert done == order
    assert results_shown(model.requests[-1]) == results


def test_sequential_calls_wait_for_an_approval() -> None:
    """With nobody to ask the first is denied, and the second follows."""
    done: list[str] = []
    agent = Agent("a", tools=two_steps(done), tool_execution="sequential", policy=Policy(ask=("first",)))
    model = Script([[call("first"), call("second")], "end"])
    recorded(agent, "go", model=model)
    assert done == ["second starts"]
    assert [each.startswith("Error: permission denied") for each in results_shown(model.requests[-1])] == [
        True,
        False,
    ]


def test_ordered_calls_that_act_wait_for_all_before_them_and_are_waited_for() -> None:
    order: list[str] = []

    @tool
    async def act() -> str:
        """Act."""
        order.append("act starts")
        await asyncio.sleep(0)
        order.append("act ends")
        return "acted"

    tools = [*two_steps(order), act]
    calls = [call(each) for each in ("first", "act", "act", "second", "first")]
    model = Script([calls, "end"])
    recorded(Agent("a", tools=tools, tool_execution="ordered"), "go", model=model)
    acts = ["act starts", "act ends"]
    assert order == [
        "first starts", "first ends", *acts, *acts, "second starts", "first starts", "first ends"
    ]  # fmt: skip
    assert results_shown(model.requests[-1]) == ["1", "acted", "acted", "2", "1"]


@pytest.mark.parametrize("calls", [("act", "first", "second"), ("first", "second", "act")])
def test_of_ordered_calls_those_that_only_read_run_side_by_side_whatever_stands_around(
    calls: tuple[str, ...],
) -> None:
    order: list[str] = []

    @tool
    async def act() -> str:
        """Act."""
        order.append("act")
        return "acted"

    agent = Agent("a", tools=[*two_steps(order), act], tool_execution="ordered")
    recorded(agent, "go", model=Script([[call(each) for each in calls], "end"]))
    assert [each for each in order if each != "act"] == ["first starts", "second starts", "first ends"]


@tool(finishes=True)
async def submit(text: str) -> str:
    """Hand the work in."""
    if text == "bad":
        raise ToolError("not good enough")
    return f"submitted: {text}"


@tool(effect="read")
async def look() -> str:
    """Look."""
    return "seen"


WORKER = Agent("a", tools=[submit, look], completion="finish")


def test_a_finishing_tool_ends_the_task_with_its_result() -> None:
    model = Script([call("submit", text="good")])
    result, _ = recorded(WORKER, "go", model=model)
    assert (result.output, model.asked) == ("submitted: good", 1)


def test_only_if_it_succeeded() -> None:
    model = Script([call("submit", text="bad"), call("submit"), call("submit", text="good")])
    result, _ = recorded(WORKER, "go", model=model)
    assert (result.output, model.asked) == ("submitted: good", 3)
    failed, invalid = results_shown(model.requests[-1])
    assert failed == "Error: [submit] not good enough"
    assert invalid.startswith("Error: Invalid arguments for tool 'submit'")


def test_its_siblings_are_skipped() -> None:
    _, records = recorded(WORKER, "go", model=Script([[call("look"), call("submit", text="good")]]))
    assert effects(records, "c")[1:-1] == [
        "1/1.c1 skipped: look was skipped: submit ends the task in the same reply",
        "1/1.c2 tool submit started",
        "1/1.c2 completed: submitted: good",
    ]


def test_done_in_order_only_what_follows_it_is_skipped_and_nothing_runs_beside_it() -> None:
    calls = [
        call("look"),
        call("submit", text="bad"),
        call("look"),
        call("submit", text="good"),
        call("look"),
    ]
    worker = replace(WORKER, loop=LoopOptions(finish_mode="in_order"))
    _, records = recorded(worker, "go", model=Script([calls]))
    assert effects(records, "c")[1:-1] == [
        "1/1.c1 tool look started",
        "1/1.c1 completed: seen",
        "1/1.c2 tool submit started",
        "1/1.c2 failed: [submit] not good enough",
        "1/1.c3 tool look started",
        "1/1.c3 completed: seen",
        "1/1.c4 tool submit started",
        "1/1.c4 completed: submitted: good",
        "1/1.c5 skipped: look was skipped: the turn was over before it",
    ]


def test_one_that_was_denied_does_not_end() -> None:
    model = Script([call("submit", text="good"), finish("instead")])
    result, _ = recorded(WORKER, "go", model=model, policy=Policy(deny=("submit",)))
    assert result.output == "instead"


def test_a_tool_that_returns_an_error_result() -> None:
    from antiphon import ToolResult

    @tool(effect="read")
    async def check() -> ToolResult:
        """Check."""
        return ToolResult("three faults", is_error=True)

    model = Script([call("check"), "end"])
    recorded(Agent("a", tools=[check]), "go", model=model)
    assert results_shown(model.requests[-1]) == ["Error: [check] three faults"]


def test_a_synchronous_tool_does_not_hold_up_the_rest() -> None:
    """It runs in a thread: what it waits for can be done by a sibling on the loop."""
    import threading

    reached = threading.Event()

    @tool(effect="read")
    def wait() -> str:
        """Wait for the other."""
        return "met" if reached.wait(10) else "alone"

    @tool(effect="read")
    async def arrive() -> str:
        """Let the other go on."""
        reached.set()
        return "here"

    model = Script([[call("wait"), call("arrive")], "end"])
    recorded(Agent("a", tools=[wait, arrive]), "go", model=model)
    assert results_shown(model.requests[-1]) == ["met", "here"]


def test_the_script_ran_out() -> None:
    with pytest.raises(RunFailed, match="no reply left"):
        run_sync(WORKER, "go", model=Script([]))
