"""Counts the Python calls of two short walks through the package, exactly, and prints them as JSON.

    python scripts/walks.py [--trace turn|command]

turn     a tool turn of a scripted agent: from a reply of the model, over its tool, to the next question
         to the model
command  `antiphon run team.py:team hello --journal memory`: from the command's entry to the call after
         which the agent's inbox holds the message

For each: `moves`, calls into another file than the call before; `files`, how many different ones;
`calls`, all of them. Only the package's own functions count, on the main thread. Each walk has been
made before it is counted, so that what is imported or made once does not count. Before Python 3.12 a
comprehension is a call of its own, so that newer versions count a little less.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import io
import json
import os
import sys
import tempfile
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import msgspec

import antiphon
from antiphon import Agent, Message, run, tool
from antiphon.cli import main as command_line
from antiphon.models.script import Script, call

PACKAGE = os.path.dirname(antiphon.__file__) + os.sep
SCRIPTED = "models/script"
"""Where the scripted model is: its calls are the world's, not the turn's."""
AGENT, TEXT = "a", "hello"
TEAM = f"""\
from antiphon import Agent
from antiphon.models.script import Script
team = Agent({AGENT!r}, "hi", model=Script(["done"], by="turn"))
"""
TURN = 10
"""Which turn is counted: all after the first few are alike."""

Step = tuple[str, str]
"""A call: its file, from the package's folder, and the function's qualified name."""


def counted(steps: Sequence[Step]) -> dict[str, int]:
    """Moves, files and calls of a walk; entering its first file is a move."""
    files = [file for file, _ in steps]
    moves = sum(one != other for one, other in zip([None, *files], files, strict=False))
    return {"moves": moves, "files": len(set(files)), "calls": len(files)}


def recorder(steps: list[Step], after: Callable[[FrameType], None] | None = None) -> Any:
    """A profile function that notes the package's calls, and shows each frame it returns from to `after`."""

    def profile(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if code.co_filename.startswith(PACKAGE):
            if event == "call":
                steps.append((code.co_filename[len(PACKAGE) :].replace(os.sep, "/"), code.co_qualname))
            elif event == "return" and after is not None:
                after(frame)

    return profile


@tool(effect="read")
async def look(page: int) -> str:
    """Look at a page."""
    return "x"


async def turn() -> list[Step]:
    """From a reply that calls a tool to the next question."""
    agent = Agent(AGENT, "hi", tools=[look])
    replies = [call("look", page=number) for number in range(2 * TURN)] + ["done"]
    await run(agent, TEXT, model=Script(list(replies)))
    script, steps, asked = Script(list(replies)), list[Step](), list[int]()

    class Counted:
        name = "script:counted"  # free, as the script is that answers

        async def complete(self, request: Any, emit: Any) -> Any:
            asked.append(len(steps))
            return await script.complete(request, emit)

    sys.setprofile(recorder(steps))
    try:
        await run(agent, TEXT, model=Counted())
    finally:
        sys.setprofile(None)
    return [step for step in steps[asked[TURN] : asked[TURN + 1]] if not step[0].startswith(SCRIPTED)]


def command() -> list[Step]:
    """From the command line to the agent's inbox."""
    steps, ends = list[Step](), list[int]()

    def look_into_inboxes(frame: FrameType) -> None:
        if not ends and any(map(holds_message, frame.f_locals.values())):
            ends.append(len(steps))

    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        Path("team.py").write_text(TEAM, encoding="utf-8")
        _ask()
        sys.setprofile(recorder(steps, look_into_inboxes))
        try:
            _ask()
        finally:
            sys.setprofile(None)
    if not ends:
        raise SystemExit("the message was seen in no inbox: walks.holds_message must learn where one is now")
    return steps[: ends[0]]


def _ask() -> None:
    """One `antiphon run`, without its output."""
    said = io.StringIO()
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            command_line(["run", "team.py:team", TEXT, "--journal", "memory"])
    except SystemExit as end:
        if end.code:
            raise SystemExit(f"antiphon run failed:\n{said.getvalue()}") from end


def holds_message(value: object, depth: int = 2) -> bool:
    """Whether a struct has a collection, at most `depth` structs down, that holds the agent's message.

    Found by what is in it, so that an inbox may be named and nested as one likes.
    """
    if isinstance(value, Message) or not isinstance(value, msgspec.Struct):
        return False
    return any(
        any(map(_is_the_message, _items(part))) or (depth > 1 and holds_message(part, depth - 1))
        for part in (getattr(value, name, None) for name in value.__struct_fields__)
    )


def _items(value: object) -> Iterator[object]:
    if isinstance(value, list | deque | set):
        yield from value
    elif isinstance(value, dict):
        yield from value.values()


def _is_the_message(value: object) -> bool:
    return isinstance(value, Message) and value.receiver == AGENT and value.content == TEXT


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trace", choices=("turn", "command"), help="print the calls of one walk instead")
    given = parser.parse_args()
    # What the machine sets must not lead the command elsewhere.
    for name in [name for name in os.environ if name.startswith(("ANTIPHON_", "OPENAI_"))]:
        del os.environ[name]
    walks = {"turn": asyncio.run(turn()), "command": command()}
    if given.trace:
        print("\n".join(f"{file} {function}" for file, function in walks[given.trace]))
    else:
        print(json.dumps({name: counted(steps) for name, steps in walks.items()}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
