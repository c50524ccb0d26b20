"""Toolkits, case by case."""

import asyncio
import itertools
import threading
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from antiphon import ToolContext, UserError, tool
from antiphon.errors import ToolDefinitionError
from antiphon.styles.tasks import (
    AgentToolkit,
    DuplicateTool,
    InvalidArguments,
    NotPermitted,
    ToolCapableAgent,
    UnknownTool,
)
from antiphon.testing.clock import VirtualClock
from tests.styles.threads import at_once


def add(a: int, b: int = 0) -> int:
    """Add two numbers."""
    return a + b


def weather(city: str) -> str:
    """The weather in a city."""
    return f"sunny in {city}"


def calc(term: str) -> str:
    """Work out a term."""
    return term


def stocked(**options: Any) -> AgentToolkit:
    toolkit = AgentToolkit(**options)
    for each in (add, weather, calc):
        toolkit.register_tool(each)
    return toolkit


def test_a_function_is_registered_once() -> None:
    toolkit = AgentToolkit()
    assert toolkit.register_tool(add) == "add"
    toolkit.grant_permission("agent", "*")
    assert toolkit.get_tool_descriptions("agent") == [
        {
            "name": "add",
            "description": "Add two numbers.",
            "parameters": {
                "type": "object",
                "properties": {"a": {"type": "integer"}, "b": {"type": "integer", "default": 0}},
                "required": ["a"],
                "additionalProperties": False,
            },
        }
    ]
    with pytest.raises(DuplicateTool, match="'add'"):
        toolkit.register_tool(add)
    with pytest.raises(ValueError, match="'add'"):
        toolkit.register_tool(calc, name="add")


def test_a_tool_and_a_function_by_another_name() -> None:
    toolkit = AgentToolkit()
    shown = tool(name="sum", effect="read")(add)
    assert toolkit.register_tool(shown) == "sum"
    assert toolkit.register_tool(add, "plus", "Put together.") == "plus"
    toolkit.grant_permission("agent", "*")
    assert toolkit.tools_of("agent")[0] is shown
    assert [each["description"] for each in toolkit.get_tool_descriptions("agent")] == [
        "Add two numbers.",
        "Put together.",
    ]
    with pytest.raises(ToolDefinitionError, match="a name and a description of its own"):
        toolkit.register_tool(shown, "other")


class Thermometer:
    """A tool as the design document's origin writes them."""

    name = "thermometer"
    description = "Measure the temperature."
    schema: ClassVar[Any] = {
        "type": "object",
        "properties": {
            "place": {"type": "string", "description": "Where", "minLength": 1},
            "unit": {"enum": ["celsius", "kelvin"], "default": "celsius"},
            "times": {"type": ["integer", "null"], "maximum": 3},
            "marks": {"type": "array", "items": {"type": "number"}},
        },
        "required": ["place"],
    }

    def execute(self, **arguments: Any) -> dict[str, Any]:
        return arguments


def with_thermometer(thermometer: Any = None) -> AgentToolkit:
    toolkit = AgentToolkit()
    toolkit.register_tool(thermometer or Thermometer())
    toolkit.grant_permission("agent", "*")
    return toolkit


def test_an_object_with_a_schema_is_a_tool() -> None:
    toolkit = with_thermometer()
    (described,) = toolkit.get_tool_descriptions("agent")
    assert (described["name"], described["description"]) == ("thermometer", "Measure the temperature.")
    assert described["parameters"]["required"] == ["place"]
    assert described["parameters"]["properties"]["place"] == {
        "type": "string",
        "description": "Where",
        "minLength": 1,
    }
    given = {"place": "Bern", "marks": [1, 2.5]}
    assert toolkit.execute_tool("agent", "thermometer", given) == {**given, "unit": "celsius"}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, "'place'"),
        ({"place": 5}, "expected"),
        ({"place": ""}, "length"),
        ({"place": "Bern", "unit": "fahrenheit"}, "celsius"),
        ({"place": "Bern", "times": 4}, "<= 3"),
        ({"place": "Bern", "marks": ["x"]}, "marks"),
        ({"place": "Bern", "depth": 1}, "unknown argument 'depth'"),
    ],
)
def test_the_schema_of_an_object_is_enforced(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidArguments, match=said):
        with_thermometer().execute_tool("agent", "thermometer", arguments)


def test_an_object_may_hold_its_schema_as_parameters_or_have_none() -> None:
    class Wrapped(Thermometer):
        schema: ClassVar[Any] = {"name": "thermometer", "parameters": Thermometer.schema}

    class Held(Thermometer):
        name = "held"
        schema = SimpleNamespace(parameters=Thermometer.schema)

        async def execute(self, **arguments: Any) -> dict[str, Any]:
            return arguments

    class Typed:
        name = "typed"
        description = ""

        async def execute(self, place: str, times: int = 1) -> str:
            """Measure."""
            return place * times

    toolkit = with_thermometer(Wrapped())
    toolkit.register_tool(Held())
    toolkit.register_tool(Typed())
    wrapped, held, typed = toolkit.get_tool_descriptions("agent")
    assert wrapped["parameters"] == held["parameters"]
    assert held["parameters"]["required"] == ["place"]
    measured = asyncio.run(toolkit.execute_tool("agent", "held", {"place": "a"}))
    assert measured == {"place": "a", "unit": "celsius"}
    assert (typed["description"], list(typed["parameters"]["properties"])) == ("Measure.", ["place", "times"])
    assert asyncio.run(toolkit.execute_tool("agent", "typed", {"place": "a", "times": 2})) == "aa"


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ([], "JSON Schema of type object"),
        ({"properties": []}, "JSON Schema of type object"),
        ({"properties": {"a": 5}}, "are no JSON Schema"),
        ({"properties": {}, "required": ["a"]}, "requires a, which it does not describe"),
        ({"properties": {"elsewhere": {"type": "string"}}}, "execute does not take"),
    ],
)
def test_a_schema_that_cannot_be(schema: Any, said: str) -> None:
    class Fixed(Thermometer):
        def execute(self, place: str = "") -> str:  # type: ignore[override]
            return place

    Fixed.schema = schema
    with pytest.raises(ToolDefinitionError, match=said):
        AgentToolkit().register_tool(Fixed())


def test_permissions_by_agent() -> None:
    toolkit = stocked()
    toolkit.grant_permission("agent1", "add")
    toolkit.grant_permission("agent1", "weather")
    toolkit.grant_permission("agent2", "calc")
    toolkit.grant_permission("admin", "*")
    accessible = {who: toolkit.get_accessible_tools(who) for who in ("agent1", "agent2", "admin", "nobody")}
    assert accessible == {
        "agent1": ["add", "weather"],
        "agent2": ["calc"],
        "admin": ["add", "weather", "calc"],
        "nobody": [],
    }
    assert toolkit.has_permission("agent1", "add")
    assert not toolkit.has_permission("agent1", "calc")
    assert not toolkit.has_permission("nobody", "add")
    toolkit.revoke_permission("agent1", "add")
    assert toolkit.get_accessible_tools("agent1") == ["weather"]
    toolkit.grant_permission("agent1", "add")
    assert toolkit.has_permission("agent1", "add")


def test_an_unknown_tool_cannot_be_granted() -> None:
    toolkit = stocked()
    for change in (toolkit.grant_permission, toolkit.revoke_permission):
        with pytest.raises(UnknownTool, match=r"Unknown tool: fly\. Known: add, calc, weather"):
            change("agent", "fly")


def test_a_grant_ends_when_it_said_it_would() -> None:
    clock = VirtualClock(1_000.0)
    toolkit = stocked(now=clock.now)
    toolkit.grant_permission("agent", "add", expires=1_010.0)
    toolkit.grant_permission("admin", "*", expires=1_010.0)
    assert toolkit.has_permission("agent", "add")
    clock.advance(10)
    assert not toolkit.has_permission("agent", "add")
    assert toolkit.get_accessible_tools("admin") == []
    with pytest.raises(NotPermitted):
        toolkit.execute_tool("agent", "add", {"a": 1})


def test_the_audit_trail_says_who_did_what_when() -> None:
    clock = VirtualClock(1_000.0)
    toolkit = stocked(now=clock.now, audit_lines=4)
    toolkit.grant_permission("agent", "weather")
    toolkit.grant_permission("agent", "add", expires=2_000.0, by="boss")
    clock.advance(5)
    toolkit.execute_tool("agent", "add", {"a": 1})
    toolkit.revoke_permission("agent", "add", by="boss")
    with pytest.raises(NotPermitted):
        toolkit.execute_tool("agent", "add", {"a": 1})
    shown = [(each.number, each.at, each.deed, each.tool, each.by) for each in toolkit.audit_trail("agent")]
    assert shown == [
        (2, 1_000.0, "grant", "add", "boss"),
        (3, 1_005.0, "use", "add", ""),
        (4, 1_005.0, "revoke", "add", "boss"),
        (5, 1_005.0, "refuse", "add", ""),
    ]
    assert toolkit.audit_trail()[0].expires == 2_000.0
    assert toolkit.audit_trail("nobody") == ()


def test_an_explicit_deny_beats_the_wildcard() -> None:
    toolkit = stocked()
    toolkit.grant_permission("admin", "*")
    toolkit.revoke_permission("admin", "calc")
    assert toolkit.get_accessible_tools("admin") == ["add", "weather"]
    toolkit.grant_permission("admin", "*")
    assert not toolkit.has_permission("admin", "calc")
    toolkit.grant_permission("admin", "calc")
    assert toolkit.has_permission("admin", "calc")


def test_revoking_the_wildcard_takes_everything() -> None:
    toolkit = stocked()
    toolkit.grant_permission("admin", "*")
    toolkit.grant_permission("admin", "add")
    toolkit.revoke_permission("admin", "*")
    assert toolkit.get_accessible_tools("admin") == []


def counted() -> tuple[AgentToolkit, list[int]]:
    calls: list[int] = []

    def double(number: int) -> int:
        """Twice a number."""
        calls.append(number)
        return 2 * number

    toolkit = AgentToolkit()
    toolkit.register_tool(double)
    toolkit.grant_permission("agent", "double")
    toolkit.grant_permission("admin", "*")
    return toolkit, calls


def test_a_permitted_tool_is_called() -> None:
    toolkit, calls = counted()
    assert toolkit.execute_tool("agent", "double", {"number": 4}) == 8
    assert calls == [4]


@pytest.mark.parametrize(
    ("agent", "name", "arguments", "error"),
    [
        ("nobody", "double", {"number": 4}, PermissionError),
        ("nobody", "nothing", {}, PermissionError),
        ("agent", "nothing", {}, PermissionError),
        ("admin", "nothing", {}, ValueError),
        ("agent", "double", {}, ValueError),
        ("agent", "double", None, ValueError),
        ("agent", "double", {"number": "four"}, ValueError),
        ("agent", "double", {"number": 4, "twice": True}, ValueError),
        ("agent", "double", {"number": object()}, ValueError),
    ],
)
def test_whatever_is_wrong_is_refused_before_the_call(
    agent: str, name: str, arguments: dict[str, Any] | None, error: type[Exception]
) -> None:
    toolkit, calls = counted()
    with pytest.raises(error) as caught:
        toolkit.execute_tool(agent, name, arguments)
    assert calls == []
    assert isinstance(caught.value, UserError)


def test_a_refusal_does_not_tell_what_there_is() -> None:
    toolkit, _ = counted()
    said = []
    for name in ("double", "triple"):
        with pytest.raises(NotPermitted) as caught:
            toolkit.execute_tool("nobody", name)
        said.append(str(caught.value).replace(name, "…"))
    assert said[0] == said[1]


def test_values_reach_the_tool_as_its_types() -> None:
    taken: list[Any] = []

    def note(ctx: ToolContext, when: datetime, where: Path) -> None:
        """Take a note."""
        taken.extend([ctx.agent, when, where])

    toolkit = AgentToolkit()
    toolkit.register_tool(note)
    toolkit.grant_permission("agent", "note")
    context = datetime(2025, 5, 7, tzinfo=UTC)
    toolkit.execute_tool("agent", "note", {"when": context, "where": Path("a")})
    assert taken == ["agent", context, Path("a")]


def test_descriptions_show_only_what_is_permitted() -> None:
    toolkit = stocked()
    toolkit.grant_permission("agent", "weather")
    (described,) = toolkit.get_tool_descriptions("agent")
    assert described.keys() == {"name", "description", "parameters"}
    assert described["name"] == "weather"
    described["parameters"]["properties"].clear()
    assert list(toolkit.get_tool_descriptions("agent")[0]["parameters"]["properties"]) == ["city"]
    assert toolkit.get_tool_descriptions("nobody") == []


def test_a_later_permission_shows_in_what_the_model_is_told() -> None:
    toolkit = stocked()
    worker = ToolCapableAgent("worker", "sums", toolkit=toolkit)
    assert worker.agent.tools == ()
    toolkit.grant_permission("worker", "add")
    assert [each.name for each in worker.agent.tools] == ["add"]  # type: ignore[union-attr]
    worker.register_tool(sum_of)
    assert toolkit.get_accessible_tools("worker") == ["add", "sum_of"]
    assert [each.name for each in worker.agent.tools] == ["add", "sum_of"]  # type: ignore[union-attr]


def sum_of(numbers: list[int]) -> int:
    """Add numbers."""
    return sum(numbers)


def test_a_toolkit_is_shared_by_threads() -> None:
    toolkit = stocked(audit_lines=10_000)

    def work(number: int) -> None:
        agent = f"agent{number}"
        toolkit.register_tool(calc, name=f"calc{number}")
        toolkit.grant_permission(agent, "*")
        toolkit.execute_tool(agent, "add", {"a": number})
        toolkit.revoke_permission(agent, "add")

    at_once(work)
    toolkit.grant_permission("admin", "*")
    assert len(toolkit.get_accessible_tools("admin")) == 103
    assert not any(toolkit.has_permission(f"agent{number}", "add") for number in range(100))
    assert [each.number for each in toolkit.audit_trail()] == list(range(1, 302))


def test_the_audit_trail_is_in_order_whoever_comes_between() -> None:
    toolkit: AgentToolkit
    rival = threading.Thread(target=lambda: toolkit.grant_permission("second", "add"))
    asked = itertools.count()

    def now() -> float:
        if not next(asked):
            rival.start()
            rival.join(0.1)  # it can only be done by then if nothing keeps it out
        return 1_000.0

    toolkit = stocked(now=now)
    toolkit.grant_permission("first", "add")
    rival.join()
    assert [(each.number, each.agent) for each in toolkit.audit_trail()] == [(1, "first"), (2, "second")]
