"""answer: an agent's typed result: the schema its model is given, and how its text is read."""

from __future__ import annotations

import re
from typing import Any

import msgspec
from msgspec import Struct

from antiphon.errors import UserError
from antiphon.values.schema.arguments import parse_quoted, said_by
from antiphon.values.schema.declared import JsonSchema
from antiphon.values.schema.fitted import fitted
from antiphon.values.schema.json_schema import schema_of
from antiphon.values.schema.leniences import Leniences
from antiphon.values.schema.standins import convert

_FENCED = re.compile(r"\s*```[A-Za-z]*\n(.*)\n```\s*", re.DOTALL)


class OutputSchema(Struct, frozen=True, eq=False):
    """What `output_type` asks for. `schema`: the JSON Schema of it."""

    kind: Any
    schema: dict[str, Any]

    def read(self, text: str) -> Any:
        """The value in a reply, which may stand in a code fence. Raises ValueError."""
        fenced = _FENCED.fullmatch(text)
        try:
            given = msgspec.json.decode(fenced[1] if fenced else text)
        except msgspec.DecodeError as error:
            raise ValueError(str(error)) from error
        try:
            return convert(given, self.kind)
        except Exception:  # noqa: BLE001 - a type's own check may raise anything
            return convert(Leniences(self.schema, None).mended(given, self.schema), self.kind)

    def wrong(self, text: str) -> str:
        """What the model is told of a reply that does not fit; empty when it fits."""
        try:
            self.read(text)
        except Exception as error:  # noqa: BLE001 - a type's own check may raise anything; the model is told
            reason = said_by(error).encode("utf-8", "replace").decode()
            return f"[system] The answer does not fit the schema: {reason}. Answer again, with JSON alone."
        return ""


class DeclaredOutput(OutputSchema, frozen=True, eq=False):
    """What a JSON Schema asks for that somebody else wrote; its value is plain JSON."""

    def read(self, text: str) -> Any:
        """See OutputSchema."""
        fenced = _FENCED.fullmatch(text)
        given = parse_quoted(fenced[1] if fenced else text)
        if (fault := JsonSchema(self.schema).fault(given)) is not None:
            raise ValueError(str(fault))
        return given


def answer_of(kind: Any) -> OutputSchema | None:
    """How results of this type are read; None for plain text. Raises UserError for what JSON cannot carry."""
    if kind is None or kind is str:
        return None
    try:
        found = fitted(kind)
        schema = schema_of(found) if found is not str else {}
    except Exception as error:
        raise UserError(f"output_type takes a type that JSON can carry: {said_by(error)}") from error
    if found is str:
        raise UserError(f"output_type {kind!r} cannot be written as JSON")
    return OutputSchema(found, schema)
