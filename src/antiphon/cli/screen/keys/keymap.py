"""Which keys are pressed for what, and what a person's own file says of it.

editing: vi
keys:
  search-history: [ctrl-r, f3]
  open-editor: ctrl-x ctrl-e
  show-output: none
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

import yaml
from msgspec import Struct
from prompt_toolkit.keys import ALL_KEYS, KEY_ALIASES

from antiphon.config.yaml import YamlReader, compose_file, meant
from antiphon.errors import ConfigError

FILE = "keys.yaml"
Sequence = tuple[str, ...]
"""Keys that are pressed one after another, as prompt_toolkit calls them."""

ACTIONS: Mapping[str, tuple[str, str]] = MappingProxyType({
    # name: (keys, what it does)
    "send": ("enter", "sends; while an agent works it is told so before its next step"),
    "queue": ("alt-enter", "queues: sent when what goes on has ended"),
    "take-back": ("up", "in an empty editor takes back what was queued last"),
    "newline": ("ctrl-j", "a new line"),
    "stop": ("esc", "stops what goes on"),
    "rewind": ("", "goes back to an earlier message; so do two `stop` keys in an empty editor"),
    "mode": ("shift-tab", "the next mode, which says what is done unasked; see `/mode`"),
    "break": ("ctrl-c", "takes away what is written, or stops what goes on, or leaves"),
    "leave": ("ctrl-d", "in an empty editor leaves"),
    "search-history": ("ctrl-r", "searches what was sent before"),
    "open-editor": ("ctrl-g", "opens $VISUAL or $EDITOR on what is written"),
    "show-output": ("ctrl-o", "shows the whole of what was folded last"),
})  # fmt: skip
"""What a person may have another key for."""
_NAMED = {
    "esc": "escape", "pgup": "pageup", "pgdn": "pagedown", "del": "delete", "ins": "insert",
    "return": "enter",
}  # fmt: skip
_SHORT = {"ctrl": "c", "shift": "s"}
_WORD = re.compile(r"(?:(?:ctrl|alt|shift)-)*[^-\s]+|(?:(?:ctrl|alt|shift)-)*-")


class KeyMap(Struct, frozen=True):
    """Which keys do what. editing: `emacs` or `vi`. wrong: what in the file was left out, and why."""

    keys: Mapping[str, tuple[Sequence, ...]]
    editing: str = "emacs"
    wrong: tuple[str, ...] = ()


def parsed(text: str) -> Sequence:
    """`ctrl-x ctrl-e` as prompt_toolkit knows it. Raises ValueError saying what is no key."""
    found: list[str] = []
    for word in text.lower().split():
        found += _key(word)
    if not found:
        raise ValueError("names no key")
    if found[0] not in ALL_KEYS:
        raise ValueError(f"begins with {found[0]!r}, which could no longer be written; use ctrl- or alt-")
    return tuple(found)


def _key(word: str) -> Sequence:
    *modifiers, name = word.split("-") if _WORD.fullmatch(word) else ("", word)
    name = _NAMED.get(name, name)
    if unknown := [each for each in modifiers if each not in ("ctrl", "alt", "shift")]:
        raise ValueError(f"{word!r} is no key: {unknown[0]!r} is none of ctrl, alt and shift")
    short = "".join(f"{_SHORT[each]}-" for each in ("ctrl", "shift") if each in modifiers)
    key = f"{short}{name}"
    key = KEY_ALIASES.get(key, key)
    before = ("escape",) if "alt" in modifiers else ()
    if key in ALL_KEYS and not key.startswith("<"):
        return (*before, key)
    if not short and len(name) == 1 and name.isprintable():
        return (*before, name)
    raise ValueError(f"{word!r} is no key that a terminal sends; examples: ctrl-r, alt-e, f3, shift-tab, esc")


def shown(keymap: KeyMap, name: str) -> str:
    """What is pressed for an action, as people write it; empty where nothing is."""
    found = keymap.keys.get(name, ())
    return " ".join(_shown(each) for each in found[0]) if found else ""


def _shown(key: str) -> str:
    names = {"c-m": "Enter", "c-i": "Tab", "c-h": "Backspace", "escape": "Esc"}
    words = {"c": "Ctrl", "s": "Shift"}
    *modifiers, name = key.split("-")
    return names.get(key) or "-".join(
        [
            *(words.get(each, each) for each in modifiers),
            name.upper() if len(name) == 1 else name.capitalize(),
        ]
    )


DEFAULT = KeyMap({name: (parsed(keys),) if keys else () for name, (keys, _) in ACTIONS.items()})


def read_keymap(path: str | os.PathLike[str]) -> KeyMap:
    """What the file says, and elsewhere the default. What cannot be is left out, and named in `wrong`: with
    the file, the line and what to do."""
    if not Path(path).exists():
        return DEFAULT
    found = _KeyFile(os.fspath(path))
    try:
        root = compose_file(path)
        if root is not None:
            found.read(root)
    except ConfigError as error:
        found.wrong.append(str(error))
    return found.keymap()


class _KeyFile:
    """One file as it is read; every line that cannot be is noted, and the next one read."""

    def __init__(self, path: str) -> None:
        self.wrong: list[str] = []
        self._reader = YamlReader(path)
        self._keys: dict[str, tuple[Sequence, ...]] = {}
        self._editing = "emacs"
        self._whose: dict[Sequence, str] = {}

    def keymap(self) -> KeyMap:
        """What of it holds."""
        keys: dict[str, tuple[Sequence, ...]] = {}
        for name, usual in DEFAULT.keys.items():
            # Whoever gives a key to something else takes it away from what had it.
            keys[name] = self._keys.get(name, tuple(each for each in usual if each not in self._whose))
        return KeyMap(keys, self._editing, tuple(self.wrong))

    def read(self, root: yaml.Node) -> None:
        """Raises ConfigError where nothing of it can be read."""
        for name, (_, value) in self._reader.pairs(root, "").items():
            if name == "editing":
                self._editing_of(value)
            elif name == "keys":
                self._all(value)
            else:
                self._say(value, f"unknown key {name!r}{meant(name, ('editing', 'keys'))}")

    def _say(self, node: yaml.Node, text: str) -> None:
        self.wrong.append(str(self._reader.wrong(node, text)))

    def _editing_of(self, node: yaml.Node) -> None:
        if getattr(node, "value", None) in ("emacs", "vi"):
            self._editing = str(node.value)
        else:
            self._say(node, "editing is emacs or vi")

    def _all(self, node: yaml.Node) -> None:
        if not isinstance(node, yaml.MappingNode):
            self._say(node, "keys: expected lines such as `search-history: ctrl-r`")
            return
        for key, value in node.value:
            name = str(getattr(key, "value", ""))
            if name not in ACTIONS:
                self._say(key, f"there is nothing called {name[:60]!r}{meant(name, tuple(ACTIONS))}")
            elif name in self._keys:
                self._say(key, f"{name} stands here twice; the first one holds")
            else:
                self._keys[name] = tuple(self._sequences(name, value))

    def _sequences(self, name: str, node: yaml.Node) -> Iterator[Sequence]:
        for each in node.value if isinstance(node, yaml.SequenceNode) else [node]:
            if not isinstance(each, yaml.ScalarNode):
                self._say(each, f"{name}: expected a key such as ctrl-r, a list of them, or none")
                continue
            if each.value in ("none", "null", "~", ""):
                continue
            try:
                found = parsed(each.value[:100])
            except ValueError as error:
                self._say(each, f"{name}: {error}")
                continue
            if (whose := self._whose.get(found)) is not None:
                self._say(each, f"{name}: {each.value} is {whose} already; say another key for one of them")
                continue
            self._whose[found] = name
            yield found
