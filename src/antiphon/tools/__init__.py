"""Tools that ship with Antiphon. All of them only read.

folder_tools(path)   search_documents, list_files, folder_statistics, read_lines, count_text
date_tools(clock)    today, weekday, days_between, date_add
calculate, convert   exact arithmetic, units of measure
"""

from antiphon.tools.arithmetic import calculate
from antiphon.tools.dates import date_tools
from antiphon.tools.folder import folder_tools
from antiphon.tools.units import convert

__all__ = ["calculate", "convert", "date_tools", "folder_tools"]
