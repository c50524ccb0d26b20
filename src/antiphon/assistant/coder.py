"""The assistant as a team: the one that is talked with, and those that it gives work to."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from antiphon import Agent, Hooks, Model, ModelOptions, Tool
from antiphon.assistant import prompt
from antiphon.assistant.asking import ask_user
from antiphon.assistant.conventions.found import Conventions
from antiphon.assistant.conventions.places import state_folder
from antiphon.assistant.conventions.skills import skill_tool, told_of
from antiphon.assistant.delegates import EXPLORER, delegate_tool
from antiphon.assistant.hooks.runner import HookRunner
from antiphon.assistant.hooks.scripts import run_script
from antiphon.assistant.hooks.tools import hooked, hooked_toolset
from antiphon.assistant.hooks.turns import NAME as HOOKS
from antiphon.assistant.hooks.turns import end_turn, hooks_agent, plan_turn
from antiphon.assistant.permission import Mode, Permission
from antiphon.assistant.todo import todo, write_list
from antiphon.assistant.worktrees.workers import HANDOVER, Workers
from antiphon.assistant.worktrees.workers import NAMES as WORKERS
from antiphon.config.dotenv import environment
from antiphon.errors import ConfigError
from antiphon.tools import edit_tools, folder_tools
from antiphon.tools.mcp import mcp_toolset
from antiphon.tools.shell import Workspace, shell_tools
from antiphon.values.agent import Compaction
from antiphon.values.hooks import Decision, DirectResult, InstructionsContext, TurnContext
from antiphon.values.tool.toolset import Toolset

NAME = "coder"
LEFT_OUT = ("search_documents", "folder_statistics", "count_text")
"""Tools that read a folder, and that a shell makes needless."""
MAX_OUTPUT = 8_192
"""Tokens of one reply."""
KEEP = "Keep the todo list with what is done, what was decided, and the names of files that were changed."
"""What a summary of a long conversation must hold."""


class LoadFinding(Struct, frozen=True):
    """Something that is wrong with a file of the user's or the project's, or that is left out."""

    labelled: str
    severity: str = "warning"


class Coder:
    """An assistant for one folder, as a team: `run(coder("project"), "…")`.

    folder: what it reads, changes and runs commands in. mode: what it does unasked; `permission.mode` changes
    it. model: of all its agents; None: the run's. env: settings; None: the process's environment and `.env`.
    Raises ConfigError where there is no such folder, or a setting is wrong; UserError for a mode that there
    is not.
    """

    def __init__(
        self, folder: str | os.PathLike[str] = ".", *, mode: Mode = "ask",
        model: str | Model | None = None, env: Mapping[str, str] | None = None,
    ) -> None:  # fmt: skip
        self.folder = Path(os.path.realpath(folder))
        if not self.folder.is_dir():
            raise ConfigError("is not a folder", os.fspath(folder))
        self._model = model
        self._env = environment() if env is None else env
        self.conventions = Conventions(self.folder, self._env)
        self._workspace = Workspace(
            self.folder, read=[os.fspath(each.folder) for each in self.conventions.skills.values()]
        )
        confined = self._workspace.confined.kind != "none"
        self.permission = Permission(self.conventions.rules, mode, confined=confined)
        self._hooks = HookRunner(self.conventions.hooks, self.folder)
        self._workers = self._writing()
        self._agents = self._made()

    def agents(self) -> Sequence[Agent]:
        """The assistant, then those that it calls."""
        return self._agents

    @property
    def findings(self) -> tuple[LoadFinding, ...]:
        """What is wrong with files, and what is left out because it is not trusted, a line each."""
        faults = [LoadFinding(str(each)) for each in self.conventions.faults]
        left_out = [
            LoadFinding(
                f"{each.path}: {each.kind}, not trusted and so left out; `antiphon --trust` looks at them"
            )
            for each in self.conventions.untrusted
        ]
        return (*faults, *left_out)

    def said(self, text: str) -> str:
        """What the assistant is told: of `/name …` what the user's command of that name says, else the text.

        Runs the scripts of that command.
        """
        name, _, rest = text.removeprefix("/").partition(" ")
        command = self.conventions.commands.get(name) if text.startswith("/") else None
        return command.said(rest.strip(), self._output) if command is not None else text

    def _output(self, line: str) -> str:
        end = run_script(line, "", self.folder)
        return end.output if not end.code else f"[`{line}` failed with {end.code}: {end.errors}]"

    def _made(self) -> tuple[Agent, ...]:
        workers = self._workers.agents if self._workers is not None else ()
        agents = (self._coder(), self._explorer(), *workers)
        runs = self._hooks.has("UserPromptSubmit", "Stop")
        return (*agents, hooks_agent(self._hooks)) if runs else agents

    def _coder(self) -> Agent:
        hooks = Hooks(intercept_call=_intercept, authorize=self.permission.authorize)
        calls: tuple[str, ...] = (EXPLORER, *((*WORKERS, HANDOVER) if self._workers is not None else ()))
        if self._hooks.has("UserPromptSubmit", "Stop"):
            hooks = replace(
                hooks, plan_turn=partial(plan_turn, runner=self._hooks),
                end_turn=partial(end_turn, runner=self._hooks),
            )  # fmt: skip
            calls = (*calls, HOOKS)
        tools = [
            *self._reading(), *edit_tools(self.folder), *shell_tools(self._workspace), todo, ask_user,
            delegate_tool(self._workers),
        ]  # fmt: skip
        if self.conventions.skills:
            tools.append(skill_tool(self.conventions.skills_now))
        return Agent(
            NAME, self._instructions, self._model, [*self._hooked(tools), *self._servers()],
            "Works in a folder: on code, texts, data.",
            can_call=calls, context="continue", standalone=True, tool_execution="ordered",
            asking=ModelOptions(max_output_tokens=MAX_OUTPUT, compaction=Compaction(directives=(KEEP,))),
            hooks=hooks,
        )  # fmt: skip

    def _explorer(self) -> Agent:
        return Agent(
            EXPLORER, f"{prompt.EXPLORER}\n\n{prompt.surroundings(self.folder)}", self._model,
            self._hooked(self._reading()), "Reads and reports.", can_call=(), standalone=True,
            asking=ModelOptions(max_output_tokens=MAX_OUTPUT),
            hooks=Hooks(authorize=self.permission.authorize),
        )  # fmt: skip

    def _writing(self) -> Workers | None:
        """Those that write in worktrees; None where this is no root of a repository."""
        if not (self.folder / ".git").exists() or shutil.which("git") is None:
            return None
        confined = self._workspace.confined.kind != "none"
        alone = Permission(self.conventions.rules, "auto", confined=confined)

        def authorize(tool: Tool, arguments: str) -> tuple[Decision, str] | None:
            # In a worktree it may do what nobody is asked for; but where nothing is changed, nothing is.
            decides = self.permission if self.permission.mode == "plan" else alone
            return decides.authorize(tool, arguments)

        state = state_folder(self.folder, self._env)
        return Workers(self.folder, state, self._model, self._tools_of, authorize, self.permission.authorize)

    def _tools_of(self, place: Path) -> list[Tool]:
        """The tools of who writes in a worktree."""
        reading = [each for each in folder_tools(place) if each.name not in LEFT_OUT]
        shell = shell_tools(Workspace(place, read=[os.fspath(self.folder / ".git")]))
        return self._hooked([*reading, *edit_tools(place), *shell])

    def _hooked(self, tools: Sequence[Tool]) -> list[Tool]:
        return [hooked(each, self._hooks) for each in tools]

    def _servers(self) -> list[Toolset]:
        servers = self.conventions.servers.values()
        return [hooked_toolset(mcp_toolset(each), self._hooks) for each in servers]

    def _reading(self) -> list[Tool]:
        found = [each for each in folder_tools(self.folder) if each.name not in LEFT_OUT]
        return [*found, *self._web()]

    def _web(self) -> list[Tool]:
        # Not at import: they take long, and most settings name nobody who searches.
        from antiphon.tools.web import web_tools
        from antiphon.tools.web.search import configured_search

        search = configured_search(self._env)
        return web_tools(search=search) if search is not None else []

    def _instructions(self, context: InstructionsContext[object]) -> str:
        told = [prompt.CODER, prompt.surroundings(self.folder), prompt.OF_MODES.get(self.permission.mode, "")]
        told.append(told_of(self.conventions.skills_now()))
        if guided := self.conventions.guidance():
            told.append(f"{prompt.GUIDANCE}\n\n{guided}")
        return "\n\n".join(each for each in told if each)


def coder(
    folder: str | os.PathLike[str] = ".", *, mode: Mode = "ask", model: str | Model | None = None,
    env: Mapping[str, str] | None = None,
) -> Coder:  # fmt: skip
    """An assistant for a folder, see `Coder`: what `antiphon run antiphon.assistant:coder` asks."""
    return Coder(folder, mode=mode, model=model, env=env)


def _intercept(context: TurnContext, name: str, arguments: str) -> DirectResult | None:
    return write_list(context, arguments) if name == todo.name else None
