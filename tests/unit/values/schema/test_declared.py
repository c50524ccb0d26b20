"""JSON Schemas that somebody wrote: every keyword that limits a value is checked, or refused."""

from typing import Any

import pytest

from antiphon.values.schema.declared import JsonSchema

TREE = {
    "$ref": "#/$defs/node",
    "$defs": {
        "node": {
            "type": "object",
            "properties": {
                "name": {"type": "string"},
                "inner": {"type": "array", "items": {"$ref": "#/$defs/node"}},
            },
            "required": ["name"],
            "additionalProperties": False,
        }
    },
}


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({}, [None, 1, "x", [], {}], []),
        ({"type": "integer"}, [1, 1.0, -3], [1.5, True, "1", None]),
        ({"type": "number"}, [1, 1.5], [True, "1"]),
        ({"type": ["string", "null"]}, ["x", None], [1]),
        ({"type": "boolean"}, [True], [1, 0, "true"]),
        ({"enum": [1, "a", None, [1]]}, [1, 1.0, "a", None, [1]], [True, "b", []]),
        ({"enum": [[1], {"a": True}]}, [[1.0], {"a": True}], [[True], {"a": 1}]),
        ({"const": False}, [False], [0, None]),
        ({"minimum": 1, "exclusiveMaximum": 3}, [1, 2.5, "text"], [0, 3]),
        ({"multipleOf": 0.01}, [0.07, 1], [0.005]),
        ({"minLength": 2, "maxLength": 3, "pattern": "^a"}, ["ab", "abc", 5], ["a", "abcd", "bc"]),
        ({"items": {"type": "integer"}, "minItems": 1, "maxItems": 2}, [[1], [1, 2], "x"],
         [[], [1, 2, 3], ["x"]]),
        ({"prefixItems": [{"type": "string"}], "items": False}, [["a"], []], [[1], ["a", 1]]),
        ({"items": [{"type": "string"}], "additionalItems": {"type": "null"}}, [["a", None]],
         [["a", 1], [1]]),
        ({"uniqueItems": True}, [[1, True, "1"], [[1], [2]]], [[1, 1.0], [{"a": 1}, {"a": 1}]]),
        ({"contains": {"const": 1}}, [[0, 1]], [[], [0]]),
        ({"contains": {"const": 1}, "minContains": 2, "maxContains": 3}, [[1, 1]], [[1], [1, 1, 1, 1]]),
        ({"properties": {"a": {"type": "string"}}}, [{}, {"a": "x", "b": 1}], [{"a": 1}]),
        ({"properties": {"a": False}}, [{}], [{"a": 1}]),
        ({"required": ["a"]}, [{"a": 1}, []], [{}]),
        ({"additionalProperties": {"type": "integer"}}, [{"a": 1}], [{"a": "x"}]),
        ({"patternProperties": {"^x-": {"type": "integer"}}, "additionalProperties": False}, [{"x-a": 1}],
         [{"x-a": "a"}, {"y": 1}]),
        ({"propertyNames": {"pattern": "^[a-z]+$"}}, [{"a": 1}], [{"A": 1}]),
        ({"minProperties": 1, "maxProperties": 1}, [{"a": 1}], [{}, {"a": 1, "b": 1}]),
        ({"dependentRequired": {"a": ["b"]}}, [{"b": 1}, {"a": 1, "b": 1}], [{"a": 1}]),
        ({"dependentSchemas": {"a": {"required": ["b"]}}}, [{}, {"a": 1, "b": 1}], [{"a": 1}]),
        ({"dependencies": {"a": ["b"], "c": {"required": ["d"]}}}, [{"a": 1, "b": 1}], [{"a": 1}, {"c": 1}]),
        ({"allOf": [{"required": ["a"]}, {"required": ["b"]}]}, [{"a": 1, "b": 1}], [{"a": 1}]),
        ({"anyOf": [{"type": "string"}, {"minimum": 3}]}, ["x", 3], [2]),
        ({"oneOf": [{"multipleOf": 2}, {"multipleOf": 3}]}, [2, 3, 4], [6, 5]),
        ({"not": {"type": "string"}}, [1], ["x"]),
        ({"if": {"type": "string"}, "then": {"minLength": 2}, "else": {"minimum": 2}}, ["ab", 2], ["a", 1]),
        (TREE, [{"name": "a"}, {"name": "a", "inner": [{"name": "b", "inner": []}]}],
         [{}, {"name": "a", "inner": [{"nam": "b"}]}]),
        ({"definitions": {"a b/c": {"type": "null"}}, "items": {"$ref": "#/definitions/a%20b~1c"}},
         [[None]], [[1]]),
        ({"items": {"$ref": "#text"}, "$defs": {"t": {"$anchor": "text", "type": "string"}}}, [["a"]], [[1]]),
        ({"items": {"$ref": "#"}, "type": "array"}, [[[], [[]]]], [[1]]),
        ({"properties": {"$ref": {"type": "string"}, "a": {"$ref": "#/properties/$ref"}}},
         [{"$ref": "x", "a": "y"}], [{"$ref": 1}, {"a": 1}]),
    ],
)  # fmt: skip
def test_a_keyword_limits_a_value(schema: dict[str, Any], good: list[Any], bad: list[Any]) -> None:
    checked = JsonSchema(schema)
    assert [each for each in good if checked.fault(each) is not None] == []
    assert [each for each in bad if checked.fault(each) is None] == []


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"type": "text"}, "#/type: 'text' is none of string"),
        ({"properties": {"a": 5}}, "#/properties/a: expected an object, true or false, got integer"),
        ({"properties": []}, "#/properties: expected schemas by name, got array"),
        ({"anyOf": []}, "#/anyOf: expected a list of schemas"),
        ({"enum": "a"}, "#/enum: expected a list, got string"),
        ({"required": True}, "#/required: expected a list, got boolean"),
        ({"minItems": -1}, "#/minItems: expected a whole number from 0, got -1"),
        ({"exclusiveMinimum": True}, "#/exclusiveMinimum: expected a number, got True"),
        ({"multipleOf": 0}, "#/multipleOf: expected a number above 0"),
        ({"items": {"pattern": "("}}, "#/items: '\\(' is no regular expression"),
        ({"unevaluatedProperties": False}, "unevaluatedProperties is not checked here"),
        ({"$ref": "other.json"}, "leads out of the schema"),
        ({"$ref": "#/$defs/none"}, "leads nowhere"),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}]}}}, "without an end"),
    ],
)
def test_what_is_no_schema_or_is_not_checked_is_refused(schema: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        JsonSchema(schema)


@pytest.mark.parametrize(
    ("schema", "value", "said"),
    [
        (TREE, {"name": "a", "inner": [{"name": 1}]},
         "Expected `string`, got `integer` - at `$.inner[0].name`"),
        (TREE, {"name": "a", "nam": 1}, "Object contains unknown field `nam`"),
        ({"oneOf": [{"type": "string"}, {"type": "null"}]}, 1,
         "Fits none of the alternatives: Expected `string`, got `integer`; Expected `null`, got `integer`"),
        ({"oneOf": [{"minimum": 1}, {"minimum": 2}]}, 3, "Fits 2 of the alternatives; expected exactly one"),
    ],
)  # fmt: skip
def test_a_fault_says_what_and_where(schema: dict[str, Any], value: Any, said: str) -> None:
    assert str(JsonSchema(schema).fault(value)) == said


def test_alternatives_that_hold_one_another_are_not_tried_anew_at_each_level() -> None:
    def branch(name: str) -> dict[str, Any]:
        return {"type": "object", "properties": {"in": {"$ref": "#"}, name: {"const": 1}}, "required": [name]}

    checked = JsonSchema({"anyOf": [branch("a"), branch("b"), {"type": "null"}]})
    value: Any = None
    for _ in range(40):
        value = {"in": value, "b": 1}
    assert checked.fault(value) is None
    assert checked.fault({**value, "b": 2}) is not None
    for _ in range(1_000):
        value = {"in": value, "b": 1}
    assert str(checked.fault(value)) == "Nested too deeply to be checked"


def test_the_schema_is_kept_as_it_was_given() -> None:
    given = {"type": "array", "items": {"type": "string"}}
    checked = JsonSchema(given)
    given["items"]["type"] = "null"  # type: ignore[index]
    assert checked.schema == {"type": "array", "items": {"type": "string"}}
    assert checked.fault(["a"]) is None
