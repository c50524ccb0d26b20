"""The public reference servers of MCP: each is started from a file of servers, its tools are listed, and an
agent calls one. Nothing but this machine is asked."""

import asyncio
import json
import os
import shutil
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from antiphon.models.script import call
from antiphon.tools.mcp import read_servers
from antiphon.tools.mcp.visit import visited
from tests.unit.tools.mcp.conftest import play

pytest.importorskip("mcp", reason="the extra mcp is not installed")

HERE = Path(__file__).parent
VENV = HERE.parents[1] / ".venv"
NPM = HERE / "servers/node_modules/@modelcontextprotocol"
PATIENCE = 60
PAGE = "The sea rises twice a day."


class Page(BaseHTTPRequestHandler):
    """One page of plain text, whatever is asked for."""

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.end_headers()
        self.wfile.write(PAGE.encode())

    def log_message(self, *said):
        """Nobody reads it."""


@pytest.fixture
def page():
    """The address of a page on this machine."""
    with HTTPServer(("127.0.0.1", 0), Page) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/sea"
        server.shutdown()
        thread.join()


def npm(name, *words, **env):
    """A server of npm, as the file of servers has it."""
    node, package = shutil.which("node"), NPM / f"server-{name}"
    if node is None or not package.exists():
        pytest.skip(f"not installed: {why(name)}")
    (program,) = json.loads((package / "package.json").read_text())["bin"].values()
    return {"command": node, "args": [str(package / program), *map(str, words)], "env": env}


def python(name, *words, place="servers"):
    """A server of PyPI, in an environment of its own."""
    program = VENV / place / "bin" / f"mcp-server-{name}"
    if not program.exists():
        pytest.skip(f"not installed: {why(name)}")
    return {"command": str(program), "args": list(map(str, words))}


def why(name):
    """Why a server is not there, as whoever wanted to install it says."""
    file = VENV / "servers.why"
    said = file.read_text().splitlines() if file.exists() else []
    return next((line for line in said if name in line.partition(": ")[0]), "scripts/servers.sh installs it")


def everything(folder, page):
    return npm("everything"), call("s_echo", message="tides"), "tides"


def filesystem(folder, page):
    (folder / "sea.txt").write_text(PAGE)
    return npm("filesystem", folder), call("s_read_text_file", path=str(folder / "sea.txt")), PAGE


def memory(folder, page):
    moon = {"name": "Moon", "entityType": "body", "observations": ["pulls the sea"]}
    server = npm("memory", MEMORY_FILE_PATH=str(folder / "memory.jsonl"))
    return server, call("s_create_entities", entities=[moon]), "pulls the sea"


def sequential_thinking(folder, page):
    thought = {"thought": "Tides.", "nextThoughtNeeded": False, "thoughtNumber": 1, "totalThoughts": 1}
    return npm("sequential-thinking"), call("s_sequentialthinking", **thought), "thoughtHistoryLength"


def fetch(folder, page):
    server = python("fetch", "--ignore-robots-txt", "--allow-private-ips")
    return server, call("s_fetch", url=page, raw=True), PAGE


def git(folder, page):
    subprocess.run(["git", "init", "--quiet", str(folder)], check=True)
    (folder / "sea.txt").write_text(PAGE)
    server = python("git", "--repository", folder)
    return server, call("s_git_status", repo_path=str(folder)), "sea.txt"


def time(folder, page):
    asked = {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}
    return python("time", "--local-timezone", "UTC"), call("s_convert_time", **asked), "T21:00"


def sqlite(folder, page):
    server = python("sqlite", "--db-path", folder / "sea.db", place="sqlite_server")
    return server, call("s_read_query", query="select 'twice' as tides"), "twice"


SERVERS = (everything, filesystem, memory, sequential_thinking, fetch, git, time, sqlite)
TOOLS = {"everything": 5, "filesystem": 5, "memory": 5, "git": 5, "sqlite": 5, "time": 2}
"""How many tools each has, at least."""


@pytest.mark.deep
@pytest.mark.parametrize("known", SERVERS, ids=lambda each: each.__name__)
def test_it_starts_lists_and_runs(known, tmp_path, page):
    folder = tmp_path / "folder"
    folder.mkdir()
    server, asked, expected = known(folder, page)
    file = tmp_path / ".mcp.json"
    file.write_text(json.dumps({"mcpServers": {"s": server}}))
    (found,) = read_servers(file, os.environ).values()

    async def listed():
        async with asyncio.timeout(PATIENCE), visited(found) as tools:
            return tools

    tools = asyncio.run(listed())
    assert len(tools) >= TOOLS.get(known.__name__, 1)
    assert all(each.description and not each.trusted for each in tools)
    played = play(found, asked)
    assert played.output == "done"
    assert expected in played.told[0]
