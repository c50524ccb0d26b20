"""What a run asks people, as a form that an MCP client shows, and what such a form brings back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from mcp_types import ElicitRequest, ElicitRequestFormParams, ElicitResult
from msgspec import Struct

from antiphon.values.codec import clean_text
from antiphon.view import OpenQuestion

ANSWER, REASON = "answer", "reason"
"""The fields of a form of ours."""
MAX_TEXT = 8_000
"""Characters of a question that are shown."""
MAX_ARGUMENTS = 24_000
"""Characters of a tool's arguments that are shown."""
DECLINED = "the person declined to answer"
VERDICTS: Mapping[str, str] = {
    "yes": "Yes, this once", "no": "No", "always": "Yes, and always in this run",
}  # fmt: skip
_PLAIN = frozenset({"string", "number", "integer", "boolean"})
_WORDS = frozenset(
    {"type", "title", "description", "enum", "enumNames", "default", "format", "minLength", "maxLength",
     "minimum", "maximum"}
)  # fmt: skip
"""What MCP knows in a field of a form."""


class PersonsWord(Struct, frozen=True):
    """What a person said to a question; see `RunConnection.answer`. dropped: it is not answered at all."""

    content: str = ""
    reason: str = ""
    dropped: bool = False


def form_of(question: OpenQuestion, wrong: str = "") -> ElicitRequest:
    """The form in which a person is asked. wrong: why the answer before was none."""
    schema = _own_schema(question) if _is_flat(question.schema) and not question.takes_verdict else None
    said = _text(question) if schema is not None else _text(question, whole_schema=True)
    if wrong:
        said = f"{said}\n\nThe last answer was not taken: {_cut(wrong, 500)}"
    asked = schema if schema is not None else _form(question)
    return ElicitRequest(params=ElicitRequestFormParams(message=said, requested_schema=asked))


def word_of(question: OpenQuestion, result: ElicitResult) -> PersonsWord | None:
    """What a person said with a form; None for one that was closed without a word."""
    if result.action == "cancel":
        return None
    given = result.content or {}
    if result.action == "decline":
        if question.takes_verdict:
            return PersonsWord("no", DECLINED if question.is_approval else "")
        return PersonsWord(reason=DECLINED, dropped=not question.tool)
    if question.takes_verdict:
        word, reason = str(given.get(ANSWER, "")), given.get(REASON)
        return PersonsWord(word, str(reason) if word == "no" and reason else "")
    if _is_flat(question.schema):
        return PersonsWord(json.dumps(given, ensure_ascii=False))
    return PersonsWord(str(given.get(ANSWER, "")))


def _text(question: OpenQuestion, *, whole_schema: bool = False) -> str:
    """What a person is told."""
    lines = [f"{question.agent} asks: {_cut(question.text, MAX_TEXT)}" if question.text else ""]
    if question.is_approval:
        lines = [f"{question.agent} wants to call {question.tool}."]
        lines += [_cut(question.text, MAX_TEXT)] if question.text else []
    if question.arguments:
        lines.append(f"Arguments: {_cut(question.arguments, MAX_ARGUMENTS)}")
    if whole_schema and question.schema is not None and not question.takes_verdict:
        told = json.dumps(question.schema, ensure_ascii=False)
        lines.append(f"The answer is JSON of this schema: {_cut(told, MAX_TEXT)}")
    return "\n".join(lines)


def _cut(text: str, most: int) -> str:
    """A text, bounded; whoever decides is told that something is missing."""
    clean = clean_text(text)
    if len(clean) <= most:
        return clean
    return f"{clean[:most]}\n[{len(clean) - most:,} more characters are not shown here; look at the run]"


def _form(question: OpenQuestion) -> dict[str, Any]:
    """One field, and for a `no` another one."""
    if question.takes_verdict:
        answer: dict[str, Any] = {
            "type": "string", "title": "Allow it?", "enum": list(VERDICTS),
            "enumNames": list(VERDICTS.values()),
        }  # fmt: skip
        fields = {ANSWER: answer}
        if question.is_approval:
            fields[REASON] = {"type": "string", "title": "Why not?", "description": "Told to the agent."}
    else:
        answer = {"type": "string", "title": "Answer"}
        if question.options:
            answer |= {"enum": list(question.options)}
        fields = {ANSWER: answer}
    return {"type": "object", "properties": fields, "required": [ANSWER]}


def _own_schema(question: OpenQuestion) -> dict[str, Any] | None:
    """The schema of the answer, where a form is one."""
    schema = question.schema or {}
    return {
        "type": "object", "properties": schema["properties"], "required": list(schema.get("required", ())),
    }  # fmt: skip


def _is_flat(schema: Mapping[str, Any] | None) -> bool:
    """Whether MCP can show a form of it: an object of plain fields, and nothing that it does not know."""
    if schema is None or schema.get("type") != "object":
        return False
    fields = schema.get("properties")
    if not isinstance(fields, Mapping) or not fields:
        return False
    return all(
        isinstance(each, Mapping) and each.get("type") in _PLAIN and each.keys() <= _WORDS
        for each in fields.values()
    )
