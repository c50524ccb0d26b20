"""Reading what a model was shown only in part: tool results that were cut or removed, by their handle.

Agent("reader", tools=[search, read_output, grep_output])
"""

from __future__ import annotations

import json
import subprocess

from antiphon.errors import ToolError
from antiphon.kernel.context import output_store
from antiphon.tools.child import run_alone
from antiphon.values.tool import ToolContext, tool

SECONDS = 5.0
"""How long a search may take; a pattern that takes longer is given up."""


@tool(effect="read", timeout=SECONDS)
def read_output(ctx: ToolContext, handle: str, offset: int = 1, limit: int = 200) -> str:
    """Read lines of an earlier tool result that was cut or removed.

    Args:
        handle: The handle that was shown in place of the text.
        offset: Number of the first line, from 1.
        limit: How many lines at most.
    """
    return output_store.read(_kept(ctx, handle), offset, limit)


@tool(effect="read", timeout=SECONDS)
def grep_output(
    ctx: ToolContext, handle: str, pattern: str, regex: bool = False, around: int = 0, most: int = 50
) -> str:
    """Search an earlier tool result that was cut or removed; gives matching lines with their numbers.

    Args:
        handle: The handle that was shown in place of the text.
        pattern: What to look for.
        regex: Whether the pattern is a regular expression.
        around: Lines shown before and after each match.
        most: How many matches at most.
    """
    lines = _kept(ctx, handle).split("\n")
    hits = _search(lines, pattern) if regex else output_store.find(lines, pattern)
    return output_store.matches(lines, hits, pattern, max(around, 0), max(most, 1))


_PROGRAM = """
import json, re, sys
asked = json.load(sys.stdin)
try:
    found = re.compile(asked["pattern"])
except (re.error, OverflowError, RecursionError) as error:
    json.dump(str(error), sys.stdout)
else:
    json.dump([i for i, line in enumerate(asked["lines"]) if found.search(line)], sys.stdout)
"""


def _search(lines: list[str], pattern: str) -> list[int]:
    """The indexes of the lines that match a regular expression.

    In a process of its own: Python's matcher lets no other thread run, and some patterns never end.
    """
    given = json.dumps({"pattern": pattern, "lines": lines})
    try:
        told = run_alone(_PROGRAM, given, seconds=SECONDS * 0.8)
    except subprocess.TimeoutExpired as error:
        raise ToolError("The search took too long; use a simpler pattern") from error
    except subprocess.CalledProcessError as error:
        if error.returncode < 0:
            raise ToolError("The search took too long; use a simpler pattern") from error
        raise ToolError("The search needs too much memory; use a simpler pattern, or regex=false") from error
    except OSError as error:
        raise ToolError("Regular expressions cannot be searched for here; use regex=false") from error
    found = json.loads(told)
    if isinstance(found, str):
        raise ToolError(f"The pattern is not a regular expression: {found}")
    return list(found)


def _kept(ctx: ToolContext, handle: str) -> str:
    text = ctx.read_output(handle)
    if text is None:
        raise ToolError(f"No output is kept under the handle {handle!r}; call the tool again if you need it")
    return text
