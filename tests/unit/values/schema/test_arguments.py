"""Reading arguments: repair, refusals a model can act on, and properties over arbitrary text."""

from __future__ import annotations

import json
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from antiphon.values.schema.arguments import (
    MAX_CHARACTERS,
    MAX_DEPTH,
    MAX_DIGITS,
    Invalid,
    Repaired,
    parse_repaired,
    repair,
)
from antiphon.values.tool import Tool, as_tool
from antiphon.values.tool import tool as offered


def search(q: str, limit: int = 10, exact: bool = False, kind: Literal["web", "news"] = "web") -> str:
    """Search."""
    return f"{q} {limit} {exact} {kind}"


def anything(value: dict[str, Any]) -> str:
    """Take any object."""
    return str(value)


def add(a: int, b: int) -> int:
    """Add."""
    return a + b


def nothing() -> str:
    """Do nothing."""
    return ""


SEARCH, ANYTHING, ADD, NOTHING = as_tool(search), as_tool(anything), as_tool(add), as_tool(nothing)
READING = offered(effect="read")(anything)


def refusal(tool: Tool, raw: str) -> str:
    read = tool.prepare(raw)
    assert isinstance(read, Invalid), read
    return read.text


def value_of(tool: Tool, raw: str) -> Any:
    read = tool.prepare(raw)
    assert isinstance(read, str), read
    return json.loads(read)


@pytest.mark.parametrize(
    ("text", "mended"),
    [
        ('{"q":"t",}', '{"q":"t"}'),
        ("[1,2,]", "[1,2]"),
        ('```json\n{"q": "AI"}\n```', '{"q":"AI"}'),
        ('```\n{"q": "AI"}', '{"q":"AI"}'),
        ('```json\n{"q": "say ```bash``` once"}\n```', '{"q":"say ```bash``` once"}'),
        ('{"q": "te', '{"q":"te"}'),
        ('{"a": {"b": 1}', '{"a":{"b":1}}'),
        ('{"t": ["a","b"', '{"t":["a","b"]}'),
        ('{"a": [{"b": 1', '{"a":[{"b":1}]}'),
        ('{"a": [1, 2}', '{"a":[1,2]}'),
        ('{"a": 1}}]', '{"a":1}'),
        ('{"a": "]}, {", "b": [', '{"a":"]}, {","b":[]}'),
        ('{"a": 1, "b', '{"a":1}'),
        ('{"a": 1, "b"', '{"a":1}'),
        ('{"a": 1, "b":', '{"a":1}'),
        ('{"a": 1,', '{"a":1}'),
        ('{"a": tru', '{"a":true}'),
        ('{"a": -', "{}"),
        ('{"a": 12.', '{"a":12}'),
        ('{"a": 1e+', '{"a":1}'),
        (r'{"a": "x\u12', '{"a":"x"}'),
        (r'{"a": "x\\u12', r'{"a":"x\\u12"}'),
        (r'{"a": "x\ud83d', '{"a":"x"}'),
        (r'{"a": "x\ud83d\ude', '{"a":"x"}'),
        (r'{"a": "say \"', r'{"a":"say \""}'),
        ('{"a": "x\\', '{"a":"x"}'),
        ('{"a": "x\ny"}', '{"a":"x\\u000ay"}'),
        ("", ""),
    ],
)
def test_repair(text: str, mended: str) -> None:
    assert repair(text) == mended


@pytest.mark.parametrize("text", ["[1,,2]", "{,}", '{"a":1} and more', "]", '{"a":,"b":1}'])
def test_what_is_no_plain_damage_is_not_guessed_at(text: str) -> None:
    assert repair(text) is None


@pytest.mark.parametrize("raw", ["", "  \n", "null", " null ", "{}"])
def test_nothing_given_is_an_empty_object(raw: str) -> None:
    assert NOTHING.prepare(raw) == "{}"


BROKEN = [
    "{",
    "{bad",
    "```json\n```",
    '```json\n{"path": "/srv/data"}\n```',
    '{"path": "/srv/data",}',
    '{"path": "/srv/da',
    '{"path": "/srv\n"}',
    '{"path": "/srv"}}',
    '{"path": "/srv"',
]


@pytest.mark.parametrize("raw", BROKEN)
def test_text_that_is_no_json_is_read_as_what_it_stands_for_by_reading_tools_alone(raw: str) -> None:
    def purge(path: str = "*") -> str:
        """Take a path."""
        return path

    for made in (offered(effect="once")(purge), offered(effect="idempotent")(purge), as_tool(purge)):
        assert "not JSON" in refusal(made, raw)
    assert "not JSON" in refusal(offered(effect="read", finishes=True)(purge), raw)
    read = offered(effect="read")(purge).prepare(raw)
    assert isinstance(read, Repaired), read
    assert json.loads(read.text)["path"].startswith("/srv" if "/srv" in raw else "*")


def test_what_a_person_edits_is_never_repaired() -> None:
    assert isinstance(READING.prepare('{"value":{},}'), Repaired)
    assert isinstance(READING.revalidate('{"value":{},}'), Invalid)


@pytest.mark.parametrize(
    ("raw", "kind"),
    [("42", "integer"), ("4.5", "number"), ('["a"]', "array"), ("true", "true"), ('"s"', "string")],
)
def test_other_values_are_refused(raw: str, kind: str) -> None:
    assert (
        refusal(NOTHING, raw) == f"Invalid arguments for tool 'nothing': at $ expected an object, got {kind}"
    )


def test_defaults_are_filled_in_as_declared() -> None:
    assert SEARCH.prepare('{"exact": true, "q": "AI"}') == '{"q":"AI","limit":10,"exact":true,"kind":"web"}'


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ('{"q":"a","limit":"3"}', {"limit": 3}),
        ('{"q":"a","limit":3.0}', {"limit": 3}),
        ('{"q":"a","exact":"true"}', {"exact": True}),
        ('{"q":"a","exact":1}', {"exact": True}),
        ('{"q":"a","limit":null,"kind":null}', {"limit": 10, "kind": "web"}),
    ],
)
def test_harmless_slips_are_accepted(raw: str, expected: dict[str, Any]) -> None:
    assert value_of(SEARCH, raw).items() >= expected.items()


@pytest.mark.parametrize(
    ("raw", "parts"),
    [
        ("{}", ["'search'", "missing required argument 'q' (string)"]),
        ('{"q":1}', ["$.q", "expected str", "got int"]),
        ('{"q":null}', ["$.q", "expected str", "got null"]),
        ('{"q":"a","limit":"many"}', ["$.limit", "expected int", "got str", '"many"']),
        ('{"q":"a","kind":"tv"}', ["$.kind", '"web", "news"', '"tv"']),
        ('{"q":"a","size":2}', ["unknown argument 'size'", "allowed: q, limit, exact, kind"]),
        ('{"q":"a","limits":2}', ["unknown argument 'limits' (did you mean 'limit'?); allowed: q, limit"]),
        ('{"query":"a"}', ["unknown argument 'query' (did you mean 'q'?)"]),
        ('{"q":"a","q":"b"}', ["'q' appears twice"]),
        ('{"q":"a","limit":NaN}', ["NaN"]),
        ('{"q":"a","limit":-Infinity}', ["-Infinity"]),
        ('{"q":"a","limit":1e999}', ["out of range"]),
        ('{"q":"\\ud800"}', ["surrogate"]),
        ('{"q":"\ud800"}', ["surrogate"]),
        ("q=AI", ["not JSON", "character 1"]),
        ('{"q":"a" "limit":2}', ["not JSON", "character"]),
    ],
)
def test_refusals_say_what_where_and_what_else(raw: str, parts: list[str]) -> None:
    text = refusal(SEARCH, raw)
    assert [part for part in parts if part not in text] == [], text


def test_all_missing_arguments_are_named_at_once() -> None:
    assert refusal(ADD, "{}").endswith("missing required argument 'a' (integer), 'b' (integer)")


@pytest.mark.parametrize(
    "raw",
    [
        '{"value":{"x":1,"x":2}}',
        '{"value": {"x": 1, "x": 2}}',
        '{"value":{"a":[{"x":1,\n"x":2}]}}',
        r'{"value":{"x":1,"\u0078":2}}',
        '{"value":{"x":1,"x":2',
    ],
)
def test_duplicate_keys_are_found_at_any_depth(raw: str) -> None:
    assert "'x' appears twice" in refusal(READING, raw)


@pytest.mark.parametrize(
    "raw", ["[" * 100_000, '{"value":' * 100_000, '{"value":' + "[" * 100_000 + "]" * 100_000 + "}"]
)
def test_depth_bombs_are_refused(raw: str) -> None:
    assert "nested deeper" in refusal(ANYTHING, raw)


def test_the_end_of_the_stack_is_a_refusal() -> None:
    def sunk() -> list[Any]:
        try:
            return [*sunk(), tool.prepare('{"value":{"x":[[1]]},}')]
        except RecursionError:
            return []

    tool = READING
    found = sunk()
    assert found
    assert found[-1] == Repaired('{"value":{"x":[[1]]}}')


def test_brackets_in_strings_are_no_depth() -> None:
    assert value_of(ANYTHING, json.dumps({"value": {"x": "[{" * 1000}}))["value"]["x"] == "[{" * 1000


def test_the_deepest_allowed_nesting_is_read() -> None:
    inner = MAX_DEPTH - 2
    assert isinstance(ANYTHING.prepare('{"value":{"x":' + "[" * inner + "]" * inner + "}}"), str)
    assert "nested deeper" in refusal(
        ANYTHING, '{"value":{"x":' + "[" * (inner + 1) + "]" * (inner + 1) + "}}"
    )


def test_sizes() -> None:
    text = json.dumps({"value": {"x": "y" * MAX_CHARACTERS}})
    assert "at most" in refusal(ANYTHING, text)
    assert isinstance(ANYTHING.prepare(json.dumps({"value": {"x": "y" * 100_000}})), str)
    assert "digits" in refusal(ANYTHING, '{"value":{"x":' + "9" * (MAX_DIGITS + 1) + "}}")
    assert isinstance(ANYTHING.prepare('{"value":{"x":' + "9" * MAX_DIGITS + "}}"), str)
    assert isinstance(ANYTHING.prepare('{"value":{"x":"' + "9" * 5000 + '"}}'), str)
    for shift in range(70):
        long = '{"value":{"x":"' + "y" * shift + '","y":' + "9" * (MAX_DIGITS + 1) + "}}"
        assert "digits" in refusal(ANYTHING, long)


def test_text_that_stands_for_no_json_number_is_refused() -> None:
    def scaled(by: float, or_by: float | None = None) -> float:
        """Scale."""
        return by if or_by is None else or_by

    tool = as_tool(scaled)
    assert "$.by" in refusal(tool, '{"by":"nan"}')
    assert "$.or_by" in refusal(tool, '{"by":1,"or_by":"inf"}')
    assert tool.prepare('{"by":"1.5"}') == '{"by":1.5,"or_by":null}'


def test_a_union_keeps_the_type_that_was_given() -> None:
    def keep(value: int | str) -> str:
        """Keep."""
        return str(value)

    assert as_tool(keep).prepare('{"value": "3"}') == '{"value":"3"}'


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**12), 10**12)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def is_prefix(part: Any, whole: Any) -> bool:
    """Whether `part` is `whole`, or what is left of it when its text is cut."""
    if isinstance(whole, dict) and isinstance(part, dict):
        items = list(part.items())
        return list(part) == list(whole)[: len(part)] and all(
            value == whole[key] if place < len(items) - 1 else is_prefix(value, whole[key])
            for place, (key, value) in enumerate(items)
        )
    if isinstance(whole, list) and isinstance(part, list):
        last = len(part) - 1
        return len(part) <= len(whole) and all(
            value == whole[place] if place < last else is_prefix(value, whole[place])
            for place, value in enumerate(part)
        )
    if isinstance(whole, str) and isinstance(part, str):
        return whole.startswith(part)
    if isinstance(whole, (int, float)) and isinstance(part, (int, float)) and not isinstance(whole, bool):
        text = json.dumps(whole)
        return any(part == number(text[:end]) for end in range(1, len(text) + 1))
    return part is whole


@pytest.mark.slow
@given(value=st.dictionaries(st.text(), JSON, max_size=5), ascii_only=st.booleans(), data=st.data())
@settings(max_examples=300)
def test_a_truncated_object_is_mended_to_a_prefix_of_it(
    value: dict[str, Any], ascii_only: bool, data: Any
) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only)
    cut = text[: data.draw(st.integers(1, len(text)))]
    assert is_prefix(parse_repaired(cut), value)


@pytest.mark.slow
@given(value=st.dictionaries(st.text(), JSON, max_size=5))
@settings(max_examples=150)
def test_reading_is_the_identity_on_canonical_text(value: dict[str, Any]) -> None:
    first = ANYTHING.prepare(json.dumps({"value": value}, indent=1))
    assert isinstance(first, str)
    assert json.loads(first) == {"value": value}
    assert ANYTHING.prepare(first) == first


PIECES = st.lists(
    st.sampled_from(
        [*'{}[],:"\\- \n\x00é', '"q"', '"limit"', '"value"', "1", "1e9", "true", "nul", "NaN", "{}"]
    )
    | st.sampled_from(["```", "```json\n", "\\u12", "\\ud83d", "\ud83d", '{"q":"a"}', '"q":"a"', '"value":{'])
    | st.text(max_size=3),
    max_size=14,
).map("".join)


@pytest.mark.parametrize(
    "examples", [pytest.param(500, marks=pytest.mark.slow), pytest.param(10_000, marks=pytest.mark.deep)]
)
def test_no_text_raises_and_reading_again_changes_nothing(examples: int) -> None:
    texts = st.text(alphabet=st.characters(exclude_categories=()), max_size=60) | PIECES
    settings(max_examples=examples)(given(texts)(reads_without_raising))()


def reads_without_raising(raw: str) -> None:
    for tool in (SEARCH, ANYTHING, READING):
        read = tool.prepare(raw)
        if isinstance(read, Repaired):
            assert tool is READING
            read = read.text
        if isinstance(read, str):
            assert tool.prepare(read) == read
            assert isinstance(json.loads(read), dict)
        else:
            assert tool.name in read.text
