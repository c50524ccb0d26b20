"""The assistant as a team: the one that is talked with, and those that it gives work to."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from antiphon import Agent, Hooks, Model, ModelOptions, Tool
from antiphon.assistant import prompt
from antiphon.assistant.asking import ask_user
from antiphon.assistant.delegates import EXPLORER, delegate_tool
from antiphon.assistant.todo import todo, write_list
from antiphon.config.dotenv import environment
from antiphon.errors import ConfigError
from antiphon.tools import edit_tools, folder_tools
from antiphon.tools.shell import Workspace, shell_tools
from antiphon.values.agent import Compaction
from antiphon.values.hooks import DirectResult, InstructionsContext, TurnContext

NAME = "coder"
LEFT_OUT = ("search_documents", "folder_statistics", "count_text")
"""Tools that read a folder, and that a shell makes needless."""
MAX_OUTPUT = 8_192
"""Tokens of one reply."""
KEEP = "Keep the todo list with what is done, what was decided, and the names of files that were changed."
"""What a summary of a long conversation must hold."""


class Coder:
    """An assistant for one folder, as a team: `run(coder("project"), "…")`.

    folder: what it reads, changes and runs commands in. model: of all its agents; None: the run's. env: where
    the key of a web search is looked for; None: the process's environment and `.env`. Raises ConfigError
    where there is no such folder, or a setting is wrong.
    """

    def __init__(
        self, folder: str | os.PathLike[str] = ".", *, model: str | Model | None = None,
        env: Mapping[str, str] | None = None,
    ) -> None:  # fmt: skip
        self.folder = Path(os.path.realpath(folder))
        if not self.folder.is_dir():
            raise ConfigError("is not a folder", os.fspath(folder))
        self._model = model
        self._env = environment() if env is None else env
        self._agents = (self._coder(), self._explorer())

    def agents(self) -> Sequence[Agent]:
        """The assistant, then those that it gives work to."""
        return self._agents

    def _coder(self) -> Agent:
        tools = [
            *self._reading(), *edit_tools(self.folder), *shell_tools(Workspace(self.folder)), todo, ask_user,
            delegate_tool(),
        ]  # fmt: skip
        return Agent(
            NAME, self._instructions, self._model, tools, "Works in a folder: on code, texts, data.",
            can_call=(EXPLORER,), context="continue", standalone=True, tool_execution="ordered",
            asking=ModelOptions(max_output_tokens=MAX_OUTPUT, compaction=Compaction(directives=(KEEP,))),
            hooks=Hooks(intercept_call=_intercept),
        )  # fmt: skip

    def _explorer(self) -> Agent:
        return Agent(
            EXPLORER, f"{prompt.EXPLORER}\n\n{prompt.surroundings(self.folder)}", self._model,
            self._reading(), "Reads and reports.", can_call=(), standalone=True,
            asking=ModelOptions(max_output_tokens=MAX_OUTPUT),
        )  # fmt: skip

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
        return f"{prompt.CODER}\n\n{prompt.surroundings(self.folder)}"


def coder(
    folder: str | os.PathLike[str] = ".", *, model: str | Model | None = None,
    env: Mapping[str, str] | None = None,
) -> Coder:  # fmt: skip
    """An assistant for a folder, see `Coder`: what `antiphon run antiphon.assistant:coder` asks."""
    return Coder(folder, model=model, env=env)


def _intercept(context: TurnContext, name: str, arguments: str) -> DirectResult | None:
    return write_list(context, arguments) if name == todo.name else None
