"""A text file as bytes and back: encoding, byte order mark and line ends stay as they are. Pure."""

from __future__ import annotations

import codecs
import re
from collections import Counter
from collections.abc import Sequence

from msgspec import Struct

from antiphon.errors import ToolError
from antiphon.tools.folder.text.matching import Placed

_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_END = re.compile(r"\r\n|\r|\n")


class FileText(Struct, frozen=True, eq=False):
    """What stands in a text file: `text` with LF at the end of each line."""

    name: str
    text: str
    encoding: str = "utf-8"
    mark: bytes = b""
    ends: Sequence[str] = ()
    """Of each line, where they are not all LF."""

    @property
    def end(self) -> str:
        """How its lines end, most of them."""
        return Counter(self.ends).most_common(1)[0][0] if self.ends else "\n"

    def changed(self, placed: Sequence[Placed]) -> bytes:
        """The file with edits made. Raises ToolError for letters that its encoding does not have."""
        parts: list[str] = []
        at = line = 0
        for each in placed:
            kept = self.text[at : each.start]
            parts.append(self._ended(kept, line))
            line += kept.count("\n")
            parts.append(self._ended(each.new, line, line + self.text.count("\n", each.start, each.end)))
            line += self.text.count("\n", each.start, each.end)
            at = each.end
        parts.append(self._ended(self.text[at:], line))
        return self._encoded("".join(parts))

    def replaced(self, text: str) -> bytes:
        """The file with another text, whose lines end as most of its lines do. Raises ToolError."""
        plain = _END.sub("\n", text)
        return self._encoded(plain.replace("\n", self.end) if self.ends else plain)

    def _ended(self, text: str, line: int, upto: int | None = None) -> str:
        """A text with the line ends of the file, from a line on; those from `upto` on are new."""
        if not self.ends:
            return text
        first, *rest = text.split("\n")
        made = [first]
        for number, each in enumerate(rest, line):
            own = number < len(self.ends) and (upto is None or number < upto)
            made += [self.ends[number] if own else self.end, each]
        return "".join(made)

    def _encoded(self, text: str) -> bytes:
        try:
            return self.mark + text.encode(self.encoding)
        except UnicodeEncodeError as error:
            raise ToolError(
                f"{self.name} is written in {self.encoding}, which has no {text[error.start]!r}; "
                "its encoding is not changed"
            ) from error


def read_text(data: bytes, name: str) -> FileText:
    """The text of a file: UTF-8, UTF-16 with its mark, else Latin-1. Raises ToolError for what is no text."""
    mark, encoding = next(((each, named) for each, named in _MARKS if data.startswith(each)), (b"", "utf-8"))
    body = data[len(mark) :]
    if b"\0" in body[:8192] and not encoding.startswith("utf-16"):
        raise ToolError(f"{name} is a binary file, not text")
    try:
        text = body.decode(encoding)
    except UnicodeDecodeError as error:
        if mark:
            raise ToolError(f"{name} is not text: {error.reason}") from error
        text, encoding = body.decode("latin-1"), "latin-1"
    if "\r" not in text:
        return FileText(name, text, encoding, mark)
    ends = _END.findall(text)
    return FileText(name, _END.sub("\n", text), encoding, mark, ends)
