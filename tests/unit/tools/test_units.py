"""Units: exact factors, every spelling, and clear refusals."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from antiphon.errors import ToolError
from antiphon.tools.units import _TABLE, convert, converted, parse_quantity, unit_of


@pytest.mark.parametrize(
    ("quantity", "to", "text"),
    [
        ("5 miles", "kilometres", "5 mi = 8.04672 km"),
        ("3 pounds", "grams", "3 lb = 1360.77711 g"),
        ("212 °F", "Celsius", "212 °F = 100 °C"),
        ("-40 degrees Celsius", "fahrenheit", "-40 °C = -40 °F"),
        ("0 K", "°C", "0 K = -273.15 °C"),
        ("2.5 hours", "minutes", "2.5 h = 150 min"),
        ("1 GiB", "MB", "1 GiB = 1073.741824 MB"),
        ("8 Mbit", "MB", "8 Mbit = 1 MB"),
        ("100 km/h", "mph", "100 km/h = about 62.1371192237 mph"),
        ("60 miles per hour", "km/h", "60 mph = 96.56064 km/h"),
        ("an inch", "cm", "1 in = 2.54 cm"),
        ("half a mile", "m", "0.5 mi = 804.672 m"),
        ("3/4 inch", "mm", "0.75 in = 19.05 mm"),
        ("1,000 square feet", "m2", "1000 ft² = 92.90304 m²"),
        ("12 gallon", "litres", "12 gal = 45.424941408 l"),
        ("2 inches", "feet", "2 in = about 0.166666666667 ft"),
        ("1 nm", "km", "1 nm = 0.000000000001 km"),
        ("1 mm²", "", ""),
    ],
)
def test_convert(quantity: str, to: str, text: str) -> None:
    if not text:
        with pytest.raises(ToolError):
            convert(quantity, to)
        return
    assert convert(quantity, to) == text


@pytest.mark.parametrize(
    ("quantity", "to", "why"),
    [
        ("5 miles", "grams", "a unit of length and g of mass"),
        ("5 parsecs", "km", "not a known unit"),
        ("miles", "km", "not an amount"),
        ("5", "km", "not an amount"),
        ("-300 °C", "K", "below absolute zero"),
        ("1/0 km", "m", "not a number"),
        ("many km", "m", "not a number"),
        ("9" * 200 + " km", "m", "not an amount"),
    ],
)
def test_refused(quantity: str, to: str, why: str) -> None:
    with pytest.raises(ToolError, match=why):
        convert(quantity, to)


def test_every_unit_there_and_back_is_exact() -> None:
    for units in _TABLE.values():
        names = list(units)
        for unit in names:
            amount = Fraction(7, 3)
            assert converted(converted(amount, unit, names[0]), names[0], unit) == amount


def test_every_spelling_is_its_unit() -> None:
    for units in _TABLE.values():
        for unit, (_, others) in units.items():
            assert unit_of(unit) == unit
            for name in others.split():
                assert unit_of(name.replace("_", " ")) == unit, name
    # Case tells a bit from a byte and a milli from a mega only where it must.
    assert unit_of("Kilometers") == "km"
    assert unit_of("MILES?") == "mi"
    assert parse_quantity("500 MB") == (Fraction(500), "MB")


@pytest.mark.parametrize("example", convert.examples, ids=lambda example: example.request)
def test_examples_are_right_calls(example: Any) -> None:
    assert " = " in convert(**example.arguments)
