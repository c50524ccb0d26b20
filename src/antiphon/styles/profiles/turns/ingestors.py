"""ingestors: from the payload of an inbox item to the text that a model reads. Pure functions.

@ingestor
def headline(payload, params, context):
    return f"# {payload['title']}"

ProfileTeam(library, ingestors=[headline])       # and `ingestor: headline` in YAML
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, overload

import msgspec
from msgspec import Struct

from antiphon.styles.profiles.conditions.path import lookup
from antiphon.styles.profiles.files.template import MISSING, read_template, render

RECENT = 10
"""Messages of a history summary."""
RECENT_TEXT = 200
"""Characters of each of them."""


class IngestContext(Protocol):
    """What an ingestor may read beside the payload."""

    def at(self, path: str) -> Any:
        """The value at a path, None when there is none."""
        ...

    def text(self, key: str) -> str:
        """A text definition of the profile, filled in. Raises KeyError."""
        ...


Write = Callable[[Any, Mapping[str, Any], IngestContext], str]


class Ingestor(Struct, frozen=True, eq=False):
    """A function that formats payloads, by the name that profiles use."""

    name: str
    write: Write


@overload
def ingestor(function: Write, /) -> Ingestor: ...


@overload
def ingestor(*, name: str) -> Callable[[Write], Ingestor]: ...


def ingestor(function: Write | None = None, /, *, name: str = "") -> Ingestor | Callable[[Write], Ingestor]:
    """Name a formatting function for profiles; bare it has the function's own name."""

    def named(function: Write) -> Ingestor:
        return Ingestor(name or function.__name__, function)

    return named if function is None else named(function)


@ingestor
def templated_content(payload: Any, params: Mapping[str, Any], context: IngestContext) -> str:
    """The text definition that `content_key` names, in the payload or the params; else the content."""
    key = _of(payload, "content_key") or params.get("content_key")
    return _wrapped(context.text(str(key)) if key else _content(payload), params)


@ingestor
def generic_message(payload: Any, params: Mapping[str, Any], context: IngestContext) -> str:
    """The content as it is, or put into `content_template`: {{ payload }}, {{ payload.key }}."""
    template = params.get("content_template")
    if not isinstance(template, str):
        return _content(payload)
    world = {"state": {"payload": payload}}
    return render(read_template(template), lambda path: lookup(world, path, MISSING))


@ingestor
def user_prompt(payload: Any, params: Mapping[str, Any], context: IngestContext) -> str:
    """What the user said, word for word."""
    return str(_of(payload, "prompt") or _content(payload))


@ingestor
def tool_result(payload: Any, params: Mapping[str, Any], context: IngestContext) -> str:
    """The result of a tool, under its name."""
    name, found = _of(payload, "tool_name"), _of(payload, "content")
    said = _content(payload if found is None else found)
    return f"Result of {name}:\n{said}" if name else said


@ingestor
def markdown_formatter(payload: Any, params: Mapping[str, Any], context: IngestContext) -> str:
    """Data as nested Markdown lists, without `exclude_keys` and with other names by `key_renames`."""
    key = _of(payload, "content_key")
    if key:
        return context.text(str(key))
    if isinstance(payload, dict):
        renamed, without = params.get("key_renames") or {}, params.get("exclude_keys") or ()
        payload = {renamed.get(name, name): each for name, each in payload.items() if name not in without}
    return titled(params, "\n".join(_listed(payload, 0)))


@ingestor
def work_modules(payload: Any, params: Mapping[str, Any], context: IngestContext) -> str:
    """The modules, one line each: status, name, description, how much is archived, but not the archive."""
    modules = payload if isinstance(payload, dict) else context.at("team.work_modules") or {}
    lines = [_module(name, each) for name, each in modules.items() if isinstance(each, dict)]
    return titled(params, "\n".join(lines) or "There are no work modules yet.", "Work modules")


@ingestor
def available_associates(payload: Any, params: Mapping[str, Any], context: IngestContext) -> str:
    """Who may be given work; of a list of profile ids, those."""
    known = context.at("config.agent_profiles") or {}
    if isinstance(payload, list):
        known = {name: each for name, each in known.items() if each["profile_id"] in payload}
    lines = [f"- {name}: {each['description_for_human']}".rstrip(": ") for name, each in known.items()]
    return titled(params, "\n".join(lines) or "There are no associates.", "Available associates")


@ingestor
def principal_history_summary(payload: Any, params: Mapping[str, Any], context: IngestContext) -> str:
    """The last messages of the principal, `max_messages` or 10 of them, each cut short."""
    most = params.get("max_messages")
    most = most if type(most) is int and most > 0 else RECENT
    listed = payload if isinstance(payload, list) else context.at("principal.messages") or []
    lines = [
        f"- {each.get('role')}: {cut(_content(each))}" for each in listed[-most:] if isinstance(each, dict)
    ]
    return titled(
        params, "\n".join(lines) or "The principal has done nothing yet.", "The principal's last steps"
    )


@ingestor
def json_history(payload: Any, params: Mapping[str, Any], context: IngestContext) -> str:
    """Messages as JSON."""
    return titled(params, _json(_of(payload, "messages") or payload))


@ingestor
def tagged_content(payload: Any, params: Mapping[str, Any], context: IngestContext) -> str:
    """The content between tags; `tag` names them, or `wrapper_tags` holds both."""
    if params.get("wrapper_tags"):
        return _wrapped(_content(payload), params)
    tag = str(params.get("tag") or "content")
    return f"<{tag}>\n{_content(payload)}\n</{tag}>"


@ingestor
def observer_failure(payload: Any, params: Mapping[str, Any], context: IngestContext) -> str:
    """Which rule failed, and why."""
    return f"The rule {_of(payload, 'observer_id')} of your profile failed: {_of(payload, 'error')}"


@ingestor
def dispatch_result(payload: Any, params: Mapping[str, Any], context: IngestContext) -> str:
    """How dispatched work ended, assignment by assignment."""
    ends = _of(payload, "assignment_execution_results") or []
    lines = [f"- {_of(each, 'module_id')} ({_of(each, 'status')}): {_of(each, 'message')}" for each in ends]
    return "\n".join([f"Dispatch: {_of(payload, 'overall_status')}", *lines])


@ingestor
def protocol_aware(payload: Any, params: Mapping[str, Any], context: IngestContext) -> str:
    """What was handed over, each part under the title that the protocol gives it."""
    schema, data = _of(payload, "schema_for_rendering"), _of(payload, "data")
    if not isinstance(data, dict):
        return markdown_formatter.write(payload, params, context)
    shapes = _of(schema, "properties") or {}
    parts = [
        f"## {_titled(name, shapes)}\n" + "\n".join(_listed(_named(value, shapes.get(name)), 0))
        for name, value in data.items()
        if value not in (None, "", [], {})
    ]
    return "\n\n".join(parts)


INGESTORS: Mapping[str, Ingestor] = {
    each.name: each
    for each in (
        available_associates, dispatch_result, generic_message, json_history, markdown_formatter,
        observer_failure, principal_history_summary, protocol_aware, tagged_content, templated_content,
        tool_result, user_prompt, work_modules,
    )
}  # fmt: skip


def _titled(name: str, shapes: Any) -> str:
    """What a schema calls a property, or else its name."""
    return str(_of(_of(shapes, name), "x-handover-title") or name)


def _named(value: Any, schema: Any) -> Any:
    """Data whose keys are called what a schema calls them, at any depth."""
    if isinstance(value, list):
        return [_named(each, _of(schema, "items")) for each in value]
    shapes = _of(schema, "properties")
    if not isinstance(value, dict) or not shapes:
        return value
    return {_titled(name, shapes): _named(each, _of(shapes, name)) for name, each in value.items()}


def _wrapped(text: str, params: Mapping[str, Any]) -> str:
    """A text between the two `wrapper_tags`, as it is without them."""
    tags = params.get("wrapper_tags")
    if not isinstance(tags, list) or len(tags) != 2:
        return text
    return f"{tags[0]}\n{text}\n{tags[1]}"


def cut(text: str, size: int = RECENT_TEXT) -> str:
    """A text of at most `size` characters."""
    return text if len(text) <= size else text[: size - 1] + "…"


def titled(params: Mapping[str, Any], text: str, title: str = "") -> str:
    """A text under the title that the params give, or else this one."""
    said = str(params.get("title") or title)
    heading = said if said.startswith("#") else f"## {said}"
    return f"{heading}\n{text}" if said and text else text


def _of(payload: Any, key: str) -> Any:
    return payload.get(key) if isinstance(payload, dict) else None


def _content(payload: Any) -> str:
    """The text in a payload; data without one as JSON."""
    found = payload
    if isinstance(payload, dict):
        found = next((payload[key] for key in ("content", "message", "prompt") if key in payload), payload)
    if found is None:
        return ""
    return found if isinstance(found, str) else _json(found)


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _module(name: str, module: Mapping[str, Any]) -> str:
    kept: Sequence[Any] = module.get("context_archive") or ()
    said = f"- {name} [{module.get('status')}] {module.get('name', '')}: {module.get('description', '')}"
    notes = module.get("notes_from_principal")
    told = said.rstrip(": ") + (f" ({len(kept)} archived)" if kept else "")
    return f"{told}\n  - notes_from_principal: {notes}" if notes else told


def _listed(value: Any, depth: int) -> list[str]:
    """Data as the lines of a nested list; a text alone is no list."""
    indent = "  " * depth
    if isinstance(value, dict):
        return [line for key, each in value.items() for line in _entry(f"{indent}- {key}:", each, depth)]
    if isinstance(value, list):
        return [line for each in value for line in _entry(f"{indent}-", each, depth)]
    return [] if value is None else [value if isinstance(value, str) else _json(value)]


def _entry(start: str, value: Any, depth: int) -> list[str]:
    if isinstance(value, dict | list):
        return [start, *_listed(value, depth + 1)]
    return [f"{start} {''.join(_listed(value, depth))}".rstrip()]
