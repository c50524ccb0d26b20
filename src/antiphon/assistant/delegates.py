"""Work that the assistant gives away: up to eight agents at once, each with a conversation of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta, Struct

from antiphon import Tool, ToolContext, ToolError, tool
from antiphon.assistant.worktrees.slots import SLOTS
from antiphon.assistant.worktrees.workers import Workers
from antiphon.errors import EffectFailed

MAX_TASKS = 8
"""Agents that work at once."""
EXPLORER = "explorer"
"""Who reads and reports."""


class DelegatedTask(Struct, frozen=True, forbid_unknown_fields=True):
    """Work for one agent. title: a few words for people. task: all that it is told. writes: it changes files,
    in a git worktree."""

    title: Annotated[str, Meta(min_length=1, max_length=80)]
    task: Annotated[str, Meta(min_length=1)]
    writes: bool = False


def delegate_tool(workers: Workers | None) -> Tool:
    """`delegate`, for agents that may call the explorer. workers: who does what changes files; None: nobody
    does."""

    @tool(effect="read", kind="search", title="Give work away", exclusive=True, timeout=600)
    async def delegate(
        ctx: ToolContext, tasks: Annotated[list[DelegatedTask], Meta(min_length=1, max_length=MAX_TASKS)]
    ) -> str:
        """Have agents read and report, up to eight at once, and wait for all of them.

        Args:
            tasks: who does what; each agent knows its own task and nothing else. One with `writes` (at most
                four) changes files in a git worktree; what it changed is handed over as one patch.
        """
        writing = sum(each.writes for each in tasks)
        if writing and workers is None:
            raise ToolError(
                "Nobody writes here: this folder is not the root of a git repository with a commit"
            )
        if writing > SLOTS:
            raise ToolError(f"At most {SLOTS} tasks write at once; got {writing}")
        found = await asyncio.gather(
            *[_report(ctx, workers, number, each) for number, each in enumerate(tasks, 1)]
        )
        return _joined(tasks, found)

    return delegate


async def _report(ctx: ToolContext, workers: Workers | None, number: int, given: DelegatedTask) -> str:
    """What came of one task; of one that failed why, and what there is of it."""
    try:
        if given.writes and workers is not None:
            return await workers.work(ctx, number, given.title, given.task)
        return await ctx.call(EXPLORER, given.task)
    except EffectFailed as error:
        return f"[{error.outcome}: {error}]\n{error.partial}".rstrip()


def _joined(tasks: Sequence[DelegatedTask], reports: Sequence[str]) -> str:
    if len(tasks) == 1:
        return reports[0]
    return "\n\n".join(
        f"## {number}. {each.title}\n{report}"
        for number, (each, report) in enumerate(zip(tasks, reports, strict=True), 1)
    )
