"""What it costs to watch a long run, and to list many: `python -m bench.pages [folder]`.

A run of 15,000 records in an SQLite file, read by whoever comes in the middle, and 100,000 runs in another.
Milliseconds are medians. Each figure that depends on the machine stands beside one of the same run: reading
and parsing the bytes of all rows, which no reader can do without who must see all of them.
"""

import asyncio
import gc
import json
import sys
import tempfile
import time
import tracemalloc
from contextlib import aclosing
from pathlib import Path

import apsw
import msgspec

from antiphon import Agent, open_run, tool
from antiphon.journal.listing import Labels, RunFilter
from antiphon.journal.sqlite import SqliteJournal
from antiphon.models.script import Script, call
from antiphon.view.connection import connect
from antiphon.view.reading.events import RunEvents
from bench.fake import AMPLE

RECORDS = 15_000
READERS = 200
RUNS = 100_000


@tool(effect="read")
def add(a: int, b: int) -> int:
    """Add two numbers.

    Args:
        a: One.
        b: The other.
    """
    return a + b


async def long_run(path, records=RECORDS):
    """A run of so many records in the file, left open; its id and last record."""
    async with closing(path) as journal:
        replies, run_id = [call("add", a=n, b=n) for n in range(records // 100)], ""
        while True:
            agent = Agent("adder", "You add.", tools=[add])
            script = Script([*replies, "Done."])
            async with open_run(
                [agent], journal=journal, model=script, limits=AMPLE, run_id=run_id or None
            ) as run:
                run_id = run.run_id
                await run.result(await run.post("adder", "Add."))
                if run.seq >= records:
                    return run_id


def closing(path):
    return Journal(path)


class Journal:
    """A journal that is closed at the end of the block."""

    def __init__(self, path):
        self.path = path

    async def __aenter__(self):
        self.journal = SqliteJournal(self.path, "process")
        return self.journal

    async def __aexit__(self, *error):
        await self.journal.close()


def parsed(path):
    """Milliseconds to read and parse all bodies, without digests."""
    connection = apsw.Connection(str(path))
    started = time.perf_counter()
    for (body,) in connection.execute("select body from rows order by n"):
        msgspec.json.decode(body)
    took = time.perf_counter() - started
    connection.close()
    return took * 1e3


async def first_after(journal, run_id, after):
    """Milliseconds until a new reader has the first record after `after`."""
    started = time.perf_counter()
    events = RunEvents(journal, run_id, after, deltas=False)
    await anext(events)
    took = (time.perf_counter() - started) * 1e3
    await events.aclose()
    return took


async def median(times, count=21):
    found = sorted([await times() for _ in range(count)])
    return round(found[count // 2], 3)


async def watching(path):
    run_id = await long_run(path)
    bare = parsed(path)
    async with closing(path) as journal:
        last = (await journal.read(run_id))[-1].seq
        cold = await first_after(journal, run_id, last - 5)
        end = await median(lambda: first_after(journal, run_id, last - 5))
        middle = await median(lambda: first_after(journal, run_id, last // 2))
        begin = await median(lambda: first_after(journal, run_id, 0))

        async def connected():
            started = time.perf_counter()
            async with connect(journal, run_id) as run:
                await anext(run.events(last - 5, deltas=False))
            return (time.perf_counter() - started) * 1e3

        gc.collect()
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        readers = [RunEvents(journal, run_id, n * last // READERS, deltas=False) for n in range(READERS)]
        for reader in readers:
            await anext(reader)
        gc.collect()
        per_reader = (tracemalloc.get_traced_memory()[0] - before) / READERS
        tracemalloc.stop()
        del readers
        gc.collect()
        started, seen = time.perf_counter(), 0
        async with aclosing(RunEvents(journal, run_id, 0, deltas=False)) as events:
            async for _ in events:
                seen += 1
                if seen == last:
                    break
        whole = (time.perf_counter() - started) * 1e3
        return {
            "records": last,
            "rows read and parsed, ms": round(bare, 2),
            "reconnect at the end, the first in a process, ms": round(cold, 2),
            "reconnect at the end, ms": end,
            "reconnect in the middle, ms": middle,
            "begin at 0, ms": begin,
            "connect and read at the end, ms": await median(connected),
            "KiB per reader": round(per_reader / 1024, 1),
            "watch all of it, ms": round(whole, 1),
        }


async def many_runs(journal):
    """So many runs in the journal, of 50 projects and 200 owners, few of which are not at rest."""

    async def add(n):
        labels = Labels(f"project {n % 50}", f"owner {n % 200}", "team")
        lease = await journal.claim(f"run {n}", create=True, labels=labels)
        state = "waiting" if n % 1_000 == 7 else "open" if n % 100 == 3 else "closed" if n % 2 else "idle"
        title = f"What of the {n}th thing that was asked here, and of others?"
        summary = msgspec.json.encode({"seq": 1, "title": title, "state": state, "entry": "agent"})
        await journal.release(lease, summary)

    for first in range(0, RUNS, 1_000):
        await asyncio.gather(*(add(n) for n in range(first, first + 1_000)))


PAGES = {
    "the newest": RunFilter(),
    "one project": RunFilter(project="project 7"),
    "one owner": RunFilter(owner="owner 7"),
    "a team of all": RunFilter(team="team"),
    "a project, nothing found": RunFilter(project="project 8", states=("waiting",)),
    "waiting": RunFilter(states=("waiting",)),
    "open and not driven": RunFilter(states=("open",), driven=False),
    "driven": RunFilter(driven=True),
    "a text that many have": RunFilter(text="thing"),
    "a text that one has": RunFilter(text="the 17th"),
    "a text that none has": RunFilter(text="nowhere"),
    "an owner, a text that none has": RunFilter(owner="owner 7", text="nowhere"),
}


async def listing(path):
    async with closing(path) as journal:
        await many_runs(journal)
        held = [await journal.claim(f"run {n}") for n in range(5)]
        found = {}
        for name, where in PAGES.items():

            async def page(where=where, before=0):
                started = time.perf_counter()
                await journal.runs(where, before, 50)
                return (time.perf_counter() - started) * 1e3

            found[f"{name}, ms"] = await median(page)
        half = RUNS // 2
        found["a page in the middle, ms"] = await median(lambda: page(RunFilter(), half))
        recent = (await journal.runs(RunFilter(), half, 1))[0].created_at
        found["the newer half, ms"] = await median(lambda: page(RunFilter(since=recent)))
        started = time.perf_counter()
        every = await journal.runs()
        found["all of them, ms"] = round((time.perf_counter() - started) * 1e3, 1)
        return {"runs": len(every), "held": len(held), **found}


async def measure(folder):
    return {"watching": await watching(folder / "long.db"), "listing": await listing(folder / "many.db")}


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(dir=sys.argv[1] if len(sys.argv) > 1 else None) as place:
        print(json.dumps(asyncio.run(measure(Path(place))), indent=1))
