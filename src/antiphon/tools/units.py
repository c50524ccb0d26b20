"""Units of measure, converted exactly: every factor is a fraction, taken from the unit's definition.

Sources: SI brochure (9th edition); international yard and pound (0.9144 m, 0.45359237 kg); US liquid
measures (231 cubic inches a gallon); IEC 80000-13 for KiB and its kin. A mean month is not a unit here.
"""

from __future__ import annotations

import re
from fractions import Fraction

from antiphon.errors import ToolError
from antiphon.values.model import Example
from antiphon.values.tool import tool

_F = Fraction
_INCH = _F("0.0254")
_FOOT, _YARD, _MILE = 12 * _INCH, 36 * _INCH, 63360 * _INCH
_POUND = _F("0.45359237")
_GALLON = 231 * _INCH**3
_IMPERIAL = _F("0.00454609")

# kind -> unit: (factor to the kind's base unit, other spellings). The first spelling is printed.
_TABLE: dict[str, dict[str, tuple[Fraction, str]]] = {
    "length": {
        "m": (_F(1), "metre meter"),
        "km": (_F(1000), "kilometre kilometer"),
        "dm": (_F(1, 10), "decimetre decimeter"),
        "cm": (_F(1, 100), "centimetre centimeter"),
        "mm": (_F(1, 1000), "millimetre millimeter"),
        "µm": (_F(1, 10**6), "um micrometre micrometer micron"),
        "nm": (_F(1, 10**9), "nanometre nanometer"),
        "in": (_INCH, "inch"),
        "ft": (_FOOT, "foot feet"),
        "yd": (_YARD, "yard"),
        "mi": (_MILE, "mile"),
        "nmi": (_F(1852), "nautical_mile"),
    },
    "mass": {
        "kg": (_F(1), "kilogram kilogramme kilo"),
        "g": (_F(1, 1000), "gram gramme"),
        "mg": (_F(1, 10**6), "milligram"),
        "t": (_F(1000), "tonne metric_ton"),
        "lb": (_POUND, "pound lbs"),
        "oz": (_POUND / 16, "ounce"),
        "st": (_POUND * 14, "stone"),
    },
    "time": {
        "s": (_F(1), "sec second"),
        "ms": (_F(1, 1000), "millisecond"),
        "min": (_F(60), "minute"),
        "h": (_F(3600), "hr hour"),
        "d": (_F(86400), "day"),
        "wk": (_F(604800), "week"),
    },
    "data": {
        "B": (_F(1), "byte"),
        "bit": (_F(1, 8), ""),
        **{f"{p}B": (_F(1000**at), f"{n}byte") for at, (p, n) in enumerate(
            [("k", "kilo"), ("M", "mega"), ("G", "giga"), ("T", "tera"), ("P", "peta")], 1)},
        **{f"{p}iB": (_F(1024**at), f"{n}byte") for at, (p, n) in enumerate(
            [("K", "kibi"), ("M", "mebi"), ("G", "gibi"), ("T", "tebi"), ("P", "pebi")], 1)},
        **{f"{p}bit": (_F(1000**at, 8), f"{n}bit") for at, (p, n) in enumerate(
            [("k", "kilo"), ("M", "mega"), ("G", "giga")], 1)},
    },
    "speed": {
        "m/s": (_F(1), "mps metre_per_second meter_per_second"),
        "km/h": (_F(1000, 3600), "kmh kph kilometre_per_hour kilometer_per_hour"),
        "mph": (_MILE / 3600, "mi/h mile_per_hour"),
        "kn": (_F(1852, 3600), "knot kt"),
        "ft/s": (_FOOT, "fps foot_per_second"),
    },
    "area": {
        "m²": (_F(1), "m2 sqm square_metre square_meter"),
        "km²": (_F(10**6), "km2 square_kilometre square_kilometer"),
        "cm²": (_F(1, 10**4), "cm2 square_centimetre square_centimeter"),
        "ha": (_F(10**4), "hectare"),
        "acre": (4840 * _YARD**2, ""),
        "ft²": (_FOOT**2, "ft2 sqft square_foot square_feet"),
        "in²": (_INCH**2, "in2 square_inch"),
        "mi²": (_MILE**2, "mi2 square_mile"),
    },
    "volume": {
        "l": (_F(1, 1000), "litre liter"),
        "ml": (_F(1, 10**6), "millilitre milliliter"),
        "cl": (_F(1, 10**5), "centilitre centiliter"),
        "m³": (_F(1), "m3 cubic_metre cubic_meter"),
        "cm³": (_F(1, 10**6), "cm3 cc cubic_centimetre cubic_centimeter"),
        "gal": (_GALLON, "gallon us_gallon"),
        "qt": (_GALLON / 4, "quart"),
        "pt": (_GALLON / 8, "pint"),
        "cup": (_GALLON / 16, ""),
        "fl oz": (_GALLON / 128, "floz fluid_ounce"),
        "imp gal": (_IMPERIAL, "imperial_gallon uk_gallon"),
        "imp pt": (_IMPERIAL / 8, "imperial_pint uk_pint"),
    },
}  # fmt: skip
_DEGREES = {"K": "k kelvin", "°C": "c celsius centigrade", "°F": "f fahrenheit"}
_COUNTED = "one two three four five six seven eight nine ten eleven twelve"
_WORDS = {"a": _F(1), "an": _F(1), "half": _F(1, 2)} | {
    word: _F(at) for at, word in enumerate(_COUNTED.split(), 1)
}
_AMOUNT = re.compile(
    r"\s*(?P<amount>[-+]?\d[\d,]*(?:\.\d+)?(?:[eE][-+]?\d{1,2}(?!\w))?(?:\s*/\s*\d+)?|[^\W\d_]+(?=\s))"
    r"\s*(?P<rest>.*)$",
    re.DOTALL,
)


def _spellings() -> dict[str, str]:
    """Every spelling of every unit, without blanks; the exact ones win over folded ones."""
    exact: dict[str, str] = {}
    folded: dict[str, str] = {}
    for units in _TABLE.values():
        for unit, (_, others) in units.items():
            for name in [unit, *others.split()]:
                exact[name.replace("_", " ")] = unit
                folded.setdefault(_fold(name), unit)
    for unit, others in _DEGREES.items():
        folded |= {_fold(name): unit for name in [unit, *others.split()]}
    return folded | exact


def _fold(name: str) -> str:
    return re.sub(r"[\s_°.]|degrees?", "", name.lower())


_KNOWN = _spellings()
_KINDS = {unit: kind for kind, units in _TABLE.items() for unit in units} | dict.fromkeys(
    _DEGREES, "temperature"
)


def unit_of(name: str) -> str:
    """The unit of that name, whatever its spelling: symbol, word, plural. Raises `ToolError`."""
    said = " ".join(name.split()).rstrip("?!,;")
    for found in (said, _fold(said), _fold(said).replace("per", "/"), _plural(_fold(said))):
        if found in _KNOWN:
            return _KNOWN[found]
    known = "; ".join(f"{kind}: {', '.join(units)}" for kind, units in _TABLE.items())
    raise ToolError(f"{name!r} is not a known unit. Known: {known}; temperature: {', '.join(_DEGREES)}")


def _plural(name: str) -> str:
    """`inches` and `miles` without their endings, also inside `milesperhour`."""
    name = re.sub(r"s(?=per)", "", name)
    if name in _KNOWN:
        return name
    return name[:-2] if name.endswith("es") and name[:-2] in _KNOWN else name.removesuffix("s")


def parse_quantity(text: str) -> tuple[Fraction, str]:
    """An amount and a unit, such as "2.5 km", "3/4 inch", "an hour". Raises `ToolError`."""
    match = _AMOUNT.match(text)
    if match is None or not match["rest"].strip() or len(text) > 100:
        raise ToolError(f"{text[:100]!r} is not an amount with a unit, such as '5 km'")
    said = match["amount"].lower()
    if said in _WORDS:
        rest = re.sub(r"^(?:an?)\s+", "", match["rest"]) if said == "half" else match["rest"]
        return _WORDS[said], unit_of(rest)
    try:
        amount = _F(said.replace(",", "").replace(" ", ""))
    except (ValueError, ZeroDivisionError) as error:
        raise ToolError(f"{said!r} is not a number") from error
    return amount, unit_of(match["rest"])


def converted(amount: Fraction, unit: str, to: str) -> Fraction:
    """`amount` of `unit` in `to`, exactly. Raises `ToolError` when they measure different things."""
    if _KINDS[unit] != _KINDS[to]:
        raise ToolError(f"{unit} is a unit of {_KINDS[unit]} and {to} of {_KINDS[to]}")
    if _KINDS[unit] != "temperature":
        units = _TABLE[_KINDS[unit]]
        return amount * units[unit][0] / units[to][0]
    kelvin = {"K": amount, "°C": amount + _F("273.15"), "°F": (amount + _F("459.67")) * 5 / 9}[unit]
    if kelvin < 0:
        raise ToolError(f"{_plain(amount)} {unit} is below absolute zero")
    return {"K": kelvin, "°C": kelvin - _F("273.15"), "°F": kelvin * 9 / 5 - _F("459.67")}[to]


def _plain(value: Fraction) -> str:
    """Exact where a decimal of 12 places is; else rounded to 12 significant digits, marked as such."""
    scaled = value * 10**12
    if scaled.denominator == 1:
        whole, part = divmod(abs(scaled.numerator), 10**12)
        text = f"{whole}.{part:012d}".rstrip("0").rstrip(".")
        return f"-{text}" if value < 0 else text
    digits = 12 - len(str(abs(value.numerator) // value.denominator)) if abs(value) >= 1 else 12
    places = max(digits, 0)
    rounded = round(abs(value) * 10**places)
    if rounded == 0:
        return f"about {value.numerator / value.denominator:.6g}"
    text = str(rounded).rjust(places + 1, "0")
    text = f"{text[:-places]}.{text[-places:]}".rstrip("0").rstrip(".") if places else text
    return f"about {'-' if value < 0 else ''}{text}"


_CALLS = {
    "Convert 12 km to miles": ("12 km", "miles"),
    "How many pounds are 4 kilograms?": ("4 kilograms", "pounds"),
    "How many centimetres are in an inch?": ("an inch", "centimetres"),
    "What is 20 Celsius in Fahrenheit?": ("20 Celsius", "Fahrenheit"),
    "350 °F in °C": ("350 °F", "°C"),
    "Express 3 hours as seconds": ("3 hours", "seconds"),
    "How many minutes are 7 days?": ("7 days", "minutes"),
    "Turn 4096 KiB into MB": ("4096 KiB", "MB"),
    "How many bytes are 3 megabytes?": ("3 megabytes", "bytes"),
    "What is 60 mph in km/h?": ("60 mph", "km/h"),
    "2 acres in hectares": ("2 acres", "hectares"),
    "How many litres does a 5 gallon canister hold?": ("5 gallon", "litres"),
    "Change 6 feet into metres please": ("6 feet", "metres"),
    "How heavy is 8 ounces in grams?": ("8 ounces", "grams"),
    "How many ounces are in 2 kilos?": ("2 kilos", "ounces"),
    "How fast is 30 m/s in km/h?": ("30 m/s", "km/h"),
    "How many minutes are in a day?": ("a day", "minutes"),
    "How many ounces make 3 pounds?": ("3 pounds", "ounces"),
    "250 ml in cups": ("250 ml", "cups"),
    "What are 45 minutes in seconds?": ("45 minutes", "seconds"),
}


@tool(
    effect="read",
    timeout=10,
    examples=tuple(
        Example(asked, "convert", {"quantity": given, "to": to}) for asked, (given, to) in _CALLS.items()
    ),
)
def convert(quantity: str, to: str) -> str:
    """Convert a length, mass, temperature, time, amount of data, speed, area or volume, exactly.

    Args:
        quantity: an amount with its unit, such as "5 km", "72 °F", "500 MB".
        to: the unit wanted, such as "miles", "°C", "GiB".
    """
    amount, unit = parse_quantity(quantity)
    target = unit_of(to)
    return f"{_plain(amount)} {unit} = {_plain(converted(amount, unit, target))} {target}"
