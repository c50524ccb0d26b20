"""One agent that finds out from log files what went wrong, and writes a ticket: an agent in a loop of tools.

    antiphon run examples/incident "Why did checkout fail at noon?" --folder examples/incident/logs
    antiphon chat examples/incident --folder examples/incident/logs

It counts and reads lines as often as it needs to; each figure in its answer comes from a tool. Reading is
allowed, the ticket asks for permission.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta

from antiphon import ToolContext, ToolError, tool
from antiphon.errors import ConfigError
from antiphon.styles.loop import LoopAgent

PROMPT = """You find out what went wrong, from the log files of a shop. First count, to see when it began \
and ended and what it concerned; then read the lines around the beginning and the end. What happened at \
the same time need not be the cause: look for what explains the first failure and the last one, and say \
which other explanation you have ruled out, and how. Every figure and time in your answer is one that a \
tool gave you. When you know the cause, write a ticket with write_ticket, and answer in a few sentences. \
If the logs do not show the cause, say so."""

LARGEST = 50_000_000
"""Bytes of log that are read."""
TIME = re.compile(r"^(\d{4}-\d\d-\d\d)T(\d\d:\d\d):\d\dZ ")
REQUEST = re.compile(r'^\S+ (?P<host>\S+) "\w+ (?P<path>\S+)" (?P<status>\d{3}) ')

Words = Annotated[str, Meta(max_length=200, description="What a line must hold; none: every line.")]
Clock = Annotated[str, Meta(pattern="^(([01][0-9]|2[0-3]):[0-5][0-9]|24:00)$", description="12:05, UTC.")]


def matching(files: list[Path], words: str, after: str, before: str) -> Iterator[str]:
    """The lines from `after` on and before `before` that hold all the words."""
    # Whole words: 504 is a status, and no part of 504ms.
    wanted = [re.compile(rf"(?<!\w){re.escape(each)}(?!\w)", re.IGNORECASE) for each in words.split()]
    for path in files:
        with path.open(encoding="utf-8", errors="replace") as file:
            for line in file:
                at = TIME.match(line)
                if at and after <= at[2] < before and all(each.search(line) for each in wanted):
                    yield line.rstrip("\n")


@tool(effect="idempotent")
def write_ticket(
    ctx: ToolContext[Any], title: Annotated[str, Meta(min_length=5, max_length=120)], text: str
) -> str:
    """Write a ticket: a title, and what happened, the cause, and what would prevent it, in Markdown."""
    if len(text) > 20_000:
        raise ToolError(f"The text has {len(text):,} characters; 20,000 at most")
    # Named after the call: done again after a crash it is the same ticket, not a second one.
    path = Path("tickets", re.sub(r"\W+", "-", f"{ctx.run_id[:8]}-{ctx.effect_id}") + ".md")
    path.parent.mkdir(exist_ok=True)
    part = path.with_name(f".{path.name}.part")
    part.write_text(f"# {title}\n\n{text.strip()}\n", "utf-8")
    os.replace(part, path)
    return f"{path}"


def team(folder: Path) -> LoopAgent:
    """The agent, reading the .log files of `folder`. Raises ConfigError when there are none."""
    files = sorted(path for path in folder.glob("*.log") if path.is_file())
    if not files:
        raise ConfigError("holds no .log files; name their folder with --folder", str(folder))
    if (size := sum(path.stat().st_size for path in files)) > LARGEST:
        raise ConfigError(f"holds {size:,} bytes of logs; {LARGEST:,} are read", str(folder))

    @tool(effect="read")
    def count_lines(
        words: Words = "",
        by: Literal["minute", "host", "path", "status", "nothing"] = "nothing",
        after: Clock = "00:00",
        before: Clock = "24:00",
    ) -> str:
        """Count log lines from `after` on and before `before`. Only requests have a host, path and status."""
        groups: Counter[str] = Counter(_group(line, by) for line in matching(files, words, after, before))
        if not groups:
            return "No line."
        listed = sorted(groups.items()) if by == "minute" else groups.most_common(60)
        more = f"\n… and {len(listed) - 60} more minutes" if len(listed) > 60 else ""
        return "\n".join(f"{name}: {number}" for name, number in listed[:60]) + more

    @tool(effect="read")
    def read_log(
        words: Words = "", after: Clock = "00:00", before: Clock = "24:00",
        at_most: Annotated[int, Meta(ge=1, le=60)] = 20,
    ) -> str:  # fmt: skip
        """Read log lines from `after` on and before `before`, the first ones when there are more."""
        found = list(matching(files, words, after, before))
        told = [each[:300] for each in found[:at_most]]
        return "\n".join([*told, f"{len(told)} of {len(found)} lines"])

    return LoopAgent(
        name="investigator",
        description="finds out from log files what went wrong",
        system_prompt=PROMPT,
        tools=[count_lines, read_log, write_ticket],
        max_iterations=40,
    )


def _group(line: str, by: str) -> str:
    """What a line counts for."""
    if by == "nothing":
        return "lines"
    if by == "minute":
        found = TIME.match(line)
        return found[2] if found else "?"
    request = REQUEST.match(line)
    return request[by] if request else "(no request)"
