"""HTML: the text that is shown, by the line of the source on which it stands."""

from __future__ import annotations

import time
from collections.abc import Callable
from html.parser import HTMLParser

from msgspec import Struct

from antiphon.errors import ToolError
from antiphon.tools.folder.root import decoded
from antiphon.tools.folder.text.passages import DocumentText, pieces

MAX_HTML = 5_000_000
"""Bytes; longer pages are no documents."""
SECONDS = 10.0
"""A page that is made to be read for ever is given up after so long."""
_CHUNK = 1 << 16
"""Characters between two looks at the clock."""
_HIDDEN = frozenset({"script", "style", "template", "noscript", "svg", "head"})
_ASIDE = frozenset({"nav", "footer", "aside"})
"""What stands on every page of a host."""
_SHORT = 200
"""Characters below which a page is shown with what stands aside, too."""
MAX_LINKS = 5_000
"""Links that are found on a page."""
_HEADINGS = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
_INLINE_TEXT = (
    "a abbr b bdi bdo cite code data dfn em font i img kbd label mark q s samp small span strong sub sup "
    "time tt u var wbr"
)
_INLINE = frozenset(_INLINE_TEXT.split())


class HtmlPage(Struct, frozen=True):
    """A page of the web. links: where they lead, as it is written, and their words; base: what that is
    relative to, empty for the page itself."""

    title: str
    text: DocumentText
    links: tuple[tuple[str, str], ...]
    base: str


def read_html(path: str, data: bytes) -> DocumentText:
    """Sections begin at headings; scripts, styles and the head are left out, but for the title."""
    page = _fed(path, data, lambda: _ShownText(_HIDDEN))
    if page.title and 0 not in page.headings:
        page.headings[0] = page.title
    return DocumentText("html", page.lines or [(1, page.title)], page.headings)


def read_page(path: str, data: bytes) -> HtmlPage:
    """The same of a page of the web: without what stands aside of its text (navigation, footer), and with its
    links. Raises ToolError."""
    page = _fed(path, data, lambda: _ShownText(_HIDDEN | _ASIDE))
    if sum(len(text) for _, text in page.lines) < _SHORT:
        page = _fed(path, data, lambda: _ShownText(_HIDDEN))
    text = DocumentText("html", page.lines, page.headings)
    return HtmlPage(page.title, text, tuple(page.links), page.base_address)


def _fed(path: str, data: bytes, make: Callable[[], _ShownText]) -> _ShownText:
    if len(data) > MAX_HTML:
        raise ToolError(f"{path} has {len(data)} bytes; pages of at most {MAX_HTML} are read")
    page = make()
    text, end = decoded(data, path), time.monotonic() + SECONDS
    for start in range(0, len(text), _CHUNK):
        page.feed(text[start : start + _CHUNK])
        if time.monotonic() > end:
            raise ToolError(f"{path} can not be read within {SECONDS:g} seconds")
    # Of a tag or comment that has no end nothing is shown, and looking for it once more takes for ever.
    if len(page.rawdata) <= _CHUNK:
        page.close()
    page.end_block()
    return page


class _ShownText(HTMLParser):
    """Collects blocks of text. An element that is never closed does no harm but for what hides."""

    def __init__(self, hiding: frozenset[str]) -> None:
        super().__init__()
        self._hiding = hiding
        self.links: list[tuple[str, str]] = []
        self.base_address = ""
        self._link: tuple[str, list[str]] | None = None
        self.lines: list[tuple[int, str]] = []
        self.headings: dict[int, str] = {}
        self.title = ""
        self._block: list[str] = []
        self._line = 0
        self._hidden: list[str] = []
        self._heading = False
        self._titled = False
        self._kept = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "body":
            self._hidden.clear()
        if tag in self._hiding:
            self._hidden.append(tag)
        if tag in ("a", "base"):
            self._leads(tag, dict(attrs).get("href") or "")
        self._titled = tag == "title" and "svg" not in self._hidden
        self._kept += tag == "pre"
        if tag not in _INLINE:
            self.end_block()
            self._heading = tag in _HEADINGS

    def _leads(self, tag: str, href: str) -> None:
        if tag == "base":
            self.base_address = self.base_address or href
        else:
            self._end_link()
            self._link = (href, []) if href and not self._hidden else None

    def _end_link(self) -> None:
        if self._link is not None and len(self.links) < MAX_LINKS:
            self.links.append((self._link[0], " ".join(" ".join(self._link[1]).split())[:200]))
        self._link = None

    def handle_endtag(self, tag: str) -> None:
        if tag == "a":
            self._end_link()
        if tag in self._hidden:
            del self._hidden[self._hidden.index(tag) :]
        self._titled = False
        if tag not in _INLINE:
            self.end_block()
            self._heading = False
        self._kept = max(self._kept - (tag == "pre"), 0)

    def handle_data(self, data: str) -> None:
        if self._titled:
            self.title = self.title or " ".join(data.split())[:200]
        if self._hidden or self._titled:
            return
        if self._link is not None:
            self._link[1].append(data)
        first = self.getpos()[0]
        for offset, part in enumerate(data.split("\n")):
            # A heading stays whole; any other text ends with its line in the source, to be cited by it.
            if offset and not self._heading:
                self.end_block()
            if part.strip():
                self._line = self._line or first + offset
            # A blank between words counts wherever an element ends; one before all of them in `pre` alone.
            if part.strip() or self._block or self._kept:
                self._block.append(part)

    def end_block(self) -> None:
        """What was collected is a text of its own."""
        text = "".join(self._block)
        text = text.rstrip() if self._kept else " ".join(text.split())
        if text.strip():
            if self._heading:
                self.headings[len(self.lines)] = text[:200]
            self.lines.extend((self._line, piece) for piece in pieces(text))
        self._block.clear()
        self._line = 0
