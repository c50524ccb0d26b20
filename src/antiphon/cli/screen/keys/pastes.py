"""What was pasted and would fill the screen: a marker in the editor, and the text again when it is sent."""

from __future__ import annotations

import mimetypes
import re
import shlex
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import unquote, urlsplit

from antiphon.values.message import Attachment

LINES, CHARACTERS = 10, 1_000
"""Beyond one of these a paste is folded."""
IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
MAX_IMAGE = 10_000_000
"""Bytes of an image that is taken along."""
_MARKER = re.compile(r"\[(?:pasted|image) [0-9]+: [^\[\]\n]*\]")


class Pastes:
    """What stands behind the markers of one editor."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}
        self._images: dict[str, Attachment] = {}
        self._count = 0

    def take(self, text: str) -> str:
        """What is to be written for something that was pasted: itself, or a marker."""
        image = image_at(text.strip()) if len(text) < CHARACTERS else None
        if image is not None:
            marker = self._marker("image", _plain(image.name))
            self._images[marker] = image
            return marker
        lines = text.count("\n") + 1
        if lines <= LINES and len(text) <= CHARACTERS:
            return text
        marker = self._marker("pasted", f"{lines:,} lines" if lines > 1 else f"{len(text):,} characters")
        self._texts[marker] = text
        return marker

    def _marker(self, kind: str, what: str) -> str:
        self._count += 1
        return f"[{kind} {self._count}: {what}]"

    def whole(self, text: str) -> str:
        """A text with what its markers stand for; that of an image stays."""
        return _MARKER.sub(lambda found: self._texts.get(found[0], found[0]), text)

    def images(self, text: str) -> tuple[Attachment, ...]:
        """The images whose markers are in a text."""
        return tuple(self._images[each] for each in _MARKER.findall(text) if each in self._images)

    def ends_with(self, text: str) -> str:
        """The marker that a text ends with; empty where it ends with none of these."""
        last = [found[0] for found in _MARKER.finditer(text) if found.end() == len(text)]
        return last[0] if last and (last[0] in self._texts or last[0] in self._images) else ""

    def keep(self, texts: Iterable[str]) -> None:
        """Forget what no marker in these stands for."""
        named = {each for text in texts for each in _MARKER.findall(text)}
        self._texts = {each: text for each, text in self._texts.items() if each in named}
        self._images = {each: image for each, image in self._images.items() if each in named}


def image_at(text: str) -> Attachment | None:
    """The image file that a text names, as terminals paste a file that is dropped on them: plain, quoted,
    with escaped blanks, as a URL. None: it names none that is there, or a large one."""
    if not text or "\n" in text or "\0" in text:
        return None
    try:
        words = shlex.split(text)
    except ValueError:
        return None
    names = [text, *words[:1]] if len(words) == 1 else [text]
    if text.startswith("file://"):
        names = [unquote(urlsplit(text).path)]
    for name in names:
        kind = mimetypes.guess_type(name)[0]
        path = Path(name).expanduser() if name.startswith("~/") else Path(name)
        try:
            if kind in IMAGES and path.is_file() and path.stat().st_size <= MAX_IMAGE:
                return Attachment(kind, path.read_bytes(), name=path.name)  # type: ignore[arg-type]
        except (OSError, ValueError):
            return None
    return None


def _plain(name: str) -> str:
    return re.sub(r"[\[\]\n]", "_", name)[:60]
