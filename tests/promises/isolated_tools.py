"""Isolated tools for test_isolated_tools.py; the processes import this file, so it imports little."""

import asyncio
import ctypes
import os
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

from antiphon import Agent, Attachment, ToolContext, run_sync, tool
from antiphon.models.script import Script
from antiphon.values.tool import Dependency, Done

ALIVE = "while True: pass"


@tool(effect="read", isolated=True)
def square(number: int) -> dict[str, Any]:
    """Square a number, with much noise."""
    print("noise")
    os.write(1, b"more noise\n")
    return {"square": number**2, "read": sys.stdin.read(), "process": os.getpid()}


@tool(isolated=True)
async def wait(seconds: float) -> str:
    """Wait in an event loop."""
    with suppress(TimeoutError):
        await asyncio.wait_for(asyncio.Event().wait(), seconds)
    return "waited"


@tool(isolated=True)
async def asking(ctx: ToolContext) -> str:
    """Ask somebody, which cannot be done from here."""
    return await ctx.ask_user("Which?")


@tool(isolated=True)
def told(ctx: ToolContext) -> str:
    """Say what it knows of its call."""
    return f"{ctx.run_id} {ctx.effect_id} {ctx.agent} {ctx.idempotency_key} {ctx.attempt}"


@tool(isolated=True)
def ask(ctx: ToolContext, what: str) -> str:
    """Ask for what lives in another process."""
    return str(ctx.deps if what == "deps" else ctx.resolve(Dependency("db", lambda ctx: "a database")))


@tool(isolated=True, timeout=1.5)
def spin(file: str) -> str:
    """Never end, nor does what it starts; the two processes are written to a file."""
    child = subprocess.Popen([sys.executable, "-c", ALIVE])
    Path(file).write_text(f"{os.getpid()} {child.pid}\n")
    while True:
        pass


@tool(isolated=True, timeout=3_600)
def spin_alone(file: str) -> str:
    """Never end; the process is written to a file."""
    Path(file).write_text(f"{os.getpid()}\n")
    while True:
        pass


@tool(isolated=True)
def crash(how: str) -> str:
    """End the process."""
    if how == "segfault":
        ctypes.string_at(0)
    os._exit(int(how))


@tool(effect="read", isolated=True)
def crash_reading() -> str:
    """End the process, after nothing that matters."""
    os._exit(7)


@tool(isolated=True)
def fail() -> str:
    """Fail."""
    raise KeyError("key")


@tool(isolated=True)
def give() -> Any:
    """Return what JSON cannot carry."""
    return {"here": object()}


@tool(isolated=True)
def hand_in() -> str:
    """End the task."""
    raise Done({"grade": 1})


@tool(isolated=True)
def draw(ctx: ToolContext) -> str:
    """Attach a file."""
    ctx.attach(Attachment("text/plain", b"drawn", name="drawing"))
    return "done"


@tool(isolated=True)
def linger() -> str:
    """Leave a thread behind that does not end."""
    threading.Thread(target=threading.Event().wait).start()
    return "lingers"


@tool(isolated=True)
def long(size: int) -> str:
    """A long text."""
    return "é" * size


def results(*calls: Any, **options: Any) -> list[str]:
    """What an agent with these tools is told that its calls came to."""
    tools = [
        square,
        wait,
        told,
        ask,
        spin,
        spin_alone,
        crash,
        crash_reading,
        fail,
        give,
        hand_in,
        draw,
        linger,
        long,
    ]
    model = Script([list(calls), "done"])
    run_sync(Agent("a", tools=tools), "go", model=model, env={}, **options)
    return [each.content for each in model.requests[-1].messages if each.role == "tool"]
