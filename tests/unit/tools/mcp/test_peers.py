"""Servers that misbehave: the session heals or is let go of, its model is told why, and the run goes on.

Each is met in a run, and in one that is left in the middle of a call and gone on with.
"""

import asyncio

import pytest
from msgspec.structs import replace

from antiphon import Agent, open_run
from antiphon.journal.memory import MemoryJournal
from antiphon.kernel.run.toolsets.provider import close_unused
from antiphon.models.script import Script, call
from antiphon.testing.invariants import check_run
from antiphon.tools.mcp import mcp_toolset
from tests.unit.tools.mcp.conftest import FREE, PATIENCE, peer, play

FINE = "echo one"
LOST = "the toolset p was lost: "
NONE = "Unknown tool: p_echo"
ANSWERED = {
    "honest": FINE, "redefines": FINE,
    "pages": FINE, "hello": FINE, "same name": FINE, "remote reference": FINE,
    "deep schema": FINE, "huge schema": FINE, "endless description": FINE, "hostile name": FINE,
    "no name": FINE, "liar": FINE, "many tools": FINE, "fifty tools": FINE, "wrong id": FINE,
    "id as text": FINE, "null id": FINE, "twice": FINE, "slowly": FINE, "garbage": FINE,
    "neither": FINE, "odd error": FINE,
    "odd progress": FINE, "cancels": FINE, "asks for what is not there": FINE, "changes its list": FINE,
    "floods with changes": FINE, "stderr flood": FINE, "closes its input": FINE,
    "control signs": "hostile", "bad image": "left out: it is not base64",
    "failed": "Error: [p_echo] it did not work",
    "error": "Error: [p_echo] no ", "error as closed": "Error: [p_echo] Connection closed",
    "both": "Error: [p_echo] m", "oversized result": "yyyy",
    "nonsense result": "its answer is none to what", "no content": "its answer is none to what",
    "unknown block": "its answer is none to what",
    "dies": LOST + "it ended with exit code 3; its last words: I am gone",
    "is killed": LOST + "it ended with exit code -9", "half a message": LOST + "it ended with exit code 3",
    "noise": LOST + "what it writes is no MCP: not a message", "binary": LOST + "what it writes is no MCP",
    "oversized": LOST + "it sent a message of more than 16,777,216 bytes",
    "floods": LOST + "it sent more than 1,000 messages in a second",
    "floods with progress": LOST + "it sent more than 1,000 messages in a second",
    "floods with pings": LOST + "it sent more than 1,000 messages in a second",
    "closes its output": LOST + "it closed its output",
}  # fmt: skip
"""What the model is told of its first call."""
SLOW = {
    "hangs": "no result after 0.3 s", "deaf": "no result after 0.3 s", "surrogates": "no result after 0.3 s",
    "list as result": "no result after 0.3 s",
}  # fmt: skip
"""The same of those whose calls only a timeout ends."""
NEVER_UP = {
    "twins": None, "bad schema": "it was not reached: ", "endless pages": "does not end after 100 pages",
    "circle of pages": "does not end after 2 pages", "no list": "no such method",
    "nonsense list": "it was not reached", "list of nothing": "it was not reached",
    "silent list": "it was not reached within", "refuses": "not you", "old version": "1999-01-01",
    "nonsense handshake": "it was not reached", "ends at once": "it ended with exit code 0",
    "fails at once": "it ended with exit code 1; its last words: I am gone",
    "says nothing": "it was not reached within", "noise at once": "what it writes is no MCP: npm notice",
}  # fmt: skip
"""Those of which no tool can be used, and what is on record of why; None: it is up, and has none."""
HEALS = ("dies", "is killed", "half a message", "noise", "oversized", "floods", "closes its output")


def toolset(how, *more, timeout=5.0, connect=20.0):
    return replace(mcp_toolset(peer(how, *more, timeout=timeout)), connect_timeout=connect)


@pytest.mark.slow
@pytest.mark.parametrize("how", [*ANSWERED, *SLOW])
def test_the_model_is_told_and_the_run_goes_on(how):
    said, timeout = ANSWERED.get(how), 5.0
    if said is None:
        said, timeout = SLOW[how], 0.3
    played = play(toolset(how, timeout=timeout), call("p_echo", text="one"))
    assert played.output == "done"
    assert said in played.told[0]


@pytest.mark.slow
@pytest.mark.parametrize("how", NEVER_UP)
def test_a_server_that_cannot_be_used_is_told_at_the_start(how):
    played = play(toolset(how, connect=1.0), call("p_echo", text="one"))
    (told,) = [each.event for each in played.records if each.type == "ToolsetOffered"]
    assert played.output == "done"
    assert NONE in played.told[0]
    if NEVER_UP[how] is None:
        assert (told.tools, told.reason) == ((), "")
    else:
        assert NEVER_UP[how] in told.reason


@pytest.mark.parametrize("how", HEALS)
def test_a_server_that_was_lost_is_started_again_and_used(how, tmp_path):
    played = play(toolset(how, tmp_path / "lives"), call("p_echo", text="one"), call("p_echo", text="two"))
    assert ANSWERED[how] in played.told[0]
    assert played.told[1] == "echo two"


@pytest.mark.slow
@pytest.mark.parametrize("how", [*ANSWERED, *SLOW, *NEVER_UP])
def test_a_run_is_left_in_the_middle_of_a_call_and_gone_on_with(how, tmp_path):
    async def go():
        journal, lives = MemoryJournal(), tmp_path / "lives"
        lines = [call("p_echo", text="one"), call("p_act"), "done"]
        options = {"journal": journal, "policy": FREE, "model": Script(lines, by="turn")}
        agent = Agent("a", tools=[toolset(how, lives, timeout=0.5, connect=0.7)])
        async with open_run([agent], run_id="r", create=True, **options) as run:
            await run.post("a", "go")
            async for record in run.events(0, deltas=False):
                if record.type == "EffectStarted" and getattr(record.event.detail, "name", "").startswith(
                    "p_"
                ):
                    break
                if record.type == "EffectFinished" and record.event.id == "0/1.c1":
                    break
        await close_unused()
        async with open_run([agent], run_id="r", **options) as run:
            output = (await run.result("0/1.c1")).output
        await close_unused()
        await check_run(journal, "r", reading={"p_echo"})
        return output

    async def bounded():
        async with asyncio.timeout(PATIENCE):
            return await go()

    assert asyncio.run(bounded()) == "done"


def test_every_peer_is_met():
    from tests.unit.tools.mcp import peer as script

    known = {*script.TOOLS, *script.CALLS, *script.AT_START}
    met = {*ANSWERED, *SLOW, *NEVER_UP}
    assert {each for each in known - met if not each.startswith("asks ")} == {"grandchild"}
    assert len(met) >= 40
