"""Typed answers: read as strictly as their schema says, and no more strictly."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
import pytest

from antiphon.errors import UserError
from antiphon.values.schema.output_type import OutputSchema, answer_of

Sku = Annotated[str, msgspec.Meta(pattern="^[A-Z]{2}-[0-9]+$")]


class Order(msgspec.Struct):
    """Parts, by a union that msgspec must not see."""

    sku: Sku | list[Sku]
    many: int = 1


def of(kind: Any) -> OutputSchema:
    found = answer_of(kind)
    assert found is not None
    return found


def test_what_equals_in_json_is_equal() -> None:
    assert of(Order).read('{"sku":"AB-1","many":2.0}') == Order("AB-1", 2)


def test_a_slip_is_the_model_s_to_mend() -> None:
    assert "Expected `int`, got `str` - at `$.many`" in of(Order).wrong('{"sku":"AB-1","many":"2"}')


def test_limits_are_shown_and_checked() -> None:
    assert of(Order).schema["properties"]["sku"]["anyOf"][0]["pattern"] == "^[A-Z]{2}-[0-9]+$"
    assert of(Order).wrong('{"sku":["AB-1"]}') == ""
    assert "matching regex" in of(list[Order]).wrong('[{"sku":["ab"]}]')
    assert "at `$[0].sku`" in of(list[Order]).wrong('[{"sku":["ab"]}]')


def test_what_is_not_understood_is_refused() -> None:
    with pytest.raises(UserError, match=r"output_type .* is not understood; expected"):
        answer_of(Annotated[int, object()])
