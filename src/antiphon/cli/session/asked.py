"""What a run asks people, as commands tell it: listed with the command that answers, and as data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from antiphon.cli.display import output, terminal_escape
from antiphon.cli.session.questions import MORE, form_lines, laid_out
from antiphon.cli.store import RunSource, command, short_id
from antiphon.view.connection import OpenQuestion


def ruled_on(question: OpenQuestion) -> str:
    """What permission is asked for: a tool, or more of a limit; empty for a plain question."""
    return (question.tool or MORE) if question.takes_verdict else ""


def bare_id(question: OpenQuestion) -> str:
    """The id without what a shell would take for a pattern."""
    return question.id.removesuffix("?")


def list_questions(
    asked: Sequence[OpenQuestion], run_id: str, source: RunSource, say: Callable[[str], object] = output.say
) -> None:
    """List what one run asks, and the command that answers the first of it."""
    for each in asked:
        agent = terminal_escape.line(each.agent, 60)
        if not ruled_on(each):
            say(f"{bare_id(each)}  {agent} asks:\n  {each.text}".replace("\n", "\n  "))
            for line in laid_out(each.arguments) if each.tool else ():
                say(f"    {line}")
            for line in form_lines(each.options, each.schema, each.deadline):
                say(f"    {line}")
            continue
        say(f"{bare_id(each)}  {agent} asks to use {terminal_escape.line(ruled_on(each), 64)}")
        for line in laid_out(each.arguments):
            say(f"  {line}")
        if each.text:
            say(f"  ({terminal_escape.line(each.text, 200)})")
    first = asked[0]
    said = "yes" if ruled_on(first) else "1" if first.options else "your answer"
    say(f"\nto answer: {command('answer', short_id(run_id), bare_id(first), said, source=source)}")


def plain_questions(asked: Sequence[OpenQuestion], run_id: str) -> list[dict[str, Any]]:
    """The same as data."""
    return [
        {
            "run_id": run_id,
            "effect": each.id,
            "kind": "approval" if ruled_on(each) else "question",
            "agent": each.agent,
            "tool": each.tool or ruled_on(each),
            "call_id": each.call_id,
            "arguments": _decoded(each.arguments) if each.arguments else None,
            "text": each.text,
            "since": each.since,
            "options": list(each.options),
            "schema": each.schema,
            "deadline": each.deadline,
        }
        for each in asked
    ]


def _decoded(arguments: str) -> Any:
    """Arguments as JSON; the text itself where it is none, as in a run that was forged."""
    try:
        return msgspec.json.decode(arguments)
    except (msgspec.DecodeError, RecursionError):
        return arguments
