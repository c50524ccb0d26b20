"""Antiphon's durable cells (W7): a run in an SQLite file, beside a bare commit to the same disk."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import apsw

from antiphon import Agent, Tool, run, tool
from antiphon.journal import Journal, open_journal
from antiphon.kernel.run.rows import fold
from bench import bare, workloads
from bench.cell import Go, Marks, Metrics, Sample, passes, per_unit, timed
from bench.fake import AMPLE, Fake, turns

DURABILITY = {"NORMAL": "process", "FULL": "power"}
TEXT = "a text of 20 letters"
ARGUMENTS = '{"text":"9 letters"}'
"""20 bytes, as every message of a turn: the call's arguments and the tool's result."""
EVENTS_PER_TURN = 4
BLOCK = 100
"""Bare commits between two passes."""


@tool
async def note(text: str) -> str:
    """Note a text; once, so that its start is durable before it runs."""
    return TEXT


@tool(effect="read")
async def look(text: str) -> str:
    """Look at a text; nothing waits for the disk."""
    return TEXT


@asynccontextmanager
async def journal_file(sync: str) -> AsyncIterator[tuple[Journal, Path]]:
    """An open journal in a new folder that goes with it."""
    with TemporaryDirectory(dir=workloads.scratch()) as folder:
        path = Path(folder) / "runs.db"
        journal = open_journal(f"sqlite:///{path}?durability={DURABILITY[sync]}")
        try:
            yield journal, path
        finally:
            await journal.close()


async def one_run(
    journal: Journal | None, n: int, marks: Marks | None = None, offered: Tool = note, said: str = ""
) -> str:
    """A run of `n` turns of 20-byte messages; its id. said: what the model says beside its calls."""
    model = Fake(turns(n, offered.name, ARGUMENTS, said), marks=marks)
    agent = Agent("a", "You note.", tools=[offered], model=model)
    result = await run(agent, TEXT, limits=AMPLE, journal=journal)
    return result.run_id


async def turns_of_one_run(n: int, sync: str) -> Metrics:
    """Durable turns of one run, one commit each, beside a bare commit and the same run in memory."""
    async with journal_file(sync) as (journal, path):
        with bare.committer(path.parent, sync) as commit:
            await one_run(journal, 3)
            blocks: list[float] = []

            def prepare() -> Go:
                # Between the passes, so that the same load is on both.
                blocks.append(sum(commit() for _ in range(BLOCK)) / BLOCK)
                return lambda: one_run(journal, n)

            samples = await passes(prepare, 9, 2.5)
        before = workloads.written()
        marks = Marks()
        await one_run(journal, n, marks)
        wrote = workloads.written() - before
        memory = per_unit(await passes(lambda: lambda: one_run(None, n), 5, 1.0), n, "turn")
    found = per_unit(samples, n, "turn") | marks.growth()
    commit_us = min(blocks) * 1e6
    return found | {
        "commit_us": commit_us,
        "added_to_commit_us": found["us_per_turn"] - commit_us,
        "memory_us_per_turn": memory["us_per_turn"],
        "added_us_per_turn": found["us_per_turn"] - memory["us_per_turn"],
        "process_cpu_us_per_turn": min(each.process for each in samples) / n * 1e6,
        "written_bytes_per_turn": wrote / n,
    }


async def turns_of_many_runs(runs: int, turns: int, sync: str) -> Metrics:
    """Durable turns per second with many runs at once in one file; their start and end included.

    The collector is tuned as a server would do it.
    """
    async with journal_file(sync) as (journal, _):
        await one_run(journal, 3)
        workloads.tune_collector()

        async def all_runs() -> None:
            await workloads.together(lambda: lambda: one_run(journal, turns), runs)

        sample = await timed(all_runs)
    return {
        "wall_s": sample.wall,
        "turns_per_s": runs * turns / sample.wall,
        "cpu_us_per_turn": sample.cpu / (runs * turns) * 1e6,
        "process_cpu_us_per_turn": sample.process / (runs * turns) * 1e6,
    }


def stored(path: Path) -> tuple[int, int]:
    """Bytes in the rows and blobs of a journal, and of its whole file."""
    connection = apsw.Connection(str(path))
    connection.execute("pragma wal_checkpoint(truncate)").fetchall()
    found = connection.execute(
        "select sum(payload) from dbstat where name in ('rows', 'blobs', 'run_blobs')"
    ).fetchone()
    connection.close()
    return (found[0] or 0) if found else 0, path.stat().st_size


async def bytes_per_turn(n: int, offered: Tool = note) -> Metrics:
    """What a turn adds to the journal: a run of `n` turns less a run without any.

    Counted are the bytes of the stored rows and blobs, all columns; beside it the file as a whole,
    and the same with a model that says 20 letters more in every turn.
    """
    empty, silent, saying = (
        await _size(0, offered),
        await _size(n, offered),
        await _size(n, offered, TEXT),
    )
    return {
        "bytes_per_turn": (silent[0] - empty[0]) / n,
        "bytes_per_talking_turn": (saying[0] - empty[0]) / n,
        "file_bytes_per_turn": (silent[1] - empty[1]) / n,
        "bytes_of_empty_run": empty[0],
        "file_bytes": silent[1],
    }


async def _size(n: int, offered: Tool, said: str = "") -> tuple[int, int]:
    async with journal_file("NORMAL") as (journal, path):
        await one_run(journal, n, offered=offered, said=said)
        await journal.close()
        return stored(path)


async def _loads(n: int, offered: Tool, most: int) -> tuple[list[Sample], int, list[float]]:
    """Folds of one stored run; its number of events; seconds of reading and decoding alone."""
    async with journal_file("NORMAL") as (journal, _):
        run_id = await one_run(journal, n, offered=offered)
        events = (await journal.read(run_id))[-1].seq
        samples = await passes(lambda: lambda: fold(journal, run_id), most, 4.0)
        plain = []
        for _ in range(min(most, len(samples))):
            start = time.perf_counter()
            bare.decoded([row.body for row in await journal.read(run_id)])
            plain.append(time.perf_counter() - start)
    return samples, events, plain


async def load(n: int) -> Metrics:
    """Load, verify and fold one run of `n` turns, the file open and warm."""
    samples, events, plain = await _loads(n, note, 9)
    wall = min(each.wall for each in samples)
    return {
        "load_ms": wall * 1e3,
        "process_cpu_ms": min(each.process for each in samples) * 1e3,
        "read_and_parse_ms": min(plain) * 1e3,
        "events": events,
        "us_per_event": wall / events * 1e6,
    }


async def fold_events(events: int) -> Metrics:
    """Load, verify and fold one long run; seconds of a million events, by rule of three if it is shorter."""
    samples, count, _ = await _loads(events // EVENTS_PER_TURN, look, 3)
    wall = min(each.wall for each in samples)
    cpu = min(each.process for each in samples)
    return {
        "events": count,
        "wall_s": wall,
        "us_per_event": wall / count * 1e6,
        "s_per_million_events": wall / count * 1e6,
        "cpu_s_per_million_events": cpu / count * 1e6,
        "extrapolated": count < 900_000,
    }


async def journal_alone(sync: str) -> Metrics:
    """The journal without a runtime: `bench.journal_bench`."""
    from bench import journal_bench

    lone: Any = journal_bench.lone
    stream: Any = journal_bench.stream
    group: Any = journal_bench.group
    read_back: Any = journal_bench.read_back
    async with journal_file(sync) as (journal, _):
        one_run_per_s, append_us = await stream(journal)
        return {
            "append_us": append_us,
            "rows_of_one_run_per_s": one_run_per_s,
            "rows_of_many_runs_per_s": await group(journal),
            "lone_append_us": await lone(journal) * 1e3,
            "read_rows_per_s": await read_back(journal),
        }
