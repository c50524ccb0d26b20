"""The schema that a model is shown and what is accepted agree; docs/tools.md lists what is taken besides."""

from __future__ import annotations

import datetime
import json
import pathlib
import random
import re
import subprocess
import sys
from typing import Any, get_args

import msgspec
import pytest

from antiphon.errors import ToolDefinitionError
from antiphon.values.schema.fitted import fitted
from antiphon.values.schema.standins import StandIn
from tests.unit.values.schema.annotations import annotation, value_for
from tests.unit.values.schema.checker import is_of, valid
from tests.unit.values.schema.fuzz import tool_of

WORDS = {True: ("true", "1"), False: ("false", "0")}
NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")


def number_in_quotes(given: Any, read: Any) -> bool:
    number = isinstance(read, int | float) and not isinstance(read, bool)
    return number and isinstance(given, str) and bool(NUMBER.fullmatch(given)) and float(given) == read


def truth_value_in_quotes_or_as_a_number(given: Any, read: Any) -> bool:
    if not isinstance(read, bool):
        return False
    return (
        given.lower() in WORDS[read]
        if isinstance(given, str)
        else is_of(given, "integer") and given == int(read)
    )


def null_in_quotes(given: Any, read: Any) -> bool:
    return read is None and isinstance(given, str) and given.lower() == "null"


def list_or_object_in_quotes(given: Any, read: Any) -> bool:
    if not isinstance(given, str) or not isinstance(read, list | dict):
        return False
    try:
        return stands_for(json.loads(given), read)
    except ValueError:
        return False


def set_with_repeats(given: Any, read: Any) -> bool:
    if not isinstance(given, list) or not isinstance(read, list):
        return False
    return all(any(stands_for(one, other) for other in read) for one in given) and all(
        any(stands_for(one, other) for one in given) for other in read
    )


def path_in_its_normal_form(given: Any, read: Any) -> bool:
    return isinstance(given, str) and isinstance(read, str) and str(pathlib.Path(given)) == read


def date_and_time_without_an_offset(given: Any, read: Any) -> bool:
    if not isinstance(given, str) or not isinstance(read, str):
        return False
    try:
        return datetime.datetime.fromisoformat(given) == datetime.datetime.fromisoformat(read)
    except ValueError:
        return False


LENIENCES = [
    number_in_quotes,
    truth_value_in_quotes_or_as_a_number,
    null_in_quotes,
    list_or_object_in_quotes,
    set_with_repeats,
    path_in_its_normal_form,
    date_and_time_without_an_offset,
]


def with_offsets(read: Any) -> Any:
    """A result whose dates and times have the offset that may be left out."""
    if isinstance(read, dict):
        return {key: with_offsets(item) for key, item in read.items()}
    if isinstance(read, list):
        return [with_offsets(item) for item in read]
    naive = isinstance(read, str) and re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", read)
    return f"{read}Z" if naive else read


def same(given: Any, read: Any) -> bool:
    """Equal in JSON, but for defaults that were filled in and unknown keys that were passed over."""
    return holds(given, read, same)


def stands_for(given: Any, read: Any) -> bool:
    """`same`, or what a documented lenience makes of it."""
    return holds(given, read, stands_for) or any(lenience(given, read) for lenience in LENIENCES)


def holds(given: Any, read: Any, agrees: Any) -> bool:
    if isinstance(given, dict) and isinstance(read, dict):
        return all(agrees(given[key], item) for key, item in read.items() if key in given)
    if isinstance(given, list) and isinstance(read, list):
        return len(given) == len(read) and all(map(agrees, given, read))
    return bool(given == read) and isinstance(given, bool) == isinstance(read, bool)


def check(seed: int, annotations: int, values: int) -> int:
    """How many values were accepted. Raises AssertionError with the seed where the two disagree."""
    rng = random.Random(seed)
    taken = 0
    for _ in range(annotations):
        kind = annotation(rng)
        try:
            tool = tool_of(kind)
        except ToolDefinitionError:
            continue
        schema = tool.parameters
        for _ in range(values):
            value = value_for(rng, schema["properties"]["value"], schema.get("$defs", {}))
            given = {"value": value}
            read = tool.prepare(json.dumps(given))
            where = f"seed {seed}: {kind!r}\n{json.dumps(schema)}\n{given!r}\n{read!r}"
            fits = valid(schema, given, schema)
            if isinstance(read, str):
                taken += 1
                result = json.loads(read)
                whole = valid(schema, result, schema) or valid(schema, with_offsets(result), schema)
                assert whole, f"read as what does not fit: {where}"
                assert stands_for(given, result), f"read as something else: {where}"
                assert tool.prepare(read) == read, where
                tool.bind(read)()
            else:
                assert not fits, f"fits and is refused: {where}"
    return taken


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.deep) for seed in (1, 2, 3))])
def test_schema_and_validator_agree(seed: int) -> None:
    assert check(seed, annotations=120, values=30) > 500


def handed_over(kind: Any, seen: set[Any]) -> str:
    """All that msgspec is told of a type, and of the parts that it is given one by one."""
    found = repr(msgspec.inspect.type_info(kind))
    for stand_in in parts_of(kind):
        if stand_in not in seen:
            seen.add(stand_in)
            found += "".join(handed_over(part, seen) for part in stand_in.parts)
    return found


def parts_of(kind: Any) -> list[Any]:
    if isinstance(kind, StandIn):
        return [kind]
    return [each for arg in get_args(kind) if arg is not ... for each in parts_of(arg)]


@pytest.mark.parametrize("seed", range(4))
def test_msgspec_is_never_told_of_a_pattern_or_a_multiple(seed: int) -> None:
    rng = random.Random(seed)
    looked = 0
    for _ in range(150):
        kind = annotation(rng)
        try:
            found = handed_over(fitted(kind), set())
        except TypeError:
            continue
        looked += "CustomType" in found
        assert "pattern='" not in found, kind
        assert not re.search(r"multiple_of=[0-9]", found), kind
    assert looked > 50


@pytest.mark.deep
def test_schema_and_validator_agree_on_many_annotations() -> None:
    for seed in range(100, 103):
        check(seed, annotations=400, values=40)


@pytest.mark.parametrize(
    ("seed", "annotations"),
    [pytest.param(11, 80, marks=pytest.mark.slow)]
    + [pytest.param(seed, 600, marks=pytest.mark.deep) for seed in (20, 21)],
)
def test_no_annotation_ends_the_process(seed: int, annotations: int) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.unit.values.schema.fuzz", str(seed), str(annotations)],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout) > annotations * 0.8
