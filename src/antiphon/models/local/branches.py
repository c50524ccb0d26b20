"""What a reply may be: one branch per tool or colleague, as a JSON schema and as what it means.

The tools `call_agent` and `finish` are the two of delegation. A colleague is a branch of its own with
its name fixed, and its message is the request copied, not written. `finish` after a result carries the
result, quoted: the model decides that it is done, and can not bend a number on the way.
"""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from antiphon.errors import ModelError
from antiphon.models.local.abilities import beyond
from antiphon.models.local.spans import candidates, learn
from antiphon.values.model import ChatMessage, Example, ModelRequest, ToolSpec

CALL_AGENT, FINISH, ANSWER = "call_agent", "finish", "answer"
"""The two tools of delegation, and what the model says where an answer is plain text."""
AT_A_LOSS = "I can not answer that: I found nothing in the request that my tools could work on."
MAX_COMBINATIONS = 48
"""Calls of one tool that are written out; beyond it each argument is enumerated on its own."""

_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?![\w.]*\w)")
_COLLEAGUES = "Available agents:"
_COLLEAGUE = re.compile(r"^- ([^\s:]+):", re.MULTILINE)


class Branch(Struct, frozen=True):
    """One thing the model may say, and the call it stands for.

    said: what the model writes, whole; None when `schema` leaves it parts to choose. unknown: the arguments
    that nothing in the request could be; the model may choose the call, and cannot make it.
    """

    schema: dict[str, Any]
    call: str
    said: dict[str, Any] | None = None
    arguments: dict[str, Any] = {}
    unknown: tuple[str, ...] = ()

    def made(self) -> None:
        """Raises ModelError when the call cannot be made."""
        if self.unknown:
            raise beyond(f"{', '.join(self.unknown)} of {self.call} would have to be written")


class Scene(Struct, frozen=True):
    """The end of a conversation that the next reply hangs on.

    asked: the text of the last user message. results: what came back since, in call order.
    done: the calls made since, so that none is made twice.
    """

    asked: str
    results: tuple[ChatMessage, ...]
    done: tuple[tuple[str, str], ...]

    @property
    def failed(self) -> bool:
        """Whether there are results and every one of them is an error."""
        return bool(self.results) and all(result.is_error for result in self.results)


def scene(messages: Sequence[ChatMessage]) -> Scene:
    """Read a conversation from its last user message on."""
    asking = (at for at, message in enumerate(messages) if message.role == "user" and not _notice(message))
    start = max(asking, default=0)
    since = messages[start + 1 :] if messages else ()
    done = tuple((call.name, call.arguments) for message in since for call in message.calls)
    asked = messages[start].content if messages else ""
    return Scene(asked, tuple(message for message in since if message.role == "tool"), done)


def _notice(message: ChatMessage) -> bool:
    return message.content.startswith("[system]")


def branches(request: ModelRequest, now: Scene) -> list[Branch]:
    """Every reply that makes sense now; empty when all that is left is to write a text.

    Without a result, finishing is offered only if an example shows how, or if nothing else can be
    done: an answer rests on results. After an error that names other arguments or another tool, that
    is tried once. After a result, a further colleague is offered only if the request or the agent's
    instructions name it: this model can not tell by itself that a second opinion is of no use.

    Raises ModelError when nothing that it could do has to do with the request, and there are tools whose
    arguments it would have to write.
    """
    offered = [spec for spec in request.tools if request.tool_choice in ("auto", "required", spec.name)]
    steps: list[Branch] = []
    for spec in offered:
        if spec.name == CALL_AGENT:
            steps.extend(_colleagues(request, spec, now))
        elif spec.name != FINISH:
            steps.extend(_calls(spec, _examples_of(spec.name, request.examples), now))
    if now.failed and len(now.results) == 1:
        hint = now.results[0].content
        failed = now.done[-1][0]
        suggested = [step for step in steps if not step.unknown and _suggested(step, failed, now.asked, hint)]
        if suggested:
            return suggested
    if not now.results:
        _not_beyond(request, steps, now)
    else:
        told = f"{now.asked}\n{request.system.partition(_COLLEAGUES)[0]}"
        steps = [step for step in steps if _mentioned(step, told)]
    if request.output_schema is not None:
        return steps  # a quotation does not fit it; when there is no step left, it is filled in
    if any(spec.name == FINISH for spec in offered):
        steps.extend(_finishes(request, now, alone=not steps))
    elif now.results and request.tool_choice != "required":
        steps.append(_fixed({"call": ANSWER}, ANSWER, {"message": quote(now.results)}))
    return steps


def _not_beyond(request: ModelRequest, steps: Sequence[Branch], now: Scene) -> None:
    """Raises ModelError when whatever is left to choose would be a guess."""
    shown_how = {example.call for example in request.examples}
    if FINISH not in shown_how and not any(_meant(step, shown_how, now.asked) for step in steps):
        for step in steps:
            step.made()


def _meant(step: Branch, shown_how: Container[str], asked: str) -> bool:
    """Whether a step has to do with the request: an example shows it, or it holds some of its words."""
    if step.call == CALL_AGENT or step.call in shown_how:
        return True
    said = (rf"(?<!\w){re.escape(str(value))}(?!\w)" for value in step.arguments.values())
    return any(re.search(each, asked, re.IGNORECASE) for each in said)


def _suggested(step: Branch, failed: str, asked: str, hint: str) -> bool:
    """Whether an error's text names the tool of a step, or an argument for the tool that failed."""
    if step.call != failed:
        return re.search(rf"(?<!\w){re.escape(step.call)}(?!\w)", hint) is not None
    texts = [value for value in step.arguments.values() if isinstance(value, str)]
    return any(text in hint and text not in asked for text in texts)


def _mentioned(step: Branch, text: str) -> bool:
    """Whether `text` names the colleague of a step. Names of tools are too often common words."""
    name = step.arguments.get("agent_name", "") if step.call == CALL_AGENT else ""
    return bool(name) and re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text, re.IGNORECASE) is not None


def quote(results: Iterable[ChatMessage]) -> str:
    """The results as an answer: word for word; errors only when there is nothing else."""
    kept = list(results)
    good = [result for result in kept if not result.is_error] or kept
    return "\n\n".join(result.content.strip() for result in good)


def schema_of(offered: Sequence[Branch]) -> dict[str, Any]:
    """The schema of a reply: one `anyOf` branch each, and no white space to get lost in."""
    return {"x-guidance": {"whitespace_flexible": False}, "anyOf": [branch.schema for branch in offered]}


def read(text: str, offered: Sequence[Branch]) -> tuple[Branch, dict[str, Any]]:
    """The branch that `text` stands for, and its arguments; `ModelError` if it is none of `offered`."""
    try:
        said = json.loads(text)
    except ValueError as error:
        raise ModelError("provider", f"the local model wrote no JSON: {text[:200]!r}") from error
    for branch in offered:
        if branch.said == said:
            return branch, branch.arguments
    for branch in offered:
        if branch.said is None and isinstance(said, dict) and said.get("call") == branch.call:
            return branch, {**branch.arguments, **said.get("with", {})}
    raise ModelError("provider", f"the local model chose nothing that is offered: {text[:200]!r}")


def shown(example: Example) -> dict[str, Any]:
    """What the model would have to write for the call of `example`."""
    if example.call == CALL_AGENT:
        return {"ask": example.arguments.get("agent_name", "")}
    if example.call == FINISH and not example.arguments:
        return {"call": FINISH}
    return {"call": example.call, "with": example.arguments}


def _examples_of(call: str, examples: Iterable[Example]) -> list[Example]:
    return [example for example in examples if example.call == call]


def _fixed(said: dict[str, Any], call: str, arguments: dict[str, Any]) -> Branch:
    return Branch({"const": said}, call, said, arguments)


def _colleagues(request: ModelRequest, spec: ToolSpec, now: Scene) -> Iterator[Branch]:
    named = spec.parameters.get("properties", {}).get("agent_name", {})
    names = named.get("enum") or (
        [named["const"]] if "const" in named else _COLLEAGUE.findall(request.system.partition(_COLLEAGUES)[2])
    )
    asked = {_field(arguments, "agent_name") for call, arguments in now.done if call == CALL_AGENT}
    for name in dict.fromkeys(names):
        if name not in asked:
            yield _fixed({"ask": name}, CALL_AGENT, {"agent_name": name, "message": now.asked})


def _finishes(request: ModelRequest, now: Scene, *, alone: bool) -> Iterator[Branch]:
    if now.results:
        yield _fixed({"call": FINISH}, FINISH, {"message": quote(now.results)})
        return
    texts = [example.arguments.get("message", "") for example in _examples_of(FINISH, request.examples)]
    if alone and not any(texts) and any(spec.name not in (CALL_AGENT, FINISH) for spec in request.tools):
        texts = [AT_A_LOSS]
    for text in dict.fromkeys(texts):
        if text:
            yield _fixed({"call": FINISH, "with": {"message": text}}, FINISH, {"message": text})
    if alone and not any(texts):
        # \D: a number that no tool gave is a number made up.
        yield _open(FINISH, {"message": {"type": "string", "pattern": r"^\D{1,400}$"}})


def _calls(spec: ToolSpec, examples: Sequence[Example], now: Scene) -> Iterator[Branch]:
    properties: Mapping[str, dict[str, Any]] = spec.parameters.get("properties", {})
    required = set(spec.parameters.get("required", ()))
    # After an error its text counts too: it often names what would have been right.
    texts = [now.asked, *(result.content for result in now.results if result.is_error)]
    choices: dict[str, list[Any]] = {}
    shapes: dict[str, str] = {}
    unknown: list[str] = []
    for name, schema in properties.items():
        given = [(each.request, each.arguments[name]) for each in examples if name in each.arguments]
        found, shapes[name] = _choices(schema, given, texts)
        if name in required and found is None:
            unknown.append(name)
        elif name in required:
            choices[name] = found or []
        elif found and given:
            choices[name] = found if len(given) == len(examples) else [*found, None]
    if unknown:
        said = {"call": spec.name}
        yield Branch({"const": said}, spec.name, said, unknown=tuple(unknown))
        return
    if math.prod(len(found) for found in choices.values()) > MAX_COMBINATIONS:
        yield _open(
            spec.name, {name: {"enum": found} for name, found in choices.items() if None not in found}
        )
        return
    for combination in itertools.product(*choices.values()):
        pairs = zip(choices, combination, strict=True)
        arguments = {name: value for name, value in pairs if value is not None}
        if _sensible(arguments, shapes, now.asked) and not _made(spec.name, arguments, now.done):
            yield _fixed({"call": spec.name, "with": arguments}, spec.name, arguments)


def _choices(
    schema: Mapping[str, Any], given: Sequence[tuple[str, Any]], texts: Sequence[str]
) -> tuple[list[Any] | None, str]:
    """The values an argument may take and the shape of copied text.

    None: they can not be enumerated. Empty: the request holds nothing that could be meant.
    """
    if "const" in schema:
        return [schema["const"]], ""
    if "enum" in schema:
        return _named(schema["enum"], [value for _, value in given], texts), ""
    kind = schema.get("type")
    if kind == "boolean":
        return [True, False], ""
    if kind in ("integer", "number"):
        numbers = [float(text) for text in _NUMBER.findall(texts[0])]
        fitting = [int(value) if value.is_integer() else value for value in numbers]
        usual = [value for _, value in given if isinstance(value, int | float)]
        found = [value for value in fitting if kind == "number" or isinstance(value, int)]
        return list(dict.fromkeys([*found, *usual])) or None, ""
    if kind != "string":
        return None, ""
    shape, constants = learn((asked, value) for asked, value in given if isinstance(value, str))
    pattern = schema.get("pattern", "")
    copied = candidates(shape, texts) if shape or not constants else []
    fitting_text = [text for text in copied if re.search(pattern, text)]
    return fitting_text or constants, shape


def _named(values: Sequence[Any], usual: Sequence[Any], texts: Sequence[str]) -> list[Any]:
    """The values of an enumeration that the texts name, else those that examples use, else all."""
    folded = " ".join(texts).casefold()
    named = [
        value for value in values if re.search(rf"(?<!\w){re.escape(str(value).casefold())}(?!\w)", folded)
    ]
    return named or list(dict.fromkeys(value for value in usual if value in values)) or list(values)


def _open(call: str, properties: dict[str, Any]) -> Branch:
    """A call with parts that the model writes itself, under their schemas."""
    arguments = {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
    outer = {"call": {"const": call}, "with": arguments}
    return Branch(
        {"type": "object", "properties": outer, "required": ["call", "with"], "additionalProperties": False},
        call,
    )


def _sensible(arguments: Mapping[str, Any], shapes: Mapping[str, str], asked: str) -> bool:
    """Whether copied texts are distinct pieces of the request; of one shape, in its order."""
    places: list[tuple[int, int, str]] = []
    for name, value in arguments.items():
        if isinstance(value, str) and shapes.get(name) not in ("", "whole") and value in asked:
            start = asked.index(value)
            places.append((start, start + len(value), shapes[name]))
    pairs = itertools.combinations(places, 2)
    return all(left[1] <= right[0] or (right[1] <= left[0] and left[2] != right[2]) for left, right in pairs)


def _made(call: str, arguments: Mapping[str, Any], done: Iterable[tuple[str, str]]) -> bool:
    return any(name == call and arguments_of(text) == arguments for name, text in done)


def arguments_of(text: str) -> dict[str, Any]:
    """The arguments of a call made before; none where they are no JSON object."""
    try:
        value = json.loads(text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _field(arguments: str, name: str) -> Any:
    return arguments_of(arguments).get(name)
