"""What the journals cost here and now: `python bench/journal_bench.py [folder]`.

Producers are chains of callbacks, one run each: the next row is appended when the one before is
durable. `raw` is the same number of plain SQLite commits of one row, in the same folder.
"""

import asyncio
import json
import sys
import tempfile
import time
from pathlib import Path

import apsw

from antiphon.journal.memory import MemoryJournal
from antiphon.journal.row_writer import RowWriter
from antiphon.journal.sqlite import SqliteJournal

BODY = b"x" * 300
PRODUCERS, ROWS_EACH = 1_000, 100


class Producer:
    """Keeps `depth` rows of one run on their way until `rows` are durable."""

    def __init__(self, pen, rows, ended):
        self.pen, self.left, self.ended = pen, rows, ended
        self.ready = [pen.row(BODY) for _ in range(rows)][::-1]

    def go(self, error=None):
        if error is not None:
            raise error
        if self.ready:
            self.pen.journal.append(self.pen.lease, self.ready.pop(), {}, self.go)
        else:
            self.ended()


async def group(journal, producers=PRODUCERS, rows=ROWS_EACH):
    """Rows per second that become durable for all producers together."""
    loop = asyncio.get_running_loop()
    end, left = loop.create_future(), producers

    def ended():
        nonlocal left
        left -= 1
        if not left:
            end.set_result(None)

    chains = [
        Producer(RowWriter(journal, await journal.claim(f"run {n}", create=True)), rows, ended)
        for n in range(producers)
    ]
    started = time.perf_counter()
    for chain in chains:
        chain.go()
    await end
    return producers * rows / (time.perf_counter() - started)


async def stream(journal, rows=100_000):
    """(rows per second that become durable, µs of one `append` for the caller) of a single run."""
    pen = RowWriter(journal, await journal.claim("stream", create=True))
    ready = [pen.row(BODY) for _ in range(rows)]
    nothing, append, lease, blobs = (lambda error: None), journal.append, pen.lease, {}
    started = time.perf_counter()
    for row in ready:
        append(lease, row, blobs, nothing)
    called = time.perf_counter() - started
    await journal.release(lease)
    return rows / (time.perf_counter() - started), called / rows * 1e6


async def lone(journal, rows=1_000):
    """Milliseconds of one awaited append, the median."""
    pen = RowWriter(journal, await journal.claim("lone", create=True))
    times = []
    for _ in range(rows):
        row = pen.row(BODY)
        started = time.perf_counter()
        await pen.put(row)
        times.append(time.perf_counter() - started)
    return sorted(times)[rows // 2] * 1e3


def raw(path, synchronous, rows=1_000):
    """Milliseconds of one plain commit of one row, the median."""
    connection = apsw.Connection(str(path))
    connection.pragma("journal_mode", "wal")
    connection.pragma("synchronous", synchronous)
    connection.execute("create table t(n integer primary key, body blob)")
    times = []
    for _ in range(rows):
        started = time.perf_counter()
        connection.execute("insert into t(body) values(?)", (BODY,))
        times.append(time.perf_counter() - started)
    connection.close()
    return sorted(times)[rows // 2] * 1e3


async def read_back(journal, run_id="stream"):
    """Rows per second read and verified."""
    started = time.perf_counter()
    rows = await journal.read(run_id)
    return len(rows) / (time.perf_counter() - started)


async def measure(folder):
    found = {}
    for name, journal in (
        ("memory", MemoryJournal()),
        ("sqlite power", SqliteJournal(folder / "power.db")),
        ("sqlite process", SqliteJournal(folder / "process.db", "process")),
    ):
        rate, called = await stream(journal)
        found[name] = {
            "rows/s, 1 run": round(rate),
            "append, us": round(called, 2),
            f"rows/s, {PRODUCERS} runs": round(await group(journal)) if name != "memory" else None,
            "lone append, ms": round(await lone(journal), 4),
            "read, rows/s": round(await read_back(journal)),
        }
        await journal.close()
    for name, synchronous in (("raw power", 2), ("raw process", 1)):
        found[name] = {"lone commit, ms": round(raw(folder / f"{name}.db", synchronous), 4)}
    return found


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(dir=sys.argv[1] if len(sys.argv) > 1 else None) as place:
        print(json.dumps(asyncio.run(measure(Path(place))), indent=1))
