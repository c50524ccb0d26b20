"""However much there is to read or to do, other work on the event loop gets its turn: counted in laps."""

import asyncio
import json
from contextlib import aclosing

import pytest

from antiphon import Agent, ModelError, RunFailed, open_journal, open_run, run, tool
from antiphon.kernel.run.commands import PostMessage, encode
from antiphon.kernel.run.rows import EVENTS_PER_YIELD, fold, read
from antiphon.kernel.run.snapshots import keeping
from antiphon.models.openai import OpenAIModel
from antiphon.models.script import Script
from antiphon.testing.wire import WireServer, completion, http
from antiphon.values.limits import UNLIMITED
from antiphon.values.message import ToolCall
from antiphon.values.model import MAX_CALLS, ChatMessage, ModelRequest, Reply

TURNS = 1_500
SLACK = 4
"""A row is never divided, so a lap may come that many times later than it should; rows alone hold more."""


class Laps:
    """How often the event loop came round while something was done."""

    def __init__(self):
        self.count = 0
        self._on = True

    def __enter__(self):
        self._lap()
        return self

    def __exit__(self, *_):
        self._on = False

    def _lap(self):
        if self._on:
            self.count += 1
            asyncio.get_running_loop().call_soon(self._lap)


async def long_run(journal):
    model = Script([*([[ToolCall("c", "look", "{}")]] * TURNS), "done"])

    @tool(effect="read")
    async def look() -> str:
        "Look."
        return "seen"

    agent = Agent("a", tools=[look], model=model)
    async with open_run([agent], journal=journal, limits=UNLIMITED) as opened:
        await opened.result(await opened.post("a", "go"))
        return opened.run_id


async def rows(journal, run_id):
    await journal.read(run_id)


async def everything(journal, run_id):
    agents = [Agent("a", model=Script([]))]
    async with (
        open_run(agents, journal=journal, run_id=run_id) as opened,
        aclosing(opened.events(deltas=False)) as records,
    ):
        async for record in records:
            if record.type == "RunResumed":
                return


@pytest.mark.slow
@pytest.mark.parametrize("way", [fold, read, rows, everything])
def test_reading_a_long_run_lets_others_work(way, monkeypatch):
    # All of it is read: no snapshot fits.
    monkeypatch.setattr(keeping, "fold_version", bytes)

    async def main():
        journal = open_journal(None)
        run_id = await long_run(journal)
        events = len(await read(journal, run_id))
        with Laps() as laps:
            await way(journal, run_id)
        return events, laps.count

    events, laps = asyncio.run(main())
    assert events > 20 * EVENTS_PER_YIELD
    assert laps > events / EVENTS_PER_YIELD / (4 * SLACK if way is rows else SLACK)


def test_a_flood_of_commands_lets_others_work():
    posted = 2_000

    async def main():
        journal = open_journal(None)
        held = asyncio.Event()

        async def waits(request):
            await held.wait()
            return "done"

        async with open_run([Agent("a", model=Script([waits, "more"]))], journal=journal) as opened:
            await opened.post("a", "go")
            for number in range(posted):
                await journal.post(opened.run_id, str(number), encode(PostMessage("0/9.c9", "hi")))
            with Laps() as laps:
                async with aclosing(opened.events(deltas=False)) as records:
                    async for record in records:
                        if getattr(record.event, "command", 0) == posted:
                            break
            return laps.count

    assert asyncio.run(main()) > posted / 64 / SLACK


class Eager:
    """A model that asks for very many calls at once."""

    name = "eager"

    def __init__(self, calls):
        self.calls, self.asked = calls, 0

    async def complete(self, request, emit):
        self.asked += 1
        if self.asked > 1:
            return Reply("done", (), "stop")
        return Reply("", tuple(ToolCall(f"c{n}", "look", "{}") for n in range(self.calls)), "calls")


@pytest.mark.parametrize(("calls", "done"), [(MAX_CALLS, MAX_CALLS), (MAX_CALLS + 1, 0), (100_000, 0)])
def test_a_reply_with_more_calls_than_are_taken_fails_and_none_is_done(calls, done):
    seen = []

    @tool
    async def look() -> str:
        "Look."
        seen.append(True)
        return "seen"

    model = Eager(calls)
    try:
        reason = asyncio.run(run(Agent("a", tools=[look], model=model), "go")).reason
    except RunFailed as failed:
        reason = failed.result.reason
    assert len(seen) == done
    assert (f"the model asked for {calls:,} calls or more in one reply" in reason) == (not done)
    assert model.asked == (2 if done else 1)


def test_an_endpoint_s_answer_with_too_many_calls_is_not_put_together():
    calls = [
        {"id": f"c{n}", "type": "function", "function": {"name": "look", "arguments": "{}"}}
        for n in range(20_000)
    ]

    async def main():
        async with WireServer() as server:
            answer = completion(content=None, tool_calls=calls, reason="tool_calls")
            await server.play((http(json.dumps(answer).encode()),))
            heard = []
            model = OpenAIModel("m", base_url=server.url)
            with pytest.raises(ModelError) as caught:
                await model.complete(ModelRequest("m", "", (ChatMessage("user", "hi"),)), heard.append)
            return caught.value, heard

    error, heard = asyncio.run(main())
    assert error.kind == "provider"
    assert f"at most {MAX_CALLS} are taken" in error.text
    assert len(heard) <= 2 * MAX_CALLS
