"""Tools that hand on files as they are: a picture to the agent's own model, any file to whoever asked."""

from __future__ import annotations

from pathlib import PurePosixPath

from antiphon.errors import ToolError
from antiphon.tools.folder.root import Root
from antiphon.values.message import Attachment
from antiphon.values.model import Example
from antiphon.values.tool import Tool, ToolContext, tool

MAX_PICTURE = 5_000_000
"""Bytes; what providers take of one picture."""
MAX_ATTACHED = 20_000_000
_PICTURES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)
_TYPES = {
    ".csv": "text/csv", ".html": "text/html", ".json": "application/json", ".md": "text/markdown",
    ".pdf": "application/pdf", ".svg": "image/svg+xml", ".txt": "text/plain", ".xml": "application/xml",
    ".zip": "application/zip",
}  # fmt: skip
_VIEWS = {
    "What is in the picture chart.png?": "chart.png",
    "Look at docs/logo.jpg": "docs/logo.jpg",
    "Describe the screenshot shots/start.png": "shots/start.png",
}
_ATTACHED = {
    "Send me report.pdf": "report.pdf",
    "Give me the file data/prices.csv": "data/prices.csv",
    "Attach docs/logo.png to your answer": "docs/logo.png",
}


def attachment_tools(root: Root) -> list[Tool]:
    """The tools `view_image` and `attach_file` over one folder."""
    views = tuple(Example(asked, "view_image", {"path": path}) for asked, path in _VIEWS.items())
    attached = tuple(Example(asked, "attach_file", {"path": path}) for asked, path in _ATTACHED.items())

    @tool(effect="read", kind="read", timeout=30, title="Look at a picture", examples=views)
    def view_image(path: str) -> list[str | Attachment]:
        """Look at a picture: PNG, JPEG, GIF or WebP.

        Args:
            path: a file, relative.
        """
        data = root.read(path, MAX_PICTURE)
        name = "/".join(root.parts(path))
        found = picture_type(data)
        if not found:
            raise ToolError(f"{name} is no picture in PNG, JPEG, GIF or WebP")
        shown = Attachment(found, data, name=PurePosixPath(name).name)  # type: ignore[arg-type]
        return [f"{name} ({len(data)} bytes, {found})", shown]

    @tool(effect="read", kind="read", timeout=30, title="Attach a file", examples=attached)
    def attach_file(ctx: ToolContext, path: str) -> str:
        """Give a file to whoever asked, beside your answer. You are not shown what is in it.

        Args:
            path: a file, relative.
        """
        data = root.read(path, MAX_ATTACHED)
        name = PurePosixPath("/".join(root.parts(path)))
        found = picture_type(data) or _TYPES.get(name.suffix.lower(), "application/octet-stream")
        ctx.attach(Attachment(found, data, name=name.name))  # type: ignore[arg-type]
        return f"{name} is attached ({len(data)} bytes)"

    return [view_image, attach_file]


def picture_type(data: bytes) -> str:
    """What a picture is by how it begins; empty for anything else."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((found for begin, found in _PICTURES if data.startswith(begin)), "")
