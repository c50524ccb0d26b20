"""Commands that the person runs from the conversation: `!command`, which the agent is told of with the next
message, and `!!command`, which it is not. They run with all that the person may do, under the keeper of the
agents' commands: whoever leaves the conversation, or presses Esc, ends them with all that they started.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Callable

from antiphon.cli.display import terminal_escape
from antiphon.errors import AntiphonError

SECONDS = 1_800
"""When a command is ended that does not end by itself."""
TOLD_FIRST, TOLD_LAST = 4_000, 12_000
"""Characters of an output that the agent is told, of its beginning and of its end."""
_WORDS = ("bash", "--norc", "--noprofile", "-c")
_KEPT = frozenset({"TERM", "PAGER", "GIT_PAGER", "EDITOR", "VISUAL", "GIT_EDITOR", "GIT_TERMINAL_PROMPT"})
"""Variables that stay as they are for commands without a terminal."""


class OwnCommands:
    """One command at a time. shown: called with what ran in the folder, what it gave back, how it ended."""

    def __init__(self, folder: str, shown: Callable[[str, str, str], None]) -> None:
        self._folder = folder
        self._shown = shown
        self._task: asyncio.Task[None] | None = None
        self._told: list[str] = []
        self.running = ""
        """The command that runs; empty while none does."""

    def run(self, line: str, *, told: bool) -> None:
        """Begin a command, unless one runs. told: the agent is to hear of it."""
        self.running = line
        loop = asyncio.get_running_loop()
        self._task = loop.create_task(self._carried_out(line, told=told), name="own command")

    def stop(self) -> None:
        """End the command that runs, with all that it started."""
        if self._task is not None:
            self._task.cancel()

    async def close(self) -> None:
        """End the command that runs, and wait for that."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task])

    def rows(self) -> list[str]:
        """A line for the command that runs."""
        return [f"$ {terminal_escape.line(self.running, 200)}"] if self.running else []

    def tell(self, text: str) -> None:
        """Have the agent told of something with the next message."""
        self._told.append(text)

    def take_told(self) -> str:
        """What the agent is told of commands since its last message; empty for nothing."""
        told, self._told = self._told, []
        return "\n\n".join(told)

    async def _carried_out(self, line: str, *, told: bool) -> None:
        try:
            output, end = await _done(self._folder, line)
        except AntiphonError as error:
            output, end = "", str(error)
        except TimeoutError as error:
            output, end = "", f"how it ended is not known: {error}"
        except asyncio.CancelledError:
            # Whoever stopped it knows; a person who leaves needs nothing any more.
            output, end = "", "stopped"
        finally:
            self.running = ""
        if told:
            self._told.append(f"I ran a command myself.\n$ {line}\n{_cut(output)}({end})")
        self._shown(f"$ {line}", output.strip("\n"), f"({end})")


async def _done(folder: str, line: str) -> tuple[str, str]:
    """What a command gave back, and how it ended. Raises ToolError, TimeoutError."""
    # Only where somebody runs one: they take long to import.
    from antiphon.tools.shell import commands
    from antiphon.tools.shell.confinement import Confinement
    from antiphon.tools.shell.workspace import Workspace
    from antiphon.values.tool import ToolContext

    workspace = Workspace(
        folder, environment=_environment(), network=True, confined=Confinement("none"), guarded=False
    )
    context = ToolContext()
    kept = await commands.begin(workspace, context, [*_WORDS, line], SECONDS, background=False)
    found = await commands.carry_out(kept, context, background=False)
    why = {"time": f"ended after {SECONDS:,} s", "stopped": "stopped"}.get(
        found.why, f"exit code {found.code}"
    )
    return found.text, why


def _environment() -> dict[str, str]:
    """The person's own, but for what wants a terminal."""
    found = {name: value for name, value in os.environ.items() if name not in _KEPT}
    found.setdefault("TMPDIR", tempfile.gettempdir())
    if "GIT_CONFIG_GLOBAL" not in found:
        home = os.path.expanduser("~")
        settings = os.environ.get("XDG_CONFIG_HOME") or os.path.join(home, ".config")
        usual = os.path.join(home, ".gitconfig")
        found["GIT_CONFIG_GLOBAL"] = (
            usual if os.path.exists(usual) else os.path.join(settings, "git", "config")
        )
    return found


def _cut(output: str) -> str:
    left_out = len(output) - TOLD_FIRST - TOLD_LAST
    if left_out > 0:
        output = f"{output[:TOLD_FIRST]}\n[… {left_out:,} characters left out …]\n{output[-TOLD_LAST:]}"
    return output if not output or output.endswith("\n") else f"{output}\n"
