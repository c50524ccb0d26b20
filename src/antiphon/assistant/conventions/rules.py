"""Rules on tools as people write them, in YAML.

    allow: [shell(git diff *), edit(src/**)]
    ask: ["shell(git push *)"]
    deny: [edit(.github/**), web]

A name is that of a tool, or a word for several: `edit`, `read`, `web`. In brackets stands what its calls must
be like, as file names match: the command of `shell`, the path of a file, an address; `name=pattern` for an
argument of any other tool.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import get_args

import yaml

from antiphon.config.yaml import YamlReader, compose
from antiphon.errors import ConfigError, UserError
from antiphon.values.policy import Grant, Ruling, StandingRule

WORDS: Mapping[str, tuple[str, ...]] = {
    "edit": ("edit_file", "write_file", "move_file", "delete_file", "apply_patch"),
    "read": ("read_lines", "grep_files", "find_files", "list_files", "view_image", "attach_file"),
    "web": ("visit_url", "web_search"),
}
"""Words that stand for several tools."""
ARGUMENTS: Mapping[str, tuple[str, ...]] = {
    "shell": ("command",), "edit_file": ("path",), "write_file": ("path",), "move_file": ("path", "to"),
    "delete_file": ("path",), "apply_patch": ("patch",), "read_lines": ("path",), "view_image": ("path",),
    "attach_file": ("path",),
    "visit_url": ("url",), "web_search": ("query",),
}  # fmt: skip
"""Of a tool the arguments that a pattern alone is about."""
MAX_RULES = 1_000
_RULE = re.compile(r"([A-Za-z0-9_*?-]{1,64})(?:\((.*)\))?", re.DOTALL)
_NAMED = re.compile(r"([A-Za-z_][A-Za-z0-9_-]*)=(.*)", re.DOTALL)


def read_rules(text: str, path: str) -> tuple[tuple[StandingRule, ...], tuple[ConfigError, ...]]:
    """The rules in a file, and all that is wrong with it, each with its line; with a fault there are none."""
    reader = _RulesReader(path)
    try:
        root = compose(text, path)
        found = reader.whole(root) if root is not None else []
    except ConfigError as error:
        return (), (error,)
    return (() if reader.faults else tuple(found)), tuple(reader.faults)


class _RulesReader(YamlReader):
    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.faults: list[ConfigError] = []

    def whole(self, root: yaml.Node) -> list[StandingRule]:
        found: list[StandingRule] = []
        for verdict, listed in self.values(root, "rules", get_args(Ruling)).items():
            for node in self.items(listed, verdict):
                try:
                    found += self._rules(node, verdict)  # type: ignore[arg-type]
                except ConfigError as error:
                    self.faults.append(error)
        if len(found) > MAX_RULES:
            self.faults.append(self.wrong(root, f"at most {MAX_RULES} rules are taken"))
        return found

    def _rules(self, node: yaml.Node, verdict: Ruling) -> list[StandingRule]:
        text = self.text(node, verdict)
        said = _RULE.fullmatch(text.strip())
        if said is None:
            raise self.wrong(node, f"{verdict}: {text[:80]!r} is no rule; write TOOL or TOOL(PATTERN)")
        tools = WORDS.get(said[1], (said[1],))
        grants = [(tool, grant) for tool in tools for grant in self._grants(node, tool, said[2], verdict)]
        if not grants:
            raise self.wrong(
                node,
                f"{verdict}: {said[1]} takes no such pattern; write {said[1]} or {said[1]}(argument=PATTERN)",
            )
        name = f"{text.strip()} ({self._path}:{node.start_mark.line + 1})"
        try:
            return [
                StandingRule(name, "owner", self._path, tool, verdict, grant, self._path)
                for tool, grant in grants
            ]
        except UserError as error:
            raise self.wrong(node, f"{verdict}: {error}") from None

    def _grants(self, node: yaml.Node, tool: str, pattern: str | None, verdict: Ruling) -> Iterable[Grant]:
        if pattern is None:
            return [Grant()]
        if not pattern.strip():
            raise self.wrong(
                node, f"{verdict}: the brackets are empty; leave them out for every call of {tool}"
            )
        named = _NAMED.fullmatch(pattern)
        if named is not None and tool not in ARGUMENTS:
            return [Grant(((named[1], named[2]),))]
        names = ARGUMENTS.get(tool, ())
        if verdict == "allow":
            # All that a call touches must be like it.
            return [Grant(tuple((name, pattern) for name in names))] if names else []
        return [Grant(((name, pattern),)) for name in names]
