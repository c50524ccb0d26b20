"""A run whose agent mends a program: files that it makes, changes and removes, some of them no text."""

from typing import Any

from antiphon import Agent, ToolContext, open_run, tool
from antiphon.journal.memory import MemoryJournal
from antiphon.models.script import call, finish
from antiphon.testing.clock import VirtualClock
from antiphon.values.message import FileChange, FileState, ToolResult
from tests.page.paced import Paced

FOLDER = "/srv/tides"
BEFORE = "".join(
    [
        '"""When the sea is high."""\n\nimport math\n\n\n',
        "def height(hour: float) -> float:\n",
        '    """Metres above the chart\'s zero."""\n',
        "    return 2.4 + 1.8 * math.sin(hour / 12)\n\n\n",
        *[f"# {hour}:00\n" for hour in range(24)],
    ]
)
AFTER = BEFORE.replace("math.sin(hour / 12)", "math.sin(math.tau * hour / PERIOD)").replace(
    "import math\n", "import math\n\nPERIOD = 12.42\n", 1
)
PICTURE = bytes(range(256))


def change(path: str, before: bytes | str | None, after: bytes | str | None, mode: int = 0o644) -> FileChange:
    """A file as it was and as it is; None: there is none."""
    return FileChange(FOLDER, path, state(before), state(after, mode))


def state(held: bytes | str | None, mode: int = 0o644) -> FileState | None:
    """A file that holds this."""
    return None if held is None else FileState.of(held.encode() if isinstance(held, str) else held, mode)


CHANGES = {
    "tides/height.py": change("tides/height.py", BEFORE, AFTER),
    "tests/test_height.py": change(
        "tests/test_height.py", None, "from tides.height import height\n\n\ndef test_it_repeats():\n    ...\n"
    ),
    "all": change("run.sh", "#!/bin/sh\n", "#!/bin/sh\n", 0o755),
}
MORE = (
    change("docs/old.md", "# Old\n\nNobody reads this.\n", None),
    change("docs/tides.png", PICTURE, PICTURE[::-1]),
    change("data/hours.csv", "hour,height\n" + "0,0\n" * 3_000, "hour,height\n" + "0,2.4\n" * 3_000),
    *[change(f"data/{day}.csv", None, "12,4.2\n") for day in range(60)],
)


@tool(effect="idempotent", kind="edit")
async def edit_file(ctx: ToolContext[None], path: str) -> ToolResult:
    """Change a file."""
    return ToolResult(f"{path} is as asked", changes=(CHANGES[path],))


@tool(effect="idempotent", kind="execute")
async def shell(ctx: ToolContext[None], command: str) -> ToolResult:
    """Run a command."""
    return ToolResult("exit code 0", changes=(CHANGES["all"], *MORE))


async def repair(journal: MemoryJournal) -> str:
    """The run."""
    clock = VirtualClock()
    said: dict[str, Any] = {
        "Mender": [
            (1.1, [call("edit_file", path=each) for each in list(CHANGES)[:2]], "The period is missing."),
            (0.7, [call("shell", command="make all")], "Now all of it."),
            (0.8, [finish("The tides repeat after 12.42 hours.")], ""),
        ]
    }
    mender = Agent("Mender", "You mend.", tools=[edit_file, shell], can_call=(), model=Paced(clock, said))
    async with open_run([mender], journal=journal, clock=clock, env={}, interactive=False) as run:
        await run.result(await run.post("Mender", "The tides come at the wrong hour"))
        return run.run_id
