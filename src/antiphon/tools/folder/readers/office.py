"""Word, PowerPoint and Excel files, turned into Markdown by markitdown (the extra `office`)."""

from __future__ import annotations

from pathlib import PurePosixPath

from antiphon.errors import ToolError
from antiphon.tools.folder.readers.apart import QUIET, is_installed, read_apart
from antiphon.tools.folder.readers.plain import read_prose
from antiphon.tools.folder.text.passages import DocumentText

MEMORY = 4 << 30
"""Bytes of address space; the libraries alone map more than one gigabyte."""

_PROGRAM = """
import base64, io, json, logging
logging.disable(logging.CRITICAL)
asked = json.load(sys.stdin)
os.environ.update(asked["quiet"])
try:
    from markitdown import MarkItDown
    found = MarkItDown(enable_plugins=False).convert_stream(
        io.BytesIO(base64.b64decode(asked["data"])), file_extension=asked["ending"]
    )
    told = {"text": found.text_content}
except Exception as error:
    told = {"error": "can not be read: %s: %s" % (type(error).__name__, " ".join(str(error).split())[:200])}
sys.stdout.buffer.write(json.dumps(told).encode("ascii"))
"""


def office_not_installed(path: str) -> str:
    """What to install so that this file can be read; empty where that is there."""
    if is_installed("markitdown"):
        return ""
    return f"{path}: office files are read with the extra `office`: pip install 'antiphon[office]'"


def read_office(path: str, data: bytes) -> DocumentText:
    """The Markdown made of it. Raises ToolError: markitdown is missing, or what it says."""
    if reason := office_not_installed(path):
        raise ToolError(reason)
    ending = PurePosixPath(path).suffix.lower()
    found = read_apart(path, _PROGRAM, data, memory=MEMORY, ending=ending, quiet=QUIET)
    read = read_prose(path, found["text"].encode("utf-8", "replace"))
    return DocumentText("office", read.lines, read.headings, read.solid)
