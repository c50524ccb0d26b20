"""Documents read: from bytes to texts with their lines and headings, by what the name ends in.

`plain.py` reads prose and code, `html.py` pages, `pdf.py` PDF (the extra `knowledge`), `office.py` what
offices write (the extra `office`). Each raises `ToolError` with the reason when there is nothing to read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from antiphon.errors import ToolError
from antiphon.tools.folder.readers import plain
from antiphon.tools.folder.readers.html import read_html
from antiphon.tools.folder.readers.office import office_not_installed, read_office
from antiphon.tools.folder.readers.pdf import pdf_not_installed, read_pdf
from antiphon.tools.folder.text.passages import DocumentText

VERSION = 2
"""Grows when a reader finds something else in the same bytes: what was indexed is then read again."""

Reader = Callable[[str, bytes], DocumentText]
"""Called with the path and the bytes. Raises ToolError."""

_PROSE = "md markdown mdx rst txt text adoc org tex"
_CODE = (
    "py pyi js ts tsx jsx java go rs c h cc cpp hpp cs rb php swift kt scala sh bash lua sql r jl "
    "css toml yaml yml ini cfg conf json xml csv"
)
_NAMELESS_TEXT = "readme license licence copying notice authors changelog contributing makefile dockerfile"
_NAMELESS = frozenset(_NAMELESS_TEXT.split())
_READERS: Mapping[str, Reader] = {
    **dict.fromkeys(_PROSE.split(), plain.read_prose),
    **dict.fromkeys(_CODE.split(), plain.read_code),
    **dict.fromkeys(("html", "htm", "xhtml"), read_html),
    "pdf": read_pdf,
    **dict.fromkeys(("docx", "pptx", "xlsx"), read_office),
}


def reader_of(path: str) -> Reader | None:
    """Who reads a file of this name; None when it is no document."""
    stem, dot, ending = path.rpartition("/")[2].rpartition(".")
    if dot and stem:
        return _READERS.get(ending.lower())
    return plain.read_prose if (stem or ending).lower() in _NAMELESS else None


def not_installed(path: str) -> str:
    """Why nobody here reads a file of this name, and what to install; empty where somebody does."""
    reader = reader_of(path)
    if reader is read_pdf:
        return pdf_not_installed(path)
    return office_not_installed(path) if reader is read_office else ""


def is_code(path: str) -> bool:
    """Whether a file of this name is source code or data rather than something written to be read."""
    return reader_of(path) is plain.read_code


def read_document(path: str, data: bytes) -> DocumentText:
    """What a document says. Raises ToolError: no document by its name, or not readable, with the reason."""
    reader = reader_of(path)
    if reader is None:
        raise ToolError(f"{path} is no document that is known by its name")
    return reader(path, data)


def read_as(ending: str, path: str, data: bytes) -> DocumentText:
    """The same of what is named otherwise: read as files with this ending, such as `pdf`, are."""
    reader = _READERS[ending]
    return read_office(path, data, f".{ending}") if reader is read_office else reader(path, data)
