"""Our reading of JSON Schema beside that of `jsonschema`: what it refuses is refused, and the reverse."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from antiphon.values.schema.declared import JsonSchema
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


def fitting(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Values that a schema of those above mostly allows: each of its keywords is looked at, but for `not`."""
    if "const" in schema or "enum" in schema:
        return st.sampled_from(schema.get("enum") or [schema["const"]])
    for choice in ("anyOf", "oneOf", "allOf"):
        if choice in schema:
            return st.one_of([fitting(each) for each in schema[choice]])
    if "if" in schema:
        return st.one_of(fitting(schema["then"]), fitting(schema["else"]))
    of_type = schema.get("type")
    return OF_TYPE[of_type](schema) if isinstance(of_type, str) else VALUES


def _numbers(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    low = max(schema.get("minimum", -5), schema.get("exclusiveMinimum", -6) + 1)
    step = schema.get("multipleOf", 1)
    return st.integers(low, max(low, schema.get("maximum", 8))).map(lambda each: each * max(1, step))


def _texts(schema: dict[str, Any]) -> st.SearchStrategy[str]:
    short = schema.get("minLength", 0)
    return st.text("ab0", min_size=short, max_size=max(short, schema.get("maxLength", 5)))


def _arrays(schema: dict[str, Any]) -> st.SearchStrategy[list[Any]]:
    items, contained = fitting(schema.get("items", {})), fitting(schema.get("contains", {}))
    first = st.lists(contained, min_size=1, max_size=1) if "contains" in schema else st.just([])
    rest = st.lists(items, min_size=schema.get("minItems", 0), max_size=3)
    return st.tuples(first, rest).map(lambda both: both[0] + both[1])


def _objects(schema: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    known, more = schema.get("properties", {}), schema.get("additionalProperties", True)
    others = fitting(more) if isinstance(more, dict) else VALUES
    required = {
        name: fitting(known[name]) if name in known else others for name in schema.get("required", ())
    }
    optional = {name: fitting(each) for name, each in known.items() if name not in required}
    return st.fixed_dictionaries(required, optional=optional)


OF_TYPE = {
    "null": lambda schema: st.none(),
    "boolean": lambda schema: st.booleans(),
    "integer": _numbers,
    "number": _numbers,
    "string": _texts,
    "array": _arrays,
    "object": _objects,
}


def check(schema: dict[str, Any], arguments: dict[str, Any]) -> bool:
    """Judge arguments by ours and by theirs, as a value and as a model's text; whether they are allowed."""
    theirs = Draft202012Validator(schema)
    allowed: bool = theirs.is_valid(arguments)
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
    return allowed


ANY = settings(suppress_health_check=list(HealthCheck))


@pytest.mark.slow
@settings(ANY, max_examples=150)
@given(SCHEMAS, ARGUMENTS)
def test_any_arguments_are_judged_as_jsonschema_does(
    schema: dict[str, Any], arguments: dict[str, Any]
) -> None:
    check(schema, arguments)


@pytest.mark.slow
@pytest.mark.parametrize("examples", [100, pytest.param(1_000, marks=pytest.mark.deep)])
def test_what_a_schema_allows_is_taken_as_it_is(examples: int) -> None:
    judged = []

    @settings(ANY, max_examples=examples)
    @given(SCHEMAS.flatmap(lambda schema: st.tuples(st.just(schema), fitting(schema))))
    def judge(pair: tuple[dict[str, Any], dict[str, Any]]) -> None:
        judged.append((check(*pair), bool(pair[1])))

    judge()
    # Most are allowed, and many of those say something.
    assert sum(allowed for allowed, _ in judged) > examples / 2
    assert sum(allowed and said for allowed, said in judged) > examples / 10


@pytest.mark.soak
@settings(ANY, max_examples=10_000)
@given(SCHEMAS, ARGUMENTS)
def test_ten_thousand_arguments_are_judged_as_jsonschema_does(
    schema: dict[str, Any], arguments: dict[str, Any]
) -> None:
    check(schema, arguments)
