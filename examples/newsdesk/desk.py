"""A news desk: reporters who look things up, an editor who has the last word, an archive that keeps it.

from desk import news_desk, story
replies = await news_desk(Path("archive")).run_tasks([story("storm", "The storm of last night", "high")])

A reporter gathers what is known with a tool and hands the story over to the editor, whose text is the
task's result. Two stories are reported at the same time, the urgent ones first; one that is not there by
its deadline is given up, and the others appear all the same.

    antiphon run examples/newsdesk/desk.py:team --folder . --model script:examples/newsdesk/replies.yaml \
        '{"content": "The storm", "target_agent": "reporter"}'
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from antiphon import Agent, Model, Tool, tool
from antiphon.styles.tasks import Controller, StructuredMessage, Worker
from antiphon.values.actions import ActionContext

REPORTER = """You report. Look up what the wire says about the subject, then hand all of it over to the \
editor with call_agent and handoff, in your own words and without an opinion."""

EDITOR = """You edit. Make one paragraph of what you are given: the news first, nothing that is not there."""


@tool(effect="read")
def wire(subject: str) -> str:
    """What the agencies say about a subject."""
    return f"{subject}: nothing new"


def news_desk(
    archive: Path, model: str | Model | None = None, look_up: Tool | Callable[[str], str] = wire
) -> Controller:
    """The desk; stories it keeps are files in `archive`. look_up: what reporters know the news from."""

    async def keep(ctx: ActionContext) -> str:
        (story,) = ctx.new_messages
        path = archive / f"{story.task_id}.txt"
        # As a step it is done once, even if the process dies right after it.
        await ctx.step("keep", path.write_text, story.content, "utf-8")
        return path.name

    reporter = Agent("reporter", REPORTER, tools=[look_up], model=model, description="reports on a subject")
    editor = Agent("editor", EDITOR, model=model, description="makes a story of what is known", can_call=())
    return Controller(
        [Worker(reporter, concurrency=2), Worker(editor), Worker("archive", act=keep)], name="desk"
    )


def story(task_id: str, subject: str, priority: str = "medium", deadline: str = "30m") -> StructuredMessage:
    """A story to be reported."""
    data = {"priority": priority, "deadline": deadline}
    return StructuredMessage.create_task(subject, "desk", "reporter", data, task_id)


def kept(reply: StructuredMessage) -> StructuredMessage:
    """A finished story to be kept, in the same thread."""
    return StructuredMessage.create_task(reply.content, "desk", "archive", task_id=reply.task_id)


def team(folder: Path) -> list[Agent]:
    """The desk for the command line, which gives it one task as JSON; `folder` is the archive."""
    return news_desk(folder).agents()
