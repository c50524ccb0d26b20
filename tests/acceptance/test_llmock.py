"""The command line with a network model that nobody here wrote: delegation, faults, and the server's verdict.

llmock judges its clients: whether they wait as long as they were asked to, back off, give up, use half
a stream. Its findings are compared whole, so it must have none but those that a test names.
"""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from antiphon.tools import calculate
from tests.acceptance.llmock import (
    HALF,
    PATIENCE,
    Server,
    breaks,
    calls,
    conversations,
    fails,
    finish,
    results,
    says,
    to,
)
from tests.unit.cli.shell import SETTINGS, SRC, Said

HERE = Path(__file__).parent
ANSWER = "It is five: 2 + 3 = 5, naïvely – 五."
SUM = ("calculate", {"expression": "2 + 3"})
KEY = "sk-a-key-that-nobody-may-see"

Start = Callable[..., subprocess.Popen[str]]
Run = Callable[..., Said]


@pytest.fixture
def start(server: Server, tmp_path: Path) -> Start:
    """The command in a process and a folder of its own, with nothing set but the server."""
    env = {key: value for key, value in os.environ.items() if not SETTINGS.match(key)}
    env |= {"PYTHONPATH": os.fspath(SRC), "PYTHONUTF8": "1", "OPENAI_BASE_URL": server.url}

    def started(*words: object, **settings: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "antiphon.cli", *map(str, words)], cwd=tmp_path, env=env | settings,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            encoding="utf-8",
        )  # fmt: skip

    return started


@pytest.fixture
def run(start: Start) -> Run:
    def ran(*words: object, **settings: str) -> Said:
        with start(*words, **settings) as process:
            try:
                out, err = process.communicate(timeout=PATIENCE)
            finally:
                process.kill()
        return Said(process.returncode, out, err)

    return ran


@pytest.mark.slow
def test_single_delegation(server: Server, run: Run) -> None:
    server.script(
        calls("lead", to("writer", "Write a line.")),
        says("writer", "The line – ça va?"),
        calls("lead", finish("It says: The line – ça va?")),
    )
    said = run("run", HERE / "pair.yaml", "A line, please.")
    assert (said.code, said.out) == (0, "It says: The line – ça va?\n"), said.err
    assert "lead calls writer: Write a line." in said.err
    assert "lead gets writer: The line – ça va?" in said.err
    (asked,) = conversations(server, "writer")
    assert [each["role"] for each in asked] == ["system", "user"]
    assert asked[1]["content"] == "Write a line."
    assert results(conversations(server, "lead")[1]) == ["The line – ça va?"]
    assert server.verdict() == (3, [])


@pytest.mark.slow
def test_parallel_delegation(server: Server, run: Run) -> None:
    names = ["north", "east", "south"]
    server.script(
        calls("lead", *[to(name, f"What is in the {name}?") for name in names]),
        # Nobody answers before everybody was asked, if all are asked at once.
        {"type": "delay", "seconds": 0.4, "times": 3, "match": {"model": "compass-*"}},
        *[says(f"compass-{name}", f"{name} has mountains.") for name in names],
        calls("lead", finish("Mountains everywhere.")),
    )
    said = run("run", HERE / "trio.yaml", "What is where?")
    assert (said.code, said.out) == (0, "Mountains everywhere.\n"), said.err
    asked = [each for each in server.requests() if each["model"].startswith("compass-")]
    assert max(each["started_at"] for each in asked) < min(each["ended_at"] for each in asked)
    assert results(conversations(server, "lead")[1]) == [f"{name} has mountains." for name in names]
    assert server.verdict() == (5, [])


@pytest.mark.slow
def test_circular_delegation(server: Server, run: Run) -> None:
    server.script(
        calls("lead", to("writer", "Ask me for my number.")),
        calls("writer", to("lead", "What is your number?")),
        calls("lead", finish("42")),
        calls("writer", finish("You said 42.")),
        calls("lead", finish("My number is 42.")),
    )
    said = run("run", HERE / "pair.yaml", "Which number?")
    assert (said.code, said.out) == (0, "My number is 42.\n"), said.err
    first, inner, last = conversations(server, "lead")
    assert [each["content"] for each in inner if each["role"] == "user"] == ["What is your number?"]
    assert (results(first), results(inner), results(last)) == ([], [], ["You said 42."])
    assert results(conversations(server, "writer")[1]) == ["42"]
    assert server.verdict() == (5, [])
    verified = run("runs", "verify", *re.findall(r"runs show (\w+)", said.err))
    assert verified.code == 0, verified.err


@pytest.mark.slow
def test_tool_use(server: Server, run: Run) -> None:
    server.script(calls("clerk", SUM), says("clerk", "It is five."))
    said = run("run", HERE / "clerk.yaml", "How much is 2 + 3?")
    assert (said.code, said.out) == (0, "It is five.\n"), said.err
    assert 'clerk uses calculate(expression="2 + 3")' in said.err
    assert results(conversations(server, "clerk")[1]) == ["2 + 3 = 5"]
    assert server.verdict() == (2, [])


@pytest.mark.slow
def test_answers_that_nobody_scripted(server: Server, run: Run) -> None:
    """llmock picks the tool whose description fits the question, and makes up what its schema asks for."""
    server.script()
    said = run("run", HERE / "clerk.yaml", f"{calculate.name}: {calculate.description}")
    assert said.code == 0, said.err
    assert said.out.strip()
    (mistake,) = results(conversations(server, "clerk")[1])
    assert "found 'mock'" in mistake
    assert server.verdict() == (2, [])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("faults", "told"),
    [
        ([fails(429, retry_after=0.3), fails(503, retry_after=0.1)], ["rate_limit", "overloaded"]),
        ([fails(500), fails(529, retry_after=0.1)], ["overloaded", "overloaded"]),
        ([breaks("disconnect"), breaks("truncate")], ["disconnected", "disconnected"]),
        ([breaks("malformed"), breaks("truncate", after_chunks=0)], ["disconnected", "disconnected"]),
    ],
    ids=["refused", "overloaded", "cut", "malformed"],
)
def test_what_passes_is_tried_again(
    server: Server, run: Run, faults: list[dict[str, Any]], told: list[str]
) -> None:
    # A broken stream uses a reply up; a refusal does not.
    halves = [says("clerk", HALF) for each in faults if each["type"] == "stream_fault"]
    server.script(*faults, *halves, says("clerk", ANSWER))
    said = run("run", HERE / "clerk.yaml", "How much is 2 + 3?")
    assert (said.code, said.out) == (0, ANSWER + "\n"), said.err
    assert re.findall(r"clerk gets no reply: failed \((\w+): ", said.err) == told
    first, *again = conversations(server, "clerk")
    assert again == [first, first]
    assert server.verdict() == (3, [])


@pytest.mark.slow
def test_a_stream_that_stalls_is_left(server: Server, run: Run) -> None:
    server.script(breaks("stall", stall_seconds=PATIENCE), says("clerk", HALF), says("clerk", ANSWER))
    said = run("run", f"{HERE / 'hasty.py'}:clerk", "How much is 2 + 3?")
    assert (said.code, said.out) == (0, ANSWER + "\n"), said.err
    assert "clerk gets no reply: failed (timeout: " in said.err
    assert server.verdict() == (2, [])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("faults", "attempts", "why", "findings"),
    [
        ([fails(503, times=3, retry_after=0.05)], 3, "overloaded: ", []),
        ([breaks("disconnect", times=3), says("clerk", HALF, times=3)], 3, "disconnected: ", []),
        # llmock takes every 429 for one that passes; quota that is used up does not come back.
        ([fails(429, code="insufficient_quota")], 1, "quota: ", ["gave_up"]),
        ([fails(429, retry_after=3600)], 1, "rate_limit: ", ["gave_up"]),
        ([fails(400, code="context_length_exceeded")], 1, "context_length: ", []),
        ([fails(401)], 1, "auth: ", []),
    ],
    ids=["outage", "cut", "quota", "far_too_long", "context", "key"],
)
def test_what_does_not_pass_ends_the_request(
    server: Server, run: Run, faults: list[dict[str, Any]], attempts: int, why: str, findings: list[str]
) -> None:
    server.script(*faults)
    said = run("run", HERE / "clerk.yaml", "How much is 2 + 3?", OPENAI_API_KEY=KEY)
    assert (said.code, said.out) == (1, ""), said.err
    assert f"error: the request ended failed: {why}" in said.err
    assert KEY not in said.err
    assert server.verdict() == (attempts, findings)


@pytest.mark.slow
def test_a_broken_call_goes_back_to_the_model(server: Server, run: Run) -> None:
    faults = [{"type": "tool_fault", "kind": kind} for kind in ("malformed_arguments", "unknown_tool")]
    server.script(*faults, *[calls("clerk", SUM)] * 3, says("clerk", ANSWER))
    said = run("run", HERE / "clerk.yaml", "How much is 2 + 3?")
    assert (said.code, said.out) == (0, ANSWER + "\n"), said.err
    malformed, unknown, good = results(conversations(server, "clerk")[3])
    assert "Invalid arguments for tool 'calculate': missing required argument" in malformed
    assert "Unknown tool: llmock_unknown_tool. Available tools: calculate, finish" in unknown
    assert good == "2 + 3 = 5"
    assert server.verdict() == (4, [])


@pytest.mark.slow
def test_killed_while_the_server_answers_and_resumed(server: Server, run: Run, start: Start) -> None:
    server.script(
        calls("lead", to("writer", "Write.")),
        breaks("stall", stall_seconds=PATIENCE, match={"model": "writer"}),
        says("writer", HALF),
        says("writer", "Written."),
        calls("lead", finish("Here it is.")),
    )
    with start("run", HERE / "pair.yaml", "Go") as process:
        try:
            assert process.stderr is not None
            told = next(line for line in process.stderr if "runs resume" in line)
            # Told is durable; until then the reply that calls the writer could be asked for once more.
            next(line for line in process.stderr if "lead calls writer" in line)
            while any(each["type"] == "stream_fault" for each in server.left()):
                assert process.poll() is None
        finally:
            process.send_signal(signal.SIGKILL)
    said = run("runs", "resume", told.split()[-2], HERE / "pair.yaml")
    assert (said.code, said.out) == (0, "Here it is.\n"), said.err
    assert len(conversations(server, "lead")) == 2
    first, again = conversations(server, "writer")
    assert first == again
    assert server.verdict() == (4, [])
