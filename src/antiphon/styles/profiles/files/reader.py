"""reading: one file by the tables of `fields`. What is wrong is collected, so that all is said at once."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal

import yaml
from msgspec import Struct

from antiphon.config.yaml import MAX_NAME, YamlReader, is_null, is_plain, meant, position
from antiphon.errors import ConfigError
from antiphon.styles.profiles.conditions.expression import Expression, constant, read_expression
from antiphon.styles.profiles.conditions.grammar import ExpressionError
from antiphon.styles.profiles.conditions.path import PREFIXES, fault
from antiphon.styles.profiles.files.diagnostics import Diagnostic, SourceLocation
from antiphon.styles.profiles.files.fields import Choice, Each, Field, Kind, Many, MappingShape, Variants
from antiphon.styles.profiles.files.profile import InboxStrategy, Observer, PassedOver, Segment
from antiphon.styles.profiles.files.protocol import ReadEach, ReadFrom
from antiphon.styles.profiles.files.template import Template, read_template
from antiphon.styles.profiles.files.vocabulary import (
    GIVEN,
    INGESTOR_PARAMS,
    SOURCES,
    STRATEGY_PARAMS,
)
from antiphon.values.secret import is_secret_name

MAX_FINDINGS = 100
"""Of one file. After as many errors nobody reads on."""
MAX_TEXT = 600
_NOT_GIVEN = "comes with Antiphon and was not given to this team; see ProfileTeam(tools=...)"
_SOURCED: Mapping[str, Sequence[str]] = {
    "from_env": ("_type", "var", "default", "required"),
    "json_from_file": ("_type", "path"),
}


class _EnoughError(Exception):
    """A file with so much wrong in it that nobody reads on."""


class FileIndex(Struct, frozen=True):
    """What files may name. toolsets: those that are installed, with their tools; None where only their
    provider knows these."""

    toolsets: Mapping[str, Sequence[str] | None]
    ingestors: Sequence[str]


class Reference(Struct, frozen=True, gc=False):
    """The name of something in another file."""

    name: str
    place: SourceLocation


class Page(YamlReader):
    """One file while it is read. findings: what is wrong with it."""

    def __init__(self, path: str, text: str, known: FileIndex) -> None:
        super().__init__(path)
        self.findings: list[Diagnostic] = []
        self._text, self._known, self._errors = text, known, 0
        self._readers: Mapping[str, Callable[[yaml.Node, str], Any]] = {
            "text": lambda node, trail: self.text(node, ""),
            "reference": lambda node, trail: Reference(self.text(node, ""), self._place(node, trail)),
            "flag": self._flag,
            "whole": self._whole,
            "number": self._number,
            "data": lambda node, trail: self.data(node),
            "mapping": self._mapping,
            "condition": self._condition,
            "template": self._template,
            "path": self._path_text,
            "target": self._target,
            "payload": self._payload,
            "source": self._source,
            "ingestor": self._ingestor,
            "toolset": self._toolset,
            "tool": self._tool,
            "value": self._value,
            "parameters": self._parameters,
        }

    def whole(self, root: yaml.Node, shape: MappingShape) -> Mapping[str, Any]:
        """What the file says; empty, or only a part, when there are errors among the findings."""
        try:
            return self.read(root, shape) or {}
        except _EnoughError:
            said = "more is wrong; the rest of the file is not read"
            self.findings.append(Diagnostic(SourceLocation(self._path), said))
            return {}

    def read(self, node: yaml.Node, kind: Kind, trail: str = "") -> Any:
        """The value of a node; None when it is wrong, which is then among the findings."""
        try:
            if isinstance(kind, str):
                return self._readers[kind](node, trail)
            if isinstance(kind, Choice):
                return self._choice(node, kind, trail)
            if isinstance(kind, Many):
                return self._many(node, kind, trail)
            if isinstance(kind, Each):
                pairs = self.pairs(node, "").items()
                return {name: self.read(value, kind.of, _below(trail, name)) for name, (_, value) in pairs}
            if isinstance(kind, Variants):
                return self._variant(node, kind, trail)
            return self._shape(node, kind, trail)
        except ConfigError as error:
            self._note(SourceLocation(self._path, error.line, error.column, trail), error.text)
            return None

    def error(self, node: yaml.Node, trail: str, text: str) -> None:
        """Note an error and go on."""
        self._note(self._place(node, trail), text)

    def warning(self, node: yaml.Node, trail: str, text: str) -> None:
        """Note a warning."""
        self._note(self._place(node, trail), text, "warning")

    def _note(
        self, place: SourceLocation, text: str, severity: Literal["error", "warning"] = "error"
    ) -> None:
        if severity == "warning" and len(self.findings) >= MAX_FINDINGS:
            return
        cut = text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}…"
        self.findings.append(Diagnostic(place, cut, severity))
        self._errors += severity == "error"
        if self._errors >= MAX_FINDINGS:
            raise _EnoughError

    def _place(self, node: yaml.Node, trail: str) -> SourceLocation:
        return SourceLocation(self._path, node.start_mark.line + 1, node.start_mark.column + 1, trail)

    def _shape(self, node: yaml.Node, shape: MappingShape, trail: str, apart: str = "") -> Any:
        """What a mapping becomes; `apart` is a key that has been read already."""
        before = len(self.findings)
        values: dict[str, Any] = {}
        for name, field, value in self._fields(node, shape, trail):
            if name == apart:
                continue
            given_up = is_null(value) and not field.required
            below = _below(trail, name)
            values[field.becomes or name] = None if given_up else self.read(value, field.kind, below)
        required = {name: field for name, field in shape.fields.items() if field.required and name != apart}
        for name, field in required.items():
            if name not in values:
                self.error(node, trail, f"{shape.what} needs `{name}`: {_plain(field.says)}")
        if any(values.get(name) is None for name in required):
            return None
        if shape.make is None:
            return values
        given = {name: value for name, value in values.items() if value is not None}
        made = shape.make(place=self._place(node, trail), **given)
        if len(self.findings) == before:
            self._check(node, made, trail)
        return made

    def _fields(
        self, node: yaml.Node, shape: MappingShape, trail: str
    ) -> Iterator[tuple[str, Field, yaml.Node]]:
        """The known keys of a mapping that mean something, each once; the others are noted."""
        seen: dict[str, str] = {}
        for key, value in self.mapping(node, shape.what):
            name = key.value if isinstance(key, yaml.ScalarNode) else ""
            field, below = shape.fields.get(name), _below(trail, name)
            if field is None:
                said = f"unknown key {name!r}{meant(name, shape.fields)}" if name else "a key must be a text"
                self.error(key, below, f"{shape.what}: {said}")
                continue
            first = seen.get(field.becomes or name)
            if first is not None:
                other = f"says the same as {first!r}; keep one of them"
                said = "stands here twice" if first == name else other
                self.error(key, below, f"{shape.what}: {name!r} {said}")
                continue
            seen[field.becomes or name] = name
            if not field.ignored:
                yield name, field, value
            elif not is_null(value):
                self.warning(key, below, f"this key is passed over: {field.ignored}. {field.says}")

    def _check(self, node: yaml.Node, made: Any, trail: str) -> None:
        """What the keys of a mapping must be to each other."""
        if isinstance(made, Segment):
            if not made.type:
                said = "a segment without `type` says nothing; give it one, or leave it out"
                self.warning(node, trail, said)
            elif made.type == "static_text" and made.content is None and not made.content_key:
                said = "a static_text needs `content`, or `content_key` for a text definition"
                self.error(node, trail, said)
            elif made.type == "state_value" and not made.source_state_path:
                self.error(node, trail, "a state_value needs `source_state_path`: where the value stands")
        elif isinstance(made, ReadFrom):
            self._check_slots(node, trail, made.path, "replace", made.replace)
        elif isinstance(made, ReadEach):
            self._check_slots(node, trail, made.path_to_iterate, "iterate_on", made.iterate_on)
        if isinstance(made, Segment):
            self._check_params(node, trail, made.ingestor_id or "markdown_formatter", made.ingestor_params)
        elif isinstance(made, InboxStrategy):
            self._check_params(node, trail, made.ingestor, made.params, STRATEGY_PARAMS)
        if isinstance(made, Segment | Observer) and made.condition and constant(made.condition) is False:
            self.warning(node, trail, f"the condition of {made.id!r} never holds")

    def _check_params(
        self, node: yaml.Node, trail: str, ingestor: str, given: Mapping[str, Any], more: Sequence[str] = ()
    ) -> None:
        """Report what an ingestor that ships does not know; of others nothing is known."""
        if ingestor not in INGESTOR_PARAMS:
            return
        known = (*INGESTOR_PARAMS[ingestor], *more)
        for name in given:
            if name not in known:
                hint = meant(name, known) if known else "; it takes none"
                said = f"the ingestor {ingestor!r} passes over the parameter {name!r}{hint}"
                self.warning(node, trail, said)

    def _check_slots(
        self, node: yaml.Node, trail: str, template: Template, key: str, given: Mapping[str, str]
    ) -> None:
        names = [slot.path for slot in template.slots]
        for name in dict.fromkeys(names):
            if name not in given:
                listed = ", ".join(given) or "nothing"
                self.error(node, trail, f"`{key}` does not say what {{{{ {name} }}}} is; it has: {listed}")
        for name in given:
            if name not in names:
                self.warning(node, trail, f"`{key}` has {name!r}, which the path does not hold")

    def _variant(self, node: yaml.Node, kind: Variants, trail: str) -> Any:
        pairs = self.mapping(node, kind.what)
        named = {key.value: value for key, value in pairs if isinstance(key, yaml.ScalarNode)}
        if not kind.by:
            found = [name for name in kind.of if name in named]
            if len(found) != 1:
                raise self.wrong(node, f"{kind.what} needs one of: {', '.join(kind.of)}")
            return self._shape(node, kind.of[found[0]], trail)
        if kind.by not in named:
            raise self.wrong(node, f"{kind.what} needs `{kind.by}`: one of {', '.join(kind.of)}")
        value = named[kind.by]
        name = self.text(value, "")
        if name in kind.passed_over:
            self.warning(
                value, _below(trail, kind.by), f"{name} does nothing in {kind.what}; it is passed over"
            )
            return PassedOver(self._place(node, trail))
        if name not in kind.of:
            self.error(
                value,
                _below(trail, kind.by),
                f"{kind.what}: unknown {kind.by} {name!r}{meant(name, kind.of)}",
            )
            return None
        return self._shape(node, kind.of[name], trail, kind.by)

    def _many(self, node: yaml.Node, kind: Many, trail: str) -> tuple[Any, ...]:
        found: list[Any] = []
        names: set[str] = set()
        for index, each in enumerate(self.items(node, "")):
            value = self.read(each, kind.of, f"{trail}[{index}]")
            if value is None:
                continue
            if kind.by and (name := getattr(value, kind.by)) in names:
                self.error(each, f"{trail}[{index}]", f"the {kind.by} {name!r} stands here twice; rename one")
                continue
            names.add(getattr(value, kind.by) if kind.by else "")
            found.append(value)
        return tuple(found)

    def _choice(self, node: yaml.Node, kind: Choice, trail: str) -> str:
        said = self.text(node, "")
        if said not in kind.of:
            raise self.wrong(node, f"{said!r} is not known here{meant(said, kind.of)}")
        return said

    def _flag(self, node: yaml.Node, trail: str) -> bool:
        said = self.data(node)
        if not isinstance(said, bool):
            raise self.wrong(node, f"expected true or false, not {_shown(node)}")
        return said

    def _number(self, node: yaml.Node, trail: str) -> float:
        said = self.data(node)
        if isinstance(said, bool) or not isinstance(said, int | float) or not math.isfinite(said):
            raise self.wrong(node, f"expected a number, not {_shown(node)}")
        return said

    def _whole(self, node: yaml.Node, trail: str) -> int:
        said = self.data(node)
        if isinstance(said, bool) or not isinstance(said, int) or said < 0:
            raise self.wrong(node, f"expected a whole number, not {_shown(node)}")
        return said

    def _mapping(self, node: yaml.Node, trail: str) -> dict[str, Any]:
        self.mapping(node, "")
        return dict(self.data(node))

    def _condition(self, node: yaml.Node, trail: str) -> Expression | None:
        said = self.text(node, "")
        if is_plain(node) and isinstance(self.data(node), bool):
            said = said.capitalize()
        try:
            expression = read_expression(said)
            constant(expression)
        except ExpressionError as error:
            line, column = position(self._text, node, max(error.offset, 0))
            self._note(SourceLocation(self._path, line, column, trail), str(error))
            return None
        return expression

    def _template(self, node: yaml.Node, trail: str) -> Template:
        if not isinstance(node, yaml.ScalarNode):
            raise self.wrong(node, "expected a text")
        template = read_template(node.value)
        for slot in template.odd:
            line, column = position(self._text, node, slot.offset)
            said = f"{slot.written[:60]} holds no path, so it stays as it is"
            self._note(SourceLocation(self._path, line, column, trail), said, "warning")
        return template

    def _path_text(self, node: yaml.Node, trail: str) -> str:
        path = self.text(node, "")
        if said := fault(path):
            raise self.wrong(node, said)
        return path

    def _target(self, node: yaml.Node, trail: str) -> str:
        path = self._path_text(node, trail)
        first, _, rest = path.partition(".")
        if "[" in path or (first in PREFIXES and first != "flags"):
            hint = (
                f"write {rest!r}" if first == "state" and rest else "write keys and dots, such as flags.done"
            )
            raise self.wrong(node, f"{path!r}: what is changed lies below the agent's state; {hint}")
        return path

    def _payload(self, node: yaml.Node, trail: str) -> Any:
        payload = self.data(node)
        if isinstance(payload, dict) and not isinstance(payload.get("content_key", ""), str):
            raise self.wrong(node, "`content_key`: expected the name of a text definition")
        if not isinstance(payload, str) or "{{" not in payload:
            return payload
        template = read_template(payload)
        if template.whole:
            return template
        self.warning(node, trail, "only a payload that is one {{ path }} and nothing else is filled in")
        return payload

    def _source(self, node: yaml.Node, trail: str) -> str:
        source = self.text(node, "")
        said = meant(source, SOURCES)
        if source not in SOURCES and "mean" in said:
            self.warning(node, trail, f"{source!r} is no source of the usual ones{said}")
        return source

    def _ingestor(self, node: yaml.Node, trail: str) -> str:
        name = self.text(node, "")
        found = name if name in self._known.ingestors else name.removesuffix("_ingestor")
        if found not in self._known.ingestors:
            raise self.wrong(node, f"unknown ingestor {name!r}{meant(found, self._known.ingestors)}")
        return found

    def _toolset(self, node: yaml.Node, trail: str) -> str:
        name = self.text(node, "")
        known = self._known.toolsets
        if name not in known:
            said = _NOT_GIVEN if name in GIVEN else f"is not installed{meant(name, known)}"
            self.warning(node, trail, f"the toolset {name!r} {said}")
        return name

    def _tool(self, node: yaml.Node, trail: str) -> str:
        name = self.text(node, "")
        known = self._known.toolsets
        tools = [tool for tools in known.values() for tool in tools or ()]
        if name in tools or any(each is None and name.startswith(f"{one}_") for one, each in known.items()):
            return name
        if any(name in others for others in GIVEN.values()):
            self.warning(node, trail, f"the tool {name!r} {_NOT_GIVEN}")
            return name
        raise self.wrong(node, f"unknown tool {name!r}{meant(name, sorted(tools))}")

    def _value(self, node: yaml.Node, trail: str) -> Any:
        value = self.data(node)
        if isinstance(value, dict) and "_type" in value:
            return self._sourced(node, value, trail)
        if isinstance(value, str) and value and is_secret_name(_last(trail)):
            self.warning(
                node, trail, "a secret stands openly in the file; write {_type: from_env, var: NAME}"
            )
        return value

    def _sourced(self, node: yaml.Node, value: dict[str, Any], trail: str) -> Any:
        kind = value["_type"]
        if kind not in _SOURCED:
            raise self.wrong(node, f"unknown _type {kind!r}{meant(str(kind), _SOURCED)}")
        for key, (place, _) in self.pairs(node, "").items():
            if key not in _SOURCED[kind]:
                self.error(
                    place, _below(trail, key), f"{kind}: unknown key {key!r}{meant(key, _SOURCED[kind])}"
                )
        needed = _SOURCED[kind][1]
        if not isinstance(value.get(needed), str) or not value[needed]:
            raise self.wrong(node, f"{kind} needs `{needed}`, a text")
        if not isinstance(value.get("required", False), bool):
            raise self.wrong(node, "`required`: expected true or false")
        return value

    def _parameters(self, node: yaml.Node, trail: str) -> dict[str, Any]:
        schema = self._mapping(node, trail)
        properties = schema.get("properties", {})
        if not isinstance(properties, dict) or schema.get("type", "object") != "object":
            raise self.wrong(node, "expected JSON Schema of an object: type, properties, required")
        required = schema.get("required", [])
        for name in required if isinstance(required, list) else [required]:
            if name not in properties:
                raise self.wrong(
                    node, f"`required` names {name!r}, which is no property{meant(str(name), properties)}"
                )
        return schema


def _below(trail: str, name: str) -> str:
    name = name[:MAX_NAME]
    return f"{trail}.{name}" if trail and name else trail or name


def _last(trail: str) -> str:
    """The key that a trail ends with."""
    return trail.rpartition(".")[2].partition("[")[0]


def _shown(node: yaml.Node) -> str:
    return repr(node.value) if isinstance(node, yaml.ScalarNode) else "a list or mapping"


def _plain(says: str) -> str:
    """The first sentence of an explanation, to be said in an error."""
    first = says.partition(". ")[0].rstrip(".")
    return first[:1].lower() + first[1:]
