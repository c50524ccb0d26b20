"""finding: what was found wrong in a file, and where."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct


class SourceLocation(Struct, frozen=True, gc=False, order=True):
    """Where something stands. line, column: from 1, 0 for the whole file. path: from the root of the file."""

    file: str
    line: int = 0
    column: int = 0
    path: str = ""

    def __str__(self) -> str:
        where = ":".join(str(part) for part in (self.file, self.line, self.column) if part)
        return f"{where}: {self.path}" if self.path else where


class Diagnostic(Struct, frozen=True, order=True):
    """An error keeps what stands there from being used; a warning does not."""

    place: SourceLocation
    text: str
    severity: Literal["error", "warning"] = "error"

    @property
    def labelled(self) -> str:
        """The place, the severity, the text: for lists that hold errors and warnings."""
        return str(self) if self.severity == "warning" else f"{self.place}: error: {self.text}"

    def __str__(self) -> str:
        return f"{self.place}: {'warning: ' if self.severity == 'warning' else ''}{self.text}"
