"""Skills: folders with a SKILL.md, of which the assistant is told the name and what it is for, and which it
loads when it needs them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from msgspec import Struct

from antiphon import Tool, ToolError, tool
from antiphon.assistant.conventions.front_matter import read_front_matter
from antiphon.assistant.conventions.places import read_inside
from antiphon.errors import ConfigError
from antiphon.tools.folder.root import Root

FILE = "SKILL.md"
KNOWN = (
    "name", "description", "license", "compatibility", "metadata", "allowed-tools", "argument-hint", "model",
    "disable-model-invocation", "user-invocable",
)  # fmt: skip
"""Keys of a skill's head; those beside the first two say nothing here."""
NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?")
MAX_SKILLS = 200
MAX_DESCRIPTION = 1_024
MAX_LISTED = 100
"""Files of a skill that are listed with it."""


class Skill(Struct, frozen=True):
    """One skill: its name, what it is for, and its folder."""

    name: str
    description: str
    folder: Path
    body: str


def find_skills(folders: Iterable[tuple[Path, Path | None]]) -> tuple[dict[str, Skill], list[ConfigError]]:
    """The skills in folders of skills by name, of two of one name the later one, and what is wrong with any.
    Beside each folder stands the one that its files lie in, links followed; None: anywhere.

    A skill without a name or a description is left out; an unknown key is told only.
    """
    found: dict[str, Skill] = {}
    faults: list[ConfigError] = []
    for folder, root in folders:
        for path in sorted(folder.glob(f"*/{FILE}"))[:MAX_SKILLS]:
            try:
                skill = _read(path, root, faults)
            except ConfigError as error:
                faults.append(error)
                continue
            if skill is not None:
                found[skill.name] = skill
    return found, faults


def _read(path: Path, root: Path | None, faults: list[ConfigError]) -> Skill | None:
    head = read_front_matter(read_inside(path, root), str(path), KNOWN, ("name", "description"))
    faults.extend(head.faults)
    name, description = head.values.get("name", ""), " ".join(head.values.get("description", "").split())
    if name and not NAME.fullmatch(name):
        raise ConfigError(
            f"the name {name[:80]!r} is none of a skill: 1 to 64 small letters, digits and '-'", str(path), 1
        )
    if not name or not description:
        return None
    return Skill(name, description[:MAX_DESCRIPTION], path.parent, head.body)


def told_of(skills: Mapping[str, Skill]) -> str:
    """What the assistant is told of them; empty for none."""
    if not skills:
        return ""
    listed = "\n".join(f"- {each.name}: {each.description}" for each in skills.values())
    return f"# Skills\nBefore work that one of these is for, load it with skill:\n{listed}"


def skill_tool(skills: Callable[[], Mapping[str, Skill]]) -> Tool:
    """`skill`, which loads one. skills: as they are when it is called."""

    @tool(effect="read", kind="read", title="Load a skill")
    def skill(name: str, file: str = "") -> str:
        """Load a skill: what it says, and which files it brings.

        Args:
            name: the skill.
            file: one of its files, to be read instead.
        """
        known = skills()
        if name not in known:
            raise ToolError(f"There is no skill {name!r}; there are: {', '.join(known) or 'none'}")
        found, root = known[name], Root(known[name].folder)
        if file:
            return root.read(file, 1_000_000).decode("utf-8", "replace")
        files = sorted(
            each.relative_to(found.folder).as_posix()
            for each in found.folder.rglob("*")
            if each.is_file() and not each.is_symlink() and each.name != FILE
        )
        listed = "".join(f"\n- {each}" for each in files[:MAX_LISTED])
        return f"{found.body}\n\n[the skill lies in {found.folder}{'; its files:' if listed else ''}{listed}]"

    return skill
