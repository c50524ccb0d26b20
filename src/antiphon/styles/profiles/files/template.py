"""template: texts with `{{ path }}` in them.

What is put in is put in as it is: it is never read for braces again. Single braces are text, since prompts
are full of JSON.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Struct

from antiphon.styles.profiles.conditions.path import fault

MISSING: Any = msgspec.UNSET
"""What a reader answers when nothing stands at a path."""


class Slot(Struct, frozen=True, gc=False):
    """A place to be filled. written: as it stands in the text. offset: where, in characters."""

    path: str
    written: str
    offset: int


class Template(Struct, frozen=True):
    """A text taken apart. odd: what stands in double braces, is no path, and so stays as it is."""

    text: str
    parts: tuple[str | Slot, ...]
    odd: tuple[Slot, ...] = ()

    @property
    def slots(self) -> tuple[Slot, ...]:
        """The places to be filled, in order."""
        return tuple(part for part in self.parts if isinstance(part, Slot))

    @property
    def whole(self) -> str:
        """The path when the text is one slot and nothing else; else empty."""
        return self.slots[0].path if self.slots and self.text.strip() == self.slots[0].written else ""


def read_template(text: str) -> Template:
    """Take a text apart; one pass, and every text is a template."""
    parts: list[str | Slot] = []
    odd: list[Slot] = []
    said = at = 0
    while (end := text.find("}}", at)) >= 0:
        start = text.rfind("{{", at, end)
        at = end + 2
        if start < 0:
            continue
        slot = Slot(text[start + 2 : end].strip(), text[start:at], start)
        if fault(slot.path):
            odd.append(slot)
            continue
        parts += [text[said:start], slot]
        said = at
    parts.append(text[said:])
    return Template(text, tuple(part for part in parts if part), tuple(odd))


def render(template: Template, read: Callable[[str], Any]) -> str:
    """The text with every slot filled by what `read` answers to its path.

    Texts are put in as they are, null as nothing, anything else as JSON; a slot whose value is MISSING stays.
    """
    return "".join(
        part if isinstance(part, str) else _filled(part, read(part.path)) for part in template.parts
    )


def _filled(slot: Slot, value: Any) -> str:
    if value is MISSING:
        return slot.written
    if value is None:
        return ""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
