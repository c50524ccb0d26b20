"""Tools that read and change one folder and nothing outside of it."""

from __future__ import annotations

import os

from antiphon.tools.folder.documents import document_tools
from antiphon.tools.folder.edits import edit_tools
from antiphon.tools.folder.files import file_tools
from antiphon.tools.folder.root import Root
from antiphon.values.tool import Tool

__all__ = ["edit_tools", "folder_tools"]


def folder_tools(root: str | os.PathLike[str]) -> list[Tool]:
    """`search_documents`, `list_files`, `folder_statistics`, `read_lines`, `count_text`, confined to `root`.

    Raises `ConfigError` when it is not a folder.
    """
    folder = Root(root)
    return [*document_tools(folder), *file_tools(folder)]
