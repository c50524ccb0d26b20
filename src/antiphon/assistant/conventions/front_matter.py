"""The YAML at the head of a Markdown file, between two lines of `---`."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import yaml
from msgspec import Struct

from antiphon.config.yaml import YamlReader, compose, meant
from antiphon.errors import ConfigError

MARK = "---"


class FrontMatter(Struct, frozen=True):
    """The head of a file by key, and what follows it. faults: what is wrong with the head."""

    values: Mapping[str, str]
    body: str
    faults: tuple[ConfigError, ...] = ()


def read_front_matter(text: str, path: str, known: Collection[str], needed: Collection[str]) -> FrontMatter:
    """Take a file apart. Of its head only texts are kept; `known` keys may hold anything else.

    Every fault has its line. Without a head all is body.
    """
    lines = text.splitlines(keepends=True)
    if not lines or lines[0].rstrip() != MARK:
        missing = (
            f"begins with no front matter: `{MARK}`, {', '.join(f'{each}: …' for each in needed)}, `{MARK}`"
        )
        return FrontMatter({}, text.strip(), (ConfigError(missing, path, 1),) if needed else ())
    end = next((at for at, line in enumerate(lines[1:], 1) if line.rstrip() == MARK), 0)
    if not end:
        return FrontMatter({}, "", (ConfigError(f"the front matter has no second line `{MARK}`", path, 1),))
    body = "".join(lines[end + 1 :]).strip()
    # A line before it, so that places are those in the file.
    head = "\n" + "".join(lines[1:end])
    try:
        values, faults = _HeadReader(path).read(compose(head, path), known, needed)
    except ConfigError as error:
        values, faults = {}, [error]
    return FrontMatter(values, body, tuple(faults))


class _HeadReader(YamlReader):
    def read(
        self, root: yaml.Node | None, known: Collection[str], needed: Collection[str]
    ) -> tuple[dict[str, str], list[ConfigError]]:
        found: dict[str, str] = {}
        faults: list[ConfigError] = []
        for key, (place, value) in ({} if root is None else self.pairs(root, "the front matter")).items():
            if key not in known:
                faults.append(self.wrong(place, f"unknown key {key!r}{meant(key, known)}"))
            elif isinstance(value, yaml.ScalarNode):
                found[key] = value.value.strip()
            elif key in needed:
                faults.append(self.wrong(value, f"{key}: expected a text"))
        for key in needed:
            if not found.get(key) and not any(f"{key}:" in each.text for each in faults):
                faults.append(ConfigError(f"the front matter needs `{key}: …`", self._path, 1))
        return found, faults
