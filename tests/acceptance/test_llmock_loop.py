"""LoopAgent with a network model that nobody here wrote, which breaks in every way it knows.

Each fault ends by its name, runs no tool from half a reply, and leaves a session that goes on: the
next request of it completes. llmock's findings about us are compared whole each time.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from antiphon import RunFailed, tool
from antiphon.models.openai import OpenAIModel
from antiphon.styles.loop import (
    AbortError,
    FinalResponseEvent,
    LlmRetryEvent,
    LoopAgent,
    ToolResultEvent,
)
from tests.acceptance.llmock import (
    HALF,
    PATIENCE,
    Server,
    breaks,
    calls,
    conversations,
    fails,
    results,
    says,
)

pytestmark = pytest.mark.slow

ANSWER = "It is noted – ça va."
AFTER = "It still is."
NOTE = ("note", {"line": "a line of some length"})
SILENCE = 0.3
"""Seconds after which a stream that says nothing is left."""


class Notebook:
    """A loop with one tool that acts. `lines`: what the tool wrote down."""

    def __init__(self, server: Server, **options: Any) -> None:
        self.lines: list[str] = []

        @tool
        async def note(line: str) -> str:
            """Write a line down."""
            self.lines.append(line)
            return "noted"

        # Waits that llmock can tell from no wait at all.
        options = {"llm_retry_base_delay_ms": 120} | options
        model = OpenAIModel("loop", base_url=server.url, idle_timeout=options.pop("idle", SILENCE))
        self.agent = LoopAgent(llm=model, tools=[note], system_prompt="You take notes.", **options)

    async def request(self, text: str = "Note it.") -> list[Any]:
        """The events of one request. Raises what it failed with."""
        async with self.agent.run_stream(text) as events:
            found = [event async for event in events]
        if events.failure is not None:
            raise events.failure
        return found


def retried(events: list[Any]) -> list[str]:
    """Why the model was asked again, time after time."""
    return [event.failure_kind for event in events if isinstance(event, LlmRetryEvent)]


def answer(events: list[Any]) -> str:
    last = events[-1]
    assert isinstance(last, FinalResponseEvent)
    return last.content


def seen_through(
    server: Server, notebook: Notebook, request: Callable[[], Awaitable[Any]], *script: Any
) -> Any:
    """What `request` comes to, and then that the same session takes another request as if nothing was."""
    server.script(*script, says("loop", AFTER))

    async def playing() -> Any:
        async with asyncio.timeout(PATIENCE):
            found = await request()
            assert answer(await notebook.request("And now?")) == AFTER
        return found

    found = asyncio.run(playing())
    shown = conversations(server, "loop")[-1]
    assert [each["content"] for each in shown if each["role"] == "user"] == ["Note it.", "And now?"]
    return found


@pytest.mark.parametrize(
    ("faults", "told"),
    [
        ([fails(429, retry_after=0.3), fails(429, retry_after=0.1)], ["rate_limit", "rate_limit"]),
        ([fails(500, retry_after=0.1), fails(503, retry_after=0.2)], ["overloaded", "overloaded"]),
        ([fails(502, retry_after=0.1), fails(529, retry_after=0.1)], ["overloaded", "overloaded"]),
        ([breaks("disconnect", times=2)], ["disconnected", "disconnected"]),
        ([breaks("truncate", times=2)], ["disconnected", "disconnected"]),
        ([breaks("malformed", times=2)], ["disconnected", "disconnected"]),
        ([breaks("stall", times=2, stall_seconds=PATIENCE)], ["timeout", "timeout"]),
        ([fails(429, retry_after=0.1), breaks("truncate", after_chunks=0)], ["rate_limit", "disconnected"]),
    ],
    ids=["throttled", "5xx", "gateway", "dropped", "truncated", "corrupt", "stalled", "mixed"],
)
def test_what_passes_is_asked_again_and_told(
    server: Server, faults: list[dict[str, Any]], told: list[str]
) -> None:
    # A broken stream uses a reply up; a refusal does not.
    halves = sum(each["times"] for each in faults if each["type"] == "stream_fault")
    script = [*faults, *[says("loop", HALF)] * halves, says("loop", ANSWER)]
    notebook = Notebook(server)
    events = seen_through(server, notebook, notebook.request, *script)
    assert retried(events) == told
    assert answer(events) == ANSWER
    first, second, third, _ = conversations(server, "loop")
    assert first == second == third
    assert server.verdict() == (4, [])


@pytest.mark.parametrize(
    ("faults", "attempts", "why", "findings"),
    [
        ([fails(503, times=3, retry_after=0.05)], 3, "overloaded: ", []),
        ([fails(429, times=3, retry_after=0.05)], 3, "rate_limit: ", []),
        ([breaks("disconnect", times=3), says("loop", HALF, times=3)], 3, "disconnected: ", []),
        ([breaks("stall", 3, stall_seconds=PATIENCE), says("loop", HALF, 3)], 3, "timeout: ", []),
        # llmock takes a half reply for used when the last attempt got it: it does not see that we failed.
        ([breaks("truncate", 3), says("loop", HALF, 3)], 3, "disconnected: ", ["truncated_stream_accepted"]),
        ([fails(402)], 1, "quota: ", []),
        # It also takes every 429 for one that passes, though this one says that it does not.
        ([fails(429, code="insufficient_quota")], 1, "quota: ", ["gave_up"]),
        ([fails(400, code="context_length_exceeded")], 1, "context_length: ", []),
        ([fails(400)], 1, "validation: ", []),
        ([fails(401)], 1, "auth: ", []),
        ([fails(403)], 1, "permission: ", []),
    ],
    ids=[
        "outage", "throttled", "dropped", "stalled", "truncated", "credit", "quota", "context", "invalid",
        "key", "forbidden",
    ],
)  # fmt: skip
def test_what_does_not_pass_fails_by_its_name(
    server: Server, faults: list[dict[str, Any]], attempts: int, why: str, findings: list[str]
) -> None:
    notebook = Notebook(server)

    async def failing() -> RunFailed:
        with pytest.raises(RunFailed, match=f"^{why}") as failed:
            await notebook.request()
        return failed.value

    failed = seen_through(server, notebook, failing, *faults)
    assert (failed.result.outcome, failed.result.output) == ("failed", "")
    assert server.verdict() == (attempts + 1, findings)


CHUNKS = {"named": 2, "half its arguments": 3, "all but the end mark": 5}
"""How many pieces of a reply with a call have come: its opening, its name, three of its arguments."""


@pytest.mark.parametrize("came", CHUNKS)
@pytest.mark.parametrize("kind", ["disconnect", "truncate", "malformed", "stall"])
def test_no_tool_runs_from_an_unfinished_reply(server: Server, kind: str, came: str) -> None:
    fault = breaks(kind, after_chunks=CHUNKS[came], stall_seconds=PATIENCE)
    lost = calls("loop", ("note", {"line": "never to be written"}))
    notebook = Notebook(server)
    events = seen_through(
        server, notebook, notebook.request, fault, lost, calls("loop", NOTE), says("loop", ANSWER)
    )
    assert retried(events) == ["timeout" if kind == "stall" else "disconnected"]
    assert notebook.lines == [NOTE[1]["line"]]
    assert [event.result for event in events if isinstance(event, ToolResultEvent)] == ["noted"]
    assert answer(events) == ANSWER
    assert results(conversations(server, "loop")[2]) == ["noted"]
    assert server.verdict() == (4, [])


def test_broken_calls_go_back_to_the_model(server: Server) -> None:
    faults = [{"type": "tool_fault", "kind": kind} for kind in ("malformed_arguments", "unknown_tool")]
    # So short that llmock cuts it off before the value; what acts is not mended in any case.
    short = calls("loop", ("note", {"line": "x"}))
    notebook = Notebook(server)
    events = seen_through(server, notebook, notebook.request, *faults, *[short] * 3, says("loop", ANSWER))
    shown = [(event.is_error, event.result) for event in events if isinstance(event, ToolResultEvent)]
    assert [failed for failed, _ in shown] == [True, True, False]
    assert "Invalid arguments for tool 'note': not JSON" in shown[0][1]
    assert "Unknown tool: llmock_unknown_tool. Available tools: note" in shown[1][1]
    assert notebook.lines == ["x"]
    assert results(conversations(server, "loop")[3]) == [text for _, text in shown]
    assert server.verdict() == (5, [])


def test_answers_that_nobody_scripted(server: Server) -> None:
    """llmock picks the tool that the question names, makes its arguments up, then answers."""
    notebook = Notebook(server)
    server.script()
    events = asyncio.run(notebook.request("note: Write a line down."))
    assert len(notebook.lines) == 1
    assert answer(events)
    assert server.verdict() == (2, [])


@pytest.mark.parametrize("how", ["signal", "cancelled"])
def test_a_request_that_waits_on_a_stalled_stream_can_be_left(server: Server, how: str) -> None:
    notebook = Notebook(server, idle=PATIENCE)

    async def left() -> None:
        signal = asyncio.Event()
        asking = asyncio.create_task(notebook.agent.run("Note it.", signal=signal))
        while any(each["type"] == "stream_fault" for each in await asyncio.to_thread(server.left)):
            assert not asking.done()
        if how == "signal":
            signal.set()
        else:
            asking.cancel()
        with pytest.raises(AbortError if how == "signal" else asyncio.CancelledError):
            await asking

    stalls = breaks("stall", after_chunks=5, stall_seconds=PATIENCE)
    seen_through(server, notebook, left, stalls, calls("loop", NOTE))
    assert notebook.lines == []
    assert server.verdict() == (2, [])


@pytest.fixture
def meter(running: Server) -> Iterator[Server]:
    """A server that counts tokens: 10,000 come back each second."""
    server = Server("--tpm", "600000")
    try:
        yield server
    finally:
        server.stop()


def test_a_quota_that_fills_up_again_is_waited_for(meter: Server) -> None:
    """Each request takes a little more than half of what a minute has: the second waits for the rest."""
    # What is refused uses a reply up here.
    meter.script(says("loop", ANSWER), says("loop", AFTER, times=2))
    notebook = Notebook(meter, max_output=302_000)

    async def playing() -> list[Any]:
        await notebook.request()
        return await notebook.request("And now?")

    events = asyncio.run(playing())
    assert retried(events) == ["rate_limit"]
    assert answer(events) == AFTER
    assert meter.verdict() == (3, [])
