"""Our reading of JSON Schema beside that of `jsonschema`: what it refuses is refused, and the reverse."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from hypothesis_jsonschema import from_schema
from jsonschema import Draft202012Validator

from antiphon.schema.declared import JsonSchema
from antiphon.values.tool import tool_from

NAMES = st.sampled_from(["a", "b", "page-size", "class", "self", "ctx", "é"])
NUMBERS = st.integers(-5, 5)
NUMERIC = {"exclusiveMinimum": NUMBERS, "multipleOf": st.sampled_from([1, 2, 0.5])}
TEXTUAL = {
    "minLength": st.integers(0, 3),
    "maxLength": st.integers(0, 5),
    "pattern": st.sampled_from(["^a", "b$", "[0-9]"]),
}
MEMBERS = st.lists(st.one_of(st.none(), st.booleans(), NUMBERS, st.text(max_size=2)), min_size=1, max_size=4)
LEAVES: st.SearchStrategy[dict[str, Any]] = st.one_of(
    st.just({}),
    st.sampled_from([{"type": "null"}, {"type": "boolean"}, {"type": ["string", "null"]}, {"const": 1}]),
    st.fixed_dictionaries({"type": st.just("integer")}, optional={"minimum": NUMBERS, "maximum": NUMBERS}),
    st.fixed_dictionaries({"type": st.just("number")}, optional=NUMERIC),
    st.fixed_dictionaries({"type": st.just("string")}, optional=TEXTUAL),
    st.fixed_dictionaries({"enum": MEMBERS}),
)


def objects(parts: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {"type": st.just("object"), "properties": st.dictionaries(NAMES, parts, max_size=4)},
        optional={
            "required": st.lists(NAMES, unique=True, max_size=2),
            "additionalProperties": st.one_of(st.booleans(), parts),
            "minProperties": st.integers(0, 2),
            "maxProperties": st.integers(1, 4),
            "dependentRequired": st.dictionaries(NAMES, st.lists(NAMES, unique=True, max_size=2), max_size=1),
        },
    )


def combined(parts: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    several = st.lists(parts, min_size=1, max_size=3)
    arrays = st.fixed_dictionaries(
        {"type": st.just("array")},
        optional={
            "items": parts,
            "minItems": st.integers(0, 2),
            "uniqueItems": st.booleans(),
            "contains": parts,
        },
    )
    choices = st.one_of(
        st.fixed_dictionaries({"anyOf": several}),
        st.fixed_dictionaries({"oneOf": several}),
        st.fixed_dictionaries({"allOf": several}),
        st.fixed_dictionaries({"not": parts}),
        st.fixed_dictionaries({"if": parts, "then": parts, "else": parts}),
    )
    return st.one_of(objects(parts), arrays, choices)


SCHEMAS = objects(st.recursive(LEAVES, combined, max_leaves=6))
FLOATS = st.floats(-5, 5, allow_nan=False).map(lambda each: round(each, 1))
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), NUMBERS, FLOATS, st.text("ab0é", max_size=5)),
    lambda parts: st.one_of(st.lists(parts, max_size=3), st.dictionaries(NAMES, parts, max_size=4)),
    max_leaves=8,
)
ARGUMENTS = st.dictionaries(NAMES, VALUES, max_size=4)


def check(schema: dict[str, Any], arguments: dict[str, Any]) -> None:
    """Judge arguments by ours and by theirs, as a value and as what a model wrote."""
    theirs = Draft202012Validator(schema)
    allowed = theirs.is_valid(arguments)
    assert (JsonSchema(schema).fault(arguments) is None) == allowed
    offered = tool_from("act", "", schema, lambda arguments: arguments)
    found = offered.prepare(json.dumps(arguments))
    if allowed:
        assert isinstance(found, str), found
    # What is not allowed may be a slip that is mended, such as null for what need not be given.
    if isinstance(found, str):
        taken = offered.bind(found)()
        assert theirs.is_valid(taken)
        assert taken == arguments or not allowed


ANY = settings(suppress_health_check=list(HealthCheck))


@pytest.mark.slow
@settings(ANY, max_examples=150)
@given(SCHEMAS, ARGUMENTS)
def test_any_arguments_are_judged_as_jsonschema_does(
    schema: dict[str, Any], arguments: dict[str, Any]
) -> None:
    check(schema, arguments)


@pytest.mark.deep
@settings(ANY, max_examples=200)
@given(SCHEMAS, st.data())
def test_what_a_schema_allows_is_taken_as_it_is(schema: dict[str, Any], data: st.DataObject) -> None:
    try:
        arguments = data.draw(from_schema(schema))
    except Exception:  # that library refuses some schemas, and finds nothing that fits others
        assume(False)
    check(schema, arguments)


@pytest.mark.soak
@settings(ANY, max_examples=10_000)
@given(SCHEMAS, ARGUMENTS)
def test_ten_thousand_arguments_are_judged_as_jsonschema_does(
    schema: dict[str, Any], arguments: dict[str, Any]
) -> None:
    check(schema, arguments)
