"""What a cell is, and how one is measured in a process of its own.

Needs nothing but the standard library: it also runs in the environments of the peers.
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import gc
import inspect
import json
import os
import pstats
import sys
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Any, NamedTuple

Params = dict[str, Any]
Metrics = dict[str, Any]
Go = Callable[[], Awaitable[object]]
"""One whole measured pass; what it needs has been built before."""

SHORT_S = 0.02
RESULT = "@@RESULT "
PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
QUIET: Mapping[str, str] = {
    "OPENAI_API_KEY": "not-a-key", "ANONYMIZED_TELEMETRY": "false", "AGNO_TELEMETRY": "false",
    "OTEL_SDK_DISABLED": "true", "LANGCHAIN_TRACING_V2": "false", "LANGSMITH_TRACING": "false",
    "PYTHONWARNINGS": "ignore", "ANTIPHON_HOME": "",
}  # fmt: skip
"""The environment of every cell: no telemetry, no key, no journal that was not asked for."""


@dataclass(frozen=True)
class Cell:
    """One workload with the sets of parameters it is measured at.

    quick: those of `params` that a quick run measures; None for all. timeout: seconds.
    """

    workload: str
    measure: Callable[..., Metrics | Awaitable[Metrics]]
    params: Sequence[Params] = ({},)
    quick: Sequence[Params] | None = None
    timeout: float = 180.0

    def chosen(self, quick: bool) -> Sequence[Params]:
        """The sets of parameters of a quick or a full run."""
        return self.quick if quick and self.quick is not None else self.params


class Marks:
    """When each model call of one run began, by wall and by CPU time of its thread."""

    def __init__(self) -> None:
        self.wall: list[float] = []
        self.cpu: list[float] = []

    def mark(self) -> None:
        """A model call begins now."""
        self.wall.append(time.perf_counter())
        self.cpu.append(time.thread_time())

    def costs(self) -> list[float]:
        """Seconds of CPU time from each model call to the next."""
        return [late - early for early, late in pairwise(self.cpu)]

    def growth(self) -> Metrics:
        """Median cost of an early and of a late turn in µs (a tenth of all each), and their ratio."""
        found: Metrics = {"model_calls": len(self.wall)}
        for name, times in (("", self.wall), ("cpu_", self.cpu)):
            costs = [late - early for early, late in pairwise(times)]
            if len(costs) < 10:
                return found
            part = max(5, len(costs) // 10)
            first, last = median(costs[1 : part + 1]), median(costs[-part:])
            found |= {f"{name}first_us": first * 1e6, f"{name}last_us": last * 1e6}
            found[f"{name}growth"] = last / first
        return found


class Sample(NamedTuple):
    """Seconds of one pass: wall time, CPU time of the loop's thread, CPU time of the whole process."""

    wall: float
    cpu: float
    process: float


async def timed(go: Go) -> Sample:
    """One pass."""
    wall, cpu, process = time.perf_counter(), time.thread_time(), time.process_time()
    await go()
    return Sample(time.perf_counter() - wall, time.thread_time() - cpu, time.process_time() - process)


async def passes(prepare: Callable[[], Go], most: int = 9, budget_s: float = 1.5) -> list[Sample]:
    """Passes until there are `most`, or one more would exceed the budget; at least one.

    Short ones, on which noise weighs most, are repeated up to five times as often. Rubbish of
    earlier passes is collected before a long pass; before a short one that would cost more than it
    saves: a collection empties the caches of the interpreter too.
    """
    taken: list[Sample] = []
    spent = 0.0
    while len(taken) < (most if spent > SHORT_S * most else most * 5) and (
        not taken or spent + spent / len(taken) <= budget_s
    ):
        if not taken or taken[-1].wall > SHORT_S:
            gc.collect()
        taken.append(await timed(prepare()))
        spent += taken[-1].wall
    return taken


def per_unit(samples: Iterable[Sample], units: int, name: str) -> Metrics:
    """The best and the median wall time and the best CPU time of one unit, in µs."""
    taken = list(samples)
    scale = 1e6 / units
    return {
        "wall_s": min(each.wall for each in taken),
        f"us_per_{name}": min(each.wall for each in taken) * scale,
        f"median_us_per_{name}": median(each.wall for each in taken) * scale,
        f"cpu_us_per_{name}": min(each.cpu for each in taken) * scale,
        "passes": len(taken),
    }


def rss() -> int:
    """Bytes of this process in memory now."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * PAGE


def peak_rss() -> int:
    """The most bytes this process has had in memory."""
    with open("/proc/self/status", encoding="ascii") as file:
        line = next(line for line in file if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


def called_with(cells: Iterable[Cell], workload: str, params: Params) -> Metrics:
    """Measure one cell in this process."""
    measure = next((cell.measure for cell in cells if cell.workload == workload), None)
    if measure is None:
        raise SystemExit(f"no workload {workload}; there are: {', '.join(cell.workload for cell in cells)}")
    found = measure(**params)
    return asyncio.run(_awaited(found)) if inspect.isawaitable(found) else found


async def _awaited(found: Awaitable[Metrics]) -> Metrics:
    return await found


def main(cells: Sequence[Cell]) -> None:
    """The end of a contender's module: `python -m bench.NAME WORKLOAD PARAMS [--profile]`."""
    parser = argparse.ArgumentParser()
    parser.add_argument("workload")
    parser.add_argument("params", nargs="?", default="{}")
    parser.add_argument("--profile", action="store_true")
    asked = parser.parse_args()
    for name, text in QUIET.items():
        os.environ.setdefault(name, text)
    params = json.loads(asked.params)
    if not asked.profile:
        print("\n" + RESULT + json.dumps(called_with(cells, asked.workload, params)))
        return
    # CPU time: on a busy machine wall time shows who else runs.
    profile = cProfile.Profile(time.thread_time)
    found = profile.runcall(called_with, cells, asked.workload, params)
    pstats.Stats(profile, stream=sys.stdout).sort_stats("tottime").print_stats(45)
    print(RESULT + json.dumps(found))
