"""Structs that users write, built from wrong values: each is refused, or a run with it opens again."""

import asyncio
import enum
import importlib
import random
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction

import msgspec
import pytest
from msgspec.structs import fields

import antiphon
from antiphon import Agent, Hooks, Limits, Message, ModelError, UserError, open_journal, open_run, tool
from antiphon.errors import RunFailed
from antiphon.models.script import Script, call
from antiphon.values.agent import RequestOptions
from antiphon.values.hooks import ModelInput, TurnPlan
from antiphon.values.message import FileChange, ToolResult
from antiphon.values.model import Reply
from antiphon.values.policy import Grant, StandingRule
from tests.promises.hostile import Makes, Marked, Said, nested

ROOMS = ("agent", "hooks", "limits", "message", "model", "policy", "result")
"""The modules of `antiphon.values` whose structs users make."""
READ_ONLY = {"ActivationInfo", "CallResult", "CallSubject", "Result", "ToolOffer", "TurnContext"}
"""What users are given and never make."""
SENT_OUT = {"Delta", "ModelRequest", "ToolSpec"}
"""What goes to a model or comes on its way, and is stored by nobody as it is."""


class Number(enum.IntEnum):
    THREE = 3


class Index:
    """A whole number of a class of its own, as numerical libraries have them."""

    def __index__(self):
        return 7


class Silent:
    def __repr__(self):
        raise RuntimeError


class Text(str):
    def __str__(self):
        return "another"


HOSTILE = (
    None, True, False, 0, -1, 3, 10**30, 2**63, -(2**63) - 1, 1.5, 2.0, -0.0, float("nan"), float("inf"),
    1e308, Decimal("2"), Decimal("NaN"), Fraction(1, 3), 3 + 4j, Number.THREE, Index(), Silent(),
    "", "x", "\ud800", "\x00", "é" * 3, "x" * 5000, Marked("marked"), Said.HELLO, Text("text"), b"bytes",
    bytearray(b"x"), (), [], ["x"], ("x", 5), {"x"}, frozenset(), {}, {"x": 1}, {1: 2}, {(1, 2): 3},
    {"x": object()}, {"x": float("nan")}, nested(101), nested(5000), range(3), object(), object, len,
    lambda *given: None, lambda: 1 / 0, Exception("x"), Message("forward", "a", "b", "c"), Limits(turns=1),
)  # fmt: skip


def structs():
    """Every public struct, so that a new one joins by itself."""
    found = {name: getattr(antiphon, name) for name in antiphon.__all__}
    for room in ROOMS:
        module = importlib.import_module(f"antiphon.values.{room}")
        found |= {name: each for name, each in vars(module).items() if not name.startswith("_")}
    kinds = {
        each
        for each in found.values()
        if isinstance(each, type) and issubclass(each, msgspec.Struct) and each.__struct_fields__
    }
    return sorted(
        (each for each in kinds if each.__name__ not in READ_ONLY | SENT_OUT), key=lambda each: each.__name__
    )


async def up(link):
    return ()


GOOD = {
    "FileChange": {"folder": "/work", "path": "a.txt"},
    "FileState": {"version": "0" * 32},
    "Verbatim": {"text": "x"},
    "Agent": {"name": "a"}, "Attachment": {"media_type": "image/png"}, "OutsideTool": {"name": "outside"},
    "Failure": {"kind": "auth", "text": "no"},
    "ChatMessage": {"role": "user", "content": "x"}, "Example": {"request": "x", "call": "look"},
    "Message": {"type": "forward", "sender": "user", "receiver": "a", "content": "x"},
    "StandingRule": {"id": "r", "scope": "project", "key": "shop", "tool": "look", "verdict": "allow"},
    "PlannedCall": {"agent": "b"}, "Toolset": {"name": "web", "open": up},
    "ToolCall": {"id": "1", "name": "look"}, "ToolResult": {"content": "x"},
}  # fmt: skip
"""What a struct needs to be made at all."""


@tool(effect="read")
def look() -> str:
    """Look."""
    return "seen"


def hooked(**hooks):
    return {"agent": Agent("a", tools=[look], hooks=Hooks(**hooks))}


def said(*lines):
    return Script([*lines, "more", "more", "more", "more"])


def once(answer):
    given = []
    return lambda *context: None if given or given.append(1) else answer


def giving(value):
    @tool(effect="read")
    def give():
        """Give something."""
        return value

    return {"agent": Agent("a", tools=[give]), "model": said(call("give"))}


def changing(value):
    return giving(ToolResult("changed", changes=(value,)))


def judged(value):
    @tool(effect="read", subjects={"text": lambda text: [value]})
    def act(text: str) -> str:
        """Do something."""
        return text

    rule = StandingRule("r", "run", "run", "act", "allow", Grant((("text", "*"),)))
    return {"agent": Agent("a", tools=[act]), "model": said(call("act", text="x")), "rules": [rule]}


def replying(value):
    return {"model": Makes(lambda: value)}


def raising(value):
    def fail():
        raise ModelError(value.kind, value.text, status=value.status, retry_after=value.retry_after)

    return {"model": Makes(fail)}


USED = {
    # How a run is opened, or asked, with each of them.
    "Agent": lambda value: {"agent": value},
    "Attachment": lambda value: {"post": {"attachments": [value]}},
    "ChatMessage": lambda value: hooked(prepare_input=once(ModelInput(messages=[value]))),
    "Compaction": lambda value: {"agent": Agent("a", asking=antiphon.ModelOptions(compaction=value))},
    "Continue": lambda value: hooked(end_turn=once(value)),
    "DirectResult": lambda value: hooked(intercept_call=once(value)) | {"model": said(call("look"))},
    "EndpointOptions": lambda value: {"endpoints": {"*": value}},
    "Example": lambda value: {"agent": Agent("a", examples=(value,))},
    "Failure": raising,
    "FileChange": changing,
    "FileState": lambda value: changing(FileChange("/work", "a.txt", after=value)),
    "Grant": lambda value: {"grant": value},
    "Hooks": lambda value: {"agent": Agent("a", hooks=value)},
    "Limits": lambda value: {"limits": value},
    "LoopOptions": lambda value: {"agent": Agent("a", loop=value)},
    "Message": lambda value: {"post": {"inbox": [value]}},
    "ModelInput": lambda value: hooked(prepare_input=once(value)),
    "ModelOptions": lambda value: {"agent": Agent("a", asking=value)},
    "OutsideTool": lambda value: {"post": {"options": RequestOptions((value,))}},
    "OutputLimits": lambda value: {"output_limits": value},
    "PlannedCall": lambda value: hooked(plan_turn=once(TurnPlan([value]))),
    "Policy": lambda value: {"policy": value},
    "Reply": replying,
    "RequestOptions": lambda value: {"post": {"options": value}},
    "RetryPolicy": lambda value: {"agent": Agent("a", asking=antiphon.ModelOptions(retry=value))},
    "Return": lambda value: hooked(end_turn=once(value)),
    "RunLimits": lambda value: {"run_limits": value},
    "StandingRule": lambda value: {"rules": [value], "model": said(call("look"))},
    "ToolCall": lambda value: {"post": {"calls": [value]}},
    "ToolResult": giving,
    "Toolset": lambda value: {"agent": Agent("a", tools=[value])},
    "Topics": lambda value: {"agent": Agent("a", topics=value)},
    "TurnPlan": lambda value: hooked(plan_turn=once(value)),
    "Usage": lambda value: replying(Reply("x", usage=value)),
    "Verbatim": judged,
}
BASES = {"AtLeastZero", "Checked", "CheckedWhenMade"}
OTHERS = {
    "Tool",
    "OutsideCall",
    "InstructionsContext",
    "ToolContext",
    "Record",
    "ReplyDelta",
    "Dependency",
    "Difference",
}
"""Made by `tool` (see test_tool) or by a run."""


def test_every_struct_of_the_users_is_tried():
    assert {each.__name__ for each in structs()} - BASES - OTHERS == USED.keys()


async def live(journal, uses):
    """A run with a hostile value in it, left and opened again: what was stored is what was meant."""
    options = dict(uses)
    agent = options.pop("agent", None) or Agent("a", tools=[look])
    post, grant = options.pop("post", {}), options.pop("grant", None)
    options = {"model": said("done"), "interactive": False} | options
    if grant is not None:
        options |= {"policy": "guarded", "interactive": True, "model": said(call("pay"))}
        agent = Agent("a", tools=[pay])
    team = [agent, Agent("b" if agent.name != "b" else "c")]
    async with open_run(team, journal=journal, **options) as run:
        asked = await run.post(agent, "go", **post)
        if grant is not None:
            async for record in run.events(deltas=False):
                if record.asks is not None:
                    break
            await run.answer(record.event.id, "always", grant=grant)
        with suppress(RunFailed):
            await asyncio.wait_for(run.result(asked), 5)
        before, told = await run.records(), run.activations()
    async with open_run(team, journal=journal, run_id=run.run_id, **options) as again:
        assert (await again.records())[: len(before)] == before
        assert [each.message_log for each in again.activations()][: len(told)] == [
            each.message_log for each in told
        ]


@tool
def pay() -> str:
    """Pay."""
    return "paid"


def each_field(kind, part):
    """Each field with one in `part` of the values, for each field others; all else as it should be."""
    good = GOOD.get(kind.__name__, {})
    for number, field in enumerate(fields(kind)):
        for value in HOSTILE[number % part :: part]:
            yield good | {field.name: value}
        yield good | {field.name: (each for each in "x")}


def some_fields(kind, seed, many=60):
    """Up to three fields at once."""
    names, chance = [each.name for each in fields(kind)], random.Random(seed)
    for _ in range(many):
        picked = chance.sample(names, chance.randint(1, min(3, len(names))))
        yield GOOD.get(kind.__name__, {}) | {name: chance.choice(HOSTILE) for name in picked}


async def tried(path, kind, given):
    """How many of the values that the fields give were taken, and used in a run that was read back."""
    journal, used = open_journal(f"sqlite:///{path}"), 0
    try:
        for each in given:
            try:
                await live(journal, USED[kind.__name__](kind(**each)))
                used += 1
            except UserError:
                continue
            except Exception as error:
                names = {name: type(held).__name__ for name, held in each.items()}
                raise AssertionError(f"{kind.__name__} of {names}") from error
    finally:
        await journal.close()
    return used


KINDS = pytest.mark.parametrize("kind", [each for each in structs() if each.__name__ in USED])


@pytest.mark.slow
@pytest.mark.unwatched
@pytest.mark.parametrize("part", [8, pytest.param(1, marks=pytest.mark.deep)])
@KINDS
def test_a_hostile_field_is_refused_or_the_run_opens_again(kind, part, tmp_path):
    assert asyncio.run(tried(tmp_path / "runs.db", kind, each_field(kind, part)))


@pytest.mark.unwatched
@pytest.mark.deep
@pytest.mark.parametrize("seed", range(20))
@KINDS
def test_hostile_fields_together_are_refused_or_the_run_opens_again(kind, seed, tmp_path):
    asyncio.run(tried(tmp_path / "runs.db", kind, some_fields(kind, seed)))
