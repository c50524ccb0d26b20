"""The form of an answer: what a person may say to a question, and whether an answer fits it.

A form is a list of options, one of which is the answer, or a JSON Schema that it must fit; with neither any
text is one. An answer to a schema is JSON. Where the schema takes a text, what is no JSON is that text, so
that nobody has to type quotes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from antiphon.values.fields import shown
from antiphon.values.schema.arguments import ArgumentsRejected, BrokenJson, parse_quoted
from antiphon.values.schema.declared import Fault, JsonSchema

RESULT_AND_REASON = "the call of an outside tool has a result, or a reason why it failed, not both"
MOST_OPTIONS = 100
"""How many options a question may have."""


def wrong_form(options: Sequence[str], schema: Mapping[str, Any] | None, *, patterns: bool = True) -> str:
    """Why these cannot be the form of an answer; empty when they can.

    patterns: regular expressions may be in the schema. One that a model wrote may never end.
    """
    if options and schema is not None:
        return "give options or a schema, not both: options are the whole answer"
    if len(set(options)) < len(options) or not all(each.strip() == each and each for each in options):
        return "options must differ, and none may be empty or begin or end with a blank"
    if len(options) > MOST_OPTIONS:
        return f"a question may have {MOST_OPTIONS} options; got {len(options)}"
    if schema is None:
        return ""
    try:
        checked = JsonSchema(schema)
    except (ValueError, RecursionError) as error:
        return f"the schema of the answer cannot be used: {error}"
    if not patterns and checked.has_patterns:
        return "the schema of the answer may not hold `pattern` or `patternProperties`"
    return ""


def fitted(text: str, options: Sequence[str], schema: Mapping[str, Any] | None) -> str:
    """An answer as it is recorded: an option, JSON that fits the schema, or any text.

    Raises ValueError: where it does not fit, what is expected, what was given.
    """
    if options:
        if text.strip() not in options:
            raise ValueError(f"at $ expected one of {', '.join(options)}; got {shown(text)}")
        return text.strip()
    return _of_schema(text, JsonSchema(schema)) if schema is not None else text


def _of_schema(text: str, schema: JsonSchema) -> str:
    broken = ""
    try:
        value = parse_quoted(text)
    except BrokenJson as error:
        value, broken = text, f" ({error})"
    except ArgumentsRejected as error:
        raise ValueError(f"at $ {error}") from error
    fault = schema.fault(value)
    if fault is not None and schema.fault(text) is None:
        value, fault = text, None
    if fault is not None:
        raise ValueError(f"{_place(fault)}{broken}")
    return msgspec.json.encode(value).decode()


def _place(fault: Fault) -> str:
    said, _, path = str(fault).rpartition(" - at `")
    said, path = (said, path.rstrip("`")) if said else (path, "$")
    return f"at {path} {said[:1].lower()}{said[1:].replace('`', '')}"
