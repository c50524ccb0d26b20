"""A news desk over the dispatches of a morning: stories by priority, two at a time, each with its deadline.

    .venv/bin/python examples/newsdesk/team.py --model openai:gpt-5-mini
    antiphon run examples/newsdesk '{"content": "Storm Petra", "target_agent": "reporter"}' --folder …

A reporter looks a subject up in the dispatches and hands it over to the editor, whose text is the result. A
story that is not there by its deadline is given up, and the others appear all the same. The archive makes a
file of each that is finished.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from antiphon import Agent, Model
from antiphon.errors import AntiphonError
from antiphon.models.script import Script, call
from antiphon.styles.tasks import Controller, StructuredMessage, Worker
from antiphon.tools import folder_tools
from antiphon.values.actions import ActionContext
from antiphon.values.model import ModelRequest

WIRE = Path(__file__).parent / "wire"

REPORTER = """You report. Find every dispatch about the subject, read each one whole, and hand all of it \
over to the editor with call_agent and handoff: what is known, since when, who says so, in which file. \
What a later dispatch corrects is told as corrected. Add nothing, and say so if there is no dispatch \
about the subject."""

EDITOR = """You edit. Make a headline and one paragraph of what you are given, in Markdown, the newest \
first. Each figure keeps its source in brackets: [CPA 0715]. Where dispatches contradict each other the \
correction counts. Nothing is in it that you were not given."""


def news_desk(wire: Path, archive: Path, model: str | Model | None = None) -> Controller:
    """The desk. wire: the folder of dispatches. archive: the folder that stories are kept in."""

    async def keep(ctx: ActionContext) -> str:
        (story,) = ctx.new_messages
        path = archive / f"{story.task_id}.md"
        # Done again after a crash it writes the same file.
        await ctx.step("keep", write, str(path), story.content)
        return path.name

    names = ("search_documents", "list_files", "folder_statistics", "read_lines")
    tools = [each for each in folder_tools(wire) if each.name in names]
    reporter = Agent("reporter", REPORTER, tools=tools, model=model, description="reports on a subject")
    editor = Agent("editor", EDITOR, model=model, description="makes a story of what is known", can_call=())
    return Controller(
        [Worker(reporter, concurrency=2), Worker(editor), Worker("archive", act=keep)], name="desk"
    )


def write(path: str, text: str) -> None:
    """Write a file, whole or not at all."""
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f".{target.name}.part")
    part.write_text(text.strip() + "\n", "utf-8")
    os.replace(part, target)


def story(subject: str, priority: str = "medium", deadline: str = "30m") -> StructuredMessage:
    """A story to be reported; its thread is named after the subject."""
    data = {"priority": priority, "deadline": deadline}
    return StructuredMessage.create_task(subject, "desk", "reporter", data, _named(subject))


def kept(reply: StructuredMessage) -> StructuredMessage:
    """A finished story to be kept, in the same thread."""
    return StructuredMessage.create_task(reply.content, "desk", "archive", task_id=reply.task_id)


def _named(subject: str) -> str:
    return re.sub(r"\W+", "-", subject.casefold()).strip("-")[:60] or "story"


def team(folder: Path) -> list[Agent]:
    """The desk for the command line, which gives it one task as JSON. folder: the dispatches."""
    return news_desk(folder, Path("stories")).agents()


def script() -> Script:
    """No model: a reporter that hands over what a search finds, and an editor that quotes it."""

    def reports(request: ModelRequest) -> Any:
        last = request.messages[-1]
        if last.role == "user":
            return call("search_documents", query=last.content, count=10)
        return call("call_agent", agent_name="editor", message=last.content, handoff=True)

    def edits(request: ModelRequest) -> str:
        passages = re.findall(r"^(\S+):\d+-\d+\n((?:>.*\n?)+)", request.messages[0].content, re.MULTILINE)
        newest = sorted(passages, reverse=True)
        told = [f"{_plain(text)} [{name.partition('-')[0]}]" for name, text in newest]
        return "\n\n".join(told) or "There is no dispatch about it."

    return Script({"reporter": reports, "editor": edits}, name="script of the example")


def _plain(quoted: str) -> str:
    return " ".join(line.lstrip("> ") for line in quoted.splitlines()).strip()


async def report(desk: Controller, stories: Sequence[StructuredMessage]) -> int:
    """Have stories written and kept; how many did not appear."""
    replies = await desk.run_tasks(stories)
    done = [each for each in replies if each.metadata["status"] == "completed"]
    files = await desk.run_tasks([kept(each) for each in done])
    names = {each.task_id: each.content for each in files}
    for each, reply in zip(stories, replies, strict=True):
        told = names.get(reply.task_id) or f"not there: {reply.content}"
        print(f"{each.metadata['priority']:>7}  {each.content}: {told}")
    return len(replies) - len(done)


def main(arguments: Sequence[str] | None = None) -> int:
    """0: every story appeared; 1: some did not; 3: nothing could be done."""
    parser = argparse.ArgumentParser(prog="team.py", description=__doc__.partition("\n")[0])
    add = parser.add_argument
    add("stories", nargs="*", metavar="SUBJECT[:PRIORITY[:DEADLINE]]", help="such as 'Storm Petra:high:5m'")
    add("--wire", type=Path, default=WIRE, help="the dispatches [default: those of the example]")
    add("--archive", type=Path, default=Path("stories"), help="[default: %(default)s]")
    add("--model", help="such as openai:gpt-5-mini [default: a script that quotes the dispatches]")
    given = parser.parse_args(arguments)
    if given.model is None:
        print("by a script that quotes the dispatches; --model NAME has them reported", file=sys.stderr)
    wanted = given.stories or ["City library:low", "Harbour strike:medium", "Storm Petra:high:5m"]
    stories = [story(*each.split(":", 2)) for each in wanted]
    try:
        desk = news_desk(given.wire, given.archive, given.model or script())
        return min(1, asyncio.run(report(desk, stories)))
    except AntiphonError as error:
        print(f"error: {error}", file=sys.stderr)
        return 3


if __name__ == "__main__":
    sys.exit(main())
