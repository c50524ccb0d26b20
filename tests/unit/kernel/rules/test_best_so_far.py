"""Stopped at a limit, a request gives the best there is so far, and never an empty text."""

import pytest

from antiphon import Agent, Limits, ToolError, run_sync, tool
from antiphon.models.script import Script, call
from antiphon.values.model import Reply


@tool(effect="read")
async def look(page: int) -> str:
    """Look at a page."""
    if page == 3:
        raise ToolError("it is torn")
    return "" if page == 4 else f"page {page}"


READER = Agent("reader", tools=[look])


def pages(*numbers, text=""):
    """A model that looks at these pages, and says this with the first."""
    lines = [
        Reply(text if not place else "", (call("look", page=page),), "calls")
        for place, page in enumerate(numbers)
    ]
    return Script(lines)


@pytest.mark.parametrize(
    ("numbers", "text", "found"),
    [
        ((1, 2), "I begin", "I begin"),
        ((1, 2), "", "page 2"),
        ((1, 3), "", "page 1"),
        ((2, 4), "", "page 2"),
    ],
    ids=["a text", "the last result", "no error", "nothing empty"],
)
def test_the_best_so_far(numbers, text, found):
    result = run_sync(READER, "go", model=pages(*numbers, text=text), limits=Limits(turns=2))
    assert (result.outcome, result.output) == ("limit", found)


@pytest.mark.parametrize(("limits", "outcome"), [(Limits(turns=1), "limit"), (Limits(tokens=100), "budget")])
def test_where_there_is_nothing_it_says_so_and_why(limits, outcome):
    result = run_sync(READER, "go", model=pages(3), limits=limits)
    assert (result.outcome, result.output) == (outcome, f"There is no answer yet: {result.reason}.")


def test_no_progress_says_so_too():
    silent = Agent("silent", completion="finish")
    result = run_sync(silent, "go", model=Script([""] * 9))
    assert (result.outcome, result.output) == ("no_progress", f"There is no answer yet: {result.reason}.")


def test_a_caller_is_told_the_reason_once_and_what_was_found():
    lead = Agent("lead")
    lines = {"lead": [call("call_agent", agent_name="reader", message="read")] * 2 + ["done"]}
    model = Script(lines | {"reader": [call("look", page=3), call("look", page=2)]})
    reader = Agent("reader", tools=[look], limits=Limits(turns=1))
    result = run_sync(lead, "go", agents=[lead, reader], model=model)
    told = [each.content for each in result.messages if each.sender == "reader"]
    assert told == [
        "Error: the limit of 1 turns of one activation is used up",
        "Error: the limit of 1 turns of one activation is used up\nPartial output: page 2",
    ]
