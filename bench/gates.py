"""The two gates of the check: a turn costs the same early and late, in time and in bytes.

Budgets are stricter than gates. The budget of a late turn is 1.05 times an early one; the gate is
1.25, because the machine that checks may be shared: CPU time leaves out who else runs, but not what
they do to the caches. At 1.25 a turn that walks its history fails from about 5 ns per message on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from statistics import median

from antiphon import Tool
from bench.cell import Go, Marks
from bench.durable import bytes_per_turn, note

GROWTH = 1.25
"""CPU time of turn 1,000 over that of turn 10."""
BYTES = 602
"""Of one turn in the journal, with messages of 20 bytes."""
SPREAD = 0.02
"""Between the bytes per turn of a short and of a long run."""
RUNS = 7
EARLY, LATE = slice(5, 25), slice(985, 1005)
TURNS = 1_010


async def turn_growth(prepare: Callable[[int, Marks | None], Go], runs: int = RUNS) -> float:
    """How much dearer turn 1,000 is than turn 10: the median of several runs, each its own ratio."""
    await prepare(30, None)()
    ratios = []
    for _ in range(runs):
        marks = Marks()
        await prepare(TURNS, marks)()
        costs = marks.costs()
        ratios.append(median(costs[LATE]) / median(costs[EARLY]))
    return median(ratios)


async def turn_bytes(offered: Tool = note) -> Mapping[int, float]:
    """Journal bytes per turn of a short and of a long run."""
    return {n: (await bytes_per_turn(n, offered))["bytes_per_turn"] for n in (50, 1000)}


def faults_of_growth(growth: float) -> list[str]:
    """What is wrong with the cost of late turns, if anything."""
    if growth <= GROWTH:
        return []
    return [f"turn 1,000 costs {growth:.2f} times turn 10; {GROWTH} is the gate: something walks the history"]


def faults_of_bytes(found: Mapping[int, float]) -> list[str]:
    """What is wrong with the bytes per turn, if anything."""
    faults = [
        f"{size:.0f} bytes per turn at N = {n}, {BYTES} allowed" for n, size in found.items() if size > BYTES
    ]
    low, high = min(found.values()), max(found.values())
    if high > low * (1 + SPREAD):
        faults.append(f"{low:.0f} to {high:.0f} bytes per turn: they grow with the run, {SPREAD:.0%} allowed")
    return faults
