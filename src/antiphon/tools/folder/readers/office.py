"""Word, PowerPoint and Excel files, turned into Markdown by markitdown (the extra `office`)."""

from __future__ import annotations

from pathlib import PurePosixPath

from antiphon.errors import ToolError
from antiphon.tools.folder.readers.apart import QUIET, is_installed, read_apart
from antiphon.tools.folder.readers.plain import read_prose
from antiphon.tools.folder.text.passages import DocumentText

MEMORY = 4 << 30
"""Bytes of address space; the libraries alone map more than one gigabyte."""

MAX_UNPACKED = 200_000_000
"""Bytes that a file says it unpacks to; of more the libraries would make many times as much."""
_PARTS = {".docx": "word/document.xml", ".pptx": "ppt/presentation.xml", ".xlsx": "xl/workbook.xml"}
"""What a file of a kind holds. markitdown reads anything else as a text, or as a list of what is packed."""

_PROGRAM = """
import base64, io, json, logging, zipfile
logging.disable(logging.CRITICAL)
asked = json.load(sys.stdin)
os.environ.update(asked["quiet"])
data = io.BytesIO(base64.b64decode(asked["data"]))
try:
    parts = {each.filename: each.file_size for each in zipfile.ZipFile(data).infolist()}
    if asked["part"] not in parts:
        told = {"error": "can not be read: it is packed, and no %s file" % asked["ending"]}
    elif sum(parts.values()) > asked["most"]:
        told = {"error": "can not be read: it unpacks to more than %d bytes" % asked["most"]}
    else:
        from markitdown import MarkItDown
        data.seek(0)
        found = MarkItDown(enable_plugins=False).convert_stream(data, file_extension=asked["ending"])
        told = {"text": found.text_content}
except zipfile.BadZipFile:
    told = {"error": "can not be read: it is broken, encrypted, or no %s file" % asked["ending"]}
except Exception as error:
    told = {"error": "can not be read: %s: %s" % (type(error).__name__, " ".join(str(error).split())[:200])}
sys.stdout.buffer.write(json.dumps(told).encode("ascii"))
"""


def office_not_installed(path: str) -> str:
    """What to install so that this file can be read; empty where that is there."""
    if is_installed("markitdown"):
        return ""
    return f"{path}: office files are read with the extra `office`: pip install 'antiphon[office]'"


def read_office(path: str, data: bytes, ending: str = "") -> DocumentText:
    """The Markdown made of it. ending: what it is read as, unless its own says that: `.docx`. Raises
    ToolError: markitdown is missing, or what it says."""
    if reason := office_not_installed(path):
        raise ToolError(reason)
    ending = ending or PurePosixPath(path).suffix.lower()
    found = read_apart(
        path,
        _PROGRAM,
        data,
        memory=MEMORY,
        ending=ending,
        part=_PARTS[ending],
        most=MAX_UNPACKED,
        quiet=QUIET,
    )
    read = read_prose(path, found["text"].encode("utf-8", "replace"))
    return DocumentText("office", read.lines, read.headings, read.solid)
