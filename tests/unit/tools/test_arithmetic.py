"""Exact arithmetic: what is read, what it is worth, and where it says no."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.errors import ToolError
from antiphon.tools.arithmetic import Parser, calculate, written


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("17 * 23", 391),
        ("17 times 23", 391),
        ("128 / 16 + 3", 11),
        ("2 + 3 * 4", 14),
        ("(2 + 3) * 4", 20),
        ("10 - 2 - 3", 5),
        ("2^3^2", 512),
        ("-2^2", -4),
        ("(-2)**2", 4),
        ("2^-2", Fraction(1, 4)),
        ("15% of 240", 36),
        ("seven percent of 1,500", 105),
        ("0.1 + 0.2", Fraction(3, 10)),
        ("1/3 - 1/7", Fraction(4, 21)),
        ("1e3 + .5", Fraction(2001, 2)),
        ("sum of 4, 8 and 15", 27),
        ("Add 1234 and 8766", 10000),
        ("product of 6, 7 and 8", 336),
        ("Divide 1000 by 8", 125),
        ("subtract 12 from 90", 78),
        ("difference between 9 and 4", 5),
        ("square root of 169", 13),
        ("9 squared", 81),
        ("square 45", 2025),
        ("17 mod 5", 2),
        ("twenty five plus half", Fraction(51, 2)),
        ("4^(1/2)", 2),
        ("1,234,567 × 2", 2469134),
        ("6 ÷ 4", Fraction(3, 2)),
        ("a half of the 90 =", 45),
    ],
)
def test_value(expression: str, value: Fraction | int) -> None:
    assert Parser(expression).value() == value


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("", "Column 1: expected a number"),
        ("2 +", "Column 4: expected a number, found 'the end'"),
        ("2 3", "Column 3: expected an operator"),
        ("(1 + 2", "Column 7: expected ')'"),
        ("1 / 0", "Column 3: division by zero"),
        ("0^-1", "Column 2: division by zero"),
        ("5 mod 0", "division by zero"),
        ("2 $ 3", "Column 3: '$' is not part"),
        ("__import__('os')", "Column 1"),
        ("9^9^9", "beyond 10000"),
        ("10^2000", "more than 1000 digits"),
        ("1e999999", "exponent"),
        ("2^0.3", "only whole exponents"),
        ("square root of 2", "not exact"),
        ("square root of (0 - 4)", "not a fraction"),
        ("200 + 10%", "can mean two things"),
        ("(" * 200 + "1", "levels"),
        ("-" * 500 + "1", "levels"),
        ("2^" * 200 + "1", "levels"),
        ("1" * 1001, "1001 characters"),
        ("sum of 3", "expected"),
        ("banana", "Column 1: expected a number, found 'banana'"),
    ],
)
def test_refused(expression: str, text: str) -> None:
    with pytest.raises(ToolError) as caught:
        Parser(expression).value()
    assert text in str(caught.value)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Fraction(7), "7"),
        (Fraction(-7, 2), "-3.5"),
        (Fraction(1, 40), "0.025"),
        (Fraction(4, 21), "4/21 (about 0.190476190476)"),
        (Fraction(-1, 3), "-1/3 (about -0.333333333333)"),
        (Fraction(-1, 20), "-0.05"),
    ],
)
def test_written(value: Fraction, text: str) -> None:
    assert written(value) == text


def test_the_tool_says_what_it_calculated() -> None:
    assert calculate(" 17  * 23 = ") == "17 * 23 = 391"
    assert calculate.effect == "read"


@pytest.mark.slow
@given(st.fractions(max_denominator=10**6), st.fractions(max_denominator=10**6))
def test_agrees_with_fractions(left: Fraction, right: Fraction) -> None:
    assert Parser(f"({left}) - ({right}) * 3").value() == left - right * 3


@given(st.text(alphabet="0123456789.,+-*/^%() ofandbyx", max_size=60))
def test_any_text_is_a_value_or_a_tool_error(text: str) -> None:
    try:
        value = Parser(text).value()
    except ToolError:
        return
    assert isinstance(value, Fraction)


@pytest.mark.parametrize("example", calculate.examples, ids=lambda example: example.request)
def test_examples_are_right_calls(example: object) -> None:
    assert " = " in calculate(**example.arguments)  # type: ignore[attr-defined]
