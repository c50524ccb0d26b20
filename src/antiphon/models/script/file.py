"""Scripts written in YAML, for the model string `script:file.yaml`.

    - A text is a text reply.
    - {call: add, args: {a: 1, b: 2}}
    - {text: Let me look., calls: [{call: search, args: {query: x}}, {call: clock}]}
    - {finish: The result.}
    - {error: {kind: rate_limit, text: slow down, retry_after: 2}}

A list answers everyone; a mapping gives each agent its own list (`"*"`: all others).
"""

from __future__ import annotations

import os
from typing import Any, get_args

import msgspec
import yaml

from antiphon.config.yaml import YamlReader, compose, compose_file
from antiphon.errors import ConfigError, ModelError, ModelErrorKind
from antiphon.values.message import ToolCall
from antiphon.values.model import Reply, Stop

_KEYS = ("text", "reasoning", "call", "args", "calls", "finish", "error")
_CALL_KEYS = ("call", "args")
_ERROR_KEYS = ("kind", "text", "retry_after", "status")

_Line = str | Reply | ModelError


def read_script(path: str | os.PathLike[str]) -> list[_Line] | dict[str, list[_Line]]:
    """The lines in a file; `ConfigError` carries file, line and column."""
    return _lines(compose_file(path), os.fspath(path))


def parse_script(text: str, path: str = "") -> list[_Line] | dict[str, list[_Line]]:
    """The lines in a YAML text; errors as in `read_script`."""
    return _lines(compose(text, path), path)


def _lines(root: yaml.Node | None, path: str) -> list[_Line] | dict[str, list[_Line]]:
    if root is None:
        raise ConfigError("is empty; expected a list of replies", path, 1, 1)
    return _ScriptParser(path).root(root)


class _ScriptParser(YamlReader):
    """Nodes to lines."""

    def root(self, node: yaml.Node) -> list[_Line] | dict[str, list[_Line]]:
        if isinstance(node, yaml.MappingNode):
            return {name: self.lines(value) for name, value in self.values(node, "a script").items()}
        return self.lines(node)

    def lines(self, node: yaml.Node) -> list[_Line]:
        return [self.line(one) for one in self.items(node, "replies, each starting with '- '")]

    def line(self, node: yaml.Node) -> _Line:
        if isinstance(node, yaml.ScalarNode):
            return self.text(node, "a reply")
        if isinstance(node, yaml.SequenceNode):
            raise self.wrong(node, "a reply is a text or a mapping; several calls are written {calls: [...]}")
        pairs = self.values(node, "a reply", _KEYS)
        if "error" in pairs:
            if len(pairs) > 1:
                raise self.wrong(node, "error stands alone")
            return self.error(pairs["error"])
        content = self.text(pairs["text"], "text") if "text" in pairs else ""
        reasoning = self.text(pairs["reasoning"], "reasoning") if "reasoning" in pairs else ""
        calls: list[ToolCall] = []
        if "call" in pairs:
            calls.append(self.call(pairs))
        elif "args" in pairs:
            raise self.wrong(pairs["args"], "args belongs to call, which is missing")
        if "calls" in pairs:
            for one in self.items(pairs["calls"], "calls of the form {call: name, args: {...}}"):
                calls.append(self.call(self.values(one, "a call", _CALL_KEYS), one))
        if "finish" in pairs:
            calls.append(self.finish(pairs["finish"]))
        if not (calls or "text" in pairs):
            raise self.wrong(node, f"an empty reply; give one of: {', '.join(_KEYS)}")
        stop: Stop = "calls" if calls else "stop"
        return Reply(content, tuple(calls), stop, reasoning=reasoning, model=f"script:{self._path}")

    def call(self, pairs: dict[str, yaml.Node], node: yaml.Node | None = None) -> ToolCall:
        if "call" not in pairs:
            where = node if node is not None else next(iter(pairs.values()))
            raise self.wrong(where, "call is missing: {call: name, args: {...}}")
        name = self.text(pairs["call"], "call")
        arguments: Any = self.data(pairs["args"]) if "args" in pairs else {}
        if isinstance(arguments, str):
            return ToolCall("", name, arguments)
        return ToolCall("", name, msgspec.json.encode({} if arguments is None else arguments).decode())

    def finish(self, node: yaml.Node) -> ToolCall:
        value = self.data(node)
        arguments = {} if value is None else value if isinstance(value, dict) else {"message": value}
        return ToolCall("", "finish", msgspec.json.encode(arguments).decode())

    def error(self, node: yaml.Node) -> ModelError:
        pairs = self.values(node, "an error", _ERROR_KEYS)
        kinds = get_args(ModelErrorKind)
        kind = self.text(pairs["kind"], "kind") if "kind" in pairs else "provider"
        if kind not in kinds:
            raise self.wrong(pairs["kind"], f"kind {kind!r} is none of: {', '.join(sorted(kinds))}")
        text = self.text(pairs["text"], "text") if "text" in pairs else f"scripted {kind} error"
        wait = self.number(pairs["retry_after"]) if "retry_after" in pairs else None
        status = self.number(pairs["status"]) if "status" in pairs else 0
        return ModelError(kind, text, retry_after=wait, status=int(status))  # type: ignore[arg-type]

    def number(self, node: yaml.Node) -> float:
        value = self.data(node)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise self.wrong(node, "expected a number")
        return float(value)

    def text(self, node: yaml.Node, what: str) -> str:
        """A scalar as it is written, which may be empty."""
        if not isinstance(node, yaml.ScalarNode):
            raise self.wrong(node, f"{what}: expected a text")
        return str(node.value)
