"""Tools that ship with Antiphon. All of them only read.

folder_tools(path)   search_documents, list_files, read_lines, count_text, folder_statistics
date_tools(clock)    today, weekday, days_between, date_add
calculate, convert   exact arithmetic, units of measure
"""

from __future__ import annotations

import os

from antiphon.tool import Tool
from antiphon.tools.arithmetic import calculate
from antiphon.tools.dates import date_tools
from antiphon.tools.documents import document_tools
from antiphon.tools.files import file_tools
from antiphon.tools.root import Root
from antiphon.tools.units import convert

__all__ = ["calculate", "convert", "date_tools", "document_tools", "file_tools", "folder_tools"]


def folder_tools(root: str | os.PathLike[str]) -> list[Tool]:
    """The tools that read one folder, confined to it. Raises `ConfigError` when it is not a folder."""
    folder = Root(root)
    return [*document_tools(folder), *file_tools(folder)]
