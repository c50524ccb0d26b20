"""What stands on a page, for a model: its title, its text, its links; read by what its host says that it
is."""

from __future__ import annotations

import re

import httpx2
from msgspec import Struct

from antiphon.errors import ToolError
from antiphon.tools.folder.attachments import MAX_PICTURE, picture_type
from antiphon.tools.folder.readers import read_as
from antiphon.tools.folder.readers.html import read_page
from antiphon.tools.folder.text.passages import DocumentText
from antiphon.tools.web.address import web_url
from antiphon.tools.web.client import WebAnswer
from antiphon.values.message import Attachment
from antiphon.values.secret import shown

PICTURES = ("image/png", "image/jpeg", "image/gif", "image/webp")
_HTML = ("text/html", "application/xhtml+xml")
_ENDINGS = {
    "application/pdf": "pdf",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
    "application/vnd.openxmlformats-officedocument.presentationml.presentation": "pptx",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
    "text/markdown": "md",
}
_TEXT = re.compile(r"text/.+|application/(?:.+\+)?(?:json|xml|yaml|toml|javascript|x-ndjson)")
_CHARSET = re.compile(r"""charset\s*=\s*["']?\s*([A-Za-z0-9_.:-]{2,30})""", re.IGNORECASE)
_KNOWN = re.compile(
    r"utf-?(?:8|16(?:-?[lb]e)?)|(?:us-)?ascii|iso-?8859-\d{1,2}|latin-?1|windows-\d{3,4}|cp\d{3,4}|koi8-[ru]"
    r"|shift[_-]?jis|euc-(?:jp|kr)|iso-2022-jp|gb(?:k|2312|18030)|big5|macintosh|tis-620"
)
_SNIFFED = 2048
"""Bytes of a page in which it may say how its letters are written."""


class WebPage(Struct, frozen=True):
    """A page as it was read. text: of a picture none. links: addresses with their words, as often as once."""

    url: str
    title: str
    text: DocumentText
    links: tuple[tuple[str, str], ...] = ()
    picture: Attachment | None = None


def read_answer(answer: WebAnswer) -> WebPage:
    """The page that a host answered with. Takes as long as its readers; raises ToolError for what has no
    text."""
    url, kind, data = str(answer.url), answer.kind, answer.body
    if kind in PICTURES:
        # Models refuse a request with a picture that is none, and with it all that the agent has been told.
        if len(data) > MAX_PICTURE or picture_type(data) != kind:
            raise ToolError(f"{shown(url)} is no {kind} of at most {MAX_PICTURE:,} bytes")
        picture = Attachment(kind, data, name=_name(answer.url))  # type: ignore[arg-type]
        return WebPage(url, "", DocumentText("picture", []), picture=picture)
    if not kind:
        kind = _HTML[0] if data.lstrip()[:1] == b"<" else "text/plain"
    if kind in _HTML:
        page = read_page(url, _as_utf8(answer))
        return WebPage(url, page.title, page.text, _links(answer.url, page.base, page.links))
    if kind in _ENDINGS:
        text = _as_utf8(answer) if kind.startswith("text/") else data
        return WebPage(url, "", read_as(_ENDINGS[kind], url, text))
    if _TEXT.fullmatch(kind):
        return WebPage(url, "", read_as("txt", url, _as_utf8(answer)))
    raise ToolError(
        f"{shown(url)} is {shown(kind)}, which is not read; text, HTML, JSON, PDF and pictures are"
    )


def _as_utf8(answer: WebAnswer) -> bytes:
    """A text in UTF-8, whatever it was written in; what cannot be read stands as a mark."""
    data = answer.body
    if data[:2] in (b"\xff\xfe", b"\xfe\xff") or data[:3] == b"\xef\xbb\xbf":
        return data
    said = _CHARSET.search(answer.headers.get("content-type", ""))
    if said is None and answer.kind in (*_HTML, ""):
        said = _CHARSET.search(data[:_SNIFFED].decode("latin-1"))
    name = said[1].lower() if said else ""
    if not _KNOWN.fullmatch(name) or name in ("utf-8", "utf8"):
        return data
    # What calls itself Latin-1 on the web is Windows' kind of it.
    plain = name in ("iso-8859-1", "iso8859-1", "latin-1", "latin1", "ascii", "us-ascii")
    try:
        return data.decode("cp1252" if plain else _python_name(name), "replace").encode()
    except LookupError:
        return data


def _python_name(name: str) -> str:
    known = {"macintosh": "mac-roman", "gb2312": "gb18030", "gbk": "gb18030", "shift-jis": "shift_jis"}
    return known.get(name, name.replace("windows-", "cp"))


def _links(page: httpx2.URL, base: str, found: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    """Links that can be visited, each once, with the first words it has."""
    known: dict[str, str] = {}
    try:
        within = web_url(base, page) if base else page
    except ToolError:
        within = page
    for href, words in found:
        if href.lstrip().startswith("#"):
            continue
        try:
            url = str(web_url(href, within))
        except ToolError:
            continue
        if url != str(page) and not known.get(url):
            known[url] = words
    return tuple(known.items())


def _name(url: httpx2.URL) -> str:
    return url.path.rpartition("/")[2][:100] or "picture"
