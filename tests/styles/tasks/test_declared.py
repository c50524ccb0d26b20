"""Tools written as objects: whatever their schema says is shown whole, and checked whole."""

import asyncio
from typing import Any

import pytest

from antiphon.errors import ToolDefinitionError
from antiphon.models.script import Script, call
from antiphon.styles.tasks import AgentToolkit, InvalidArguments, ToolCapableAgent

ORDER = {
    "type": "object",
    "properties": {
        "customer": {"$ref": "#/$defs/person", "description": "Who pays"},
        "goods": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "properties": {"sku": {"type": "string", "pattern": "^[A-Z]{2}$"}, "count": {"minimum": 1}},
                "required": ["sku"],
                "additionalProperties": False,
            },
        },
        "pay": {
            "oneOf": [
                {"type": "object", "properties": {"card": {"type": "string"}}, "required": ["card"]},
                {"type": "object", "properties": {"cash": {"const": True}}, "required": ["cash"]},
            ]
        },
        "from": {"type": "string", "default": "web"},
        "x-y": {"type": "integer"},
        "class": {"enum": ["a", 1]},
        "$ref": {"type": "string"},
    },
    "required": ["customer", "goods"],
    "$defs": {
        "person": {
            "type": "object",
            "properties": {"name": {"type": "string"}, "boss": {"$ref": "#/$defs/person"}},
            "required": ["name"],
        }
    },
}
GOOD = {"customer": {"name": "Zoë"}, "goods": [{"sku": "AB", "count": 2}]}


class Order:
    """A tool whose schema is a parameter."""

    name = "order"
    description = "Order goods."

    def __init__(self, schema: Any = ORDER) -> None:
        self.schema = schema

    def execute(self, /, **arguments: Any) -> dict[str, Any]:
        return arguments


def toolkit(tool: Any = None) -> AgentToolkit:
    found = AgentToolkit()
    found.register_tool(tool or Order())
    found.grant_permission("agent", "*")
    return found


def test_a_schema_is_shown_as_it_is_written() -> None:
    (described,) = toolkit().get_tool_descriptions("agent")
    assert described["parameters"] == {**ORDER, "additionalProperties": False}
    model = Script(["Ordered."])
    agent = ToolCapableAgent("agent", "orders", toolkit=toolkit(), model=model)
    agent.process_task({"query": "Order"})
    assert model.requests[0].tools[0].parameters == described["parameters"]


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"customer": {"name": "a", "boss": {"name": "b", "boss": {"name": "c"}}}},
        {"pay": {"card": "1"}},
        {"pay": {"cash": True}},
        {"from": "shop", "x-y": 1, "class": 1, "$ref": "r"},
    ],
)
def test_what_fits_reaches_the_tool(more: dict[str, Any]) -> None:
    given = {**GOOD, **more}
    assert toolkit().execute_tool("agent", "order", given) == {"from": "web", **given}


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"customer": {}}, r"at \$\.customer object missing required field name"),
        ({"customer": {"name": "a", "boss": {"name": 5}}}, r"at \$\.customer\.boss\.name expected string"),
        ({"goods": []}, r"at \$\.goods expected array of length >= 1"),
        ({"goods": [{"sku": "ab"}]}, r"at \$\.goods\[0\]\.sku expected string matching regex"),
        ({"goods": [{"sku": "AB", "sort": 1}]}, r"at \$\.goods\[0\] unknown field 'sort'"),
        ({"goods": [{"sku": "AB", "count": 0}]}, r"at \$\.goods\[0\]\.count expected number >= 1"),
        ({"pay": {"cash": False}}, "fits none of the alternatives"),
        ({"pay": {"cash": True, "card": "1"}}, "fits 2 of the alternatives; expected exactly one"),
        ({"class": "b"}, r"at \$\.class expected 'a' or 1, got 'b'"),
        ({"x-y": "one"}, "expected integer, got string"),
        ({"form": "web"}, r"unknown argument 'form' \(did you mean 'from'\?\)"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_place(more: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidArguments, match=said):
        toolkit().execute_tool("agent", "order", {**GOOD, **more})


def test_slips_that_cost_no_meaning_are_allowed_for_as_with_every_tool() -> None:
    given = {**GOOD, "x-y": "7", "from": None}
    assert toolkit().execute_tool("agent", "order", given) == {**GOOD, "x-y": 7, "from": "web"}


def test_a_whole_number_is_an_integer_however_it_is_written() -> None:
    (offered,) = toolkit().tools_of("agent")
    text = offered.prepare('{"customer": {"name": "a"}, "goods": [{"sku": "AB"}], "x-y": 1.0, "class": 1.0}')
    assert text == ('{"customer":{"name":"a"},"goods":[{"sku":"AB"}],"from":"web","x-y":1,"class":1}')


def test_a_value_is_written_as_the_member_that_it_is() -> None:
    (offered,) = toolkit(Order({"properties": {"a": {"enum": [[1], [True]]}}})).tools_of("agent")
    assert [offered.prepare(f'{{"a": [{each}]}}') for each in ("1.0", "true")] == [
        '{"a":[1]}',
        '{"a":[true]}',
    ]


def test_a_model_calls_it_and_is_told_what_is_wrong() -> None:
    model = Script([call("order", customer={}), call("order", **GOOD), "Ordered."])
    agent = ToolCapableAgent("agent", "orders", toolkit=toolkit(), model=model)
    done = agent.process_task({"query": "Order"})
    assert [each["status"] for each in done["tool_results"]] == ["error", "success"]
    assert "missing required argument 'goods'" in done["tool_results"][0]["error"]
    assert done["tool_results"][1]["result"] == {**GOOD, "from": "web"}


def test_a_schema_may_allow_for_more_than_it_names() -> None:
    class Open(Order):
        async def execute(self, **arguments: Any) -> dict[str, Any]:  # type: ignore[override]
            return arguments

    schema = {"properties": {"a": {"type": "integer"}}, "additionalProperties": {"type": "string"}}
    found = toolkit(Open(schema))
    (described,) = found.get_tool_descriptions("agent")
    assert described["parameters"] == {"type": "object", **schema}
    assert asyncio.run(found.execute_tool("agent", "order", {"b": "x", "a": 1})) == {"a": 1, "b": "x"}
    with pytest.raises(InvalidArguments, match=r"at \$\.b expected string"):
        found.execute_tool("agent", "order", {"b": 1})


def test_alternatives_may_be_the_whole_schema() -> None:
    schema = {"oneOf": [{"required": ["a"]}, {"required": ["b"]}], "properties": {"b": {"default": 1}}}
    found = toolkit(Order(schema))
    assert found.execute_tool("agent", "order", {"a": 1}) == {"a": 1}
    with pytest.raises(InvalidArguments, match="fits 2 of the alternatives"):
        found.execute_tool("agent", "order", {"a": 1, "b": 1})


def test_the_same_arguments_are_the_same_text_in_whatever_order_they_were_given() -> None:
    (offered,) = toolkit().tools_of("agent")
    one = offered.prepare('{"goods": [{"sku": "AB"}], "customer": {"name": "a"}}')
    other = offered.prepare('{"customer":{"name":"a"},"from":"web","goods":[{"sku":"AB"}]}')
    assert one == other == '{"customer":{"name":"a"},"goods":[{"sku":"AB"}],"from":"web"}'
    assert offered.revalidate(one) == one  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"type": "array"}, "JSON Schema of type object"),
        ({"properties": {"a": {"$ref": "#/$defs/none"}}}, "leads nowhere"),
        ({"properties": {"a": {"$ref": "http://example.org/a.json"}}}, "leads out of the schema"),
        ({"properties": {}, "unevaluatedProperties": False}, "unevaluatedProperties is not checked"),
    ],
)
def test_a_schema_that_would_not_be_checked_is_refused(schema: Any, said: str) -> None:
    with pytest.raises(ToolDefinitionError, match=said):
        toolkit(Order(schema))


def test_an_argument_with_the_name_of_the_object_itself() -> None:
    class Named(Order):
        def execute(self, **arguments: Any) -> dict[str, Any]:  # type: ignore[override]
            return arguments

    schema = {"properties": {"self": {"type": "string"}}}
    assert toolkit(Order(schema)).execute_tool("agent", "order", {"self": "x"}) == {"self": "x"}
    with pytest.raises(ToolDefinitionError, match=r"write def execute\(self, /, \*\*arguments\)"):
        toolkit(Named(schema))
