"""PDF, read by pypdf in a process of its own.

Lines are those of the extracted text, counted through the whole document; sections are its pages.
"""

from __future__ import annotations

from antiphon.errors import ToolError
from antiphon.tools.folder.readers.apart import is_installed, read_apart
from antiphon.tools.folder.text.passages import DocumentText, lines_of, numbered

MAX_TEXT = 20_000_000
"""Characters of text that are taken from one document."""

_PROGRAM = """
import base64, io, json, logging
logging.disable(logging.CRITICAL)
asked = json.load(sys.stdin)
told = {"pages": []}
try:
    import pypdf
    document = pypdf.PdfReader(io.BytesIO(base64.b64decode(asked["data"])))
    if document.is_encrypted and not document.decrypt(""):
        told = {"error": "is encrypted; a copy without a password can be read"}
    else:
        size = 0
        for page in document.pages:
            told["pages"].append(page.extract_text() or "")
            size += len(told["pages"][-1])
            if size > asked["limit"]:
                break
except MemoryError:
    told = {"error": "needs too much memory to be read"}
except Exception as error:
    what = " ".join(str(error).split())[:200]
    needs = "cryptography" in what or "AES" in what
    told = {"error": "is encrypted; a copy without a password can be read" if needs
            else "is no PDF that can be read: %s: %s" % (type(error).__name__, what)}
sys.stdout.buffer.write(json.dumps(told).encode("ascii"))
"""


def pdf_not_installed(path: str) -> str:
    """What to install so that this file can be read; empty where that is there."""
    if is_installed("pypdf"):
        return ""
    return f"{path}: PDF is read with the extra `knowledge`: pip install 'antiphon[knowledge]'"


def read_pdf(path: str, data: bytes) -> DocumentText:
    """Raises ToolError: pypdf is missing, the file is broken, encrypted, without text, or takes too long."""
    if reason := pdf_not_installed(path):
        raise ToolError(reason)
    found = read_apart(path, _PROGRAM, data, limit=MAX_TEXT)
    lines: list[str] = []
    begins: dict[int, str] = {}
    for number, page in enumerate(found["pages"], 1):
        own = lines_of(page.encode("utf-8", "replace").decode())
        if any(line.strip() for line in own):
            begins[len(lines) + 1] = f"page {number}"
        lines.extend(own)
    if not begins:
        raise ToolError(f"{path} holds no text; its pages may be pictures")
    texts = numbered(lines)
    headings: dict[int, str] = {}
    for at, (line, _) in enumerate(texts):
        if line in begins:
            headings.setdefault(at, begins.pop(line))
    return DocumentText("pdf", texts, headings)
