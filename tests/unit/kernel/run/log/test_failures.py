"""What becomes of an exception in user code: the log, the journal, the error that a caller sees."""

import logging

import pytest

from antiphon import Agent, Hooks, ModelError, RunFailed, ToolError, UserError, run_sync, tool
from antiphon.kernel.facts.events import EffectFinished
from antiphon.kernel.run.log.failures import MAX_CHARACTERS, trace_of
from antiphon.models.script import Script, call
from antiphon.view import RunTree
from tests.transcript import recorded

PRICES = {"tea": 2.5}


def look_up(sku):
    return PRICES[sku]


@tool
async def price(sku: str) -> float:
    """The price of a thing."""
    return look_up(sku)


@tool(effect="read")
def price_in_thread(sku: str) -> float:
    """The price of a thing."""
    return look_up(sku)


async def act(context):
    try:
        return look_up("gin")
    except KeyError as error:
        raise ValueError("no such drink") from error


def ends(records, outcome="failed"):
    events = [each.event for each in records if isinstance(each.event, EffectFinished)]
    return [each for each in events if each.outcome == outcome]


@pytest.mark.parametrize("used", [price, price_in_thread])
def test_the_journal_keeps_the_type_and_where_in_the_users_code_it_came_from(used):
    model = Script([call(used.name, sku="gin"), "sorry"])
    _, records = recorded(Agent("a", tools=[used]), "go", model=model)
    (end,) = ends(records)
    assert end.reason == f"[{used.name}] KeyError: 'gin'"
    said, *places = end.trace.split("\n")
    assert said == "KeyError: 'gin'"
    assert [place.split(" in ")[1] for place in places] == [used.name, "look_up"]
    assert all("log/test_failures.py:" in place for place in places)


def test_the_model_is_shown_a_sentence_and_no_frames():
    model = Script([call("price", sku="gin"), "sorry"])
    recorded(Agent("a", tools=[price]), "go", model=model)
    assert model.requests[1].messages[-1].content == "Error: [price] KeyError: 'gin'"


def test_causes_are_kept_too():
    try:
        try:
            look_up("gin")
        except KeyError as error:
            raise ValueError("no such drink") from error
    except ValueError as error:
        lines = trace_of(error).split("\n")
    assert lines[0] == "ValueError: no such drink"
    assert lines[2] == "from KeyError: 'gin'"
    assert lines[-1].endswith("in look_up")


def test_what_is_said_on_purpose_is_no_fault():
    @tool
    async def refuses() -> str:
        """Refuse."""
        raise ToolError("not today")

    def provider(request):
        raise ModelError("auth", "wrong key")

    _, records = recorded(Agent("a", tools=[refuses]), "go", model=Script([call("refuses"), provider]))
    assert [each.trace for each in ends(records)] == ["", "", ""]


def deep(count, text):
    if count:
        return deep(count - 1, text)
    raise RuntimeError(text)


@pytest.mark.parametrize(("text", "lines"), [("x" * 10_000, 1), ("at the bottom", 9)])
def test_the_trace_is_bounded(text, lines):
    with pytest.raises(RuntimeError) as raised:
        deep(50, text)
    found = trace_of(raised.value)
    assert len(found) <= MAX_CHARACTERS
    assert len(found.split("\n")) == lines


def test_frames_of_antiphon_and_of_python_are_left_out():
    with pytest.raises(UserError) as raised:
        Agent("a", limits="many")
    (place,) = trace_of(raised.value).split("\n")[1:]
    assert place.endswith("in test_frames_of_antiphon_and_of_python_are_left_out")


def test_the_log_has_it_whole_with_run_agent_and_effect(caplog):
    caplog.set_level(logging.INFO, "antiphon")
    result, _ = recorded(Agent("a", tools=[price]), "go", model=Script([call("price", sku="gin"), "sorry"]))
    (record,) = (each for each in caplog.records if each.exc_info)
    assert record.levelname == "INFO"
    assert (record.run_id, record.agent, record.effect_id) == (result.run_id, "a", "1/1.c1")
    assert record.getMessage() == f"Run {result.run_id}: price of a failed, 1/1.c1: KeyError: 'gin'"
    assert isinstance(record.exc_info[1], KeyError)


def test_a_failed_run_has_the_exception_as_its_cause():
    async def broken(request):
        return look_up("gin")

    for agent, kind in (
        (Agent("a", hooks=Hooks(act=act)), ValueError),
        (Agent("a", model=Script(broken)), KeyError),
    ):
        with pytest.raises(RunFailed) as failed:
            run_sync(agent, "go")
        assert type(failed.value.__cause__) is kind


def test_a_reader_finds_it_by_its_effect():
    _, records = recorded(Agent("a", tools=[price]), "go", model=Script([call("price", sku="gin"), "sorry"]))
    tree = RunTree()
    for record in records:
        tree.add(record)
    assert list(tree.traces) == ["1/1.c1"]
    assert tree.traces["1/1.c1"].startswith("KeyError: 'gin'\n  ")
