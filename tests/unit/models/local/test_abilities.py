"""What the local model fills in: choices. A form with anything else to write is an error."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("xllamacpp", reason="the extra `local` is not installed")

from antiphon.models.local.abilities import choosable

COLOUR = {"enum": ["red", "blue"]}
PART = {"type": "object", "properties": {"colour": COLOUR}}


@pytest.mark.parametrize(
    "schema",
    [
        COLOUR,
        {"const": 1},
        {"type": "boolean"},
        PART,
        {"type": "array", "items": COLOUR},
        {"anyOf": [COLOUR, {"type": "null"}]},
        {"oneOf": [PART, {"type": "boolean"}]},
        {"$ref": "#/$defs/Part", "$defs": {"Part": PART}},
    ],
)
def test_a_choice(schema: dict[str, Any]) -> None:
    assert choosable(schema)


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": "string"},
        {"type": "number"},
        {"type": "object"},
        {"type": "array"},
        {"type": ["boolean", "string"]},
        {"type": "object", "properties": {"colour": COLOUR, "name": {"type": "string"}}},
        {"anyOf": [COLOUR, {"type": "string"}]},
        {"$ref": "#/$defs/Nobody", "$defs": {}},
        {"$ref": "#/$defs/Ring", "$defs": {"Ring": {"$ref": "#/$defs/Ring"}}},
    ],
)
def test_no_choice(schema: dict[str, Any]) -> None:
    assert not choosable(schema)
