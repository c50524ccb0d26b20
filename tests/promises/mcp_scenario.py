"""The scenario of a real MCP server, a process of its own, whose client is killed everywhere; its tools are
found by a search."""

import importlib.util
import sys
from pathlib import Path

from antiphon import Agent, ModelOptions, Policy
from antiphon.models.script import Script, call
from antiphon.testing.crash import Scenario
from antiphon.tools.mcp import McpServer, mcp_toolset

PEER = Path(__file__).parents[1] / "unit/tools/mcp/peer.py"
INSTALLED = importlib.util.find_spec("mcp") is not None
if INSTALLED:
    # Once, before processes are forked: it takes longer than all that they do.
    import antiphon.tools.mcp.session  # noqa: F401


def _team(world):
    server = McpServer("p", sys.executable, ("-S", "-E", str(PEER), "honest"))
    return [Agent("a", "You are a.", tools=[mcp_toolset(server)], asking=ModelOptions(toolset_tokens=0))]


def found(name, **arguments):
    return call("call_tool", name=name, arguments=arguments)


MCP = Scenario(
    "mcp", _team,
    lambda: Script(
        [
            call("search_tools", query="say again"),
            found("p_echo", text="x"),
            [found("p_act"), found("p_echo", text="y")],
            call("p_act"),
            "done",
        ],
        by="turn",
    ),
    (("a", "go"),),
    options={"policy": Policy("open", allow=("*",))}, counted=True,
)  # fmt: skip
