"""Whatever a model made by somebody returns, raises or is called: what is stored of it can be read."""

import asyncio
from enum import IntEnum

import pytest
from msgspec.structs import replace

from antiphon import (
    Agent,
    ModelError,
    UserError,
    open_run,
)
from antiphon.models.catalog import Prices
from antiphon.models.script import Script
from antiphon.testing.clock import VirtualClock
from antiphon.values.message import ToolCall
from antiphon.values.model import Reply, Usage
from tests.promises.hostile import (
    Makes,
    Marked,
    Said,
    Says,
    Unspeakable,
    answer,
    nested,
    replaced_usage,
)

# -- models ------------------------------------------------------------------------------------


class Status(IntEnum):
    BUSY = 429


@pytest.mark.parametrize("wait", [2, 2.0, None, float("nan"), float("inf")])
def test_a_failure_is_read_as_it_was_told(wait):
    model = Says(ModelError("overloaded", "\ud800", retry_after=wait, status=Status.BUSY), Reply("done"))
    assert str(answer(Agent("a"), model, clock=VirtualClock())) == "done"


@pytest.mark.parametrize(
    "reply",
    [lambda: Reply("x", usage=Usage(10.0, 2)), lambda: Reply("x", opaque={1: (2, {3})}),
     lambda: Reply("x", opaque=float("nan")), lambda: Reply("\ud800", usage=Usage(1, 1)),
     lambda: Reply("x", []), lambda: Reply(Said.HELLO), lambda: replace(Reply("x"), calls=[]),
     lambda: replace(Reply("x"), content=Said.HELLO), lambda: replace(Reply("x"), usage=replaced_usage()),
     lambda: Reply("x", usage=replace(Usage(1), output_tokens=2.5)), lambda: Reply("x", usage=Usage(-1))],
)  # fmt: skip
def test_a_reply_is_what_can_be_read(reply):
    assert answer(Agent("a"), Makes(reply)).outcome == "completed"


@pytest.mark.parametrize(
    ("reply", "said"),
    [(lambda: None, "complete takes a Reply to return; got None"), (lambda: "text", "got 'text'"),
     (lambda: Reply(None), "Reply(content=...) takes a text; got None"),
     (lambda: Reply("x", opaque=object()), "Encoding objects of type object"),
     (lambda: Reply("x", opaque=nested(101)), "it is nested deeper than 100 lists and dicts"),
     (lambda: Reply("", (ToolCall("1", "look", {"a": 1}),)), "ToolCall(arguments=...) takes a text"),
     (lambda: Reply("", ("look",)), "Reply(calls=...) takes a list, each item a ToolCall"),
     (lambda: Reply("x", stop="tool_calls"), "got 'tool_calls'; did you mean 'calls'?"),
     (lambda: replace(Reply("x"), stop="tool_calls"), "got 'tool_calls'; did you mean 'calls'?"),
     (lambda: Reply("x", usage=Usage(12.5)), "Usage(input_tokens=...) takes a whole number; got 12.5"),
     (lambda: Reply("x", usage=Usage(2**64)), "Usage(input_tokens=...) takes a whole number")],
)  # fmt: skip
def test_what_is_no_reply_fails_the_call_and_not_the_run(reply, said):
    found = answer(Agent("a"), Makes(reply))
    assert (found.outcome, found.reason.partition(":")[0]) == ("failed", "provider")
    assert said in found.reason


@pytest.mark.parametrize(
    ("status", "kept"),
    [("400", 400), (Status.BUSY, 429), (503.0, 503), ("soon", 0), (None, 0), (10**30, 0), (-1, 0), ([], 0)],
)
@pytest.mark.parametrize("wait", ["5", b"5", 10**400, object()])
def test_an_error_is_not_lost_because_of_how_it_is_told(status, kept, wait):
    error = ModelError("validation", KeyError("model"), status=status, retry_after=wait)
    assert (error.text, error.status, error.retry_after) == (
        "'model'",
        kept,
        5.0 if wait in ("5", b"5") else None,
    )
    assert answer(Agent("a"), Says(error)).reason == "validation: 'model'"


def test_an_unknown_kind_of_error_is_refused():
    with pytest.raises(
        UserError, match=r"ModelError\(kind=...\) takes one of rate_limit, .*; got 'ratelimit'"
    ):
        ModelError("ratelimit", "later")


class Unfinished(ModelError):
    def __init__(self):
        """As somebody writes it who forgets that there is more to do."""


@pytest.mark.parametrize("error", [Unspeakable(), Unfinished(), RecursionError(), Unspeakable("\ud800")])
def test_whatever_an_adapter_raises_fails_the_call_and_not_the_run(error):
    found = answer(Agent("a"), Says(error))
    assert (found.outcome, found.reason) == ("failed", f"provider: {type(error).__name__}")


def test_a_price_that_cannot_be_computed_fails_the_call_and_not_the_run():
    model = Says(Reply("x", usage=Usage(1, 1)))
    model.prices = Prices(input=0.5, output=0.5)
    assert answer(Agent("a"), model).outcome == "failed"


# -- models and teams --------------------------------------------------------------------------


class Renamed(Says):
    """A model whose name is another one each time."""

    def __init__(self, *names):
        super().__init__(Reply("done"))
        self.names = list(names)

    @property
    def name(self):
        return self.names.pop(0) if len(self.names) > 1 else self.names[0]


@pytest.mark.parametrize("names", [(Said.HELLO,), (Marked("m"),), ("\ud800",), (*"abcdefgh", 5)])
def test_a_model_is_known_by_the_name_it_had(names):
    assert str(answer(Agent("a"), Renamed(*names))) == "done"


@pytest.mark.parametrize(
    ("options", "said"),
    [({"model": Renamed(5)}, "The name of a model takes a text; got 5"),
     ({"model": Script(["x"]), "context_windows": {"script": "8000"}}, "did you mean 8000?"),
     ({"model": Script(["x"]), "data": nested(101)}, "nested deeper than 100"),
     ({"model": Script(["x"]), "run_id": 5}, "open_run(run_id=...) takes a text or None; got 5"),
     ({"model": Script(["x"]), "run_id": "\ud800", "create": True}, "run_id"),
     ({"model": Script(["x"]), "limits": {"turns": 3}}, "did you mean Limits(turns=3)?"),
     ({"model": Script(["x"]), "extra_instructions": {"a": 5}}, "open_run(extra_instructions=...) takes")],
)  # fmt: skip
def test_a_run_is_not_opened_with_what_cannot_be(options, said):
    with pytest.raises(UserError) as refused:
        answer(Agent("a"), **options)
    assert said in str(refused.value)


def test_a_team_is_a_list_of_agents():
    async def opened(agents):
        async with open_run(agents, model=Script(["x"])):
            pass

    for agents in (["a"], Agent("a"), 5):
        with pytest.raises(UserError, match=r"open_run\(agents=...\) takes a list, each item an Agent"):
            asyncio.run(opened(agents))


@pytest.mark.parametrize("data", [nested(90), [nested(90) for _ in range(200)], "[" * 5000])
def test_what_is_nested_no_deeper_than_may_be_is_stored(data):
    assert answer(Agent("a"), Script(["x"]), data=data).outcome == "completed"
