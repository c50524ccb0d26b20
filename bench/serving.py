"""What a server's readers cost: `python -m bench.serving [--turns 12] [--readers 1000]`.

One process serves a run over Server-Sent Events, as `antiphon serve` does, and another one reads: a stream
for each reader and one more whose window is closed. The model answers in 50 ms with 40 deltas. Times with and
without readers are of one process, in pairs, so that their ratio says what the readers cost.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import itertools
import json
import socket
import sys
import tempfile
import time
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from statistics import median

from antiphon import Agent, tool
from antiphon.host import Host
from antiphon.journal.listing import Labels
from antiphon.journal.sqlite import SqliteJournal
from antiphon.kernel.facts.events import EffectFinished
from antiphon.server.app import ServerSettings, make_app
from antiphon.server.gate import Bounds
from antiphon.server.serve import listen, serve
from antiphon.server.subjects import one_token
from antiphon.values.model import Delta, Reply
from bench.cell import rss
from bench.fake import AMPLE, call
from bench.workloads import WORD

TOKEN = "a token of the bench"
DELAY, DELTAS, MORE = 0.05, 40, 4_000
"""Seconds of a reply, the deltas in it, and those in one that says more."""
PAIRS = 3
CHILD = sys.executable, "-m", "bench.serving"


@tool(effect="read")
async def look(page: int) -> str:
    """Look at a page."""
    return f"page {page}"


class Typist:
    """A Model port that answers `turns=N` with so many turns of 40 deltas in 50 ms, anything else at once."""

    name = "typist"

    def __init__(self, delay=DELAY):
        self.delay = delay
        self.begun = self.ended = 0.0

    async def complete(self, request, emit):
        """See `antiphon.values.model.Model`."""
        asked = [n for n, each in enumerate(request.messages) if each.role == "user"][-1]
        text, loop = request.messages[asked].content, asyncio.get_running_loop()
        if not text.startswith("turns="):
            return Reply("Well.")
        turns, deltas = (int(each.partition("=")[2]) for each in text.split())
        turn = (len(request.messages) - 1 - asked) // 2
        begun = loop.time()
        self.begun = self.begun if turn else begun
        for said in range(1, deltas + 1):
            emit(Delta("text", WORD))
            if said % (deltas // DELTAS) == 0:
                await asyncio.sleep(max(begun + self.delay * said / deltas - loop.time(), 0))
        self.ended = loop.time()
        if turn < turns:
            return Reply(WORD * deltas, call("look", '{"page":3}', turn=turn), "calls")
        return Reply(WORD * deltas)


@asynccontextmanager
async def served(folder, model):
    """A host whose runs are served; its port."""
    journal = SqliteJournal(folder / "runs.db", "process")
    team = [Agent("desk", "You look.", tools=[look], model=model)]
    wide = Bounds(1e6, 10**6, 5_000, 5_000)
    async with Host(journal, {"desk": team}, idle_seconds=600.0, max_runs=1_000) as host:
        settings = ServerSettings((one_token(TOKEN),), bounds=wide)
        listening, stop = listen("127.0.0.1", 0), asyncio.Event()
        ready = asyncio.get_running_loop().create_future()
        serving = asyncio.ensure_future(
            serve(make_app(host, settings), listening, stop, 1.0, ready.set_result)
        )
        await ready
        try:
            yield host, listening.getsockname()[1]
        finally:
            stop.set()
            await serving
    await journal.close()


async def started(host):
    """A run in which nothing is open."""
    run_id = (await host.start("desk", "Hello.", limits=AMPLE)).run_id
    await at_rest(host, run_id)
    return run_id


async def at_rest(host, run_id):
    """Wait until nothing is open in a run of the host."""
    async with host.connect(run_id) as run, aclosing(run.events(deltas=False)) as events:
        async for item in events:
            if item.last_of_row and (here := host.runs[run_id].run) is not None and here.at_rest:
                return


async def asked(host, run_id, model, turns, deltas=DELTAS):
    """Seconds of a request of so many turns."""
    async with host.connect(run_id) as run:
        number = await run.ask("desk", f"turns={turns} deltas={deltas}", limits=AMPLE)
        async with aclosing(run.events(run.seq, deltas=False)) as events:
            call_id = await run.taken(number)
            async for item in events:
                if isinstance(item.event, EffectFinished) and item.event.id == call_id:
                    return model.ended - model.begun


class Readers:
    """A process that reads streams; one of them never reads."""

    def __init__(self, port, run_ids, each, path, stalled):
        self._asked = [str(port), ",".join(run_ids), str(each), path, str(stalled)]

    async def __aenter__(self):
        self._process = await asyncio.create_subprocess_exec(
            *CHILD, "--read", *self._asked,
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        await self._process.stdout.readline()
        return self

    async def told(self, last):
        """What they have read, once each has record `last`."""
        self._process.stdin.write(b"%d\n" % last)
        return json.loads(await self._process.stdout.readline())

    async def __aexit__(self, *_):
        self._process.stdin.close()
        await self._process.wait()


class Stream(asyncio.Protocol):
    """One stream: bytes, chunks, and the last record it has seen."""

    def __init__(self, path):
        self.path, self.bytes, self.chunks, self.last = path, 0, 0, 0
        self.began = asyncio.get_running_loop().create_future()

    def connection_made(self, transport):
        self.transport = transport
        transport.write(
            f"GET {self.path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {TOKEN}\r\n\r\n".encode()
        )

    def data_received(self, data):
        if not self.began.done():
            self.began.set_result(None)
        self.bytes += len(data)
        self.chunks += 1
        at = data.rfind(b"\nid: ")
        if at >= 0:
            digits = data[at + 5 : at + 25].partition(b"\n")[0]
            self.last = int(digits) if digits.isdigit() else self.last


async def read(port, run_ids, each, path, stalled):
    """Read until standard input ends; each line of it is answered by what was read."""
    loop = asyncio.get_running_loop()
    streams, held = [], []
    for run_id in run_ids:
        for _ in range(each):
            _, stream = await loop.create_connection(
                lambda run_id=run_id: Stream(path.format(run_id)), "127.0.0.1", port
            )
            streams.append(stream)
    for _ in range(stalled):
        still = socket.socket()
        still.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        still.connect(("127.0.0.1", port))
        still.sendall(
            f"GET {path.format(run_ids[0])} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
            f"Authorization: Bearer {TOKEN}\r\n\r\n".encode()
        )
        held.append(still)
    await asyncio.gather(*(stream.began for stream in streams))
    print("ready", flush=True)
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        while any(stream.last < int(line) for stream in streams):  # noqa: ASYNC110 - it has no event
            await asyncio.sleep(0.02)
        told = {
            "bytes": sum(stream.bytes for stream in streams),
            "chunks": sum(stream.chunks for stream in streams),
        }
        print(json.dumps(told), flush=True)


async def one_run(readers, turns, view):
    """A run with so many readers and without them, in pairs; and what a delta more costs with them."""
    with tempfile.TemporaryDirectory() as folder:
        model = Typist()
        async with served(Path(folder), model) as (host, port):
            run_id = await started(host)
            await asked(host, run_id, model, 5)
            pairs, few, more = [], [], []
            for _ in range(PAIRS):
                alone = await asked(host, run_id, model, turns)
                before, begun = rss(), time.perf_counter()
                path = f"/runs/{{}}/events?view={view}&after={host.runs[run_id].run.seq}"
                async with Readers(port, [run_id], readers, path, 1) as reading:
                    joined = time.perf_counter() - begun
                    wall, used, told = await read_by_all(host, run_id, model, turns, DELTAS, reading)
                    few.append(used)
                    pairs.append((wall / alone, wall, alone, (rss() - before) / 2**20, joined))
                    _, used, _ = await read_by_all(host, run_id, model, turns, MORE, reading)
                    more.append(used)
            added = (turns + 1) * (MORE - DELTAS)
            return {
                "times as long as alone, the least busy of three": round(min(each[0] for each in pairs), 3),
                "all pairs": [round(each[0], 3) for each in pairs],
                "s": round(median(each[1] for each in pairs), 3),
                "s alone": round(median(each[2] for each in pairs), 3),
                "cpu s": round(min(few), 3),
                "MiB more": round(max(each[3] for each in pairs), 1),
                "µs of cpu for a delta more": round((min(more) - min(few)) / added * 1e6, 2),
                "s to connect all": round(median(each[4] for each in pairs), 2),
                "chunks a reader": round(told["chunks"] / max(readers, 1), 1),
            }  # fmt: skip


async def read_by_all(host, run_id, model, turns, deltas, reading):
    """Seconds of a request, its CPU time with all that is sent of it, and what was read."""
    cpu = time.process_time()
    wall = await asked(host, run_id, model, turns, deltas)
    told = await reading.told(host.runs[run_id].run.seq)
    return wall, time.process_time() - cpu, told


READS = ("/runs/{}", "/runs?limit=50", "/runs/{}/frames?after=5", "/runs/{}/questions", "/inbox")


async def many_runs(runs, turns):
    """Milliseconds of reads while so many runs are at work, each with three readers."""
    with tempfile.TemporaryDirectory() as folder:
        model = Typist(delay=1.0)
        async with served(Path(folder), model) as (host, port):
            run_ids = await asyncio.gather(*(started(host) for _ in range(runs)))
            async with Readers(port, run_ids, 3, "/runs/{}/events?view=frames", 0):
                cpu, begun = time.process_time(), time.perf_counter()
                working = [asyncio.ensure_future(asked(host, each, model, turns)) for each in run_ids]
                timing = await asyncio.create_subprocess_exec(
                    *CHILD, "--timed", str(port), ",".join(run_ids), stdout=asyncio.subprocess.PIPE
                )
                found = json.loads((await timing.communicate())[0])
                cpu, took = time.process_time() - cpu, time.perf_counter() - begun
                done = sum(each.done() for each in working)
                await asyncio.gather(*working)
            found.sort()
            return {
                "runs": runs, "reads": len(found), "runs over before the last read": done,
                "a read, ms": round(found[len(found) // 2], 2),
                "p99, ms": round(found[len(found) * 99 // 100], 2),
                "the longest, ms": round(found[-1], 2),
                "cpu of the server meanwhile, of one core": round(cpu / took, 2),
            }  # fmt: skip


def timed(port, run_ids):
    """Milliseconds of each of READS in each of the runs, one after the other over one connection."""
    connection, found = http.client.HTTPConnection("127.0.0.1", port), []
    for run_id, path in itertools.product(run_ids, READS):
        began = time.perf_counter()
        connection.request("GET", path.format(run_id), headers={"Authorization": f"Bearer {TOKEN}"})
        reply = connection.getresponse()
        reply.read()
        if reply.status != 200:
            raise RuntimeError(f"{path}: {reply.status}")
        found.append((time.perf_counter() - began) * 1e3)
        time.sleep(0.002)
    connection.close()
    return found


async def survey(runs):
    """Milliseconds of a host's look for what nobody drives, and of an inbox, with so many runs at rest."""
    with tempfile.TemporaryDirectory() as folder:
        journal = SqliteJournal(Path(folder) / "runs.db", "process")

        async def add(n):
            lease = await journal.claim(f"run {n}", create=True, labels=Labels("project", "owner", "desk"))
            await journal.release(lease, b'{"seq":0,"state":"idle","title":"What?"}')

        for first in range(0, runs, 1_000):
            await asyncio.gather(*(add(n) for n in range(first, first + 1_000)))
        team = {"desk": [Agent("desk", "You look.", model=Typist())]}
        begun = time.perf_counter()
        async with Host(journal, team) as host:
            first = time.perf_counter() - begun
            times = []
            for _ in range(21):
                begun = time.perf_counter()
                await host._survey()
                times.append(time.perf_counter() - begun)
            await host.drain(0)
        await journal.close()
        return {
            "runs at rest": runs, "the first look, ms": round(first * 1e3, 1),
            "another, ms": round(median(times) * 1e3, 2),
        }  # fmt: skip


async def measure(readers, turns):
    """All of it."""
    return {
        f"{readers} readers of records": await one_run(readers, turns, "records"),
        f"{readers} readers of frames": await one_run(readers, turns, "frames"),
        "three readers of each of many runs": await many_runs(200, 6),
        "survey": await survey(20_000),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--read", nargs=5, help=argparse.SUPPRESS)
    parser.add_argument("--timed", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--readers", type=int, default=1_000)
    parser.add_argument("--turns", type=int, default=12)
    given = parser.parse_args()
    if given.read:
        port, run_ids, each, path, stalled = given.read
        asyncio.run(read(int(port), run_ids.split(","), int(each), path, int(stalled)))
    elif given.timed:
        print(json.dumps(timed(int(given.timed[0]), given.timed[1].split(","))))
    else:
        print(json.dumps(asyncio.run(measure(given.readers, given.turns)), indent=1, ensure_ascii=False))
