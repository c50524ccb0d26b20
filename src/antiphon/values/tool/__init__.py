"""Tools: functions that models may call, with a contract of what they do to the world.

Lives here: `tool.py`, what a tool is; `definition.py`, how one is made of a function or of a JSON Schema;
`context.py`, what it may know of its call; `results.py`, what becomes of what it returns. May import:
`errors`, `schema` and the rest of `values`; nothing that knows a run.
"""

from antiphon.values.tool.context import Dependency, ToolContext
from antiphon.values.tool.definition import OfferTool, ToolOptions, as_tool, tool, tool_from
from antiphon.values.tool.results import Done, result_of
from antiphon.values.tool.tool import Effect, Tool

__all__ = [
    "Dependency",
    "Done",
    "Effect",
    "OfferTool",
    "Tool",
    "ToolContext",
    "ToolOptions",
    "as_tool",
    "result_of",
    "tool",
    "tool_from",
]
