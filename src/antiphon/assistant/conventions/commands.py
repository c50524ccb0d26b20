"""A user's own commands: Markdown files that are said in the place of `/name`."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable
from pathlib import Path

from msgspec import Struct

from antiphon.assistant.conventions.front_matter import read_front_matter
from antiphon.assistant.conventions.places import read_inside
from antiphon.errors import ConfigError

KNOWN = ("description", "argument-hint", "allowed-tools", "model", "name")
"""Keys of a command's head; `allowed-tools` and `model` say nothing here."""
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
MAX_COMMANDS = 200
_SCRIPT = re.compile(r"!`([^`\n]+)`")
_PLACE = re.compile(r"\$(ARGUMENTS|[1-9])")


class UserCommand(Struct, frozen=True):
    """What `/name` says. hint: what may follow the name. scripts: lines of sh whose output stands in it."""

    name: str
    body: str
    path: Path
    description: str = ""
    hint: str = ""

    @property
    def scripts(self) -> tuple[str, ...]:
        """Lines of sh in it, each written `` !`line` ``."""
        return tuple(_SCRIPT.findall(self.body))

    def said(self, arguments: str, run: Callable[[str], str]) -> str:
        """What is said with what follows the name: in the place of `$ARGUMENTS`, and its words in those of
        `$1` to `$9`; after it, where it has no such place. run: the output of a script."""
        try:
            words = shlex.split(arguments)
        except ValueError:
            words = arguments.split()
        # Of what was typed nothing is run, and what a script writes is taken as it is.
        parts = _SCRIPT.split(self.body)
        placed = False

        def filled(found: re.Match[str]) -> str:
            nonlocal placed
            placed = True
            if found[1] == "ARGUMENTS":
                return arguments
            return words[int(found[1]) - 1] if int(found[1]) <= len(words) else ""

        told = [run(each) if at % 2 else _PLACE.sub(filled, each) for at, each in enumerate(parts)]
        return "".join(told) + (f"\n\n{arguments}" if arguments and not placed else "")


def find_commands(
    folders: Iterable[tuple[Path, Path | None]],
) -> tuple[dict[str, UserCommand], list[ConfigError]]:
    """The commands in folders of commands by name, of two of one name the later one; and what is wrong.
    Beside each folder stands the one that its files lie in, links followed; None: anywhere."""
    found: dict[str, UserCommand] = {}
    faults: list[ConfigError] = []
    for folder, root in folders:
        for path in sorted(folder.glob("*.md"))[:MAX_COMMANDS]:
            try:
                if not NAME.fullmatch(path.stem):
                    raise ConfigError("a command's name is letters, digits, '-' and '_'", str(path))
                head = read_front_matter(read_inside(path, root), str(path), KNOWN, ())
            except ConfigError as error:
                faults.append(error)
                continue
            faults.extend(head.faults)
            if not head.body:
                faults.append(ConfigError("says nothing, and is left out", str(path)))
                continue
            about = " ".join(head.values.get("description", "").split())
            hint = head.values.get("argument-hint", "")
            found[path.stem] = UserCommand(path.stem, head.body, path, about, hint)
    return found, faults
