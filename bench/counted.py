"""What a unit of work costs in Python calls, counted exactly: no load, no clock.

    python -m bench.counted

The package's own functions count, on the main thread, as Python 3.11 calls them: later versions do without
some. Each kind of work is done with few units and with more; the difference is theirs, whatever start and end
cost. A gate is what it takes today: it is lowered, or raised with a reason.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping
from types import FrameType

import antiphon
from bench.instructions import CELLS, PER_UNIT, work

PACKAGE = os.path.dirname(antiphon.__file__) + os.sep
GATES: Mapping[str, float] = {
    "tool turn": 89.5,
    "agent call, a chain of 50": 163.5,
    "agent call, 1 to many": 120,
    "hop of a ring of 100 roles": 215.5,
    "run of one answer": 279.5,
    "load and fold, a turn": 31.5,
    "agent with one tool": 6,
}
"""Python calls of a unit, at most."""


async def calls_of(kind: str) -> float:
    """Python calls of a unit of work."""
    few, many = CELLS[kind]
    await work(kind, few)
    counts = [await _counted(kind, count) for count in (few, many)]
    return (counts[1] - counts[0]) / (many - few) / PER_UNIT.get(kind, 1)


async def _counted(kind: str, units: int) -> int:
    count = 0

    def profile(frame: FrameType, event: str, _: object) -> None:
        nonlocal count
        if event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            count += 1

    sys.setprofile(profile)
    try:
        await work(kind, units)
    finally:
        sys.setprofile(None)
    return count


def main() -> None:
    """Count, and print a table."""
    print("| Python calls | | gate |\n| --- | ---: | ---: |")
    for kind, gate in GATES.items():
        print(f"| {kind} | {asyncio.run(calls_of(kind)):,.2f} | {gate:,.2f} |", flush=True)


if __name__ == "__main__":
    main()
