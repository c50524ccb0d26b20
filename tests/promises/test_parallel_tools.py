"""One tool of a reply fails, hangs or is denied: the others do not notice; results keep their order."""

import asyncio
import itertools
import threading

import pytest

from antiphon import Agent, Policy, ToolError, run_sync, tool
from antiphon.journal.memory import MemoryJournal
from antiphon.models.script import Script, call

FATES = ["fine", "fails", "raises", "hangs", "denied", "invalid", "missing", "hangs in a thread"]
SAYS = {
    "fine": "fine",
    "fails": "Error: [fails] no luck",
    "raises": "Error: [raises] KeyError: 'key'",
    "hangs": "Error: [hangs] no result after 0.01 s",
    "denied": "Error: permission denied: the policy denies denied",
    "invalid": "Error: ",
    "missing": "Error: Unknown tool: missing",
    "hangs in a thread": "Error: [blocks] no result after 0.15 s; it still runs in a thread that "
    "cannot be stopped; it may or may not have taken effect",
}
NAMES = {"hangs in a thread": "blocks"}


@pytest.fixture
def agent():
    release = threading.Event()
    order = []

    @tool(effect="read")
    async def fine(laps: int = 0) -> str:
        "Works, after some laps."
        for _ in range(laps):
            await asyncio.sleep(0)
        order.append(laps)
        return "fine"

    @tool(effect="read")
    async def fails() -> str:
        "Fails."
        raise ToolError("no luck")

    @tool(effect="read")
    async def raises() -> str:
        "Raises."
        raise KeyError("key")

    @tool(effect="read", timeout=0.01)
    async def hangs() -> str:
        "Hangs."
        await asyncio.Event().wait()
        return ""

    # Long enough for its thread to begin on a machine that is busy with other things.
    @tool(timeout=0.15)
    def blocks() -> str:
        "Blocks its thread."
        release.wait(10)
        return "late"

    @tool
    async def denied() -> str:
        "Is denied."
        raise SystemError("it ran")

    @tool(effect="read")
    async def invalid(number: int) -> str:
        "Wants a number."
        return str(number)

    yield Agent("a", tools=[fine, fails, raises, hangs, blocks, denied, invalid]), order
    release.set()


def results(agent, fates):
    calls = [call(NAMES.get(fate, fate)) for fate in fates]
    model, journal = Script([calls, "done"]), MemoryJournal()
    policy = Policy(deny=("denied",))
    result = run_sync(agent, "go", model=model, journal=journal, policy=policy, env={})
    assert result.output == "done"
    shown = [each for each in model.requests[-1].messages if each.role == "tool"]
    asked = [each.id for each in model.requests[-1].messages[1].calls]
    assert [each.call_id for each in shown] == asked
    return shown


@pytest.mark.parametrize("one", FATES)
@pytest.mark.parametrize("size", [2, 5, 8])
def test_one_of_them_does_not_matter_to_the_others(agent, one, size):
    for place in range(size) if size < 5 else (0, size // 2, size - 1):
        fates = ["fine"] * size
        fates[place] = one
        shown = results(agent[0], fates)
        for fate, each in zip(fates, shown, strict=True):
            assert each.content.startswith(SAYS[fate])
            assert each.is_error == (fate != "fine")


def test_each_beside_each(agent):
    for fates in itertools.permutations(FATES[:4], 2):
        assert [each.content for each in results(agent[0], fates)] == [SAYS[fate] for fate in fates]
    shown = results(agent[0], FATES)
    assert all(each.content.startswith(SAYS[fate]) for fate, each in zip(FATES, shown, strict=True))


def test_results_are_in_the_order_asked_whatever_ends_first(agent):
    calls = [call("fine", laps=laps) for laps in (9, 5, 7, 1)]
    model = Script([calls, "done"])
    run_sync(agent[0], "go", model=model, env={})
    assert agent[1] == [1, 5, 7, 9]
    asked = [each.id for each in model.requests[-1].messages[1].calls]
    assert [each.call_id for each in model.requests[-1].messages[2:]] == asked


@pytest.mark.parametrize(("mode", "ran"), [("sequential", [9, 5, 1]), ("single", [9])])
def test_one_after_another_or_only_one(agent, mode, ran):
    serial = Agent("a", tools=agent[0].tools, tool_execution=mode)
    model = Script([[call("fine", laps=laps) for laps in (9, 5, 1)], "done"])
    run_sync(serial, "go", model=model, env={})
    assert agent[1] == ran
    shown = model.requests[-1].messages[2:]
    assert [each.content for each in shown][: len(ran)] == ["fine"] * len(ran)
    assert all("skipped" in each.content for each in shown[len(ran) :])
