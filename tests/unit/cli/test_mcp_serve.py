"""`antiphon mcp serve` as a process: a client starts it, it is killed, its run is there in the next one."""

import asyncio
import json
import os
import signal
import sys

import pytest

pytest.importorskip("mcp", reason="the extra mcp is not installed")

from mcp import Client, StdioServerParameters
from mcp_types import ElicitResult

from antiphon.cli import exit_codes
from tests.unit.cli.shell import PATIENCE
from tests.unit.cli.test_serve import TEAM

NOISY = 'print("a module that speaks")\nimport os; os.write(1, b"and a program\\n")\n'


def program(shell, *words):
    shell.write("team.py", NOISY + TEAM)
    words = ["-m", "antiphon.cli", "mcp", "serve", "--journal", "runs.db", *words]
    return StdioServerParameters(
        command=sys.executable, args=words, env=dict(shell.environment()), cwd=str(shell.folder)
    )


def in_time(work):
    async def bounded():
        async with asyncio.timeout(PATIENCE):
            return await work()

    return asyncio.run(bounded())


@pytest.mark.slow
def test_a_client_starts_it_and_its_person_answers(shell):
    async def says(ctx, params):
        return ElicitResult(action="accept", content={"answer": "yes"})

    async def work():
        async with Client(program(shell, "team.py:payer"), elicitation_callback=says) as client:
            found = await client.call_tool("ask", {"message": "Pay"})
            assert found.structured_content["output"] == "all paid"

    in_time(work)
    assert (shell.folder / "paid").read_text() == "ann\n"


@pytest.mark.slow
def test_a_run_outlives_a_kill(shell):
    async def work():
        async with Client(program(shell, "team.py:clerk")) as client:
            found = await client.call_tool("ask", {"message": "Hi", "wait_seconds": 0})
            run_id = found.structured_content["run_id"]
            assert found.structured_content["state"] == "running"
            (killed,) = [each for each in os.listdir("/proc") if _is(each, "team.py:clerk")]
            os.kill(int(killed), signal.SIGKILL)
        (shell.folder / "open").write_text("")
        async with Client(program(shell, "team.py:clerk")) as client:
            ended = await client.call_tool("get_run", {"run_id": run_id, "wait_seconds": PATIENCE})
            assert ended.structured_content["output"] == "Half an answer."

    in_time(work)


def _is(number, word):
    try:
        with open(f"/proc/{number}/cmdline", "rb") as file:
            words = file.read().split(b"\0")
    except OSError:
        return False
    return word.encode() in words and b"runs.db" in words


@pytest.mark.slow
def test_over_http_it_says_where_and_wants_its_token(shell):
    import httpx2

    shell.write("team.py", TEAM)
    serving = shell.start(
        "mcp", "serve", "team.py:payer", "--http", "--port", "0", "--journal", "runs.db", stdout=-1, text=True
    )
    try:
        said, token = serving.stdout.readline().split(), serving.stdout.readline().split()[1]
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
        assert httpx2.post(said[-1], json=body).status_code == 401

        async def work():
            from mcp.client.streamable_http import streamable_http_client

            headers = {"Authorization": f"Bearer {token}"}
            async with (
                httpx2.AsyncClient(headers=headers) as http,
                Client(streamable_http_client(said[-1], http_client=http)) as client,
            ):
                assert client.protocol_version == "2026-07-28"
                assert len((await client.list_tools()).tools) == 4

        in_time(work)
    finally:
        serving.send_signal(signal.SIGTERM)
        assert serving.wait(PATIENCE) == exit_codes.COMPLETED
        serving.stdout.close()


def test_what_cannot_be_served_is_said(shell):
    missing = shell("mcp", "serve", "nowhere.yaml")
    assert missing.code == exit_codes.CONFIG
    assert json.dumps(missing.out) == '""', "nothing but messages is ever written to the output"
