"""What a model was asked, as lines for a person."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from antiphon.cli.display import terminal_escape
from antiphon.cli.display.draw import clock
from antiphon.values.model import ChatMessage, ModelRequest
from antiphon.view.stored_request import StoredRequest

NAME = 60
"""Characters of a name."""


def lines_of(found: StoredRequest) -> Iterator[str]:
    """The request as text; messages that the one before had are counted only."""
    asked = found.request
    whom, model = terminal_escape.line(found.agent, NAME), terminal_escape.line(asked.model, NAME)
    why = f" ({found.purpose})" if found.purpose else ""
    when = clock("%H:%M:%S", found.at)
    yield f"{terminal_escape.line(found.effect_id)}: {whom} asks {model}{why}, record {found.seq:,}, {when}"
    digest = terminal_escape.line(found.digest, NAME)
    if found.verified:
        yield f"digest {digest}: this is what was asked, to the letter"
    else:
        yield f"digest {digest}: NOT what is shown here: the run is of an older format, or was changed"
    yield from _part("system", [asked.system])
    yield from _part("tools", [_tool(asked, place) for place in range(len(asked.tools))])
    new = asked.messages[found.shared :]
    title = f"messages, {len(asked.messages):,} in all"
    if found.shared:
        title += f", the first {found.shared:,} as in the request before"
    yield from _part(title, [line for each in new for line in _message(each)], empty=True)
    yield from _part("tail", [asked.tail])
    yield from _part("settings", list(_settings(asked)))


def _part(title: str, texts: Iterable[str], *, empty: bool = False) -> Iterator[str]:
    """A heading and the texts below it, each line moved in; nothing where there are none."""
    found = [text for text in texts if text]
    if not found and not empty:
        return
    yield f"\n{title}"
    for text in found:
        yield "\n".join(f"  {line}" for line in terminal_escape.clean(text).split("\n"))


def _tool(asked: ModelRequest, place: int) -> str:
    tool = asked.tools[place]
    about = tool.description.replace("\n", "\n  ")
    return f"{terminal_escape.line(tool.name, NAME)} {_json(tool.parameters)}\n  {about}".rstrip()


def _message(message: ChatMessage) -> Iterator[str]:
    """Who says it and what, then the calls and files that it carries."""
    who = f"{message.role} {terminal_escape.line(message.name, NAME)}".rstrip()
    said = message.content.replace("\n", "\n  ")
    yield f"{who}: {said}".rstrip()
    if message.reasoning:
        yield "  reasoning: " + message.reasoning.replace("\n", "\n  ")
    for call in message.calls:
        yield f"  calls {terminal_escape.line(call.name, NAME)} {call.arguments}"
    for each in message.attachments:
        yield f"  file {terminal_escape.line(each.media_type, NAME)}"


def _settings(asked: ModelRequest) -> Iterator[str]:
    yield f"max_output {asked.max_output:,} tokens"
    yield f"tool_choice {terminal_escape.line(asked.tool_choice, NAME)}"
    for name, value in asked.settings.items():
        yield f"{terminal_escape.line(name, NAME)} {_json(value)}"
    if asked.output_schema is not None:
        yield f"output_schema {_json(asked.output_schema)}"
    for each in asked.examples:
        yield f"example {_json(each)}"


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
