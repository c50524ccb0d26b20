"""A run as one HTML file that any browser opens: no server, no network, nothing to install.

    path.write_bytes(page(records, prefixes, name="tides"))

The file holds the program that draws the run, its styles and fonts, and the run as frames. Whatever an agent
wrote stands in it as data that no browser takes for markup, and its policy lets only the program in it run.
The program is `assets/`, which `ui/` is built into; the wheel has it.
"""

from __future__ import annotations

import base64
import hashlib
import html
import re
from collections.abc import Iterable, Mapping
from importlib.resources import files

import msgspec
from msgspec import Struct

from antiphon.errors import UserError
from antiphon.kernel.facts.records import Record
from antiphon.values.codec import HARMFUL, visible
from antiphon.view.frames import Frame, FrameReader

WHOLE = 2_000_000
"""Characters of a text and of a file's base64, bytes of a value: a page in a file can ask nobody for the
rest, so very few are cut."""
_MARKUP = re.compile(f"[<>&]|{HARMFUL.pattern}")
"""What could end the block of data, or steer who looks at the file in an editor or a terminal."""


class PageRun(Struct, frozen=True):
    """What the program finds in the file."""

    name: str
    """What people call the run."""
    made_at: float
    """When the file was made, Unix seconds."""
    frames: list[Frame]
    """Every record."""
    prefixes: Mapping[str, msgspec.Raw]
    """System prompts and tools as they were sent, by the digest that model calls name."""


def page(
    records: Iterable[Record], prefixes: Mapping[str, bytes], *, name: str = "", made_at: float = 0.0
) -> bytes:
    """The file. Raises UserError where the program that draws a run was not built."""
    reader = FrameReader(text=WHOLE, value=WHOLE, files=WHOLE)
    frames = [reader.add(each) for each in records]
    kept = {digest: msgspec.Raw(data) for digest, data in prefixes.items()}
    data = msgspec.json.encode(PageRun(name, made_at, frames, kept)).decode()
    script, style = _asset("file.js"), _asset("file.css")
    title = html.escape(visible(f"{name or 'A run'} · Antiphon"))
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{_policy(script, style)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>{title}</title>
<style>{style}</style></head>
<body><div id="root"></div>
<script type="application/json" id="run">{_MARKUP.sub(_escaped, data)}</script>
<script type="module">{script}</script></body></html>
""".encode()


def is_built() -> bool:
    """Whether the page of a server is here."""
    return (files("antiphon.view.page") / "assets" / "served" / "index.html").is_file()


def prefixes_of(records: Iterable[Record]) -> set[str]:
    """The digests of all prompts that the model calls of a run name."""
    reader = FrameReader(text=0, value=0)
    changes = (change for each in records for change in reader.add(each).changes)
    return {name for each in changes if (name := getattr(each, "prefix", ""))}


def _policy(script: str, style: str) -> str:
    return (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; font-src data:;"
        " img-src data:; base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _asset(name: str) -> str:
    try:
        return (files("antiphon.view.page") / "assets" / name).read_text("utf-8")
    except FileNotFoundError:
        raise UserError(
            "The program that draws a run was not built here. It comes with the wheel; in a clone,"
            " scripts/page.sh builds it with Node 20 or newer"
        ) from None


def _escaped(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code > 0xFFFF:
        code -= 0x10000
        return f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"
    return f"\\u{code:04x}"
