"""The research team that ships, from the command line, with a network model that nobody here wrote.

    antiphon run examples/research "How do tides work?" --folder docs/

Its process is killed in the middle, at one moment after the other, and resumed: the report is the same.
"""

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.llmock import PATIENCE, Server, calls, conversations, results, says
from tests.unit.cli.shell import SETTINGS, SRC, Said

TEAM = Path(__file__).parents[2] / "examples/research"
QUESTION = "How do tides work?"
REPORT = "# Tides\n\nThe moon raises the tides [tides.md:1].\n\n## Sources\n- tides.md:1"
MODELS = {f"{role.upper()}_MODEL": f"openai:{role}" for role in ("partner", "principal", "reader")}
NAMES, MODULES = ("flood", "ebb"), ("WM_1", "WM_2")
SPOKEN = {
    "Partner": [
        calls("partner", ("manage_work_modules", {"actions": [
            {"action": "create", "name": name, "description": f"what raises the {name}"} for name in NAMES
        ]})),
        calls("partner", ("LaunchPrincipalExecutionTool", {})),
        says("partner", "I am looking into it."),
        says("partner", REPORT),
    ],
    "Principal": [
        calls("principal", ("dispatch_submodules", {"assignments": [
            {"module_id_to_assign": module, "agent_profile_logical_name": "Reader"} for module in MODULES
        ]})),
        calls("principal", ("manage_work_modules", {"actions": [
            {"action": "status_change", "module_id": module, "status": "completed"} for module in MODULES
        ]})),
        calls("principal", ("generate_markdown_report", {"title": "Tides"})),
        says("principal", REPORT),
    ],
    # Two read at the same time, and who asks first gets the first reply: whoever gets which, each ends.
    "Reader": [
        *[calls("reader", ("search_documents", {"query": "tides"}))] * 2,
        *[calls("reader", ("finish_flow", {"summary": "The moon does [tides.md:1]."}))] * 2,
    ],
}  # fmt: skip

Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def start(server: Server, tmp_path: Path) -> Start:
    """The command in a process, beside a folder with one document."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/tides.md").write_text("The moon raises the tides.\n")
    env = {key: value for key, value in os.environ.items() if not SETTINGS.match(key)}
    env |= {"PYTHONPATH": os.fspath(SRC), "PYTHONUTF8": "1", "OPENAI_BASE_URL": server.url, **MODELS}
    env["OPENAI_API_KEY"] = "sk-none"

    def started(*words: object) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "antiphon.cli", *map(str, words)], cwd=tmp_path, env=env,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            encoding="utf-8",
        )  # fmt: skip

    return started


def ran(process: subprocess.Popen[str]) -> Said:
    """What a command said, once it has ended."""
    with process:
        try:
            out, err = process.communicate(timeout=PATIENCE)
        finally:
            process.kill()
    return Said(process.returncode, out, err)


def left_to_say(records: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """What the models have yet to say, after the replies that are on record."""
    replied = Counter(
        each["agent"]
        for each in records
        if each["event"]["type"] == "finished" and each["event"].get("reply") is not None
    )
    for agent, lines in SPOKEN.items():
        yield from lines[replied[agent] :]


@pytest.mark.slow
def test_a_question_becomes_a_report_with_its_sources(server: Server, start: Start) -> None:
    server.script(*left_to_say([]))
    said = ran(start("run", TEAM, QUESTION, "--folder", "docs"))
    assert (said.code, said.out) == (0, REPORT + "\n"), said.err
    briefing = conversations(server, "reader")[0][1]["content"]
    assert f"## What the user asked\n{QUESTION}" in briefing
    found = {text for each in conversations(server, "reader") for text in results(each)}
    assert any("tides.md:1" in text and "The moon raises the tides." in text for text in found)
    dispatched = json.loads(results(conversations(server, "principal")[1])[0])
    assert dispatched["overall_status"] == "SUCCESS"
    assert server.verdict() == (12, [])


def kill_after(seq: int, process: subprocess.Popen[str]) -> None:
    """End a process that writes its events as JSON, at once, when record `seq` is durable; or let it end."""
    with process:
        try:
            assert process.stdout is not None
            for line in process.stdout:
                if json.loads(line).get("seq", 0) >= seq:
                    break
        finally:
            process.send_signal(signal.SIGKILL)


def recorded(start: Start, run_id: str) -> list[dict[str, Any]]:
    """What is on record of a run."""
    said = ran(start("runs", "tail", run_id, "--json"))
    assert said.code == 0, said.err
    return [json.loads(line) for line in said.out.splitlines()]


def the_run(start: Start) -> str:
    """The id of the only run of the journal."""
    (found,) = json.loads(ran(start("runs", "ls", "--json")).out)
    run_id: str = found["run_id"]
    return run_id


SEVERAL = [(7, 33), pytest.param((12, 26, 40, 54), marks=pytest.mark.deep)]
"""The records after which a process is killed, and the one that resumes it, and so on."""
SINGLE = [pytest.param((seq,), marks=pytest.mark.deep) for seq in range(2, 66, 4)]


@pytest.mark.slow
@pytest.mark.parametrize("moments", [*SEVERAL, *SINGLE], ids=str)
def test_killed_at_any_moment_and_resumed_it_completes(
    moments: tuple[int, ...], server: Server, start: Start
) -> None:
    server.script(*left_to_say([]))
    kill_after(moments[0], start("run", TEAM, QUESTION, "--folder", "docs", "--json"))
    run_id = the_run(start)
    again = ("runs", "resume", run_id, TEAM, "--folder", "docs")
    for seq in moments[1:]:
        server.script(*left_to_say(recorded(start, run_id)))
        kill_after(seq, start(*again, "--json"))
    server.script(*left_to_say(recorded(start, run_id)))
    said = ran(start(*again))
    assert (said.code, said.out) == (0, REPORT + "\n"), said.err
    events = [each["event"] for each in recorded(start, run_id)]
    ends = Counter(each["id"] for each in events if each["type"] == "finished")
    assert set(ends.values()) == {1}
