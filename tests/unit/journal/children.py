"""Other processes for the journal's tests: `python -m tests.unit.journal.children NAME ARGUMENT…`."""

import asyncio
import itertools
import os
import resource
import signal
import subprocess
import sys

from antiphon import Agent, open_run
from antiphon.errors import JournalError
from antiphon.journal.port import blob_digest
from antiphon.journal.row_writer import RowWriter
from antiphon.journal.sqlite import SqliteJournal
from antiphon.journal.sqlite import writer as sqlite_writer
from antiphon.kernel.facts.records import Record
from antiphon.kernel.run.log import listing
from antiphon.models.script import Script, call
from tests.unit.host.hosts import pay
from tests.unit.journal.writing import opened


def start(name, *arguments):
    """One of the functions below in a process of its own, its pipes open."""
    command = [sys.executable, "-m", "tests.unit.journal.children", name, *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    pipe = subprocess.PIPE
    return subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, text=True, bufsize=1)


def say(text):
    print(text, flush=True)


async def hold(path, run_id):
    """Own a run; append a row for each line of input and say how it went."""
    async with opened(path) as journal:
        pen = RowWriter(journal, await journal.claim(run_id, create=True))
        await pen.write(b"first")
        say("holding")
        for line in sys.stdin:
            try:
                await pen.write(line.encode())
            except JournalError as error:
                say(type(error).__name__)
            else:
                say("written")


async def duplicates(path, run_id, keys, posts):
    """Post the same keys over and over; say how many were new."""
    async with opened(path) as journal:
        say("ready")
        sys.stdin.readline()
        new = 0
        for start_at in range(0, int(posts), 50):
            keyed = [f"key {n * 7 % int(keys)}" for n in range(start_at, start_at + 50)]
            new += sum(await asyncio.gather(*(journal.post(run_id, key, key.encode()) for key in keyed)))
        say(new)


async def endless(path, pages):
    """Three runs with blobs and commands, without end; say what was acknowledged, a line each."""
    sqlite_writer.CHECKPOINT_PAGES = int(pages)
    async with opened(path) as journal:
        pens = [RowWriter(journal, await journal.claim(f"run {n}", create=True)) for n in range(3)]
        for turn in itertools.count():
            for pen in pens:
                run_id = pen.lease.run_id
                data = f"{run_id} says {turn} ".encode() * (1 + turn * 37 % 400)
                name = blob_digest(data)
                row = pen.row(b"turn %d " % turn * (1 + turn % 50), refs=(("/text", name),))
                await pen.put(row, {name: data})
                say(f"row|{run_id}|{row.seq}|{row.digest.hex()}")
            await journal.post(run_id, f"key {turn}", b"command %d" % turn)
            say(f"mail|{run_id}|{turn + 1}|{(b'command %d' % turn).hex()}")
            if not turn:
                await journal.rename(run_id, "a name")


async def small_files(path, limit):
    """Write under a limit of the file size until it stops, then without it."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    journal = SqliteJournal(path)
    pen = RowWriter(journal, await journal.claim("run", create=True))
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit), hard))
    written = 0
    try:
        while True:
            await pen.write(b"x" * 3_000)
            written += 1
    except JournalError as error:
        say(f"{type(error).__name__} {error}")
    await journal.close()
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    async with opened(path) as again:
        kept = len(await again.read("run"))
        await RowWriter(again, await again.claim("run")).write(b"goes on")
        say(f"{written} acknowledged, {kept} kept, {len(await again.read('run'))} in the end")


async def unprivileged(path):
    """Open a journal as a user without rights of its own."""
    if os.getuid() == 0:
        os.setgid(65534)
        os.setuid(65534)
    try:
        async with opened(path) as journal:
            say(f"opened {await journal.runs()}")
    except JournalError as error:
        say(f"{type(error).__name__} {error}")


async def ask_and_die(path, run_id):
    """Go on with a run of `desk` until it asks a person, and die before the list of runs is told."""
    listing.SOON_S = 3_600.0
    journal = SqliteJournal(path, "process")
    agent = Agent("desk", model=Script([call("pay", amount=3)]), tools=[pay])
    async with open_run([agent], journal=journal, run_id=run_id) as run:
        await run.post("desk", "Pay")
        async for item in run.events(run.seq):
            if isinstance(item, Record) and item.asks:
                await run.until_durable()
                os._exit(0)


if __name__ == "__main__":
    asyncio.run(globals()[sys.argv[1]](*sys.argv[2:]))
