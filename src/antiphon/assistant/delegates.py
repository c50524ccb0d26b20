"""Work that the assistant gives away: up to eight agents at once, each with a conversation of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta, Struct

from antiphon import Tool, ToolContext, tool
from antiphon.errors import EffectFailed

MAX_TASKS = 8
"""Agents that work at once."""
EXPLORER = "explorer"
"""Who reads and reports."""


class DelegatedTask(Struct, frozen=True, forbid_unknown_fields=True):
    """Work for one agent. title: a few words for people. task: all that it is told."""

    title: Annotated[str, Meta(min_length=1, max_length=80)]
    task: Annotated[str, Meta(min_length=1)]


def delegate_tool() -> Tool:
    """`delegate`, for agents that may call the explorer."""

    @tool(effect="read", kind="search", title="Give work away", exclusive=True)
    async def delegate(
        ctx: ToolContext, tasks: Annotated[list[DelegatedTask], Meta(min_length=1, max_length=MAX_TASKS)]
    ) -> str:
        """Have agents read and report, up to eight at once, and wait for all of them.

        Args:
            tasks: who does what; each agent knows its own task and nothing else.
        """
        found = await asyncio.gather(*[_report(ctx, EXPLORER, each.task) for each in tasks])
        return _joined(tasks, found)

    return delegate


async def _report(ctx: ToolContext, agent: str, task: str) -> str:
    """What came of one task; of one that failed why, and what there is of it."""
    try:
        return await ctx.call(agent, task)
    except EffectFailed as error:
        return f"[{error.outcome}: {error}]\n{error.partial}".rstrip()


def _joined(tasks: Sequence[DelegatedTask], reports: Sequence[str]) -> str:
    if len(tasks) == 1:
        return reports[0]
    return "\n\n".join(
        f"## {number}. {each.title}\n{report}"
        for number, (each, report) in enumerate(zip(tasks, reports, strict=True), 1)
    )
