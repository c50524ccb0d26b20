"""The tools that act and look, beside what they are made of: a command beside bash, a search beside GNU grep.

    python -m bench.chest [--files 7000,100000]

Times are the median of several calls in this process, and what they are compared with is measured in the same
run. A scan is the look at a folder that comes before a command and after it, as it is once a command has run.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from antiphon.tools import folder_tools
from antiphon.tools.shell import Workspace, shell_tools
from antiphon.values.tool import Tool, ToolContext

TIMES = 15
WORDS = ("tide", "boat", "harbour", "price", "journal", "keeper", "north", "lamp", "signal", "rope")
RARE = "lighthouse"


def named(tools: list[Tool], name: str) -> Callable[..., Any]:
    """The function of a tool."""
    return next(each.function for each in tools if each.name == name)


async def median_of(work: Callable[[], Awaitable[object]], times: int = TIMES) -> float:
    """Milliseconds of one call."""
    took = []
    for _ in range(times):
        began = time.perf_counter()
        await work()
        took.append(time.perf_counter() - began)
    return 1_000 * statistics.median(took)


def write(folder: Path, count: int) -> None:
    """Files of some forty lines, one in fifty with a rare word."""
    chance = random.Random(7)
    for number in range(count):
        place = folder / f"part{number % 97}" / f"room{number % 13}"
        if number < 97 * 13:
            place.mkdir(parents=True, exist_ok=True)
        lines = [" ".join(chance.choices(WORDS, k=8)) for _ in range(40)]
        if number % 50 == 0:
            lines[20] += f" {RARE}"
        (place / f"file{number}.py").write_text("\n".join(lines) + "\n")


async def commands(folder: Path) -> dict[str, float]:
    """A command that does nothing, by the tool and by bash."""
    shell = named(shell_tools(folder), "shell")

    async def bash() -> None:
        subprocess.run(["bash", "--norc", "--noprofile", "-c", "true"], check=True, cwd=folder)  # noqa: ASYNC221 - nothing else waits

    await shell(ToolContext(), "true", 60, False)
    ours = await median_of(lambda: shell(ToolContext(), "true", 60, False))
    plain = await median_of(bash)
    return {"shell": ours, "bash": plain, "overhead": ours - plain}


async def searches(folder: Path, times: int) -> dict[str, float]:
    """A rare word in every file, by the tool and by GNU grep; and a look at all of them."""
    grep = named(folder_tools(folder), "grep_files")

    async def ours() -> None:
        found = grep(RARE)
        await found if asyncio.iscoroutine(found) else None

    async def gnu() -> None:
        subprocess.run(["grep", "-rn", RARE, "."], check=True, cwd=folder, capture_output=True)  # noqa: ASYNC221 - as above

    async def scan() -> None:
        _ = Workspace(folder).lost

    await ours()
    return {
        "grep_files": await median_of(ours, times), "GNU grep": await median_of(gnu, times),
        "scan": await median_of(scan, times),
    }  # fmt: skip


async def main() -> None:
    """Print all of it."""
    parser = argparse.ArgumentParser(prog="python -m bench.chest", description=__doc__)
    parser.add_argument("--files", default="7000,100000", help="how many, several with commas")
    counts = [int(each) for each in parser.parse_args().files.split(",")]
    with tempfile.TemporaryDirectory(prefix="chest-") as place:
        os.environ["ANTIPHON_HOME"] = f"{place}/home"
        small = Path(place) / "small"
        small.mkdir()
        show("a command in an empty folder", await commands(small))
        for count in counts:
            folder = Path(place) / str(count)
            write(folder, count)
            # A command lays down what the folder is like; from then on looks are quick.
            await named(shell_tools(folder), "shell")(ToolContext(), "true", 600, False)
            show(f"{count:,} files", await searches(folder, 5 if count > 20_000 else TIMES))
            shutil.rmtree(folder)
    low = os.getloadavg()[0]
    print(f"{os.cpu_count()} cores, load {low:.1f}")


def show(title: str, found: dict[str, float]) -> None:
    """One line."""
    print(f"{title}: " + ", ".join(f"{name} {took:,.1f} ms" for name, took in found.items()))


if __name__ == "__main__":
    asyncio.run(main())
