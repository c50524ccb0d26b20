"""A small repository with a bug, and one agent of each style that has the tools to mend it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from antiphon import open_run
from antiphon.cli.target import load_target
from antiphon.models.script import Script, call
from antiphon.styles.environment import Action, Environment, Message, Role
from antiphon.styles.loop import LoopAgent
from antiphon.styles.tasks import AgentToolkit, Controller, StructuredMessage, ToolCapableAgent
from antiphon.tools import edit_tools, folder_tools
from antiphon.tools.shell import shell_tools
from antiphon.values.policy import Grant, StandingRule
from antiphon.values.tool import Tool

RUN = "mending"
"""The run's id, in every style."""
CHECK = f"{sys.executable} -m unittest -q test_shop"
TEST = """
import unittest

import shop

with open("runs", "a") as runs:
    runs.write("run\\n")


class PriceTest(unittest.TestCase):
    def test_price(self):
        self.assertEqual(shop.price("tea"), 4)
        with open("gate") as gate:
            gate.read()
"""
"""Where the price is right, it ends only once somebody has opened the gate, a pipe, and let go of it."""


class Project:
    """A folder with a repository in it, and beside it the journal of whoever works there."""

    def __init__(self, place: Path) -> None:
        self.folder, self.place = place / "files", place
        self.journal = f"sqlite:///{place / 'runs.db'}"
        self.folder.mkdir()
        self.shop.write_text('PRICES = {"tea": 3}\n\n\ndef price(what):\n    return PRICES[what]\n')
        (self.folder / "test_shop.py").write_text(TEST)
        (self.folder / ".gitignore").write_text("__pycache__/\nruns\ngate\n")
        for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "a shop"]):
            who = ["-c", "user.name=ann", "-c", "user.email=ann@example.com", "-c", "commit.gpgsign=false"]
            subprocess.run(["git", "-C", self.folder, *who, *words], check=True, capture_output=True)
        os.mkfifo(self.gate)

    @property
    def shop(self) -> Path:
        return self.folder / "shop.py"

    @property
    def gate(self) -> Path:
        return self.folder / "gate"

    @property
    def runs(self) -> int:
        """How often the tests were run."""
        found = self.folder / "runs"
        return found.read_text().count("run") if found.exists() else 0

    def tools(self) -> list[Tool]:
        """What the sets `files`, `edits` and `shell` are, in code."""
        return [*folder_tools(self.folder), *edit_tools(self.folder), *shell_tools(self.folder)]

    def lines(self) -> list[Any]:
        """What the agent's model says: it looks, mends, and is told when somebody else was faster."""

        def after_somebody(request: Any) -> Any:
            self.shop.write_text(self.shop.read_text().replace('"tea": 3', '"tea": 3, "rum": 7'))
            return call("edit_file", path="shop.py", old='{"tea": 3}', new='{"tea": 4}')

        return [
            call("shell", command=CHECK),
            [call("grep_files", pattern="PRICES"), call("read_lines", path="shop.py")],
            after_somebody,
            call("edit_file", path="shop.py", old='"tea": 3', new='"tea": 4'),
            call("shell", command=CHECK),
            call("shell", command="git diff --stat"),
        ]


# -- each style, begun or gone on with ---------------------------------------------------------------


TEAM = """
agents:
- name: lead
  can_call: [mender]
- name: mender
  description: mends what is broken
  tools: [files, edits, shell]
"""
PROFILE = """
type: partner
tool_access_policy: {allowed_toolsets: [files, edits, shell]}
system_prompt_construction:
  system_prompt_segments:
  - {id: who, type: static_text, content: 'You are "mender".'}
flow_decider:
- {id: called, condition: "v['state.current_action']", action: {type: continue_with_tool}}
- {id: said, condition: "True", action: {type: end_agent_turn, outcome: success}}
"""
RULES = tuple(
    StandingRule(f"rule {number}", "project", "shop", tool, "allow", Grant(reach), author="ann")
    for number, (tool, reach) in enumerate([
        ("edit_file", (("path", "*.py"),)),
        ("shell", (("command", f"{sys.executable} -m unittest *"),)),
        ("shell", (("command", "git diff *"),)),
    ])
)  # fmt: skip
"""What a file names nobody has handed over in code: it is asked for, unless rules allow it."""


async def declared(project: Project, target: Any, model: Script, *, again: bool) -> None:
    """A team that files declare."""
    async with open_run(
        target.agents, journal=project.journal, run_id=RUN, create=True, model=model, rules=RULES,
        interactive=False,
    ) as run:  # fmt: skip
        await run.result("0/1.c1" if again else await run.post(target.entry, "The tests fail."))


async def delegation(project: Project, *, again: bool) -> None:
    file = project.place / "team.yaml"
    file.write_text(TEAM)
    lead = [call("call_agent", agent_name="mender", message="The tests fail."), "mended"]
    model = Script({"lead": lead, "mender": [*project.lines(), "mended"]}, by="turn")
    await declared(project, load_target(str(file), str(project.folder)), model, again=again)


async def loop(project: Project, *, again: bool) -> None:
    model = Script([*project.lines(), "mended"], by="turn")
    agent = LoopAgent(tools=project.tools(), llm=model, journal=project.journal)
    assert await agent.run(None if again else "The tests fail.", session=RUN) == "mended"


class Mend(Action):
    async def run(self, with_messages: Any = None, **kwargs: Any) -> str:
        return await self._aask(with_messages[-1].content)


async def environment(project: Project, *, again: bool) -> None:
    model = Script([*project.lines(), "mended"], by="turn")
    role = Role(name="Mender", tools=project.tools(), actions=[Mend], watch=["failure"])
    async with Environment(roles=[role], journal=project.journal, run_id=RUN, model=model) as env:
        if not again:
            env.publish_message(Message("The tests fail.", cause_by="failure"))
        await env.run(until_idle=True)
        assert [each.content for each in env.history.get()] == ["The tests fail.", "mended"]


async def profiles(project: Project, *, again: bool) -> None:
    home = project.place / "team" / "profiles"
    home.mkdir(parents=True, exist_ok=True)
    (home / "mender.yaml").write_text(PROFILE)
    model = Script([*project.lines(), "mended"], by="turn")
    target = load_target(f"{home.parent}:mender", str(project.folder))
    await declared(project, target, model, again=again)


async def tasks(project: Project, *, again: bool) -> None:
    toolkit = AgentToolkit()
    for each in project.tools():
        toolkit.register_tool(each)
        toolkit.grant_permission("mender", each.name)
    model = Script([*project.lines(), "mended"], by="turn")
    controller = Controller(
        [ToolCapableAgent("mender", "mending", toolkit=toolkit, model=model)], journal=project.journal
    )
    task = StructuredMessage.create_task("The tests fail.", "controller", "mender", task_id="bug")
    (reply,) = await controller.run_tasks([task], run_id=RUN)
    assert reply.content == "mended"


STYLES: list[Callable[..., Awaitable[None]]] = [delegation, loop, environment, profiles, tasks]
