"""Commands run by the tools alone, without a run; and what they leave."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from antiphon.errors import ToolError
from antiphon.tools.shell import Workspace, program_tools, shell_tools
from antiphon.values.tool import ToolContext


async def shell(workspace: Workspace, line: str, seconds: int = 20, *, background: bool = False) -> str:
    """What the tool says of a line."""
    tools = {each.name: each for each in shell_tools(workspace)}
    found = await tools["shell"].function(ToolContext(), line, seconds, background)
    return str(found.content)


def told(workspace: Workspace, line: str, seconds: int = 20) -> str:
    return asyncio.run(shell(workspace, line, seconds))


def written(workspace: Workspace, line: str) -> str:
    """What a line wrote, without how it ended."""
    return told(workspace, line).partition("\n")[2]


def ran(workspace: Workspace, argv: list[str], allow: Iterable[str]) -> str:
    tools = {each.name: each for each in program_tools(workspace, list(allow))}
    try:
        return str(asyncio.run(tools["run_program"].function(ToolContext(), argv)).content)
    except ToolError as error:
        return f"refused: {error}"


def until(true: Callable[[], bool], seconds: float = 60) -> None:
    """Look again and again, since processes tell nobody of what they do."""
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it has not come"


def living(word: str) -> list[str]:
    """The command lines of processes that hold a word."""
    found = []
    for each in os.listdir("/proc"):
        if each.isdigit() and int(each) != os.getpid():
            try:
                line = (
                    Path(f"/proc/{each}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                )
                state = Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()[0]
            except OSError:
                continue
            if word in line and state != "Z":
                found.append(line)
    return found
