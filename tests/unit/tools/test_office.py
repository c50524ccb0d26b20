"""Word, PowerPoint and Excel files become Markdown, in a process of their own; what is none says why."""

from __future__ import annotations

import io
import zipfile

import pytest

from antiphon.errors import ToolError
from antiphon.tools.folder.readers import read_as, read_document

pytest.importorskip("markitdown", reason="the extra `office` is not installed")
openpyxl = pytest.importorskip("openpyxl", reason="it comes with the extra `office`")
pptx = pytest.importorskip("pptx", reason="it comes with the extra `office`")
pytestmark = pytest.mark.slow  # each is read by a process that imports markitdown

WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
TYPE = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"


def packed(parts: dict[str, str]) -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as file:
        for name, text in parts.items():
            file.writestr(name, text)
    return held.getvalue()


def word(*paragraphs: tuple[str, str]) -> bytes:
    """A document of these paragraphs: style and text."""
    body = "".join(
        f'<w:p><w:pPr><w:pStyle w:val="{style}"/></w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>'
        for style, text in paragraphs
    )
    return packed({
        "[Content_Types].xml": f'<Types xmlns="{PACKAGE}/content-types">'
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'<Override PartName="/word/document.xml" ContentType="{TYPE}"/></Types>',
        "_rels/.rels": f'<Relationships xmlns="{PACKAGE}/relationships">'
        f'<Relationship Id="r" Type="{OFFICE}/officeDocument" Target="word/document.xml"/></Relationships>',
        "word/document.xml": f'<w:document xmlns:w="{WORD}"><w:body>{body}</w:body></w:document>',
    })  # fmt: skip


def sheet() -> bytes:
    book, held = openpyxl.Workbook(), io.BytesIO()
    book.active.title = "Prices"
    book.active.append(["drink", "price"])
    book.active.append(["tea", 3])
    book.save(held)
    return held.getvalue()


def slides() -> bytes:
    show, held = pptx.Presentation(), io.BytesIO()
    slide = show.slides.add_slide(show.slide_layouts[1])
    slide.shapes.title.text, slide.placeholders[1].text = "Tides", "The moon pulls."
    show.save(held)
    return held.getvalue()


@pytest.mark.parametrize(
    ("path", "data", "lines", "headings"),
    [
        (
            "a.docx",
            lambda: word(("Heading1", "Tides"), ("Normal", "The moon pulls.")),
            ["# Tides", "The moon pulls."],
            ["Tides"],
        ),
        ("b/a.XLSX", sheet, ["## Prices", "| drink | price |", "| tea | 3 |"], ["Prices"]),
        ("a.pptx", slides, ["# Tides", "The moon pulls."], ["Tides"]),
    ],
)
def test_what_offices_write_is_read(path, data, lines, headings) -> None:
    found = read_document(path, data())
    assert found.kind == "office"
    assert set(lines) <= {text for _, text in found.lines}
    assert list(found.headings.values()) == headings


def test_one_that_is_named_otherwise_is_read_as_what_it_is() -> None:
    found = read_as("docx", "https://sea.test/tides?as=docx", word(("Normal", "The moon pulls.")))
    assert [text for _, text in found.lines] == ["The moon pulls."]


@pytest.mark.parametrize("path", ["a.docx", "a.xlsx", "a.pptx"])
@pytest.mark.parametrize("data", [b"", b"no zip", packed({"a.txt": "x"}), word(("Normal", "x"))[:200]])
def test_what_is_none_says_why(path, data) -> None:
    with pytest.raises(ToolError, match=rf"^{path} can not be read"):
        read_document(path, data)


def test_one_that_unpacks_to_more_than_there_is_room_for_costs_its_bounds() -> None:
    bomb = word(("Normal", " " * 200_000_001))
    assert len(bomb) < 1_000_000
    with pytest.raises(ToolError, match=r"^a\.docx can not be read: it unpacks to more than 200000000 bytes"):
        read_document("a.docx", bomb)
