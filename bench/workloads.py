"""The workloads, the same for every contender: what varies is how one pass is prepared.

Needs nothing but the standard library and `bench.cell`.
"""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from statistics import median

from bench.cell import PAGE, Go, Marks, Metrics, passes, peak_rss, per_unit, rss, timed

DELAY = 0.05
"""Seconds of a slow model call (W6)."""
PAUSE = 0.01
"""Seconds of a slow tool (W3)."""
CALLS = 5
"""Model calls of one concurrent run (W6)."""
WORD = "tok "
"""What a model that streams says, again and again (W8)."""
IMPORTS = 5


def imported(statement: str, *versions: str) -> Metrics:
    """W1: import time and memory in fresh processes, beside those of `import asyncio`."""
    probe = (
        "import sys, time\n"
        f"size = lambda: int(open('/proc/self/statm').read().split()[1]) * {PAGE}\n"
        "before, start, cpu = size(), time.perf_counter(), time.process_time()\n"
        "{}\n"
        "wall, cpu = time.perf_counter() - start, time.process_time() - cpu\n"
        "print('@@', wall, cpu, size() - before, len(sys.modules))"
    )

    # Compiled once, as an installation is, whatever the machine says of writing that down.
    env = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    env["PYTHONPYCACHEPREFIX"] = os.path.join(scratch(), "pycache")

    def measured(code: str) -> tuple[float, float, float, float]:
        taken = []
        for _ in range(IMPORTS + 1):
            command = [sys.executable, "-W", "ignore", "-c", probe.replace("{}", code)]
            done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True, env=env)
            line = next(line for line in done.stdout.splitlines() if line.startswith("@@"))
            taken.append([float(part) for part in line.split()[1:]])
        # The first one had to compile.
        seconds, cpu, memory, modules = (median(column) for column in zip(*taken[1:], strict=True))
        return seconds, cpu, memory / 2**20, modules

    seconds, cpu, memory, modules = measured(statement)
    plain_s, _, plain_mb, _ = measured("import asyncio")
    return {
        "import_s": seconds,
        "import_cpu_s": cpu,
        "import_rss_mb": memory,
        "modules": int(modules),
        "import_s_over_asyncio": seconds - plain_s,
        "rss_mb_over_asyncio": memory - plain_mb,
    }


async def tool_turns(prepare: Callable[[int, Marks | None], Go], n: int) -> Metrics:
    """W2: one agent, one trivial async tool call per turn, `n` turns, then an answer."""
    await prepare(3, None)()
    found = per_unit(await passes(lambda: prepare(n, None)), n, "turn")
    marks = Marks()
    await prepare(n, marks)()
    if len(marks.wall) != n + 1:
        raise RuntimeError(f"{len(marks.wall)} model calls, {n + 1} expected")
    return found | marks.growth()


async def parallel_tools(prepare: Callable[[], Go], n: int) -> Metrics:
    """W3: one turn with `n` calls of a tool that sleeps PAUSE."""
    await prepare()()
    samples = await passes(prepare)
    return per_unit(samples, n, "call") | {"wall_ms": min(each.wall for each in samples) * 1e3}


async def agent_calls(prepare: Callable[[], Go], calls: int) -> Metrics:
    """W4: one request with `calls` agent calls in it, nested or side by side."""
    await prepare()()
    return per_unit(await passes(prepare), calls, "agent_call")


async def ring(prepare: Callable[[int], Go], hops: int) -> Metrics:
    """W5.ring: a token goes round, each member hands it to the next, `hops` times."""
    await prepare(100)()
    return per_unit(await passes(lambda: prepare(hops)), hops, "hop")


async def deliveries(prepare: Callable[[int], Go], subs: int, msgs: int) -> Metrics:
    """W5.fanout: `subs` members hear each of `msgs` messages that are published at once."""
    await prepare(2)()
    found = per_unit(await passes(lambda: prepare(msgs)), subs * msgs, "delivery")
    return found | {"deliveries_per_s": 1e6 / float(found["us_per_delivery"])}


async def many_runs(prepare: Callable[[int], Go], n: int, collector: str) -> Metrics:
    """W6: `n` concurrent runs of CALLS model calls of DELAY each.

    collector: `tuned` as a server would do it (frozen after start, high thresholds), or `default`.
    """
    await prepare(1)()
    go = prepare(n)
    if collector == "tuned":
        tune_collector()
    gc.collect()
    base = rss()
    sample = await timed(go)
    ideal, peak = CALLS * DELAY, peak_rss()
    return {
        "wall_s": sample.wall,
        "ideal_s": ideal,
        "us_per_run": (sample.wall - ideal) / n * 1e6,
        "cpu_s": sample.cpu,
        "cpu_us_per_run": sample.cpu / n * 1e6,
        "kb_per_run": (peak - base) / n / 1024,
        "peak_rss_mb": peak / 2**20,
    }


def tune_collector() -> None:
    """Set the cyclic collector as a server would do it at its start."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 50, 100)


async def together(one: Callable[[], Go], n: int) -> None:
    """`n` runs at once."""
    await asyncio.gather(*(one()() for _ in range(n)))


async def deltas(prepare: Callable[[int], Go], n: int) -> Metrics:
    """W8: one answer of `n` deltas, read while it is said."""
    await prepare(100)()
    return per_unit(await passes(lambda: prepare(n)), n, "delta")


def objects(make: Callable[[], object], n: int = 100_000, budget_s: float = 5.0) -> Metrics:
    """W9: objects made until there are `n` or the time is up; all are kept alive."""
    make()
    gc.collect()
    kept: list[object] = []
    before, cpu, start = rss(), time.thread_time(), time.perf_counter()
    while len(kept) < n and (len(kept) % 100 or time.perf_counter() - start < budget_s):
        kept.append(make())
    wall, used = time.perf_counter() - start, time.thread_time() - cpu
    count, grown = len(kept), rss() - before
    kept.clear()
    tracemalloc.start()
    few = [make() for _ in range(1_000)]
    traced = tracemalloc.get_traced_memory()[0] / len(few)
    tracemalloc.stop()
    return {
        "objects": count,
        "us_per_object": wall / count * 1e6,
        "cpu_us_per_object": used / count * 1e6,
        "bytes_per_object": grown / count,
        "traced_bytes_per_object": traced,
    }


def file_bytes(path: str) -> int:
    """Bytes of an SQLite file with its log."""
    return sum(os.path.getsize(path + end) for end in ("", "-wal") if os.path.exists(path + end))


def written() -> int:
    """Bytes this process has passed to write(2) so far."""
    with open("/proc/self/io", encoding="ascii") as file:
        return int(file.read().split("wchar:")[1].split()[0])


def scratch() -> Path:
    """A folder on the disk of the project: a temporary one may be in memory, where a sync is free."""
    folder = Path(__file__).resolve().parent.parent / ".bench" / "scratch"
    folder.mkdir(parents=True, exist_ok=True)
    return folder
