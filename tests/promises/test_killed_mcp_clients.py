"""A run whose MCP server misbehaves is killed twice, each time with a call under way, and ended by a third
process: whatever the server does, nothing is lost, and the run goes on."""

import asyncio
import os
import signal
import traceback
from contextlib import suppress
from pathlib import Path

import pytest
from msgspec.structs import replace

from antiphon import Agent, open_journal, open_run
from antiphon.models.script import Script, call
from antiphon.testing.invariants import check_run
from antiphon.tools.mcp import mcp_toolset
from tests.promises.mcp_scenario import INSTALLED
from tests.unit.tools.mcp.conftest import FREE, peer
from tests.unit.tools.mcp.test_peers import ANSWERED, NEVER_UP, SLOW

PEERS = [*ANSWERED, *SLOW, *NEVER_UP]
AT_ONCE = 8
PATIENCE = 60
LINES = [call("p_echo", text="one"), call("p_act"), "done"]
STAGES = ({"1/1.c1"}, {"1/2.c1"}, set[str]())
"""The call at whose record each process kills itself, or at the next one's."""


def is_reached(record, calls):
    """Whether one of these calls has begun, or has ended where it could not begin, or everything has."""
    known = getattr(record.event, "id", "")
    return known in calls or (record.type == "EffectFinished" and known == "0/1.c1")


async def live(how, place, number):
    """One process's part in a run."""
    server = peer(how, place / "lives", timeout=0.5)
    tools = [replace(mcp_toolset(server), connect_timeout=0.7)]
    agent = Agent("a", tools=tools, model=Script(LINES, by="turn"))
    journal = open_journal(f"sqlite:///{place}/journal.db")
    create = {"create": True} if number == 0 else {}
    async with open_run([agent], run_id="r", journal=journal, policy=FREE, **create) as run:
        request = await run.post("a", "go") if number == 0 else "0/1.c1"
        async for record in run.events(0, deltas=False):
            if STAGES[number] and is_reached(record, STAGES[number]):
                os.kill(os.getpid(), signal.SIGKILL)
            if is_reached(record, set()):
                break
        output = (await run.result(request)).output
    await check_run(journal, "r", reading={"p_echo"})
    await journal.close()
    return output


def begun(how, place, number):
    """A process of its own for `live`; it ends with 0 when the run has ended as it should."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            signal.alarm(PATIENCE)
            code = 0 if asyncio.run(live(how, place, number)) == "done" else 2
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    return child


def ended(place):
    """End what servers a killed process has left: one that hangs does not see that nobody is there."""
    file = place / "lives"
    for line in file.read_text().split() if file.exists() else ():
        with suppress(OSError):
            if b"peer.py" in Path("/proc", line, "cmdline").read_bytes():
                os.killpg(int(line), signal.SIGKILL)


def played(peers, folder):
    """How each process of each peer ended: `killed`, or its exit code."""
    waiting, running = [(each, 0) for each in reversed(peers)], {}
    found = {each: [] for each in peers}
    while waiting or running:
        while waiting and len(running) < AT_ONCE:
            how, number = waiting.pop()
            place = folder / how.replace(" ", "-")
            place.mkdir(exist_ok=True)
            running[begun(how, place, number)] = how, number
        child, status = os.wait()
        how, number = running.pop(child)
        killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
        found[how].append("killed" if killed else os.waitstatus_to_exitcode(status))
        if killed and number + 1 < len(STAGES):
            waiting.append((how, number + 1))
        else:
            ended(folder / how.replace(" ", "-"))
    return found


@pytest.mark.deep
@pytest.mark.skipif(not INSTALLED, reason="the extra mcp is not installed")
@pytest.mark.skipif(not Path("/proc/self").exists(), reason="kills what it left by /proc")
def test_a_run_goes_on_whoever_dies_and_however_its_server_behaves(tmp_path):
    assert len(PEERS) >= 40
    found = played(PEERS, tmp_path)
    assert {how: ends for how, ends in found.items() if ends != ["killed", "killed", 0]} == {}
