"""Readers: what a document says, by the line on which it stands; a hostile one costs a reason and no more."""

from __future__ import annotations

import io

import pypdf
import pytest

from antiphon.errors import ToolError
from antiphon.tools.folder.readers import html, is_code, office, pdf, read_document, reader_of
from antiphon.tools.folder.text.passages import FENCED, PASSAGE, Passage, passages
from tests.unit.tools import documents_made


def cut(path: str, text: str | bytes) -> list[Passage]:
    data = text.encode() if isinstance(text, str) else text
    return passages(path, read_document(path, data))


def test_lines_are_counted_as_editors_count_them() -> None:
    text = "# One\n\nfirst\x0cstill\u2028the third\r\n\r\n# Two\n\nseventh line\n"
    assert [(each.heading, each.first, each.last) for each in cut("a.md", text)] == [
        ("One", 1, 3),
        ("Two", 5, 7),
    ]


@pytest.mark.parametrize("fence", ["```", "~~~", "````"])
def test_a_block_of_code_stays_whole(fence: str) -> None:
    code = "\n".join(f"line {at} of code\n" for at in range(80))
    found = cut("a.md", f"# Title\n\n{fence}py\n{code}\n# no heading\n```x\n{fence}\n\n# After\n\nend\n")
    assert PASSAGE < len(code) < FENCED
    assert [each.heading for each in found] == ["Title", "After"]


def test_code_is_cut_at_definitions_and_small_ones_stay_together() -> None:
    body = "".join(f"    total += {at}\n" for at in range(60))
    head = "import os\n\n\n# What it does.\n@cached\n"
    tail = "def tiny(): ...\ndef tinier(): ...\n"
    text = f"{head}def first():\n{body}\n\nclass Second:\n{body}\n\n{tail}"
    found = cut("a.py", text)
    assert [each.heading for each in found] == ["first", "Second", "tiny"]
    assert found[0].first == 1
    assert "def tinier" in found[-1].text
    assert cut("a.rs", "pub async fn serve(x: u8) {}\n")[0].heading == "serve"
    assert cut("a.toml", "[tool.ruff]\nx = 1\n")[0].heading == "tool.ruff"


def test_html_is_cited_by_the_lines_of_its_source() -> None:
    page = (
        "<html><head><title>Sea</title><style>p{color:red}</style></head>\n<body>\n<h1>The\n Tide</h1>\n"
        "<p>It <b>rises</b> &amp;\nfalls.</p><script>alert('x')</script>\n<h2>Ships</h2><p>They sail.</p>\n"
        "<pre>  kept   apart\n  twice</pre></body></html>"
    )
    found = cut("a.html", page)
    assert [(each.heading, each.first, each.last, each.text) for each in found] == [
        ("The Tide", 3, 6, "The Tide\nIt rises &\nfalls."),
        ("Ships", 7, 9, "Ships\nThey sail.\n  kept   apart\n  twice"),
    ]


def test_a_page_without_line_breaks_is_cut_all_the_same() -> None:
    page = "<p>" + "</p><p>".join(f"paragraph {at} of many" for at in range(500)) + "</p>"
    found = cut("a.html", page)
    assert len(found) > 5
    assert all(each.first == each.last == 1 for each in found)
    assert all(len(each.text) < 3 * PASSAGE for each in cut("a.txt", "word " * 10_000))
    assert "".join(each.text for each in cut("a.txt", "x" * 10_000)).replace("\n", "") == "x" * 10_000


def test_a_page_reads_the_same_in_whatever_pieces_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    page = (
        "<title>Sea</title><h1>A &amp; B</h1><p class='x'>It <b>rises</b> <i>and</i>\n&lt; falls.<!-- --></p>"
        * 9
    )
    whole = cut("a.html", page)
    assert "It rises and\n< falls." in whole[0].text
    for size in (1, 2, 7, 50):
        monkeypatch.setattr(html, "_CHUNK", size)
        assert [each.text for each in cut("a.html", page)] == [each.text for each in whole]


def test_a_page_that_takes_for_ever_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(html, "SECONDS", -1.0)
    with pytest.raises(ToolError, match="can not be read within -1 seconds"):
        read_document("a.html", b"<p>")


@pytest.mark.parametrize(
    "page",
    [
        "<!" * 100_000,
        "<" * 10_000, "<div>" * 10_000, "<!--" * 1000, "</pre>" * 100, "<p a=" + '"' * 999,
        "&#xD800;&#0;", "<![CDATA[x",
    ],
)  # fmt: skip
def test_hostile_html_is_read_or_refused(page: str) -> None:
    for each in cut("a.html", page):
        each.text.encode()


def test_pages_of_a_pdf_are_its_sections() -> None:
    found = cut("a.pdf", documents_made.pdf("The moon pulls\nthe sea.", "Ships sail\non it."))
    assert [(each.heading, each.first, each.last, each.text) for each in found] == [
        ("page 1", 1, 2, "The moon pulls\nthe sea."),
        ("page 2", 3, 4, "Ships sail\non it."),
    ]
    slides = cut("a.pdf", documents_made.pdf("Tides", "", "Ships"))
    assert [(each.heading, each.text) for each in slides] == [("page 1", "Tides"), ("page 3", "Ships")]


def encrypted(algorithm: str) -> bytes:
    writer = pypdf.PdfWriter(io.BytesIO(documents_made.pdf("secret")))
    writer.encrypt("password", algorithm=algorithm)
    data = io.BytesIO()
    writer.write(data)
    return data.getvalue()


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (lambda: encrypted("RC4-128"), "a.pdf is encrypted"),
        (lambda: b"no PDF", "a.pdf is no PDF that can be read"),
        (lambda: documents_made.pdf("x")[:200], "a.pdf is no PDF that can be read"),
        (lambda: b"", "a.pdf is no PDF that can be read"),
        (lambda: documents_made.pdf(""), "a.pdf holds no text"),
    ],
)
def test_a_pdf_that_can_not_be_read_says_why(data: object, reason: str) -> None:
    with pytest.raises(ToolError, match=reason):
        read_document("a.pdf", data())  # type: ignore[operator]


def test_what_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pdf, "is_installed", lambda name: False)
    with pytest.raises(ToolError, match=r"pip install 'antiphon\[knowledge\]'"):
        read_document("a.pdf", b"")
    monkeypatch.setattr(office, "is_installed", lambda name: False)
    with pytest.raises(ToolError, match=r"pip install 'antiphon\[office\]'"):
        read_document("a.docx", b"")


def test_kinds_are_known_by_names() -> None:
    assert reader_of("a.png") is None
    assert reader_of("LICENSE") is not None
    assert is_code("a.py")
    assert not is_code("a.md")
    with pytest.raises(ToolError, match="no document"):
        read_document("a.png", b"")


def test_invalid_utf8_is_read_as_latin_1() -> None:
    assert cut("a.txt", b"caf\xe9 au lait\n")[0].text == "café au lait"
