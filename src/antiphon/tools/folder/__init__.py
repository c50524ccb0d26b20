"""Tools that read and change one folder and nothing outside of it."""

from __future__ import annotations

import os

from antiphon.tools.folder.attachments import attachment_tools
from antiphon.tools.folder.documents import document_tools
from antiphon.tools.folder.edits import edit_tools
from antiphon.tools.folder.files import file_tools
from antiphon.tools.folder.grep import grep_tools
from antiphon.tools.folder.root import Root
from antiphon.values.tool import Tool

__all__ = ["edit_tools", "folder_tools"]


def folder_tools(root: str | os.PathLike[str]) -> list[Tool]:
    """`search_documents`, `list_files`, `folder_statistics`, `read_lines`, `count_text`, `grep_files`,
    `find_files`, `view_image` and `attach_file`, confined to `root`.

    Raises `ConfigError` when it is not a folder.
    """
    folder = Root(root)
    return [
        *document_tools(folder),
        *file_tools(folder),
        *grep_tools(folder),
        *attachment_tools(folder),
    ]
