"""What a unit of work costs in instructions of the processor, counted by valgrind: no load, no clock.

    python -m bench.instructions                            today's source
    python -m bench.instructions --beside OTHER/CHECKOUT    another one's first, and the ratio

A cell is run twice in fresh processes, with a few units of work and with more; the difference is theirs,
whatever start and end cost. Neither memory nor the prediction of branches shows in it, so a ratio of times
may differ.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]
CELLS = {
    "tool turn": (100, 400),
    "agent call, a chain of 50": (1, 4),
    "agent call, 1 to many": (20, 120),
    "hop of a ring of 100 roles": (200, 300),
    "run of one answer": (10, 60),
    "load and fold, a turn": (100, 1100),
    "agent with one tool": (100, 1100),
}
"""For each kind of work how many units the two processes do."""
PER_UNIT = {"agent call, a chain of 50": 50}


async def work(kind: str, count: int) -> None:
    """Do `count` units of it."""
    from antiphon import Agent, open_run, run
    from bench import antiphon_cells as cells
    from bench.fake import AMPLE, Fake, call

    if kind == "tool turn":
        await cells.prepare_turns(count, None)()
    elif kind == "agent call, a chain of 50":
        agents = cells.chain(50)
        async with open_run(agents, limits=AMPLE) as opened:
            for _ in range(count):
                await opened.result(await opened.post(agents[0], "go"))
    elif kind == "agent call, 1 to many":
        many = call("call_agent", '{"agent_name":"leaf","message":"x"}', count)
        leaf = Agent("leaf", "You answer.", model=Fake(lambda _: cells.Reply("leaf")))
        reply = cells.Reply(calls=many, stop="calls")
        first = Agent("a", "You ask.", model=Fake(lambda said: cells.Reply("up") if said > 1 else reply))
        await run(first, "go", agents=[first, leaf], limits=AMPLE)
    elif kind == "hop of a ring of 100 roles":
        await _hops(count)
    elif kind == "run of one answer":
        go = cells.prepare_turns(0, None)
        for _ in range(count):
            await go()
    elif kind == "load and fold, a turn":
        await _fold(count)
    else:
        for _ in range(count):
            Agent("a", "You add.", tools=[cells.add])


async def _hops(count: int) -> None:
    from antiphon.styles.environment import Environment, Message
    from bench.rounds import ROOM, Node

    env = Environment(roles=[Node(number, 100) for number in range(100)], laps=None, limits=ROOM)
    env.publish_message(Message("x", cause_by="t0"))
    async with env:
        await env.run(count)


async def _fold(count: int) -> None:
    """One fold of a run of 100 turns, or eleven: making it is no part of the difference."""
    from bench import durable

    async with durable.journal_file("NORMAL") as (journal, _):
        run_id = await durable.one_run(journal, 100, offered=durable.look)
        for _ in range(count // 100):
            await durable.fold(journal, run_id)


def counted(checkout: Path, kind: str) -> float:
    """Instructions of a unit of work with the package and the cells of a checkout."""
    few, many = CELLS[kind]
    spent = [_instructions(checkout, kind, count) for count in (few, many)]
    return (spent[1] - spent[0]) / (many - few) / PER_UNIT.get(kind, 1)


def _instructions(checkout: Path, kind: str, count: int) -> int:
    child = f"import sys; sys.path[:0] = {[str(checkout / 'src'), str(checkout)]!r}; " + (
        f"import runpy; sys.argv = ['', '--work', {kind!r}, '{count}'];"
        f" runpy.run_path({str(Path(__file__).resolve())!r}, run_name='__main__')"
    )
    plain = os.environ | {"ANTIPHON_HOME": "", "PYTHONHASHSEED": "0"}
    done = subprocess.run(
        ["valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null",
         sys.executable, "-c", child],
        capture_output=True, text=True, check=False, env=plain,
    )  # fmt: skip
    found = re.search(r"I\s+refs:\s+([\d,]+)", done.stderr)
    if done.returncode or found is None:
        raise SystemExit(f"{kind} with {checkout}: {done.stderr[-2000:]}")
    return int(found[1].replace(",", ""))


def main() -> None:
    """Count, and print a table."""
    asked = argparse.ArgumentParser(description="Instructions of a unit of work.")
    asked.add_argument("--beside", type=Path, help="another checkout, counted first")
    asked.add_argument("--work", nargs=2, help=argparse.SUPPRESS)
    given = asked.parse_args()
    if given.work:
        asyncio.run(work(given.work[0], int(given.work[1])))
        return
    print("| instructions | " + ("before | after | after / before |" if given.beside else "|"))
    print("| --- | " + ("---: | ---: | ---: |" if given.beside else "---: |"))
    for kind in CELLS:
        now = counted(HERE, kind)
        if given.beside:
            before = counted(given.beside.resolve(), kind)
            print(f"| {kind} | {before:,.0f} | {now:,.0f} | {now / before:.2f} |", flush=True)
        else:
            print(f"| {kind} | {now:,.0f} |", flush=True)


if __name__ == "__main__":
    main()
